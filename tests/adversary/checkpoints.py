"""Attacks with files that work continues from: rounds of a collected log and saved learners of every kind.

Damaged, made for another request, swapped for one another, or crafted to run code when they are read.
"""

import io
import pickle
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import gradient_dd as gdd
from tests.adversary.environments import STATES, Walk
from tests.adversary.files import damaged, files_of, written
from tests.adversary.odd import array
from tests.adversary.rule import Attack, Case

HEAD = b"\x93NUMPY\x01\x00v\x00{'descr': %-107b\n"  # of an array in NumPy's own form: its kind and its shape
HEADERS = (
    "",
    "{}",
    "[]",
    "null",
    "1",
    '{"format": 1}',
    '{"n_features": 1000000000}',
    "[" * 9000,
    '{"a": NaN}',
    "\u00e9",
)
EAGER = np.tile([0.2, 0.8], (STATES, 1))
SHY = np.tile([0.7, 0.3], (STATES, 1))
REQUEST: dict[str, Any] = {"target": EAGER, "behaviour": SHY, "discount": 0.9, "seed": 3}
SECOND = "round-000001.parquet"


def going_on(folder: Path | None, **changes: Any) -> bytes:
    """Return the weights of an evaluation from three rounds of a log, the rounds in a folder among them."""
    words = REQUEST | {"steps": 90, "round_steps": 30, "out": folder} | changes
    return bytes(gdd.evaluate(Walk(), **words).w.tobytes())


@cache
def second_round() -> bytes:
    """Return the file of the second round of a log."""
    with TemporaryDirectory() as folder:
        going_on(Path(folder))
        return (Path(folder) / SECOND).read_bytes()


def attack_damaged_round(rng: Random, folder: Path) -> Case:
    """A round with damage, or a file of another type in its place; a change of numbers alone cannot be seen."""
    words, content = damaged(rng, rng.choice([second_round(), saved_learner("Learner")]))
    log = folder / "log"
    log.mkdir()
    (log / SECOND).write_bytes(content)
    return Case(f"evaluate from a log with a round, {words}", lambda: going_on(log))


class Gadget:
    """Something whose pickle calls a function when it is read."""

    def __init__(self, function: str, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def content(self) -> bytes:
        """Return the pickle, written by hand: the function is named by module and dotted name, and never imported."""
        module, name = self.function.split(":")
        arguments = pickle.dumps(self.arguments, protocol=2)[2:-1]  # without its head and its end
        return b"\x80\x04c" + f"{module}\n{name}\n".encode() + arguments + b"R."


def gadgets(canary: Path, rule: Path) -> list[bytes]:
    """Return pickles that write a file when they are read by a reader that trusts some modules."""
    line = f"touch {canary}"
    calls = [
        Gadget("os:system", line),
        Gadget("posix:system", line),
        Gadget("builtins:exec", f"open({str(canary)!r}, 'w')"),
        Gadget("numpy.testing._private.utils:runstring", f"open({str(canary)!r}, 'w')", {}),
        Gadget("numpy.f2py.crackfortran:myeval", f"open({str(canary)!r}, 'w')"),
        Gadget("gradient_dd.studies.files:load_rule", f"{rule}:R"),
        Gadget("gradient_dd.evaluation.environment:os.system", line),
        Gadget("gradient_dd.errors:os.system", line),
        Gadget("numpy:os.system", line),
    ]
    plain = [one.content() for one in calls]
    held = [
        b"\x80\x04}(X\x06\x00\x00\x00formatX\x01\x00\x00\x00aX\x05\x00\x00\x00state" + one[2:-1] + b"u."
        for one in plain
    ]
    return plain + held


def attack_crafted_file(rng: Random, folder: Path) -> Case:
    """A file that runs code if anything unpickles it: a bare pickle, or an array of objects in an archive."""
    canary, rule = folder / "canary", folder / "rule.py"
    rule.write_text(f"open({str(canary)!r}, 'w')\nR = 1\n")
    content = rng.choice(gadgets(canary, rule))
    if rng.random() < 0.5:
        packed, whole = io.BytesIO(), saved_learner("Learner")
        odd = HEAD % b"'|O', 'fortran_order': False, 'shape': (), }" + content
        with zipfile.ZipFile(packed, "w") as archive:
            for name, inside in (members(whole) | {rng.choice(["w.npy", "header.npy", "x.npy"]): odd}).items():
                archive.writestr(name, inside)
        content = packed.getvalue()
    file = written(folder, "odd.npz", content)
    uses: dict[str, Callable[[], Any]] = {
        "Learner.load": lambda: gdd.Learner.load(file),
        "AutoLearner.load": lambda: gdd.AutoLearner.load(file),
        "evaluate_log": lambda: gdd.evaluate_log(file, discount=0.9),
    }
    use = rng.choice(list(uses))

    def call() -> Any:
        try:
            return uses[use]()
        finally:
            if canary.exists():
                raise AssertionError("the file ran code")

    return Case(f"{use} of a file that runs code: {content[:100]!r}", call, lambda: files_of(folder))


def members(archive: bytes) -> dict[str, bytes]:
    """Return what an archive holds by name; nothing if the bytes are no archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return {name: opened.read(name) for name in opened.namelist()}
    except zipfile.BadZipFile:
        return {}


@cache
def saved_learner(kind: str) -> bytes:
    """Return the file of a learner that has learnt a little."""
    agent = gdd.Learner("gradient_dd", 3) if kind == "Learner" else gdd.AutoLearner(3)
    for _ in range(5):
        agent.update([1.0, 0, 2], 1.0, 0.9, [0.0, 1, 0])
    with TemporaryDirectory() as folder:
        agent.save(Path(folder) / "a.npz")
        return (Path(folder) / "a.npz").read_bytes()


def attack_swapped_learner(rng: Random, folder: Path) -> Case:
    """A file of one kind where another kind is meant, damaged or with an odd number or array inside."""
    contents = {"Learner": saved_learner("Learner"), "AutoLearner": saved_learner("AutoLearner")}
    contents |= {"log": second_round()}
    kind, reader = rng.choice(list(contents)), rng.choice(["Learner", "AutoLearner"])
    content, words = contents[kind], "whole"
    inside = members(content)
    if rng.random() < 0.3:
        words, content = damaged(rng, content)
    elif inside and rng.random() < 0.7:
        words, content = with_odd_member(rng, inside)
    file = written(folder, "a.npz", content)

    def call() -> Any:
        agent = getattr(gdd, reader).load(file)
        agent.update(np.ones(agent.n_features), 1.0, 0.0, None)
        return agent.w

    def complaint(w: Any) -> str:
        if kind != reader:
            return f"{reader}.load read the file of another kind"
        return "" if np.isfinite(w).all() else "read weights that are not finite"

    return Case(f"{reader}.load of the file of {kind}, {words}", call, lambda: files_of(folder), complaint)


def with_odd_member(rng: Random, inside: dict[str, bytes]) -> tuple[str, bytes]:
    """Return a change in words and an archive in which one array is odd, or claims to be huge."""
    name, packed = rng.choice(list(inside)), io.BytesIO()
    value: Any = np.asarray(rng.choice([array(rng, (3,)), np.array(rng.choice(HEADERS)), np.ones(3)]))
    changed = io.BytesIO()
    np.save(changed, value if value.dtype.kind != "O" else np.ones(2), allow_pickle=False)
    odd, words = changed.getvalue(), f"{value.dtype} {value.shape}"
    if rng.random() < 0.2:
        odd, words = HEAD % b"'<f8', 'fortran_order': False, 'shape': (1000000000,), }", "said to be huge"
    with zipfile.ZipFile(packed, "w") as archive:
        for one, content in inside.items():
            archive.writestr(one, odd if one == name else content)
    return f"{name} is {words}", packed.getvalue()


ATTACKS: dict[str, Attack] = {
    name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")
}
