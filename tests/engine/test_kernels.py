"""The kernels: what their source looks like, and the promises behind each line that is easy to leave out."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernels.compiler import barrier, disjoint, wanted_bits
from gradient_dd.engine.kernels.fused import OutcomeKind, move_source
from gradient_dd.engine.kernels.rows import Known, outcome_rows
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.schedules import Schedule
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.learners.rule import Parameter
from gradient_dd.testing import assert_alike

ROOT = Path(__file__).parents[2]
GOLDEN = {
    "gradient_dd_on_the_walk": ("gradient_dd", tasks.random_walk(40)),
    "tdrc_on_the_boyan_chain": ("tdrc", tasks.boyan_chain(100)),
}


def source_on(name, task):
    """Return the source of a learner's step for the outcomes of a task that do not end an episode."""
    shape = outcome_rows(task, "R")[1]
    return move_source(OutcomeKind(LEARNERS[name], shape.k, shape.width, shape.one_hot, shape.wide))


# What is generated ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("golden", GOLDEN)
def test_a_generated_step_is_the_one_on_file(golden):
    """A change of the generated code is seen line by line in a review."""
    assert source_on(*GOLDEN[golden]) + "\n" == (ROOT / f"tests/golden/{golden}.txt").read_text()


def test_the_page_on_performance_shows_the_generated_step():
    page = (ROOT / "docs/contribute/engine.md").read_text()
    assert source_on(*GOLDEN["gradient_dd_on_the_walk"]) in page


def test_the_source_of_a_step_names_what_the_rule_names():
    known = Known(rho=1.0, rho_x=1.0, discount=None)
    td, gdd = (move_source(OutcomeKind(LEARNERS[name], 1, 2, True, known)) for name in ("td", "gradient_dd"))
    assert "rho = 1.0" in td
    assert "discount = scalars.discount" in td
    assert "load_eta" not in td
    assert "x_change" in gdd
    assert "scale" not in gdd


@pytest.mark.xdist_group("kernels of tdrc")
@pytest.mark.parametrize("task", [tasks.random_walk(5), tasks.random_mdp(n_states=20, n_features=12, seed=2)], ids=str)
def test_a_parameter_may_have_the_name_of_something_in_the_kernel(task):
    def step(alpha, beta, scale, rho, discount, delta, x_eta):
        return alpha * rho * delta, -alpha * rho * discount * x_eta, beta * (rho * delta - x_eta), -beta * scale

    tdrc = LEARNERS["tdrc"].plain
    parameters = (*tdrc.parameters[:2], Parameter("scale", "regulariser of η", default=0.5))
    rule = replace(tdrc, name="named_scale", step=step, parameters=parameters, expected=None)
    horizon = Horizon(episodes=50) if task.episodic else Horizon(steps=500)
    assert_alike(task, rule.setting(alpha=0.02), horizon)


# Promises to and from the compiler --------------------------------------------------------------------------------


def test_a_barrier_ends_the_promise_that_rows_are_disjoint():
    """Two scopes name one place. Within a step the compiler may take the old value; after a barrier it may not."""
    load_a, _ = disjoint("a", ["a", "b"])
    _, store_b = disjoint("b", ["a", "b"])

    @numba.njit
    def with_barrier(array, i, j):
        before = load_a(array, i)
        store_b(array, j, 7.0)
        barrier()
        return before, load_a(array, i)

    @numba.njit
    def without(array, i, j):
        before = load_a(array, i)
        store_b(array, j, 7.0)
        return before, load_a(array, i)

    place = np.uintp(0)
    assert with_barrier(np.ones(1), place, place) == (1.0, 7.0)
    assert without(np.ones(1), place, place) == (1.0, 1.0)  # the optimiser does make use of the promise


@pytest.mark.xdist_group("kernels of gtd2")
@pytest.mark.parametrize("task", [tasks.random_walk(5), tasks.boyan_chain(5)], ids=str)
def test_each_step_of_the_fused_kernel_begins_with_a_barrier(task, monkeypatch):
    """The row of x' is the row of x one step later, so the promise of disjoint rows must end with the step."""
    monkeypatch.setenv("GRADIENT_DD_CACHE", "off")  # what comes from disk has no source to look at
    fresh = replace(LEARNERS["gtd2"], name="fresh_gtd2")
    (block,) = LaneRun(task, [fresh.setting()], Horizon(episodes=1)).blocks
    (code,) = block.kernel.inspect_llvm().values()
    assert "asm sideeffect" in code
    assert "~{memory}" in code


# Numbers far out --------------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("kernels of td")
def test_an_error_that_is_not_a_number_is_divergence():
    """Between two points the weights pass from small numbers through the infinite ones to NaN."""
    task = tasks.random_walk(3)
    run = LaneRun(task, [LEARNERS["td"].setting(alpha=1e60)], Horizon(steps=3000, every=3000))
    run.advance()
    assert np.isnan(run.weights()[0]).any()
    results = run.results()
    assert results.diverged_step[0, 0] == 2901  # the first of the last 100 steps
    for values in (results.last100, results.mean_error, results.curve):
        assert np.isposinf(values).all()


@pytest.mark.xdist_group("kernels of tdrc")
def test_an_infinite_scale_leaves_an_eta_of_zero_at_zero():
    """On the walk δ is 0 until the first reward. The scale of η overflows in the second step; 0 × ∞ is not a number."""
    walk, growth = tasks.random_walk(40), Schedule(lambda n: 1e140 if n == 1 else 1e200, per="step")
    run = LaneRun(walk, [LEARNERS["tdrc"].setting(alpha=1.0)], Horizon(steps=10), growth)
    run.advance()
    trace = reference.run(walk, "tdrc", steps=10, schedule=growth, alpha=1.0)
    w, eta = run.weights()
    assert np.array_equal(w[0], trace.w)
    assert np.array_equal(eta[0], trace.eta)
    assert not eta.any()


@pytest.mark.xdist_group("kernels of gradient_dd")
def test_a_natural_rule_uses_the_metric_of_x_where_x_next_is_x():
    """A self loop: w moves along M⁻¹x' = M⁻¹x, and the change seen by the coming x is measured along it."""
    P = np.zeros((3, 1, 3))
    P[0, 0] = 0.6, 0.3, 0.1
    P[1, 0] = 0.2, 0.7, 0.1
    P[2, 0, 2] = 1
    task = tasks.from_tables(P, 1.0 - np.eye(3)[:, None, :], 0.9, behaviour=np.ones((3, 1)), start=0)
    assert outcome_rows(task, "R")[1].one_hot
    ours = LEARNERS["gradient_dd"].plain
    parameters = (*ours.parameters, LEARNERS["natural_gtd2"].parameters[-1])
    natural = replace(ours, name="natural_gdd", natural=True, parameters=parameters)
    assert_alike(task, natural.setting(alpha=0.1, kappa=2.0, ridge=0.5), Horizon(episodes=60))


# Width of vectors -------------------------------------------------------------------------------------------------

WIDTH_PROGRAM = """
import hashlib, re
from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernels.compiler import vector_bits
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.learners import LEARNERS

alphas = [0.001 * 1.4**i for i in range(21)]
bits, registers = hashlib.sha256(), set()
wide = tasks.random_mdp(n_states=12, n_features=12, episodic=True)
for name, task in (("tdrc", tasks.random_walk(5)), ("gradient_dd", wide)):
    run = LaneRun(task, [LEARNERS[name].setting(alpha=alpha) for alpha in alphas], Horizon(episodes=20))
    run.advance()
    for array in (*run.weights(), run.results().curve, run.results().diverged_step):
        bits.update(array.tobytes())
    for block in run.blocks:
        (code,) = block.kernel.inspect_asm().values()
        registers |= set(re.findall("%([xyz]mm)", code))
print(vector_bits(), bits.hexdigest(), *sorted(registers))
"""


@pytest.mark.slow
def test_bits_do_not_depend_on_the_width_of_vectors():
    """Compiled in a process of its own for each width; on a processor without 512 bits the last two are the same."""
    shown = {}
    for width in (128, 256, 512):
        variables = os.environ | {"GRADIENT_DD_VECTOR_BITS": str(width), "GRADIENT_DD_CACHE": "off"}
        call = [sys.executable, "-W", "error", "-c", WIDTH_PROGRAM]
        done = subprocess.run(call, env=variables, check=True, capture_output=True, text=True)
        shown[width] = done.stdout.split()
    assert len({digest for _, digest, *_ in shown.values()}) == 1
    for width, (used, _, *registers) in shown.items():
        assert int(used) <= width
        assert "zmm" not in registers or width == 512
    if shown[512][0] == "512":
        assert "zmm" in shown[512]  # they are used where the processor has them


def test_a_width_that_does_not_exist_gets_one_sentence(monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_VECTOR_BITS", "1024")
    with pytest.raises(BadRequestError, match=r"GRADIENT_DD_VECTOR_BITS must be 128, 256 or 512\. Got '1024'."):
        wanted_bits()
