"""Ways into an evaluation: one-step logs, hints, and what the command shows."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import gradient_dd as gdd
from gradient_dd import BadRequestError
from gradient_dd.cli.commands import cli


def visits(n=300, seed=0):
    """Return a log of single decisions: a context, and what it paid."""
    rng = np.random.default_rng(seed)
    seen = rng.integers(0, 3, n)
    return {"obs": seen, "reward": seen + 0.1 * rng.standard_normal(n)}


def test_a_log_of_single_steps_needs_no_column_of_ends():
    log = visits()
    found = gdd.evaluate_log(log, discount=0.0)
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


def shop(n=900):
    """Return a log of visits whose states are texts: home, cart, pay; the last one pays 1."""
    place = np.arange(n) % 3
    noise = 0.01 * np.random.default_rng(0).standard_normal(n)
    return {"obs": np.array(["home", "cart", "pay"])[place], "reward": (place == 2) + noise, "done": place == 2}


def test_texts_are_states():
    found = gdd.evaluate_log(shop(), discount=0.9, at="all")
    assert [one["observation"] for one in found.asked()] == [["home"], ["cart"], ["pay"]]
    assert found.values == pytest.approx([0.81, 0.9, 1.0], abs=0.01)
    assert found.predict(["pay", "home"]) == pytest.approx([1.0, 0.81], abs=0.01)
    assert np.isnan(found.predict(["nowhere"])[0])
    assert "Features: a table of 3 distinct states, because observations are text." in found.stated


def test_texts_and_numbers_side_by_side():
    log = shop() | {"price": np.random.default_rng(1).standard_normal(900)}
    named = {"columns": {"observation": ["obs", "price"]}, "discount": 0.9}
    found = gdd.evaluate_log(log, at=[["home", 0.0], ["pay", 2.0]], **named)
    assert found.features.spread  # text is one-hot
    assert found.values == pytest.approx([0.81, 1.0], abs=0.02)


def test_a_target_gets_the_texts():
    def target(seen, action):
        assert set(seen[:, 0]) == {"home", "cart", "pay"}
        return np.ones(len(action))

    log = shop() | {"action": np.zeros(900), "propensity": np.ones(900)}
    assert gdd.evaluate_log(log, discount=0.9, target=target).start_value == pytest.approx(0.81, abs=0.01)
    with pytest.raises(BadRequestError, match=r"be whole numbers, one for each state. Got texts"):
        gdd.evaluate_log(log, discount=0.9, target=np.ones((3, 1)))


def test_a_typing_error_in_a_column_of_numbers_is_no_category():
    log = {"obs": ["1.5", "2.5", "x", "3.5"] * 5, "reward": np.ones(20), "done": np.arange(20) % 4 == 3}
    with pytest.raises(BadRequestError, match=r"Column 'obs' in row 2 must be a number. Got 'x'"):
        gdd.evaluate_log(log, discount=0.9)


def test_states_are_asked_for_on_the_command_line(tmp_path):
    pd.DataFrame(shop()).to_csv(tmp_path / "log.csv", index=False)
    words = ["evaluate", str(tmp_path / "log.csv"), "--discount", "0.9"]
    shown = CliRunner().invoke(cli, [*words, "--at", "pay", "--at", "moon"]).output
    assert [line.split()[:2] for line in shown.splitlines() if line.strip().startswith(("pay", "moon"))] == [
        ["pay", "1"],
        ["moon", "-"],
    ]
    facts = json.loads(CliRunner().invoke(cli, [*words, "--values", "--json"]).stdout)
    assert [one["observation"] for one in facts["values"]] == [["home"], ["cart"], ["pay"]]
    assert CliRunner().invoke(cli, [*words, "--values", "--at", "pay"]).exception is not None


@pytest.mark.parametrize(("word", "count"), [("raw", 4), ("standard", 5)])
def test_an_environment_takes_the_words_of_a_log(word, count):
    def even(seen):
        return np.full((len(seen), 2), 0.5)

    found = gdd.evaluate("CartPole-v1", target=even, features=word, steps=1000, discount=0.9)
    assert found.features.n_features == count
    with pytest.raises(BadRequestError, match=r"Unknown features 'tile'. Did you mean 'tiles'"):
        gdd.evaluate("CartPole-v1", target=even, features="tile", steps=1000)


def test_a_table_of_an_environment_of_numbered_states():
    found = gdd.evaluate("FrozenLake-v1", target=np.full((16, 4), 0.25), features="table", steps=500)
    assert found.features.n_features == len(found.features.states) <= 16


@pytest.mark.parametrize("more", [(), ("next_pi_taken",)])
def test_probabilities_of_the_actions_taken_need_no_column_of_the_next_step(more):
    rng = np.random.default_rng(0)
    log = {"obs": rng.integers(0, 3, 600), "next_obs": rng.integers(0, 3, 600), "action": rng.integers(0, 2, 600)}
    log |= {"reward": log["action"] + 0.1 * rng.standard_normal(600), "terminated": np.arange(600) % 3 == 2}
    log |= {"propensity": np.full(600, 0.5), "pi_taken": np.where(log["action"] == 1, 0.8, 0.2)}
    log |= dict.fromkeys(more, log["pi_taken"])
    found = gdd.compare(log, {"mostly 1": "pi_taken"}, discount=0.5)
    alone = gdd.evaluate_log(log, target="pi_taken", discount=0.5)
    assert found.table[1]["value"] == alone.start_value == pytest.approx(0.8 * 1.75, abs=0.1)
    assert not [one for one in alone.verdict.findings if one.about == "unused columns"]
