"""`gdd.compare`: paired differences to the logging policy, ties, sentences, several questions, any form of policy."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import gradient_dd as gdd
from gradient_dd.cli.commands import cli
from gradient_dd.errors import BadRequestError
from gradient_dd.evaluation.rows import EvaluationRows
from gradient_dd.stream.features import OneHot
from gradient_dd.studies.intervals import Bounds

RECORD = {"name", "value", "low", "high", "difference", "difference_low", "difference_high", "verdict"}
STATES = 5
POLICY_FILE = """
import numpy as np

def right(observations):
    return np.tile([0.3, 0.7], (len(observations), 1))

def left(observations):
    return np.tile([0.7, 0.3], (len(observations), 1))
"""


def walk(seed: int = 0, episodes: int = 300) -> dict:
    """Return a walk over five places that goes right half of the time; the right end pays 1."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        place = 2
        while 0 <= place < STATES:
            action = int(rng.random() < 0.5)
            after = place + 2 * action - 1
            ended = after in (-1, STATES)
            rows.append((episode, place, place if ended else after, action, 0.5, float(after == STATES), ended))
            place = after
    names = ("episode", "state", "next_state", "action", "propensity", "reward", "terminated")
    return dict(zip(names, np.array(rows, float).T, strict=True))


def to_the_right(chance: float):
    """Return the policy that goes right with this probability."""
    return lambda seen: np.tile([1 - chance, chance], (len(seen), 1))


def truth(chance: float) -> float:
    """Return the probability of leaving to the right from the middle."""
    odds = (1 - chance) / chance
    return 0.5 if chance == 0.5 else (1 - odds**3) / (1 - odds**6)


LOG = walk()
TARGETS = {"now": None, "right": to_the_right(0.7), "left": to_the_right(0.3), "same": to_the_right(0.5)}
OPTIONS = {"discount": 1.0, "features": OneHot(STATES)}


@pytest.fixture(scope="module")
def found():
    return gdd.compare(LOG, TARGETS, **OPTIONS)


def test_the_baseline_comes_first_and_the_truth_is_inside(found):
    assert [one["name"] for one in found.table] == list(TARGETS)
    chances = {"now": 0.5, "right": 0.7, "left": 0.3, "same": 0.5}
    for one in found.table:
        assert set(one) >= RECORD
        assert one["low"] <= truth(chances[one["name"]]) <= one["high"]
        assert one["low"] <= one["value"] <= one["high"]
        assert one["difference_low"] <= truth(chances[one["name"]]) - 0.5 <= one["difference_high"]
    assert found.table[0]["difference"] == found.table[0]["difference_low"] == found.table[0]["difference_high"] == 0


def test_the_best_is_to_be_deployed(found):
    assert (found.best, found.ties, found.deploy) == ("right", ["right"], "right")
    assert found.sentence.startswith("Deploy 'right': it is worth ")
    assert list(found.frame()["name"]) == list(TARGETS)
    assert json.loads(json.dumps(found.facts()))["best"] == "right"


def test_policies_that_are_not_significantly_different_are_named():
    close = gdd.compare(LOG, {"a": to_the_right(0.7), "b": to_the_right(0.702), "c": to_the_right(0.3)}, **OPTIONS)
    assert set(close.ties) == {"a", "b"}
    assert close.sentence.startswith(f"Deploy '{close.best}': it is worth ")
    other = "a" if close.best == "b" else "b"
    assert f"Not significantly different from it: '{other}'." in close.sentence
    stay = gdd.compare(LOG, {"worse": to_the_right(0.3)}, **OPTIONS)
    assert stay.deploy == stay.best == "today"
    assert stay.sentence == "Stay with 'today': every other policy is significantly worse."
    near = gdd.compare(LOG, {"near": to_the_right(0.505)}, **OPTIONS)
    assert near.deploy == "today"
    assert near.sentence.startswith("Stay with 'today': no policy is significantly better. 'near' is worth ")


@pytest.mark.parametrize(("apart", "deploy"), [(5.0, "right"), (-5.0, "now")])
def test_the_decision_agrees_with_the_interval_shown(found, apart, deploy):
    """Other features that give an even larger value are no reason against a policy."""
    asked = found.questions[0]
    base, right = (
        one._replace(found=one.found._replace(by_map={"chosen": one.found.value, "other": one.found.value + more}))
        for one, more in zip(asked.judged, (0.0, apart), strict=False)
    )
    asked = replace(asked, judged=[base, right])
    assert asked.followed.name == deploy
    assert (asked.records()[1]["difference_low"] > 0) == (deploy == "right")
    assert asked.sentence.startswith("Deploy 'right'" if deploy == "right" else "Stay with 'now': no policy is")


def test_a_policy_that_nothing_is_known_of_is_not_trusted():
    third = gdd.compare(LOG, {"new": lambda seen: np.tile([0.0, 0.1, 0.9], (len(seen), 1))}, **OPTIONS)
    assert third.table[1]["verdict"] == "not"
    assert third.deploy == "today"
    assert third.sentence.startswith("Stay with 'today': the value of no other policy can be trusted, because: ")
    assert any("90% of the policy's actions never occur" in one for one in third.questions[0].judged[1].verdict.reasons)


def test_a_value_that_rewards_do_not_allow_is_cut_and_needs_care(monkeypatch, found):
    monkeypatch.setattr(EvaluationRows, "bounds", lambda rows, signal: Bounds(0.0, 0.9))
    cut = gdd.compare(LOG, TARGETS, **OPTIONS).table[1]
    free = found.table[1]
    assert free["value"] > 0.92
    assert cut["value"] == cut["high"] == 0.9
    assert (free["verdict"], cut["verdict"]) == ("trust", "with care")
    assert "but rewards allow only 0 to 0.9" in cut["why"][0]


def test_many_policies_change_nothing_about_one():
    many = {f"p{k}": to_the_right(0.3 + 0.4 * k / 29) for k in range(30)}
    quick = gdd.compare(LOG, {"now": None, **many}, **OPTIONS)
    few = gdd.compare(LOG, {"now": None, "p0": many["p0"], "p29": many["p29"]}, **OPTIONS)
    for name in ("now", "p0", "p29"):
        one, two = (next(r for r in each.table if r["name"] == name) for each in (quick, few))
        assert [one[key] for key in ("value", "low", "high", "verdict")] == [
            two[key] for key in ("value", "low", "high", "verdict")
        ]


def test_several_discounts_and_signals_are_questions_of_their_own():
    log = LOG | {"fee": -LOG["reward"]}
    asked = gdd.compare(log, TARGETS, discount=[0.5, 1.0], reward=["reward", "fee"], features=OneHot(STATES))
    assert [(one.reward, one.discount) for one in asked.questions] == [
        *(("reward", 0.5), ("fee", 0.5), ("reward", 1.0), ("fee", 1.0))]  # fmt: skip
    by_reward, by_fee = asked.questions[2].records(), asked.questions[3].records()
    alone = gdd.compare(LOG, TARGETS, **OPTIONS)
    for one, other, single in zip(by_reward, by_fee, alone.table, strict=True):
        assert one["value"] == pytest.approx(-other["value"])
        assert one["value"] == pytest.approx(single["value"], abs=1e-12)
    assert asked.sentence.startswith("By 'reward' at discount 0.5: ")


def test_without_propensities_they_are_estimated():
    log = {name: column for name, column in LOG.items() if name != "propensity"}
    asked = gdd.evaluate_log(log, target=to_the_right(0.7), **OPTIONS)
    (sentence,) = [one.sentence for one in asked.verdict.findings if one.about == "propensities"]
    assert "They were estimated by the counts of each state" in sentence
    low, high = asked.start_interval
    assert low <= truth(0.7) <= high


def test_action_values_give_values():
    asked = gdd.evaluate_log(LOG, target=to_the_right(0.7), **OPTIONS)
    both = [asked.q([[2.0], [3.0]], action) for action in (0, 1)]
    assert 0.3 * both[0] + 0.7 * both[1] == pytest.approx(asked.predict([[2.0], [3.0]]))
    assert asked.q([2.0], 1) == pytest.approx(both[1][0])
    assert asked.difference.low <= truth(0.7) - 0.5 <= asked.difference.high
    assert asked.logging.low <= 0.5 <= asked.logging.high
    with pytest.raises(BadRequestError, match="'action' must be one of"):
        asked.q([2.0], 7)


def test_a_learner_finds_the_action_values_too():
    """TDRC on features of states and actions, without a ratio, comes near the exact solution of the sample."""
    exact = gdd.evaluate_log(LOG, target=to_the_right(0.7), **OPTIONS)
    learnt = gdd.evaluate_log(LOG, target=to_the_right(0.7), learner="tdrc", **OPTIONS)
    assert learnt.chosen.startswith("tdrc(")
    assert learnt.start_value == pytest.approx(exact.start_value, abs=0.02)
    assert learnt.q([2.0], 1) == pytest.approx(exact.q([2.0], 1), abs=0.05)


class Classifier:
    """What a classifier of scikit-learn has."""

    classes_ = np.array(["right", "left"])

    def predict_proba(self, observations):
        return np.tile([0.7, 0.3], (len(observations), 1))


def test_a_classifier_a_column_and_columns_are_policies():
    names = np.array(["left", "right"])
    log = LOG | {"action": names[LOG["action"].astype(int)], "pi": np.where(LOG["action"] == 1, 0.7, 0.3)}
    log |= {"to_left": 0.3, "to_right": 0.7, "next_to_left": 0.3, "next_to_right": 0.7, "next_pi": 0.0}
    targets = {"function": to_the_right(0.7), "classifier": Classifier(), "columns": "to_", "column": "pi"}
    options = OPTIONS | {"columns": {"observation": ["state"], "next": ["next_state"], "target_probability": "pi"}}
    rows = {one["name"]: one for one in gdd.compare(log, targets, **options).table}
    for name in ("classifier", "columns"):
        assert rows[name]["verdict"] == rows["function"]["verdict"]
        for key in ("value", "low", "high", "difference_low", "difference_high"):
            assert rows[name][key] == pytest.approx(rows["function"][key], abs=1e-12)
    assert (
        "Actions, in the order of a policy's columns: 'left', 'right'." in gdd.compare(log, targets, **options).stated
    )
    assert not any("in the order" in one for one in gdd.compare(LOG, {"same": to_the_right(0.7)}, **OPTIONS).stated)
    assert rows["column"]["low"] <= truth(0.7) <= rows["column"]["high"]  # by state values and ratios
    alone = gdd.evaluate_log(log, **options)  # the same ratios, from the columns of the log
    assert alone.start_value == pytest.approx(rows["column"]["value"], rel=1e-12)
    Classifier.classes_ = np.array(["right", "up"])
    unknown = gdd.compare(log, {"up": Classifier()}, **options)
    assert unknown.table[1]["verdict"] == "not"


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ([1], "'targets' must be a dictionary of policies by name"),
        ({"a": None, "b": None}, "'targets' must have at most one policy that is None"),
        ({"today": to_the_right(0.5)}, "'today' in 'targets' must be None"),
        ({"a": lambda seen: np.ones((len(seen), 2))}, "The probabilities that 'a' gives must be zero or more and sum"),
    ],
)
def test_bad_policies_are_one_sentence(targets, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        gdd.compare(LOG, targets, **OPTIONS)


def test_the_command_prints_a_table_json_and_a_page(tmp_path):
    (tmp_path / "policies.py").write_text(POLICY_FILE)
    np.savez(tmp_path / "log.npz", **LOG)
    words = ["compare", str(tmp_path / "log.npz"), "--discount", "1", "--features", "table"]
    for name in ("right", "left"):
        words += ["--target", f"{tmp_path / 'policies.py'}:{name}"]
    page = tmp_path / "page.html"
    run = CliRunner().invoke(cli, [*words, "--json", "--report", str(page)])
    assert run.exit_code == 0, run.output
    facts = json.loads(run.stdout)
    assert [one["name"] for one in facts["table"]] == ["today", "right", "left"]
    assert facts["deploy"] == "right"
    assert page.read_text().count('<use href="#mc"') == 3
    found = gdd.compare(tmp_path / "log.npz", {"right": to_the_right(0.7)}, discount=1.0, features="table")
    assert "<svg" in found.report(tmp_path / "other.html").read_text()
    assert [one.get_text() for one in found.plot().get_yticklabels()] == ["today", "right"]
    text = CliRunner().invoke(cli, words)
    assert text.stdout.rstrip().endswith(facts["sentence"])
    refused = CliRunner().invoke(cli, words[:4])
    assert "'--target' must be given at least once." in str(refused.exception)
