"""Try an installed gradient-dd: every command and every public name, without the clone.

`python smoke.py` runs in an environment with all extras, `python smoke.py plain` in one without them: there, what
needs an extra must say how to install it.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import gradient_dd as gdd

COMMAND = str(Path(sys.executable).with_name("gradient-dd"))
STUDY = ["--task", "random_walk:n_states=3", "--learner", "td", "--alpha", "0.1,0.2", "--runs", "2", "--episodes", "20"]
SMALL = ["--runs", "2", "--episodes", "10", "--out", "paper"]
RULE = '''"""TD under another name.

    w ← w + α ρ δ x
"""
from gradient_dd.learners.rule import ALPHA, Rule


def step(alpha, rho, delta):
    return (alpha * rho * delta,)


MINE = Rule("mine", "Mine", step, ("w_x",), (ALPHA,), "Ours.", __name__)


def uniform(seen):
    return [[0.5, 0.5]] * len(seen)
'''
COMMANDS = [  # with the extra that each needs, in an order in which each finds what it reads
    ("", ["list"]),
    ("", ["show", "gradient_dd"]),
    ("", ["analyse", "random_walk", "n_states=3", "--episodes", "50", "--learner", "td"]),
    ("", ["evaluate", "log.csv", "--discount", "0.9"]),
    ("report", ["evaluate", "log.csv", "--discount", "0.9", "--report", "evaluation.html"]),
    ("", ["compare", "log.csv", "--target", "mine.py:uniform", "--discount", "0.9"]),
    (
        "report",
        ["compare", "log.csv", "--target", "mine.py:uniform", "--discount", "0.9", "--report", "comparison.html"],
    ),
    ("", ["rank"]),
    ("", ["rank", "td", "--suite", "classic"]),
    ("", ["sweep", *STUDY, "--out", "results.db"]),
    ("report", ["sweep", *STUDY, "--rule", "mine.py:MINE", "--out", "results.db", "--report"]),
    ("cluster", ["sweep", *STUDY, "--seed", "1", "--dask", "local", "--out", "cluster.db"]),
    ("", ["status", "--out", "results.db"]),
    ("", ["verify", "results.db"]),
    ("", ["export", "table.csv", "--out", "results.db"]),
    ("", ["export", "table.parquet", "--out", "results.db", "--per-run"]),
    ("", ["play", "--rule", "mine.py:MINE"]),
    ("report", ["reproduce", "walk-constant", *SMALL]),
    ("report", ["report", "walk-constant", "--out", "paper"]),
    ("report", ["plot", "walk-constant", "--out", "paper"]),
    ("", ["cache"]),
]


def write_inputs() -> None:
    """Write a log and a file with a rule and a policy."""
    draw = np.random.default_rng(0)
    rows = [f"{draw.integers(3)},{draw.integers(2)},{draw.random():.3f},{int(i % 5 == 4)}" for i in range(600)]
    Path("log.csv").write_text("\n".join(["observation,action,reward,terminated", *rows]) + "\n")
    Path("mine.py").write_text(RULE, encoding="utf-8")


def check_missing(sentence: str) -> None:
    """Check that an error says in one line which packages to install."""
    assert re.fullmatch(r"(Error: )?.* needs \w+, which is not installed\. Try: pip install [\w ]+", sentence), sentence
    print(sentence, flush=True)


def try_commands(plain: bool) -> None:
    """Run every command."""
    listed = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^  (\w+) ", listed.partition("Commands:")[2], re.MULTILINE))
    assert names == {words[0] for _, words in COMMANDS}, names
    for extra, words in COMMANDS:
        done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)
        if plain and extra:
            assert done.returncode == 1, (words, done)
            check_missing(done.stderr.strip().splitlines()[-1])
        else:
            assert done.returncode == 0, (words, done.stdout, done.stderr)
        print("gradient-dd", *words, flush=True)


def environment() -> object:
    """Return a small Gymnasium environment; None without Gymnasium."""
    if find_spec("gymnasium") is None:
        return None
    import gymnasium

    return gymnasium.make("gradient_dd/RandomWalk-v0", n_states=3)


def small_network() -> "gdd.Network":
    """Return a network without hidden layers."""
    return gdd.Network(inputs=2, hidden=())


def half(seen: np.ndarray) -> np.ndarray:
    """Return equal probabilities of two actions."""
    return np.full((len(seen), 2), 0.5)


def try_names(plain: bool) -> None:
    """Use every public name."""
    walk = gdd.tasks.random_walk(n_states=3)
    study = gdd.Study("s", (gdd.task("random_walk", n_states=3),), (gdd.grid("td"),), episodes=5, runs=2)
    x, x_next = np.eye(2)
    log = {"observation": np.arange(60) % 3, "action": np.arange(60) % 2, "reward": np.ones(60)}
    log["terminated"] = np.arange(60) % 5 == 4
    mine = gdd.Rule("mine", "Mine", gdd.LEARNERS["td"].step, ("w_x",), gdd.LEARNERS["td"].parameters, "-", __name__)
    uses = {
        "LEARNERS": lambda: gdd.LEARNERS["gtd2"].equation,
        "TASKS": lambda: gdd.TASKS["baird"],
        "AutoLearner": lambda: gdd.AutoLearner(2).update(x, 1.0, 0.9, x_next),
        "BadRequestError": lambda: issubclass(gdd.BadRequestError, gdd.GradientDDError),
        "DivergedError": lambda: issubclass(gdd.DivergedError, gdd.GradientDDError),
        "GradientDDError": lambda: gdd.GradientDDError("no"),
        "Learner": lambda: gdd.Learner("gradient_dd", n_features=2).update(x, 1.0, 0.9, x_next),
        "Parameter": lambda: gdd.Parameter("clip", "a limit", 1.0),
        "Question": lambda: gdd.Question("q", 1.0, 0.5),
        "Questions": lambda: gdd.Questions([gdd.Question("q", 1.0, 0.5)], n_features=2, learner="tdrc").predict(x),
        "Results": lambda: gdd.Results(study, "names.db").frame(),
        "Rule": lambda: mine.setting(),
        "Setting": lambda: isinstance(mine.setting(), gdd.Setting),
        "Study": lambda: study.estimate(),
        "compare": lambda: gdd.compare(log, targets={"today": None}, discount=0.9).table,
        "evaluate_log": lambda: gdd.evaluate_log(log, discount=0.9).start_value,
        "exact": lambda: gdd.exact.mspbe,
        "features": lambda: gdd.features.TileCoder,
        "grid": lambda: gdd.grid("td", alpha=(0.1, 0.2)),
        "rank": lambda: gdd.rank("td").sentence,
        "reference": lambda: gdd.reference.run(walk, "td", episodes=3),
        "register": lambda: callable(gdd.register),
        "run": lambda: gdd.run(study, out="names.db"),
        "schedules": lambda: gdd.schedules.tapered(10),
        "studies": lambda: gdd.studies.Study,
        "task": lambda: gdd.task("baird").build(),
        "tasks": lambda: walk.true_values,
        "testing": lambda: gdd.testing.check_learner(gdd.LEARNERS["gtd2"]),
    }
    extras = {
        "Network": lambda: gdd.Network(inputs=1),
        "NetworkControl": lambda: gdd.NetworkControl("td", small_network(), actions=2, alpha=0.1),
        "NetworkLearner": lambda: gdd.NetworkLearner("td", small_network(), alpha=0.1).update(x, 1.0, 0.9, x_next),
        "collect": lambda: gdd.collect(environment(), behaviour=half, steps=20),
        "evaluate": lambda: gdd.evaluate(environment(), target=half, behaviour=half, discount=0.9, steps=60),
    }
    assert sorted([*uses, *extras]) == sorted(gdd.__all__), set(gdd.__all__) ^ {*uses, *extras}
    uses["run"]()
    for name, use in (uses | extras).items():
        if plain and name in extras:
            try:
                use()
            except ImportError as error:
                check_missing(str(error))
            else:
                raise AssertionError(f"{name} worked without its extra")
        else:
            use()
        print(f"gradient_dd.{name}", flush=True)


def main() -> None:
    """Try everything in an empty folder."""
    plain = sys.argv[1:] == ["plain"]
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        write_inputs()
        try_names(plain)
        try_commands(plain)


if __name__ == "__main__":
    main()
