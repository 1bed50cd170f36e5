"""What an analysis says, word by word, of advice that is made up: nothing is run."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
import scipy.sparse as sp

from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.learners import LEARNERS
from gradient_dd.theory import analysis
from gradient_dd.theory.advice import NOT_TRIED, Advice, PredictedError, TunedLearner
from gradient_dd.theory.analysis import (
    HEAD,
    Analysis,
    advice_lines,
    curve_lines,
    eigenvalues_of_A,
    length,
    limit,
    notes,
    page_lines,
    td_sentence,
)
from gradient_dd.theory.recursion import Assumption
from gradient_dd.theory.stability import Limits

CURVE = np.array([[1.0, 0.5, 0.25, 0.125], [3.0, 1.5, 0.75, 0.375]])
TD = TunedLearner(
    LEARNERS["td"].setting(alpha=0.1), PredictedError(0.5, 0.01, 2), PredictedError(0.25, nan, 2), True, CURVE
)
GTD2 = replace(TD, setting=LEARNERS["gtd2"].setting(alpha=0.2, zeta=0.5, rho_mode="T"), refined=False)
RUN = Horizon(steps=40, every=10)
ADVICE = Advice(TD, [TD, GTD2], {"gtd": "diverged"}, "mean_error", 0.6, RUN, RUN)
FOUND = Analysis(
    "a walk", "iid", "constant", ADVICE, [Limits(1.0, 0.5, 0.1), Limits(None, 0.0, None)],
    np.array([0.2 - 1j, 0.2 + 1j]),
    [Assumption("A1", "i.i.d.", False, "along a trajectory", "so what"), Assumption("A4", "κ", True, "κ = 1", "")],
)  # fmt: skip


def test_the_whole_page():
    assert page_lines(FOUND) == [
        "a walk, 40 steps, step size constant, sampling: iid",
        "Settings are chosen to minimise the error over the whole run.",
        "",
        "Use td with alpha 0.1.",
        "  predicted error  0.5 ± 0.01 over the whole run, 0.25 at the end, on 2 pilot runs",
        "  initial weights  0.6",
        "  error by steps  █▆▃▁  2 at 10, 1 at 20, 0.25 at 40",
        "",
        (
            [
                ("td", "alpha 0.1", "0.5 ± 0.01", "0.25", "1", "0.5"),
                ("gtd2", "alpha 0.2, zeta 0.5, rho_mode T", "0.5 ± 0.01 *", "0.25 *", "?", "never"),
            ],
            HEAD,
        ),
        "*: error far above the best in the first stages, so the setting was not refined.",
        "stable, safe: below this alpha the mean, and the mean square, converge with a constant step size.",
        "?: not computed, because it would take too long or the rule is not linear. The pilot does not need it.",
        "gtd: diverged.",
        "",
        "TD is stable in the mean for small step sizes (Re λ(A) ≥ 0.2).",
        "",
        "The theorem's assumptions, for Gradient-DD with alpha 0.1 and kappa 1:",
        "(A1) fails: i.i.d.. Here along a trajectory.",
        "   so so what.",
        "(A4) holds: κ. Here κ = 1.",
    ]


def test_advice_says_what_speaks_against_it():
    small = replace(FOUND, limits=[Limits(1.0, 0.09, 0.1), Limits(None, None, None)])
    assert any(line.startswith("This alpha is above 0.09, where") for line in advice_lines(small))
    assert not any("This alpha" in line for line in advice_lines(replace(FOUND, limits=[Limits(1.0, 0.1, 0.1)] * 2)))
    useless = replace(FOUND, advice=replace(ADVICE, initial_error=0.5))
    assert advice_lines(useless)[:2] == [
        "No setting has a lower error than the initial weights: do not learn, or change the features.",
        "The best setting is td with alpha 0.1.",
    ]
    longer = replace(FOUND, advice=replace(ADVICE, horizon=Horizon(episodes=4000)))
    assert advice_lines(longer)[-1].startswith(
        "The pilot ran 40 steps instead of 4,000 episodes, and all errors are for"
    )
    none = replace(FOUND, advice=replace(ADVICE, best=None))
    assert advice_lines(none)[0].startswith("Every setting that was tried diverged, so there is no advice.")


def test_signs_are_explained_where_they_stand():
    plain = replace(FOUND, advice=replace(ADVICE, candidates=[TD], left_out={}), limits=[Limits(1.0, 0.5, 0.1)])
    assert notes(plain) == [
        "stable, safe: below this alpha the mean, and the mean square, converge with a constant step size."
    ]
    unknown = replace(plain, limits=[Limits(None, None, None)])
    assert notes(unknown)[0].startswith("?: not computed")
    untried = replace(plain, advice=replace(plain.advice, left_out=dict.fromkeys("ab", NOT_TRIED)))
    assert notes(untried)[-1] == "a, b: not tried. Add --learner NAME to try one."
    assert [limit(value) for value in (None, 0.0, inf, 0.12345)] == ["?", "never", "any", "0.123"]


def test_curves_have_forty_columns_and_four_numbers():
    many = {"unit": "steps", "at": list(range(1, 401)), "mean": [2.0 ** (-i / 50) for i in range(400)]}
    (line,) = curve_lines(many)
    bars, points = line.removeprefix("  error by steps  ").split("  ")
    assert len(bars) == 40
    assert (bars[0], bars[-1]) == ("█", "▁")
    assert points == "0.959 at 4, 0.582 at 40, 0.0634 at 200, 0.00396 at 400"
    assert curve_lines(many | {"mean": [1.0] * 400})[0].startswith("  error by steps  " + "▁" * 40 + "  ")
    for wrong in (inf, 0.0):
        assert curve_lines(many | {"mean": [wrong] * 400}) == []


def test_facts_are_plain_data():
    facts = FOUND.facts()
    assert facts["advice"] == {
        "learner": "td", "alpha": 0.1, "predicted error": 0.5, "standard_error": 0.01, "runs": 2,
        "mean_error": {"mean": 0.5, "standard_error": 0.01, "runs": 2},
        "last100": {"mean": 0.25, "standard_error": pytest.approx(nan, nan_ok=True), "runs": 2},
        "beats standing still": True, "pilot horizon": None,
    }  # fmt: skip
    assert facts["curve"] == {
        "unit": "steps", "at": [10, 20, 30, 40], "mean": [2.0, 1.0, 0.5, 0.25],
        "low": [1.0, 0.5, 0.25, 0.125], "high": [3.0, 1.5, 0.75, 0.375],
    }  # fmt: skip
    assert facts["candidates"][1]["rho_mode"] == "T"
    assert facts["assumptions"][1]["holds"]
    assert facts["eigenvalues of A"] == [[0.2, -1.0], [0.2, 1.0]]
    assert replace(FOUND, eigenvalues=None).facts()["eigenvalues of A"] is None
    episodes = replace(FOUND, advice=replace(ADVICE, pilot_horizon=Horizon(episodes=4)))
    assert episodes.facts()["curve"]["unit"] == "episodes"
    assert episodes.facts()["curve"]["at"] == [1, 2, 3, 4]
    long = replace(FOUND, advice=replace(ADVICE, measure="last100", horizon=Horizon(steps=1)))
    assert long.facts()["advice"]["predicted error"] == 0.25
    assert long.facts()["advice"]["pilot horizon"] == "40 steps"
    assert (length(Horizon(steps=1)), length(Horizon(steps=20_000))) == ("1 step", "20,000 steps")


@pytest.fixture
def asked(monkeypatch):
    """Return what `advise` is asked for; it reports progress once and runs nothing."""
    calls = []

    def advise(*given, on_progress, **how):
        calls.append((given, how))
        on_progress("judge", 0.5)
        return ADVICE

    monkeypatch.setattr(analysis, "advise", advise)
    monkeypatch.setattr(analysis, "exact_limits", lambda *given: Limits(None, None, None))
    monkeypatch.setattr(analysis, "cpu_count", lambda: 2)
    return calls


def test_a_task_is_analysed_with_what_was_asked(asked):
    told, walk = [], tasks.random_walk(3)
    found = analysis.analyse_task(walk, learners=("td",), on_progress=lambda *given: told.append(given))
    (task, horizon, _), how = asked[0]
    assert (task, horizon) == (walk, Horizon(episodes=10_000))
    assert how == {"sampling": "trajectory", "measure": "mean_error", "learners": ["td"]}
    assert told == [
        ("pilot runs on random_walk(n_states=3): at most about 7 s", 0.0),
        ("judge", 0.5),
        ("exact limits, if they are quick to compute", 1.0),
    ]
    assert found.eigenvalues.real.min() > 0
    assert [one.name for one in found.assumptions] == ["A0", "A1", "A2", "A3", "A4"]
    assert analysis.analyse_task(tasks.random_walk(12)).assumptions is None


def test_how_long_a_run_is_and_what_is_tried(asked):
    walk = tasks.random_walk(3)
    analysis.analyse_task(tasks.baird(3))
    analysis.analyse_task(walk, steps=7, learners=("gtd",), rules=(LEARNERS["htd"],))
    assert [horizon for (_, horizon, _), _ in asked] == [Horizon(steps=100_000), Horizon(steps=7)]
    assert asked[0][1]["learners"] == ["td", "tdc", "tdrc", "gtd2", "gradient_dd"]
    assert asked[1][1]["learners"] == ["gtd", LEARNERS["htd"]]


def test_the_eigenvalues_of_a_judge_td():
    walk = tasks.random_walk(3)
    modes = eigenvalues_of_A(walk)
    assert modes == pytest.approx(sorted(np.linalg.eigvals(walk.moments.A)))
    assert td_sentence(modes).startswith("stable in the mean for small step sizes (Re λ(A) ≥ 0.")
    assert td_sentence(1e-12 * modes).startswith("stable")  # the scale of the features decides nothing
    assert td_sentence(eigenvalues_of_A(tasks.baird(7))).startswith(
        "not stable in the mean at any step size (Re λ(A) ≥ -"
    )
    assert eigenvalues_of_A(tasks.random_walk(501)) is None
    assert eigenvalues_of_A(tasks.random_walk(500)) is not None
    assert td_sentence(None).startswith("not analysed: the eigenvalues of A")
    assert td_sentence(np.array([0.0, 1.0])).startswith("of undecided stability: an eigenvalue of A is zero")


def test_features_that_repeat_each_other_do_not_hide_that_td_is_stable():
    """In the row space of X a doubled feature has no eigenvalue of its own."""
    walk = tasks.random_walk(3)
    doubled = replace(walk, feature_rows=sp.hstack([walk.feature_rows] * 2, "csr"), initial_weights=np.zeros(6))
    assert eigenvalues_of_A(doubled) == pytest.approx(2 * eigenvalues_of_A(walk))
