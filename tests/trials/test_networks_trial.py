"""`python -m trials.networks_trial`: its cells are tuned and shown on other seeds; the ledger and the tables."""

import json

import numpy as np
import pytest

from gradient_dd.learners import LEARNERS
from trials import networks_trial
from trials.networks import cells, spiral
from trials.networks.cells import Size, TrialSetting, tune_and_show
from trials.networks.findings import finding, sides
from trials.networks.ledger import LEDGER, number, ratio
from trials.networks.problems import car_measure, problems

RNG = np.random.default_rng(4)


def made_up(labels, dd=1.0):
    """Return a cell in which learners with the term have `dd` times the errors of others."""
    one = {"rule": "td", "alpha": 0.1, "period": 1, "settings": 5, "edge": False, "beside": [1.0] * 8}
    errors = {label: RNG.uniform(0.9, 1.1, 8) * (dd if "DD" in label else 1.0) for label in labels}
    return {label: one | {"errors": row.tolist()} for label, row in errors.items()}


@pytest.fixture
def small(monkeypatch):
    """Make the trial quick: every cell is made up."""
    monkeypatch.setattr(networks_trial, "prediction_cell", lambda *key: made_up(cells.candidates("sgd"), dd=0.5))
    monkeypatch.setattr(networks_trial, "control_cell", lambda world, size: made_up(cells.CONTROL))
    found = {"settings": [], "largest": [20.0], "last": [20.0]}
    with_psi = {"settings": [], "largest": [1.0], "last": [0.5]}
    made = {label: with_psi if "ψ" in label else found for label in spiral.LEARNERS_HERE}
    monkeypatch.setattr(networks_trial, "spiral_cell", lambda updates: made)


def test_the_program_leaves_a_ledger_and_tables(small, tmp_path, monkeypatch, capsys):
    networks_trial.main(["--out", str(tmp_path)])
    shown = capsys.readouterr().out
    claims = {one["claim"]: one for one in json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))}
    assert list(claims) == [one.claim.name for one in LEDGER]
    assert claims["replay-sgd"]["verdict"] == "does not hold"  # the term halves every error here
    assert claims["stream-adam"]["verdict"] == "holds"
    assert claims["spiral"]["verdict"] == "holds"
    assert "Refuted: Gradient-DD, T = 1 / GTD2, collision: 0.5" in claims["replay-sgd"]["finding"]
    assert all(f"{name}: {one['statement']}" in shown and one["finding"] in shown for name, one in claims.items())
    assert "is smaller in 90 and larger in 0 of 90." in shown
    rows = (tmp_path / "networks.csv").read_text(encoding="utf-8").splitlines()
    learners = len(cells.candidates("sgd"))
    assert len(rows) == 1 + len(problems()) * len(cells.WAYS) * learners + 4 * len(cells.CONTROL)
    monkeypatch.setattr(networks_trial, "prediction_cell", lambda *key: {})  # a second call computes nothing
    networks_trial.main(["--out", str(tmp_path)])
    assert shown.endswith(capsys.readouterr().out)


def test_a_finding_tells_what_refutes_first_and_how_many_runs_diverged():
    cell = made_up(["A", "B", "C"]) | {"gone": {"errors": [1.0] * 7 + [np.inf]}}
    asked = [ratio(cell, "A", "gone", "above", 0.9, "here"), ratio(cell, "A", "B", "above", 1.0, "here")]
    asked += [ratio(cell, "A", "B", "above", 0.1, place) for place in ("here", "there", "there")]
    asked += [ratio(cell, "A", "C", "above", 0.1, "here"), number(3.0, "above", 2.0, "size:")]
    told = finding([one.compare(0.95) for one in asked])
    assert told.startswith("Refuted: A / gone, here: 0 (diverged: gone in 1 of 8 runs). Open: A / B, here: ")
    assert told.count("A / B, here") == 1  # open on one side of it, so it is not told again as held
    assert told.count("there: ") == 1
    assert told.endswith("; size: 3.")
    many = finding([ratio(cell, "A", "B", "above", 0.1, f"{place}").compare(0.95) for place in range(9)])
    assert many.startswith("Held: 9 ratios from ")
    assert sides([(cell, "A", "gone"), (cell, "gone", "A"), (cell, "A", "A")]) == (3, 1, 1)


def test_a_setting_is_selected_on_some_seeds_and_shown_on_others():
    """The better setting on the tuning seeds is the worse on the others: it is shown all the same."""
    settings = [TrialSetting(LEARNERS["td"].setting(alpha=alpha)) for alpha in (0.1, 0.2, 0.3)]

    def run(lanes):
        costs = np.array([lane.setting.values["alpha"] * (1 if lane.seed < 2 else -1) for lane in lanes])
        return costs, np.array([lane.stream for lane in lanes])

    found = tune_and_show({"a": settings, "b": settings[1:]}, run, Size(tuned=2, shown=3))
    assert (found["a"]["alpha"], found["b"]["alpha"]) == (0.1, 0.2)
    assert found["a"]["errors"] == [-0.1] * 3
    assert found["b"]["beside"] == [2, 3, 4]
    assert found["a"]["edge"]


def test_problems_are_what_they_say():
    """Ratios have mean 1, terminals have discount 0, and values agree with what the streams return."""
    for name, problem in problems().items():
        streams, measure = problem.streams(400, range(2)), problem.measure()
        assert streams.s.shape == (2, 400, problem.inputs), name
        assert measure.weights.sum() == pytest.approx(1.0)
        assert streams.rho.mean() == pytest.approx(1.0, abs=0.25)
        assert ((streams.discount == 0).any()) == (name != "baird")
        follows = (streams.s_next[:, :-1] == streams.s[:, 1:]).all(axis=2)
        assert follows[streams.discount[:, :-1] > 0].mean() > 0.99  # but for episodes that were cut off
    measure = car_measure()
    assert (measure.values < 0).all()
    assert (measure.values > -1).all()
    near = measure.states[measure.values.argmax()]
    assert near[0] > 0.3  # the best of the states is on the way up to the goal


def test_the_mechanism_of_a_table_is_minus_gamma_and_raw_positions_lose_it():
    found = networks_trial.mechanism()
    assert abs(found["walk"]) < 0.1 < 0.5 < abs(found["one-hot-walk"]) < 1.0


def test_on_the_spiral_only_psi_converges():
    """Mean updates, exactly: TD and GTD2 leave, GTD2 with ψ stays and comes nearer."""
    found = spiral.spiral_cell(updates=2000)
    assert max(found["GTD2 with ψ"]["largest"]) <= 1.0
    assert max(found["GTD2 with ψ"]["last"]) < 1.0
    assert max(found["TD"]["largest"]) > 10


def test_a_smaller_trial_is_smaller_in_all():
    size = networks_trial.size_of(runs=3, updates=100)
    assert (size.shown, size.updates, size.steps) == (3, 100, 266)
