"""Attacks with logs: odd columns in every form that `evaluate_log` reads, odd arguments, and made-up Minari sets."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

import gradient_dd as gdd
from gradient_dd import GradientDDError
from gradient_dd.errors import show
from tests.adversary.files import damaged, files_of, written
from tests.adversary.odd import TEXTS, anything, array, changed, scalar
from tests.adversary.rule import Attack, Case, described
from tests.adversary.stores import command

ROWS = 24
FORMS = ("parquet", "csv", "npz", "npy", "frame", "dictionary")
FLAGS = ("terminated", "truncated", "done")
Columns = dict[str, Any]


def sound_log(rng: Random) -> Columns:
    """Return the columns of a log that can be evaluated: plain numbers, flags and ids, one value in each row."""
    draw = np.random.default_rng(rng.getrandbits(32))
    made: Columns = {name: draw.normal(size=ROWS).round(3) for name in ("x0", "x1", "next_x0", "next_x1", "reward")}
    made["terminated"] = np.arange(ROWS) % 6 == 5
    made["episode"] = np.arange(ROWS) // 6
    if rng.random() < 0.3:
        made["action"] = draw.integers(2, size=ROWS)
    if rng.random() < 0.3:
        made["rho"] = draw.uniform(0, 2, size=ROWS).round(3)
    if rng.random() < 0.3:
        made["discount"] = np.where(made["terminated"], 0.0, 0.9)
    return made


def evaluated(log: Any, **words: Any) -> tuple[bytes, str]:
    """Return the weights and the mean first value that a log gives, in forms that can be compared."""
    found = gdd.evaluate_log(log, **({"discount": 0.9} | words))
    return found.w.tobytes(), repr(float(found.start_value))


# Columns that every form can hold ---------------------------------------------------------------------------------

PLAIN_CHANGES: dict[str, Callable[[Random, Any], Any]] = {
    "not a number": lambda rng, old: with_one(rng, old, np.nan),
    "infinite": lambda rng, old: with_one(rng, old, np.inf),
    "too large": lambda rng, old: with_one(rng, old, 1e200),
    "half": lambda rng, old: with_one(rng, old, 0.5),
    "almost one": lambda rng, old: with_one(rng, old, 0.999),
    "two": lambda rng, old: with_one(rng, old, 2.0),
    "minus one": lambda rng, old: with_one(rng, old, -1.0),
    "whole": lambda rng, old: np.asarray(old, float).astype(np.int64),
    "as floats": lambda rng, old: np.asarray(old, float),
    "all alike": lambda rng, old: np.zeros(ROWS),
    "beyond floats": lambda rng, old: 2**53 + np.arange(ROWS) // 6,
    "negative ids": lambda rng, old: -(np.arange(ROWS) // 6),
    "names": lambda rng, old: np.array([f"episode {i // 6}" for i in range(ROWS)]),
    "words": lambda rng, old: np.array([rng.choice(["yes", "no", "a", "1.5x"]) for _ in range(ROWS)]),
    "ids that come again": lambda rng, old: np.arange(ROWS) % 5,
}


NO_NUMBER = ("not a number", "infinite", "names", "words")
NO_FLAG = (*NO_NUMBER, "half", "almost one", "two", "minus one", "too large")
MUST_BE_REFUSED = {
    **dict.fromkeys(("x0", "x1"), ("not a number", "infinite")),  # text is a category there
    **dict.fromkeys(("reward", "rho"), NO_NUMBER),
    "terminated": NO_FLAG,
    "episode": ("not a number", "infinite"),
}


def with_one(rng: Random, old: Any, value: float) -> Any:
    """Return a column of floats with another value in one row."""
    made = np.array(old, float)
    made[rng.randrange(ROWS)] = value
    return made


def in_form(form: str, columns: Columns, folder: Path) -> Any:
    """Return a log in one of the forms; its cells are the same in all."""
    import pandas as pd

    if form in ("parquet", "csv"):
        file, frame = folder / f"log.{form}", pd.DataFrame(columns)
        frame.to_parquet(file) if form == "parquet" else frame.to_csv(file, index=False)
        return file
    if form == "npz":
        np.savez(folder / "log.npz", **columns)
        return folder / "log.npz"
    if form == "npy":
        records = np.empty(ROWS, [(name, np.asarray(one).dtype) for name, one in columns.items()])
        for name, one in columns.items():
            records[name] = one
        np.save(folder / "log.npy", records)
        return folder / "log.npy"
    return pd.DataFrame(columns) if form == "frame" else dict(columns)


def attack_log_forms(rng: Random, folder: Path) -> Case:
    """One log in every form: all give the same answer, or all refuse it."""
    columns, changes, refused = sound_log(rng), list[str](), list[str]()
    for name in rng.sample(list(columns), k=rng.choice([0, 1, 1, 2])):
        kind = rng.choice(list(PLAIN_CHANGES))
        columns[name] = PLAIN_CHANGES[kind](rng, columns[name])
        changes.append(f"{name} {kind}")
        refused += [changes[-1]] if kind in MUST_BE_REFUSED.get(name, ()) else []
    if rng.random() < 0.1:
        changes.append(f"without {(gone := rng.choice(list(columns)))}")
        columns.pop(gone)
        refused.clear()

    def call() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for form in FORMS:
            try:
                found[form] = evaluated(in_form(form, columns, folder))
            except GradientDDError:
                found[form] = "refused"
        return found

    def complaint(found: dict[str, Any]) -> str:
        if len(set(found.values())) == 1:
            return f"took {refused[0]}" if refused and found["csv"] != "refused" else ""
        kinds: dict[Any, list[str]] = {}
        for form, answer in found.items():
            kinds.setdefault(answer, []).append(form)
        words = (f"{' '.join(forms)}: {'refused' if one == 'refused' else one[1]}" for one, forms in kinds.items())
        return f"answers differ by form ({', '.join(changes)}) {'; '.join(words)}"

    return Case(f"evaluate_log in every form: {', '.join(changes)}", call, complaint=complaint)


# Columns of odd kinds, and odd arguments --------------------------------------------------------------------------

ODD_COLUMNS: dict[str, Callable[[Random], Any]] = {
    "two-dimensional": lambda rng: np.ones((ROWS, 2)),
    "complex": lambda rng: np.ones(ROWS) + 1j,
    "masked": lambda rng: np.ma.masked_array(np.ones(ROWS), np.arange(ROWS) == 3),
    "dates": lambda rng: np.arange(ROWS).astype("datetime64[D]"),
    "durations": lambda rng: np.arange(ROWS).astype("timedelta64[s]"),
    "bytes": lambda rng: np.array([b"a"] * ROWS),
    "nothing": lambda rng: np.array([None] * ROWS, object),
    "some nothing": lambda rng: np.array([None if i % 5 == 0 else 1.0 for i in range(ROWS)], object),
    "ragged": lambda rng: np.array([[1.0] * (1 + i % 2) for i in range(ROWS)], object),
    "lists": lambda rng: [[1.0, 2.0]] * ROWS,
    "mixed": lambda rng: np.array([scalar(rng) for _ in range(ROWS)] + [None], object)[:ROWS],
    "short": lambda rng: np.ones(ROWS - 1),
    "one number": lambda rng: 1.0,
    "empty": lambda rng: np.ones(0),
    "unhashable": lambda rng: np.array([{} for _ in range(ROWS)], object),
    "records": lambda rng: np.zeros(ROWS, [("a", float)]),
    "long doubles": lambda rng: np.ones(ROWS, np.longdouble),
    "any array": lambda rng: array(rng, (ROWS,)),
    "anything": lambda rng: anything(rng, (ROWS,)),
}


FOREIGN = ("complex", "masked", "dates", "durations", "bytes", "nothing", "some nothing", "records")  # never numbers


def attack_log_columns(rng: Random, folder: Path) -> Case:
    """A dictionary or a frame with a column of an odd kind, an odd name, or none at all."""
    import pandas as pd

    columns, kind = sound_log(rng), rng.choice(list(ODD_COLUMNS))
    name = rng.choice([*columns, rng.choice(FLAGS), rng.choice(TEXTS)])
    columns[name] = ODD_COLUMNS[kind](rng)
    framed = rng.random() < 0.5

    def call() -> Any:
        log: Any = columns
        if framed:
            try:
                log = pd.DataFrame({key: pd.Series(list(value)) for key, value in columns.items()})
            except Exception:  # pandas cannot hold it
                return None
            if name == "episode" and kind == "nothing":
                log.columns = [*log.columns[:-1], log.columns[0]]
        return evaluated(log)

    foreign = name in ("reward", "terminated", "x0") and kind in FOREIGN
    took = lambda result: f"took {kind} for {name}" if foreign and result is not None else ""  # noqa: E731
    words = f"evaluate_log of a {'frame' if framed else 'dictionary'}: {show(name)} is {kind}"
    return Case(words, call, complaint=took)


def attack_log_arguments(rng: Random, folder: Path) -> Case:
    """A sound log with odd arguments."""
    good = {"discount": 0.9, "target": None, "features": "raw", "columns": None, "learner": "auto"}
    good |= {"skip_bad_rows": False, "at": None, "confidence": 0.95, "seed": 0}
    words, columns = changed(rng, good), sound_log(rng)
    if rng.random() < 0.2:
        roles = {rng.choice(["reward", "observation", "episode", "x", 3, None]): anything(rng)}
        words["columns"] = rng.choice([roles, {"reward": "x0"}, {"observation": ["x0", "none"]}, {"observation": []}])
    if rng.random() < 0.2:
        words["target"] = lambda *observed: anything(rng, (ROWS,))
        columns["action"] = np.arange(ROWS) % 2
        columns["behaviour_probability"] = np.full(ROWS, 0.5)
    if rng.random() < 0.2:
        words["features"] = lambda observation: anything(rng, (2,))
    if rng.random() < 0.1:
        words[rng.choice(["alpha", "zeta", "x"])] = scalar(rng)
    return Case(f"evaluate_log({described(words)})", lambda: gdd.evaluate_log(columns, **words))


# Files ------------------------------------------------------------------------------------------------------------


def odd_parquet(rng: Random, folder: Path) -> tuple[str, bytes]:
    """Return a Parquet file with columns that only Parquet has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {name: pa.array(np.asarray(one)) for name, one in sound_log(rng).items()}
    observed = {
        "lists": pa.array([[1.0, 2.0]] * ROWS),
        "ragged lists": pa.array([[1.0] * (1 + i % 3) for i in range(ROWS)]),
        "ragged lists of the right sum": pa.array([[1.0] * (1 if i % 2 else 3) for i in range(ROWS)]),
        "lists with nothing in one": pa.array([None if i == 2 else [1.0, 2.0] for i in range(ROWS)]),
        "nothing and a double": pa.array([None if i == 2 else [1.0] * (4 if i == 3 else 2) for i in range(ROWS)]),
        "lists of lists": pa.array([[[1.0], [2.0]]] * ROWS),
        "lists of words": pa.array([["a", "b"]] * ROWS),
        "empty lists": pa.array([[]] * ROWS, pa.list_(pa.float64())),
        "records": pa.array([{"a": 1.0}] * ROWS),
    }
    kinds: dict[str, Any] = {
        "nothing": pa.nulls(ROWS),
        "some nothing": pa.array([None if i % 5 == 0 else 1.0 for i in range(ROWS)]),
        "dates": pa.array(np.arange(ROWS).astype("datetime64[s]")),
        "durations": pa.array(np.arange(ROWS).astype("timedelta64[s]")),
        "bytes": pa.array([b"a"] * ROWS),
        "decimals": pa.array(np.arange(ROWS)).cast(pa.decimal128(30, 2)),
        "a dictionary": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
        "words": pa.array(["yes"] * ROWS),
        "large": pa.array([2**63 + i for i in range(ROWS)], pa.uint64()),
    }
    if rng.random() < 0.5:
        kind = rng.choice(list(observed))
        for name in ("x0", "x1", "next_x0", "next_x1"):
            columns.pop(name)
        columns |= {"observation": observed[kind], "next_observation": observed[rng.choice([kind, "lists"])]}
    else:
        kind = rng.choice(list(kinds))
        columns[rng.choice(["reward", "terminated", "episode", "x0"])] = kinds[kind]
    table = pa.table(columns)
    if rng.random() < 0.1:
        kind, table = "two columns of one name", pa.table(list(columns.values()), ["reward"] * len(columns))
    pq.write_table(table, folder / "odd.parquet")
    return f"Parquet with {kind}", (folder / "odd.parquet").read_bytes()


def odd_csv(rng: Random) -> tuple[str, bytes]:
    """Return a CSV file with odd cells."""
    columns = sound_log(rng)
    cells = [list(columns), *(list(map(str, row)) for row in zip(*columns.values(), strict=True))]
    for _ in range(rng.choice([1, 1, 2, 3])):
        row = cells[rng.choice([0, rng.randrange(len(cells))])]
        texts = [text for text in TEXTS if "\udc80" not in text]
        row[rng.randrange(len(row))] = rng.choice([*texts, '"', ",", "1e400", "9007199254740993", *columns])
    return f"CSV with columns {show(cells[0])}", "\n".join(map(",".join, cells)).encode()


def odd_file(rng: Random, folder: Path) -> tuple[str, Path]:
    """Return a log file in words, and its path: damaged, odd inside, empty, or of another kind than its name says."""
    kind = rng.choice(["damaged", "damaged", "parquet", "parquet", "csv", "csv", "other", "place"])
    if kind == "place":
        return odd_place(rng, folder)
    form = rng.choice(FORMS[:4])
    if kind == "parquet":
        words, content = odd_parquet(rng, folder)
    elif kind == "csv":
        words, content = odd_csv(rng)
    elif kind == "other":
        words, content = "another file", rng.choice([b"", b"\0" * 100, b"hello", b"PAR1", b"PK\x03\x04", b"x,y\n"])
    else:
        words, content = damaged(rng, in_form(form, sound_log(rng), folder).read_bytes())
    form = {"parquet": "parquet", "csv": "csv"}.get(kind, form)
    return f"{form}, {words}", written(folder, f"{rng.choice(['odd', 'odd', 'odd' + chr(0xDCFF)])}.{form}", content)


def odd_place(rng: Random, folder: Path) -> tuple[str, Path]:
    """Return a path that is no plain file."""
    kind, path = rng.choice(["folder", "fifo", "device", "dangling", "long", "inside"]), folder / "log.csv"
    path = path.with_suffix(f".{rng.choice(FORMS[:4])}")
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "dangling":
        path.symlink_to(folder / "none")
    elif kind == "long":
        path = folder / ("x" * 300 + path.suffix)
    else:
        (folder / "file").touch()
        path = folder / "file" / path.name
    return f"{kind} named {path.suffix}", path


def attack_log_file(rng: Random, folder: Path) -> Case:
    """A log file that is damaged, odd or none."""
    words, file = odd_file(rng, folder)
    skip = rng.random() < 0.3
    call = lambda: evaluated(file, skip_bad_rows=skip)  # noqa: E731
    return Case(f"evaluate_log of {words}{', bad rows skipped' if skip else ''}", call, lambda: files_of(folder))


def attack_log_command(rng: Random, folder: Path) -> Case:
    """`gradient-dd evaluate` with an odd file or odd words."""
    words, file = odd_file(rng, folder)
    call = ["evaluate", str(file), "--discount", rng.choice(["0.9", "0.9", "2", "nan", "a"])]
    flags = {
        "--column": ["reward=x0", "reward", "=x", "observation=", "observation=x0,none", *TEXTS],
        "--set": ["alpha=1", "alpha", "x=1"],
        "--features": ["tiles", "fourier", "none", f"{file}:f", ":"],
        "--target": [f"{file}:f", "none.py:f", ":", ""],
        "--report": [str(folder), str(folder / "page.html"), "/dev/null/x", ""],
        "--confidence": ["0", "1", "nan", "0.5"],
    }
    for flag in rng.sample(list(flags), k=rng.randrange(3)):
        call += [flag, rng.choice(flags[flag]).replace("\0", "0")]
    text = " ".join(show(word.replace(str(folder), "FOLDER")) for word in call)
    return Case(f"gradient-dd {text} of {words}", lambda: run_command(call))


def run_command(words: list[str]) -> None:
    """Run a command; what click refuses is refused well."""
    import click

    try:
        command(*words)
    except (click.ClickException, click.exceptions.Exit):
        return


# Minari -----------------------------------------------------------------------------------------------------------


def attack_minari(rng: Random, folder: Path) -> Case:
    """A made-up Minari set: an object with episodes, of which something is odd, missing or too long."""
    n = rng.choice([0, 1, 5])
    good = {"observations": np.ones((n + 1, 2)), "actions": np.zeros(n, int), "rewards": np.ones(n)}
    good |= {"terminations": np.arange(n) == n - 1, "truncations": np.zeros(n, bool), "infos": {}}
    shapes = {"observations": (n + 1, 2)} | dict.fromkeys(("actions", "rewards", "terminations", "truncations"), (n,))
    odd = changed(rng, good, shapes)
    if rng.random() < 0.3:
        odd.pop(rng.choice(list(odd)))
    if rng.random() < 0.2:
        odd["observations"] = rng.choice([{"a": np.ones(n + 1)}, (np.ones(n + 1),), np.ones((n, 2)), ["a"] * (n + 1)])
    if rng.random() < 0.2:
        odd["infos"] = rng.choice([{"rho": anything(rng, (n,))}, {"behaviour_probability": np.ones(n + 9)}, None])
    episodes = [SimpleNamespace(**good), SimpleNamespace(**odd), SimpleNamespace(**good)]
    given: Any = rng.choice([episodes, episodes[1:], episodes, [], [None], [1], None])
    dataset = SimpleNamespace(iterate_episodes=lambda: given)
    if rng.random() < 0.1:
        dataset.iterate_episodes = rng.choice([None, 3, lambda: 1, lambda: iter([])])
    text = "none" if given is not episodes else described(odd)
    return Case(f"evaluate_log of a Minari set, {len(given or ())} episodes, {text}", lambda: evaluated(dataset))


ATTACKS: dict[str, Attack] = {
    name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")
}
