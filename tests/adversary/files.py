"""Attacks with files: saved learners, studies and rules that are damaged, odd, or something else altogether."""

import colorsys
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import gradient_dd as gdd
from gradient_dd.errors import show
from gradient_dd.files import open_saved, write_file
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.learner import Learner
from gradient_dd.studies import load_rule, read_study
from tests.adversary.odd import TEXTS, anything, array, scalar
from tests.adversary.rule import Attack, Case

TOML = """name = "mine"
episodes = 20
runs = 2
schedule = "tapered(10)"

[[tasks]]
name = "random_walk"
n_states = 3

[[learners]]
learner = "gradient_dd"
alpha = [0.1, 0.3]
kappa = 1
"""
RULE = Path(__file__).parents[2] / "examples" / "my_rule.py"


def damaged(rng: Random, whole: bytes) -> tuple[str, bytes]:
    """Return damage in words, and the bytes with it."""
    kind = rng.choice(["flip", "flip", "cut", "zero", "insert", "double", "nothing"])
    place = rng.randrange(max(1, len(whole)))
    if kind == "flip" and whole:
        return f"byte {place} flipped", whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[
            place + 1 :
        ]
    if kind == "cut":
        return f"cut at {place}", whole[:place]
    if kind == "zero":
        return f"64 bytes from {place} zero", whole[:place] + bytes(len(whole[place : place + 64])) + whole[
            place + 64 :
        ]
    if kind == "insert":
        return f"a byte more at {place}", whole[:place] + bytes([rng.randrange(256)]) + whole[place:]
    return (f"twice, {len(whole)} bytes", whole * 2) if kind == "double" else ("whole", whole)


def written(folder: Path, name: str, content: bytes) -> Path:
    """Write a file and return its path."""
    (folder / name).write_bytes(content)
    return folder / name


def files_of(folder: Path) -> Any:
    """Return the names and contents of a folder."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def knows(agent: Learner) -> Any:
    """Return what a learner that was read back must have in common with the one saved; one more update shows all."""
    before = repr(agent), str(agent.schedule), agent.w.tobytes(), agent.eta.tobytes(), agent.updates
    agent.update([1.0, 0, 2], 1.0, 0.9, [0.0, 1, 0], pi=0.5, mu=0.5)
    return before, agent.w.tobytes(), agent.eta.tobytes()


def attack_damaged_learner(rng: Random, folder: Path) -> Case:
    """A saved learner with damage; what is read must be what was written."""
    agent = Learner(rng.choice(list(LEARNERS)), 3, alpha=0.1)
    agent.update([1.0, 0, 2], 1.0, 0.9, [0.0, 1, 0], pi=0.5, mu=0.5)
    agent.save(folder / "a.npz")
    words, content = damaged(rng, (folder / "a.npz").read_bytes())
    file, truth = written(folder, "a.npz", content), knows(agent)
    complaint = lambda again: "" if knows(again) == truth else "read another learner than was saved"  # noqa: E731
    return Case(f"Learner.load of {agent!r}, {words}", lambda: Learner.load(file), lambda: files_of(folder), complaint)


def attack_odd_learner_file(rng: Random, folder: Path) -> Case:
    """A file in the form of a saved learner with odd arrays or an odd header."""
    name = rng.choice(["td", "gradient_dd", "natural_tdc"])
    agent = Learner(name, 3)
    agent.save(folder / "a.npz")
    with open_saved(folder / "a.npz", Learner.file) as (header, arrays):
        pass
    key = rng.choice([*header, *arrays])
    odd: Any = anything(rng)
    if key in header:
        inside = rng.choice(list(header[key])) if isinstance(header[key], dict) and rng.random() < 0.7 else None
        if inside is None:
            header[key] = odd
        else:
            header[key][inside] = odd
    else:
        arrays[key] = array(rng, arrays[key].shape)
    text = json.dumps(header, default=repr, skipkeys=True) if is_json(header) else "{}"
    kept = {key: np.asarray(value) for key, value in arrays.items() if not isinstance(value, np.ma.MaskedArray)}
    plain = {key: value for key, value in kept.items() if value.dtype.kind != "O"}
    write_file(folder / "a.npz", Learner.file, json.loads(text), plain)

    def call() -> Any:
        again = Learner.load(folder / "a.npz")
        again.update(np.ones(again.n_features), 1.0, 0.0, None)
        return again.w

    finite = lambda w: "" if np.isfinite(w).all() else "read weights that are not finite"  # noqa: E731
    return Case(f"Learner.load with {key}={show(odd)}", call, lambda: files_of(folder), finite)


def is_json(value: Any) -> bool:
    """Return whether a value can be written as JSON."""
    try:
        json.dumps(value, default=repr, skipkeys=True)
    except (RecursionError, RuntimeError, TypeError, ValueError):
        return False
    return True


def attack_odd_path(rng: Random, folder: Path) -> Case:
    """A path that is none, or leads to something else."""
    folder_inside = folder / "folder"
    folder_inside.mkdir()
    (folder / "file").write_text("hello")
    os.mkfifo(folder / "pipe.npz")
    choices = [
        "",
        ".",
        "/",
        "..",
        str(folder_inside),
        str(folder / "file" / "x.npz"),
        str(folder / "pipe.npz"),
        str(folder / ("x" * 300)),
        "a\0b.npz",
    ]
    path = rng.choice([*choices, f"{folder}/\udc80.npz", "/dev/null", "/proc/1/mem", scalar(rng)])
    uses: dict[str, Callable[[], Any]] = {
        "Learner.load": lambda: Learner.load(path),
        "Learner.save": lambda: Learner("td", 2).save(path),
        "evaluate_log": lambda: gdd.evaluate_log(path, discount=0.9),
        "read_study": lambda: read_study(path),
    }
    if isinstance(path, str) and (not path.startswith(("/", ".")) or path in ("/dev/null",)):
        uses.pop("Learner.save")  # it would be written into this folder, or over a device
    use = rng.choice(list(uses))
    return Case(f"{use}({show(path)})", uses[use], lambda: files_of(folder))


def toml_value(rng: Random, depth: int = 0) -> str:
    """Return a TOML value as text."""
    plain = [
        *('"a"', "1", "-1", "0", "1.5", "nan", "inf", "-inf", "true", "false", "1979-05-27", "[]", "{}"),
        str(10**30),
        '""',
    ]
    nested = lambda: toml_value(rng, depth + 1)  # noqa: E731
    kinds = ["plain", "plain", "array", "table", "text", "deep"] if depth < 3 else ["plain"]
    kind = rng.choice(kinds)
    if kind == "array":
        return f"[{', '.join(nested() for _ in range(rng.randrange(4)))}]"
    if kind == "table":
        return f"{{{', '.join(f'k{i} = {nested()}' for i in range(rng.randrange(3)))}}}"
    if kind == "deep":
        return "[" * rng.choice([50, 3000]) + rng.choice(["]" * 50, ""])
    return json.dumps(rng.choice([t for t in TEXTS if "\udc80" not in t])) if kind == "text" else rng.choice(plain)


def attack_toml(rng: Random, folder: Path) -> Case:
    """A study file with odd entries or damage."""
    lines = TOML.splitlines()
    for _ in range(rng.choice([0, 1, 1, 2])):
        place = rng.randrange(len(lines))
        key = lines[place].partition("=")[0].strip() or rng.choice(["steps", "every", "seed", "first_run", "sampling"])
        lines[place] = lines[place] if key.startswith("[[") else f"{key} = {toml_value(rng)}"
    if rng.random() < 0.1:
        lines.insert(
            rng.randrange(len(lines)), f"{rng.choice(['x', 'tasks', 'rho_mode', 'learners'])} = {toml_value(rng)}"
        )
    words, content = damaged(rng, "\n".join(lines).encode()) if rng.random() < 0.3 else ("", "\n".join(lines).encode())
    file = written(folder, "study.toml", content)
    changed = " ; ".join(line for line in lines if line not in TOML.splitlines())
    return Case(f"read_study: {changed[:200]} {words}", lambda: str(read_study(file)), lambda: files_of(folder))


def attack_rule_file(rng: Random, folder: Path) -> Case:
    """A rule of the user's own that does not run, exits, or is something else; its name may be a known module's."""
    sys.modules["colorsys"] = colorsys
    good = RULE.read_text(encoding="utf-8")
    content = rng.choice(
        [good, good[: rng.randrange(len(good))], "raise SystemExit(3)", "1/0", "R = 3", "import sys; sys.exit()"]
    )
    name = rng.choice(["colorsys.py", "mine.py", "a b.py", "x.txt", "é.py"])
    file = written(folder, name, content.encode())
    place = rng.choice([f"{file}:TDC_DD", f"{file}:R", f"{file}:", f"{file}", ":R", "", f"{folder}:R", "\0.py:R"])
    known = lambda: sys.modules.get("colorsys")  # noqa: E731
    complaint = lambda rule: "" if known() is colorsys else "replaced a module"  # noqa: E731
    text = f"load_rule({show(place.replace(str(folder), ''))}) of {show(content)}"
    return Case(text, lambda: load_rule(place), lambda: (files_of(folder), known()), complaint)


ATTACKS: dict[str, Attack] = {
    name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")
}
