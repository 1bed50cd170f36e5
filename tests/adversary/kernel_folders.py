"""Attacks on the folder of compiled kernels: settings that name no folder, a foreign one, or one with odd files in it.

The product works without the folder, so that no input may fail; at most it warns.
"""

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import gradient_dd as gdd
from tests.adversary.rule import Attack, Case
from tests.adversary.stores import command

NAMES = ("GRADIENT_DD_CACHE", "HOME", "XDG_CACHE_HOME")


def odd_folder(rng: Random, folder: Path) -> tuple[str, str]:
    """Return a setting in words, and its value."""
    place = folder / "kernels"
    kind = rng.choice(["text", "open", "file", "fifo", "link", "inside", "open parent", "kernels that are none"])
    if kind == "text":
        value = rng.choice(["", " ", "~nobody/x", "~no-such-user/x", "x" * 5000, "x/" * 300, "off", "/dev/null", "\n"])
        return f"{value[:20]!r}", value
    place.mkdir()
    if kind == "open":
        place.chmod(0o777)
    elif kind == "file":
        place.rmdir()
        place.write_text("x")
    elif kind == "fifo":
        place.rmdir()
        os.mkfifo(place)
    elif kind == "link":
        place.rmdir()
        place.symlink_to(place)
    elif kind == "inside":
        (folder / "file").touch()
        place = folder / "file" / "kernels"
    elif kind == "open parent":
        folder.chmod(0o777)
    else:
        place.chmod(0o700)
        for number in range(3):
            rng.choice([os.mkfifo, os.mkdir])(place / f"{number}.kernel")
    return kind, str(place)


def attack_kernel_folder(rng: Random, folder: Path) -> Case:
    """An odd folder of kernels: what it holds is counted, or a new rule is compiled with it."""
    words, value = odd_folder(rng, folder)
    compiles = rng.random() < 0.3
    number = rng.random()

    def use() -> Any:
        if not compiles:
            return command("cache")

        def step(alpha: float, rho: float, delta: float) -> tuple[float]:
            return (alpha * rho * delta * number,)

        rule = replace(gdd.LEARNERS["td"], name="fresh", step=step, expected=None)
        agent = gdd.Learner(rule, 2)
        agent.update_many(np.ones((3, 2)), np.ones(3), 0.9, np.ones((3, 2)))
        return agent.w

    def call() -> Any:
        kept = {name: os.environ.get(name) for name in NAMES}
        os.environ["GRADIENT_DD_CACHE"] = value
        if value == "" and rng.random() < 0.5:
            os.environ.pop("HOME", None)
        try:
            return use()
        finally:
            for name, old in kept.items():
                os.environ.pop(name, None) if old is None else os.environ.__setitem__(name, old)

    return Case(f"{'a fresh rule' if compiles else 'gradient-dd cache'} with kernels in {words}", call)


ATTACKS: dict[str, Attack] = {"kernel_folder": attack_kernel_folder}
