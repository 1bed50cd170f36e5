"""The examples run, and what they learn is near the truth; here in a short form."""

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from gradient_dd import Question, Questions
from gradient_dd.errors import MissingExtraError

EXAMPLES = Path(__file__).parents[2] / "examples"


def module_of(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main_of(name):
    return module_of(name).main


@pytest.mark.parametrize(("name", "episodes"), [("mixed_policies", 1_000), ("recommender", 4_000)])
def test_the_value_from_a_log_is_near_the_one_played(name, episodes):
    value, (low, high), truth = main_of(name)(episodes, played=5_000)
    assert low < value < high
    assert low - (high - low) < truth < high + (high - low)  # the truth is itself a sample


def test_learnt_and_exact_values_of_gridworlds():
    errors = main_of("gridworlds")(steps=30_000)
    assert errors["CliffWalking-v1"] < 0.5
    assert errors["Taxi-v4"] < 1.0


def test_a_million_hashed_features():
    """Half of the spread is learnt from the frequent values; the rest would need the whole stream."""
    assert all(left < 0.85 for left in main_of("million_features")(batches=6, learners=("td",)).values())


def test_classic_control_against_playing():
    for table in main_of("classic_control")(steps=10_000, states=6, times=6).values():
        assert table["errors"]["least squares"] < 0.5 * table["errors"]["initial weights"]
        assert table["errors"]["td"] < table["errors"]["initial weights"]
        assert {"td", "tdrc", "gradient_dd", "gtd2"} <= set(table["errors"])


def test_nexting_on_a_body(tmp_path):
    pytest.importorskip("mujoco")
    page = tmp_path / "nexting.html"
    shares = main_of("nexting")(steps=3_000, window=1_000, page=page)
    assert shares[3_000] > shares[1_000]
    assert "Predicted and realised returns" in page.read_text()


def test_the_page_of_nexting_has_every_question_and_picture():
    asked = [Question("<soon>", 1.0, 0.5), Question("late", 1.0, 0.9)]
    horde = Questions(asked, n_features=1, learner="td")
    returns = np.arange(10.0).reshape(5, 2)
    page = module_of("nexting").report(horde, asked, np.array([0.9, 0.1]), returns, returns + 1, {5: 0.5})
    assert page.count("<polyline") == 6
    assert "The best: &lt;soon&gt;, 90% explained" in page
    assert "<soon>" not in page
    assert page.count("<td>late</td>") == 1


def test_a_body_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match="The body HalfCheetah-v5 needs mujoco, which is not installed"):
        main_of("nexting")(steps=100)


def test_a_policy_of_open_bandit_is_worth_what_its_own_log_earned(tmp_path, monkeypatch, capsys):
    """With logs of the same form as the data, which are not part of the project."""
    example, rng = module_of("open_bandit"), np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(example, "find_spec", lambda name: None)
    assert example.main() == []
    assert "pip download --no-deps obp" in capsys.readouterr().out
    for policy, chances in (("random", np.full(4, 0.25)), ("bts", np.array([0.4, 0.3, 0.2, 0.1]))):
        for campaign in example.CAMPAIGNS:
            file = tmp_path / "obp" / "dataset" / "obd" / policy / campaign / f"{campaign}.csv"
            file.parent.mkdir(parents=True)
            item, position = rng.choice(4, size=2_000, p=chances), rng.integers(1, 4, 2_000)
            click = (rng.random(2_000) < 0.02 * (4 - item)).astype(int)
            columns = [item, position, click, chances[item], click]
            names = "item_id,position,click,propensity_score,user_feature_0"
            np.savetxt(file, np.column_stack(columns), "%g", ",", header=names, comments="")
    shutil.make_archive(str(tmp_path / "obp-0"), "zip", tmp_path, "obp")
    (tmp_path / "obp-0.zip").rename(tmp_path / "obp-0-py3-none-any.whl")
    found = example.main()
    assert found == example.main([tmp_path / "obp"])
    assert sum(low <= earned <= high for _, (low, high), earned, _, _ in found) >= 5


def test_every_example_is_run_somewhere():
    here = Path(__file__).read_text()
    elsewhere = {"clipped_td", "my_rule", "new_banner"}
    assert {file.stem for file in EXAMPLES.glob("*.py")} - elsewhere <= {
        name for name in (file.stem for file in EXAMPLES.glob("*.py")) if f'"{name}"' in here
    }
