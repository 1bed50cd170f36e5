"""Which attack each input is: drawn from all of them, cheap ones more often."""

import os
import sys
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp

from tests.adversary import (
    checkpoints,
    command_line,
    decisions,
    environments,
    files,
    kernel_folders,
    laboratory,
    logs,
    stores,
    streams,
    theory,
)
from tests.adversary.rule import MEMORY, Attack, Finding, generator, judge

SURFACES = (
    *(laboratory, theory, streams, logs, decisions, environments, checkpoints, files, stores, command_line),
    kernel_folders,
)
ATTACKS: dict[str, Attack] = {name: attack for surface in SURFACES for name, attack in surface.ATTACKS.items()}
WEIGHTS = {  # 2 for those not named
    **dict.fromkeys(("log_forms", "log_file"), 8),
    **dict.fromkeys(("update", "from_tables", "log_columns"), 6),
    **dict.fromkeys(("theory", "update_many", "predict", "learner", "random_tables", "task", "study"), 4),
    **dict.fromkeys(("environment_answers", "log_arguments", "minari", "crafted_file", "compare"), 4),
    **dict.fromkeys(("command_line", "toml", "schedule", "questions", "auto_learner_many"), 3),
    **dict.fromkeys(("lanes", "damaged_store", "edited_store", "store_that_is_none", "rule_file"), 1),
    **dict.fromkeys(("network_update", "network_control", "report_of_odd_names"), 1),
    **dict.fromkeys(("advice", "kernel_folder"), 0.3),
}


def attack_of(seed: int, number: int) -> str:
    """Return the name of the attack that an input is."""
    weights = [WEIGHTS.get(name, 2) for name in ATTACKS]
    return Random(f"{seed}/{number}").choices(list(ATTACKS), weights)[0]


def run_input(seed: int, number: int, attack: str | None = None) -> tuple[str, Finding | None]:
    """Run one input in a folder of its own; return how it ended, and what it broke."""
    name = attack or attack_of(seed, number)
    home, folder = Path.cwd(), Path(mkdtemp(prefix="adversary-"))
    path, modules, environment = list(sys.path), dict(sys.modules), dict(os.environ)
    os.environ["GRADIENT_DD_MEMORY"] = MEMORY
    os.chdir(folder)
    try:
        return judge(name, number, ATTACKS[name](generator(seed, name, number), folder))
    finally:
        os.chdir(home)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
        sys.modules.update(modules)  # one input that replaces a module must not spoil the next
        rmtree(folder, ignore_errors=True)
