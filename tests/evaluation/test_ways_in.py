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


def sessions(count=60, limit=9, seed=0):
    """Return a log of sessions in a shop, whose names are not the usual ones; some reach a time limit."""
    rng, rows = np.random.default_rng(seed), []
    for session in range(count):
        for step in range(limit):
            segment, fatigue, shown = session % 2, 0.1 * step + 0.01 * rng.random(), rng.integers(2)
            left = rng.random() < 0.15
            rows.append((session, segment, fatigue, shown, float(shown == segment), left, 0.5, step == limit - 1))
            if left:
                break
    names = ("session", "segment", "fatigue", "recommended", "margin", "left", "p_shown", "timeout")
    log = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return log | {"timeout": log["timeout"] & ~log["left"]}


SEEN = {"observation": ["segment", "fatigue"], "action": "recommended", "reward": "margin"}
ENDS = {"terminated": "left", "episode": "session"}


def test_missing_roles_are_one_error_with_all_columns():
    log = sessions()
    with pytest.raises(BadRequestError) as caught:
        gdd.compare(log, {"new": lambda seen: np.full((len(seen), 2), 0.5)}, discount=0.9)
    assert str(caught.value) == (
        "A log must have observations, such as obs_0, obs_1, … and rewards and actions. Got "
        f"{', '.join(map(repr, log))}. Name them: --column observation=FEATURE,... --column reward=NAME "
        "--column action=NAME, or columns={'observation': […], 'reward': …, 'action': …}."
    )
    with pytest.raises(BadRequestError, match="A column of rewards must be in the log"):
        gdd.evaluate_log(log, discount=0.9, columns={"observation": "segment"})


def test_a_column_has_one_role_and_a_role_has_its_usual_names():
    log = sessions()
    twice = {"observation": ["segment", "margin"], "reward": "margin"}
    with pytest.raises(BadRequestError) as caught:
        gdd.evaluate_log(log, discount=0.9, columns=twice)
    assert str(caught.value) == "The column 'margin' must have one role. Got 'observation' and 'reward'."
    one, two = (
        gdd.evaluate_log(log, discount=0.9, columns=SEEN | ENDS | {role: "p_shown"})
        for role in ("propensity", "behaviour_probability")
    )
    assert one.stated == two.stated


def test_unused_columns_are_stated_and_forgotten_ends_need_care():
    log = sessions()
    whole = gdd.evaluate_log(log, discount=0.9, columns=SEEN | ENDS)
    assert "Not used: 'p_shown'." in whole.stated
    assert not [one for one in whole.verdict.findings if one.about == "ends"]
    found = gdd.evaluate_log(log, discount=0.9, columns=SEEN)
    assert "Not used: 'session', 'left', 'p_shown'." in found.stated
    (ends,) = [one for one in found.verdict.findings if one.about == "ends"]
    assert ends.level == "with care"
    assert "'session' looks like the number of an episode, 'left' contains only 0 and 1. If they do" in ends.sentence
    harmless = {name: column for name, column in log.items() if name not in ("session", "left")}
    assert not [
        one for one in gdd.evaluate_log(harmless, discount=0.9, columns=SEEN).verdict.findings if one.about == "ends"
    ]


@pytest.mark.parametrize("chunk", [1, 7, 65_536])  # rows of a piece
def test_episodes_at_a_time_limit_are_counted_as_truncated(monkeypatch, chunk):
    monkeypatch.setattr("gradient_dd.stream.log.sources.CHUNK", chunk)
    log = sessions()
    timeouts, left = int(log["timeout"].sum()), int(log["left"].sum())
    assert min(timeouts, left) > 9
    found = gdd.evaluate_log(log, discount=0.9, columns=SEEN | ENDS)
    (words,) = [one.sentence for one in found.verdict.findings if one.about == "episodes"]
    assert words.endswith(f"in 60 episodes; {left} terminated, {timeouts} were truncated.")


POLICIES = """
import numpy as np

CHANCES = {0: 0.2, 1: 0.8}

def personal(observations):
    chance = np.array([CHANCES[one] for one in observations[:, 1]])
    return np.column_stack([1 - chance, chance])

def other(observations):
    return np.tile([0.02, 0.98], (len(observations), 1))

def another(observations):
    return np.tile([0.98, 0.02], (len(observations), 1))
"""


def shown_for(tmp_path, *words):
    """Return what a command prints, or its error, for the log of sessions."""
    pd.DataFrame(sessions()).to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "policies.py").write_text(POLICIES)
    roles = [f"--column={role}={name if isinstance(name, str) else ','.join(name)}" for role, name in SEEN.items()]
    roles += [f"--column={role}={name}" for role, name in (ENDS | {"propensity": "p_shown"}).items()]
    run = CliRunner().invoke(cli, [words[0], str(tmp_path / "log.csv"), "--discount", "0.9", *roles, *words[1:]])
    return str(run.exception) if run.exception else run.stdout


def test_an_error_in_a_policy_names_its_line_and_the_columns(tmp_path):
    for command in ("compare", "evaluate"):
        told = shown_for(tmp_path, command, "--target", f"{tmp_path}/policies.py:personal")
        name = "personal" if command == "compare" else "target"
        assert told.startswith(f"The policy {name!r} must run on a batch of observations. Got KeyError: ")
        assert told.endswith("in line 7 of policies.py. It receives the columns 'segment', 'fatigue', in this order.")
    told = shown_for(tmp_path, "compare", "--target", f"{tmp_path}/policies.py")
    assert told.startswith("'--target' must be given as FILE.py:NAME. Got ")


def test_a_remedy_is_printed_once(tmp_path):
    targets = [word for name in ("other", "another") for word in ("--target", f"{tmp_path}/policies.py:{name}")]
    told = shown_for(tmp_path, "compare", *targets)
    assert told.count("Collect data from these states and actions.") == 1
    assert told.count("of the policy's visits have no similar data") == 3  # in two reasons and the recommendation


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
