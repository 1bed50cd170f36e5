"""Which learners a test that compiles kernels runs for: all of them, or one of each kind and those that changed.

Compiling dominates the time of the tests, and rules of one kind become the same kernel around another step. So
`make test` compiles one rule of each kind, and every rule whose file differs from main; `make test-all`, which sets
GRADIENT_DD_ALL_RULES=1, compiles all.
"""

import os
from functools import cache
from pathlib import Path
from subprocess import CalledProcessError, run

import pytest

from gradient_dd.learners import LEARNERS

KINDS = {
    "td": "plain, one weight vector",
    "gradient_dd": "plain, two weight vectors and the last change",
    "tdrc": "shrinks η",
    "etd": "always along a trace, which keeps a number",
    "pgtd2": "two stages, products of features",
    "gtd2_momentum": "momentum",
    "natural_gtd2": "along M⁻¹x",
}
FEW = ("gradient_dd", "etd")  # what the kinds above need of a kernel: two weight vectors and the last change; a trace
ROOT = Path(__file__).parent.parent


@cache
def changed_rules():
    """Return the names of learners whose file differs from the last commit on main, or is new; none without git."""
    place, found = "src/gradient_dd/learners", ""
    try:
        for call in (
            ["diff", "--name-only", "main", "--", place],
            ["ls-files", "--others", "--exclude-standard", place],
        ):
            found += run(["git", *call], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, CalledProcessError):
        return set()
    return {Path(line).stem for line in found.splitlines()}


def compiled_rules():
    """Return the names of the learners to compile, in the order of the registry."""
    if os.environ.get("GRADIENT_DD_ALL_RULES") == "1":
        return list(LEARNERS)
    chosen = {*KINDS, *changed_rules()}
    return [name for name in LEARNERS if name in chosen]


def with_kernels(names, quick=None):
    """Return parameters for pytest that keep the tests of one learner's kernels on one worker.

    The others than the `quick` ones are slow, unless their file differs from main: for tests that compile much.
    """
    wanted = None if quick is None else {*quick, *changed_rules()}

    def marks(name):
        yield pytest.mark.xdist_group(f"kernels of {name}")
        if wanted is not None and name not in wanted:
            yield pytest.mark.slow

    return [pytest.param(name, marks=[*marks(name)]) for name in names]
