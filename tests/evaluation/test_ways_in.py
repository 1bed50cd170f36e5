"""Ways into an evaluation: one-step logs, hints, and what the command shows."""

import numpy as np
import pytest
from click.testing import CliRunner

import gradient_dd as gdd
from gradient_dd import BadRequestError
from gradient_dd.cli.commands import cli

QUICK = {"learner": "lstd", "passes": 1}


def visits(n=300, seed=0):
    """Return a log of single decisions: a context, and what it paid."""
    rng = np.random.default_rng(seed)
    seen = rng.integers(0, 3, n)
    return {"obs": seen, "reward": seen + 0.1 * rng.standard_normal(n)}


def test_a_log_of_single_steps_needs_no_column_of_ends():
    log = visits()
    found = gdd.evaluate_log(log, discount=0.0, **QUICK)
    assert found.rows == 300
    assert found.start_value == pytest.approx(np.mean(log["reward"]), rel=0.01)
    assert not [
        one for one in found.verdict.findings if one.about in ("ends", "left out", "episodes") and one.level != "fine"
    ]


def test_a_hint_lists_all_columns_but_the_action():
    log = {
        name: np.arange(4.0) for name in ("pos", "speed", "angle", "spin", "wind", "chosen_action", "reward", "done")
    }
    with pytest.raises(BadRequestError) as caught:
        gdd.evaluate_log(log, discount=0.9)
    assert "--column observation=pos,speed,angle,spin,wind, or" in str(caught.value)
    assert "'chosen_action'" not in str(caught.value).partition("Name them")[2]


def test_the_table_of_candidates_always_has_lstd(tmp_path):
    log, rng = tmp_path / "log.csv", np.random.default_rng(0)
    rows = [f"{rng.random():.3f},{rng.random():.3f},{int(i % 5 == 4)}" for i in range(200)]
    log.write_text("\n".join(["obs,reward,done", *rows]))
    shown = (
        CliRunner().invoke(cli, ["evaluate", str(log), "--discount", "0.9", "--learner", "td", "--passes", "1"]).output
    )
    assert "lstd(ridge=" in shown
