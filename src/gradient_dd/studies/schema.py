"""The tables of a results file; docs/store.md explains every column.

setting     one lane under given conditions: key, task, size, reading, learner, its values, schedule, horizon, seed
result      (setting, run): last100, area, diverged_step, diverged_episode
curve       (setting, run): the learning curve, little-endian float64; apart, so that results are quick to read
seal        the checksums of results and curves that were written together
unit        (task, run) as it was run: settings, steps, seconds, when, provenance
cost        what the kernels of each learner took of a unit: seconds, updates
study       every study that was started: name, its text, when, its settings and runs
provenance  versions, processor, commit
"""

APPLICATION = 0x67644444  # "gdDD"
VERSION = 3

COST = """
CREATE TABLE cost (
    unit INTEGER NOT NULL REFERENCES unit (id), learner TEXT NOT NULL, seconds REAL NOT NULL, updates INTEGER NOT NULL,
    PRIMARY KEY (unit, learner)
);
"""  # since version 2
SEAL = """
CREATE TABLE seal (
    id INTEGER PRIMARY KEY, run INTEGER NOT NULL, first_setting INTEGER NOT NULL, last_setting INTEGER NOT NULL,
    settings BLOB NOT NULL, errors BLOB NOT NULL, divergence BLOB NOT NULL, curves BLOB NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE INDEX seal_run ON seal (run, first_setting, last_setting);
"""  # since version 3
SCHEMA = f"""{COST}{SEAL}
CREATE TABLE setting (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, description TEXT NOT NULL,
    task TEXT NOT NULL, size INTEGER NOT NULL, reading TEXT NOT NULL, learner TEXT NOT NULL,
    alpha REAL, zeta REAL, kappa REAL, rho_mode TEXT NOT NULL, "values" TEXT NOT NULL,
    schedule TEXT NOT NULL, episodes INTEGER, steps INTEGER, every INTEGER NOT NULL,
    sampling TEXT NOT NULL, seed INTEGER NOT NULL, checksum INTEGER
);
CREATE INDEX setting_description ON setting (description);
CREATE TABLE result (
    setting INTEGER NOT NULL REFERENCES setting (id), run INTEGER NOT NULL,
    last100 REAL NOT NULL, area REAL NOT NULL, diverged_step INTEGER NOT NULL, diverged_episode INTEGER NOT NULL,
    PRIMARY KEY (setting, run)
) WITHOUT ROWID;
CREATE TABLE curve (
    setting INTEGER NOT NULL REFERENCES setting (id), run INTEGER NOT NULL, points BLOB NOT NULL,
    PRIMARY KEY (setting, run)
);
CREATE TABLE unit (
    id INTEGER PRIMARY KEY, task TEXT NOT NULL, run INTEGER NOT NULL, settings INTEGER NOT NULL,
    steps INTEGER NOT NULL, seconds REAL NOT NULL, at TEXT NOT NULL, provenance INTEGER REFERENCES provenance (id),
    checksum INTEGER
);
CREATE TABLE study (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL,
    first_run INTEGER, runs INTEGER, total INTEGER, settings TEXT
);
CREATE TABLE provenance (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
"""
TO_VERSION_3 = f"""{SEAL}
ALTER TABLE setting RENAME COLUMN said TO description;
DROP INDEX setting_said;
CREATE INDEX setting_description ON setting (description);
ALTER TABLE setting ADD COLUMN checksum INTEGER;
ALTER TABLE unit ADD COLUMN checksum INTEGER;
ALTER TABLE study ADD COLUMN first_run INTEGER;
ALTER TABLE study ADD COLUMN runs INTEGER;
ALTER TABLE study ADD COLUMN total INTEGER;
ALTER TABLE study ADD COLUMN settings TEXT;
"""

SETTING_COLUMNS = (
    *("key", "description", "task", "size", "reading", "learner", "alpha", "zeta", "kappa", "rho_mode", '"values"'),
    *("schedule", "episodes", "steps", "every", "sampling", "seed"),
)  # all but id and checksum
UNIT_COLUMNS = ("task", "run", "settings", "steps", "seconds", "at", "provenance")  # all but id and checksum
PARAMETERS_WITH_A_COLUMN = ("alpha", "zeta", "kappa")
