"""Attacks on the command line, inside this process: odd words for every command, none of which may run for long."""

import os
from pathlib import Path
from random import Random

from gradient_dd.errors import show
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import TASKS
from tests.adversary.odd import TEXTS
from tests.adversary.rule import Attack, Case
from tests.adversary.stores import command, scratch, whole_store

LISTS = (
    "0.1",
    "0.1,0.3",
    "1e-3..1:5",
    "1e-3..1:1000000000",
    "1..0:3",
    "..",
    ",",
    "0.1,",
    "nan",
    "inf",
    "-1",
    "1e400",
    "a",
)
COUNTS = ("1", "2", "0", "-1", "1.5", "a", "", str(2**63), str(10**30), "9" * 5000, "1e3")
SCHEDULES = (
    "constant",
    "tapered(10)",
    "tapered(e)",
    "tapered(1e)",
    "tapered(+)",
    "tapered(1.2.3)",
    "tapered(1e400)",
    "x",
)
SIZES = ("3", "5", "0", "-1", "100000", "100000000", "1e5", "nan", "a", "", "9" * 5000, "true")


def places(folder: Path) -> list[str]:
    """Return paths, good and bad, for what is written or read."""
    (folder / "file").write_text("hello")
    (folder / "folder").mkdir(exist_ok=True)
    (folder / "whole.db").write_bytes(whole_store()[0])
    if not (folder / "pipe").exists():
        os.mkfifo(folder / "pipe")
    inside = [
        str(folder / name) for name in ("a.db", "whole.db", "file", "folder", "file/x.db", "none/x.db", "x" * 300)
    ]
    return [
        *inside,
        "",
        "/",
        ".",
        "/dev/null/x",
        "/proc/x.db",
        "/dev/null",
        f"{folder}/pipe",
        f"{folder}/\x1b[31m.db",
        f"{folder}/\udcff.db",
    ]


def task_words(rng: Random) -> str:
    """Return a task as `--task` takes it."""
    name = rng.choice([*TASKS, *TEXTS])
    parameter = rng.choice(
        ["n_states", "n_features", "features", "ratios", "episodic", "start", "discount", "seed", "x"]
    )
    value = rng.choice([*SIZES, *TEXTS])
    return rng.choice(
        [name, f"{name}:{parameter}={value}", f"{name}:{parameter}", f"{name}:", f"{name}:{parameter}={value},"]
    )


def sweep_words(rng: Random, folder: Path) -> list[str]:
    """Return words of a sweep; odd ones only look, because a long sweep is no mistake."""
    words = {
        "--task": "random_walk:n_states=3",
        "--learner": "td",
        "--alpha": "0.1",
        "--episodes": "2",
        "--runs": "1",
        "--out": str(folder / "a.db"),
    }
    odd = {
        "--task": lambda: task_words(rng),
        "--learner": lambda: rng.choice([*LEARNERS, "gtd2:T", "td:T", "gtd2:x", *TEXTS]),
        "--alpha": lambda: rng.choice(LISTS),
        "--zeta": lambda: rng.choice(LISTS),
        "--kappa": lambda: rng.choice(LISTS),
        "--set": lambda: rng.choice(["reg=1", "reg", "=1", "x=1", "reg=", *TEXTS]),
        "--schedule": lambda: rng.choice([*SCHEDULES, *TEXTS]),
        "--episodes": lambda: rng.choice(COUNTS),
        "--steps": lambda: rng.choice(COUNTS),
        "--every": lambda: rng.choice(COUNTS),
        "--runs": lambda: rng.choice(COUNTS),
        "--seed": lambda: rng.choice(COUNTS),
        "--sampling": lambda: rng.choice(["iid", "trajectory", *TEXTS]),
        "--rule": lambda: rng.choice([f"{folder}/file:R", f"{folder}/none.py:R", "x", "", ":"]),
    }
    for name in rng.sample(list(odd), k=rng.choice([1, 1, 2])):
        words[name] = odd[name]()
    long = any(words.get(name) not in (None, "1", "2") for name in ("--episodes", "--steps", "--runs", "--every"))
    if rng.random() < 0.3 and not long:
        words["--out"] = rng.choice(places(folder))
        words |= {"--alpha": "0.1", "--task": "random_walk:n_states=3", "--learner": "td"}
        return [
            "sweep",
            *(part for pair in words.items() for part in pair),
            "--workers",
            rng.choice(["1", "1", *COUNTS[2:6]]),
        ]
    return ["sweep", *(part for pair in words.items() for part in pair), "--dry-run"]


def other_words(rng: Random, folder: Path) -> list[str]:
    """Return words of the commands that only read, and of those that are refused."""
    place, name = rng.choice(places(folder)), rng.choice([*LEARNERS, *TASKS, *TEXTS])
    parameter = f"{rng.choice(['n_states', 'n_features', 'x', ''])}={rng.choice([*SIZES, *TEXTS])}"
    target = rng.choice(
        [str(scratch() / "t.csv"), str(scratch() / "t.parquet"), str(scratch() / "t.x"), *places(folder)]
    )
    return rng.choice(
        [
            ["list", rng.choice(["learners", "tasks", "figures", *TEXTS])],
            ["show", name, *([parameter] if rng.random() < 0.7 else [])],
            ["show", rng.choice(list(TASKS)), parameter, *(["--json"] if rng.random() < 0.3 else [])],
            ["analyse", rng.choice(TEXTS), parameter],
            ["analyse", "--log", rng.choice([place, *TEXTS])],
            ["status", "--out", place],
            ["verify", place],
            ["export", target, "--out", place, *(["--per-run"] if rng.random() < 0.5 else [])],
            ["reproduce", "no-such-figure", "--out", place, "--runs", rng.choice(COUNTS)],
            ["reproduce", "no-such-figure", "--episodes", rng.choice(COUNTS)],
            ["report", "walk", "--out", place],
            ["plot", rng.choice(["walk", *TEXTS]), "--out", rng.choice([place, str(folder / "none")])],
            ["sweep", rng.choice([place, *TEXTS])],
            [rng.choice(TEXTS), *rng.sample(TEXTS, k=rng.randrange(3))],
            [],
        ]
    )


def attack_command_line(rng: Random, folder: Path) -> Case:
    """A command with odd words; its errors are ours, click's, or of the file system, which `main` puts into words."""
    make = sweep_words if rng.random() < 0.5 else other_words
    words = [word.replace("\0", "0") for word in make(rng, folder)]  # no program can be called with one
    text = " ".join(show(word.replace(str(folder), "FOLDER")) for word in words)
    return Case(f"gradient-dd {text}", lambda: call(words))


def call(words: list[str]) -> None:
    """Run a command; what click or the file system refuses is refused well."""
    import click

    try:
        command(*words)
    except (click.ClickException, click.exceptions.Exit):
        return
    except OSError as error:
        if error.errno is None:
            raise


ATTACKS: dict[str, Attack] = {"command_line": attack_command_line}
