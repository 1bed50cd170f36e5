"""Questions about a log: each has the answer of an evaluation of its own, and the file is read once for all."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gradient_dd import BadRequestError, Question, evaluate_log, features
from gradient_dd.cli.commands import cli

N = 600


@pytest.fixture(scope="module")
def log():
    """Return a log of a walk over six states, two actions, in episodes that end beyond the last state."""
    rng = np.random.default_rng(3)
    rows = {name: [] for name in ("episode", "state", "action", "reward", "terminated", "propensity", "heat")}
    state, episode = 0, 0
    for _ in range(N):
        action = int(rng.random() < 0.6)
        after = max(0, state + 2 * action - 1)
        ended = after == 6
        row = (episode, state, action, 1.0 * ended, ended, 0.6 if action else 0.4, float(rng.normal()))
        for name, value in zip(rows, row, strict=True):
            rows[name].append(value)
        state, episode = (0, episode + 1) if ended else (after, episode)
    return {name: np.array(values) for name, values in rows.items()}


def right(states):
    """Return a policy that goes to the right with 0.8."""
    return np.tile([0.2, 0.8], (len(states), 1))


def test_each_question_has_the_answer_of_an_evaluation_of_its_own(log):
    asked = [
        Question("goal", "reward", 0.9),
        Question("goal, to the right", "reward", 0.8, target=right),
        Question("heat", "heat", 0.5),
    ]
    found = evaluate_log(log, questions=asked)
    alone = {
        "goal": evaluate_log(log, discount=0.9),
        "goal, to the right": evaluate_log(log | {"pi": np.where(log["action"] == 1, 0.8, 0.2)}, discount=0.8),
        "heat": evaluate_log(log | {"reward": log["heat"]}, discount=0.5),
    }
    assert len(found) == 3
    for name, one in alone.items():
        assert np.array_equal(found[name].w, one.w), name
        assert found[name].start_interval == one.start_interval
        assert found[name].rows == one.rows
    assert [record["name"] for record in found.table] == list(alone)
    assert repr(found) == f"<Answers to {len(alone)} questions>"
    json.dumps(found.facts())


def test_a_question_that_ends_earlier_and_is_not_asked_everywhere(log):
    """Steps to state 3, asked in states 0 to 2: as from a log that has those rows alone, cut where others stood."""
    question = Question(
        "steps to 3",
        cumulant=1.0,
        discount=lambda batch: batch.next_observations != 3,
        interest=lambda batch: (batch.observations < 3) & (batch.observations != 1),
    )
    states = features.OneHot(6)
    found = evaluate_log(log, questions=[question], features=states)["steps to 3"]
    state = log["state"]
    kept = np.flatnonzero((state[:-1] < 3) & (state[:-1] != 1))  # of the last row the next state is not known
    ends = state[kept + 1] == 3
    gap = np.append(np.diff(kept) > 1, False)
    own = {"state": state[kept], "next_state": state[kept + 1], "reward": np.ones(len(kept)), "terminated": ends}
    own |= {"truncated": gap & ~ends, "episode": np.cumsum(np.append(0, (gap | ends)[:-1]))}
    alone = evaluate_log(own, discount=1.0, features=states)
    assert found.rows == alone.rows == len(kept)
    assert np.array_equal(found.w, alone.w)
    assert found.start_interval == alone.start_interval


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"discount": 0.9}, "'discount' must be omitted with 'questions'. Got 0.9."),
        ({"questions": []}, "'questions' must be one Question or more."),
        ({"questions": [Question("q", "cold", 0.5)]}, "The column 'cold' of a question"),
    ],
)
def test_bad_requests_get_one_sentence(log, change, sentence):
    with pytest.raises(BadRequestError) as caught:
        evaluate_log(log, **{"questions": [Question("q", 1.0, 0.5)], **change})
    assert str(caught.value).startswith(sentence)


def test_the_command_prints_a_line_for_each_question(log, tmp_path):
    path = tmp_path / "log.csv"
    lines = [",".join(log), *(",".join(str(one[t]) for one in log.values()) for t in range(N))]
    path.write_text("\n".join(lines))
    (tmp_path / "asked.py").write_text(
        "import gradient_dd as gdd\nALL = [gdd.Question('goal', 'reward', 0.9), gdd.Question('heat', 'heat', 0.5)]\n"
    )
    words = ["evaluate", str(path), "--questions", f"{tmp_path / 'asked.py'}:ALL"]
    run = CliRunner().invoke(cli, words)
    assert run.exit_code == 0, run.output
    assert [line.split()[0] for line in run.stdout.splitlines()[-2:]] == ["goal", "heat"]
    refused = CliRunner().invoke(cli, [*words, "--report", "page.html"])
    assert "must be omitted with --questions" in str(refused.exception)
