"""Which attack each input is: drawn from all of them, cheap ones more often."""

import os
import sys
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp

from adversary import api, command_line, files, stores, theory
from adversary.rule import MEMORY, Attack, Finding, generator, judge

ATTACKS: dict[str, Attack] = api.ATTACKS | theory.ATTACKS | files.ATTACKS | stores.ATTACKS | command_line.ATTACKS
WEIGHTS = {  # 2 for those not named
    **{"update": 6, "from_tables": 6, "theory": 4, "update_many": 4, "predict": 4, "learner": 4, "random_tables": 4},
    **{"task": 4, "study": 4, "command_line": 5, "toml": 3, "schedule": 3},
    **{"lanes": 1, "damaged_store": 1, "edited_store": 1, "store_that_is_none": 1, "rule_file": 1, "prox": 1},
}


def attack_of(seed: int, number: int) -> str:
    """Return the name of the attack that an input is."""
    weights = [WEIGHTS.get(name, 2) for name in ATTACKS]
    return Random(f"{seed}/{number}").choices(list(ATTACKS), weights)[0]


def run_input(seed: int, number: int, attack: str | None = None) -> tuple[str, Finding | None]:
    """Run one input in a folder of its own; return how it ended, and what it broke."""
    name = attack or attack_of(seed, number)
    home, folder = Path.cwd(), Path(mkdtemp(prefix="adversary-"))
    os.environ["GRADIENT_DD_MEMORY"] = MEMORY
    os.chdir(folder)
    path = list(sys.path)
    try:
        return judge(name, number, ATTACKS[name](generator(seed, name, number), folder))
    finally:
        os.chdir(home)
        sys.path[:] = path
        rmtree(folder, ignore_errors=True)
