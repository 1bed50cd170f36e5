"""Logs: every form of the same log gives the same answer, columns are found and said, bad input is one sentence."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import gradient_dd as gdd
from gradient_dd import BadRequestError
from gradient_dd.cli.commands import cli
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.stream.log.columns import find_columns
from gradient_dd.stream.log.rows import RowReader
from gradient_dd.stream.log.sources import open_log
from tests.evaluation.known_logs import shop_visits

TASK = gdd.tasks.random_walk(5)


def frame_of(n=600, seed=0):
    """Return a log of the walk: one-hot observations, next ones, reward, ends, ratios, episodes."""
    row, next_row, reward, discount, rho, _ = TASK.transitions
    o = OutcomeSampler(TASK, seed=seed).take(n)
    X, ends = TASK.row_features.toarray(), discount[o] == 0
    columns = {f"x{i}": X[row[o], i] for i in range(5)} | {f"next_x{i}": X[next_row[o], i] for i in range(5)}
    columns |= {"reward": reward[o], "terminated": ends, "rho": rho[o]}
    return pd.DataFrame(columns | {"episode": np.cumsum(np.r_[False, ends[:-1]])})


FRAME = frame_of()
QUICK = {"discount": 1.0}


@pytest.fixture(scope="module")
def answer():
    """Return the evaluation of the frame."""
    return gdd.evaluate_log(FRAME, **QUICK)


def test_every_form_of_a_log_gives_the_same_answer(answer, tmp_path):
    FRAME.to_parquet(tmp_path / "log.parquet", row_group_size=70)
    FRAME.to_csv(tmp_path / "log.csv", index=False)
    x, x_next = (FRAME[[f"{before}{i}" for i in range(5)]].to_numpy() for before in ("x", "next_x"))
    rest = {name: FRAME[name].to_numpy() for name in ("reward", "terminated", "rho", "episode")}
    np.savez(tmp_path / "log.npz", x=x, x_next=x_next, **rest)
    np.save(tmp_path / "log.npy", FRAME.to_records(index=False))
    lists = pd.DataFrame({"observation": list(x), "next_observation": list(x_next)} | rest)
    lists.to_parquet(tmp_path / "lists.parquet")
    for log in ("log.parquet", "log.csv", "log.npz", "log.npy"):
        assert np.array_equal(gdd.evaluate_log(tmp_path / log, **QUICK).w, answer.w), log
    for log in (tmp_path / "lists.parquet", lists, {"obs": x, "next_obs": x_next, **rest}):
        assert np.array_equal(gdd.evaluate_log(log, features="raw", **QUICK).w, answer.w)


def tables(log, given=None, **options):
    """Return the transitions of a log as one table for each chunk, and the reader."""
    source = open_log(log)
    reader = RowReader(
        find_columns(source.names, given or {}),
        options.get("discount", 0.9),
        options.get("skip", False),
    )
    return list(reader.read(source.chunks(reader.needed, reader.columns.episode))), reader


def test_the_next_row_of_the_episode_is_the_next_observation(monkeypatch):
    """In one chunk or in many; a cut episode loses its last row, and so does the log."""
    short = FRAME.drop(columns=[name for name in FRAME if name.startswith("next_")])
    wanted = FRAME[[f"next_x{i}" for i in range(5)]].to_numpy()
    for chunk in (10_000, 7, 1):
        monkeypatch.setattr("gradient_dd.stream.log.sources.CHUNK", chunk)
        parts, reader = tables(short)
        rows = np.concatenate([part.row for part in parts])
        got = np.concatenate([part.following for part in parts])
        ended = np.concatenate([part.discount for part in parts]) == 0
        assert reader.counts.dropped.count == int(not FRAME["terminated"].iloc[-1])
        assert np.array_equal(got[~ended], wanted[rows][~ended])
        assert np.array_equal(np.concatenate([part.episode for part in parts]), FRAME["episode"].to_numpy()[rows])
    cut = short.assign(truncated=short.index == 3, terminated=False, episode=0)
    _, reader = tables(cut)
    assert reader.counts.dropped.count == 2
    unmarked = short.drop(columns="terminated").assign(episode=short.index // 100)  # episodes change, no row says so
    parts, reader = tables(unmarked)
    assert reader.counts.dropped.count == 6
    assert np.array_equal(np.concatenate([part.episode for part in parts]), np.repeat(np.arange(6), 99))


def test_termination_truncation_and_done():
    base = pd.DataFrame({"obs": [1.0, 2, 3, 4], "next_obs": [2.0, 3, 4, 5], "reward": 1.0})
    (one,), _ = tables(base.assign(terminated=[0, 1, 0, 0], truncated=[0, 0, 1, 0]))
    assert one.discount.tolist() == [0.9, 0, 0.9, 0.9]
    assert one.cut.tolist() == [False, False, True, False]
    assert one.episode.tolist() == [0, 0, 1, 2]
    (two,), _ = tables(base.assign(done=[0, 1, 1, 0], truncated=[0, 0, 1, 0]))
    assert (two.discount.tolist(), two.cut.tolist()) == (one.discount.tolist(), one.cut.tolist())
    (three,), _ = tables(base.assign(discount=[0.5, 0, 1, 1]))
    assert three.discount.tolist() == [0.5, 0, 1, 1]
    (four,), _ = tables(base.assign(next_obs=[2, np.nan, 4, 5], terminated=[0, 1, 0, 0]))
    assert four.following[1] == 0  # nothing is looked at after an end


def test_ratios_from_propensities_and_from_a_target():
    base = pd.DataFrame(
        {"obs": [0.0, 1, 0], "action": [1, 0, 0], "reward": 1.0, "done": 1, "propensity": [0.5, 0.25, 0.5]}
    )

    def ratios(log, **options):
        return np.concatenate([part.rho for part in tables(log, **options)[0]]).tolist()

    assert ratios(base.assign(target_prob=[0.5, 0.5, 0.0])) == [1, 2, 0]
    policy = np.array([[0.2, 0.8], [0.5, 0.5]])
    found = gdd.evaluate_log(base, target=policy, features="raw", discount=1.0)
    assert "Ratios: the target policy over the propensities." in found.stated
    assert ratios(base) == [1, 1, 1]


def test_columns_are_found_by_usual_names_and_said(answer):
    assert "Observations are 'x0', 'x1', …, 'x4'." in answer.stated
    assert "Rho is 'rho'." in answer.stated
    found = find_columns(["Obs_10", "Obs_2", "r", "gamma", "pscore", "pi_e", "Next_Obs_2", "Next_Obs_10"], {})
    assert found.observation == ("Obs_2", "Obs_10")
    assert found.next == ("Next_Obs_2", "Next_Obs_10")
    assert (found.reward, found.discount, found.behaviour_probability) == ("r", "gamma", "pscore")
    named = find_columns(["a", "b", "c"], {"observation": ["a", "b"], "reward": "c"})
    assert (named.observation, named.reward) == (("a", "b"), "c")


def changed(**columns):
    """Return the frame with some columns changed."""
    return FRAME.assign(**columns)


def corrupted(name, row, value):
    """Return the frame with one number changed."""
    frame = FRAME.astype({name: float})
    frame.loc[row, name] = value
    return frame


RENAMED = FRAME.rename(columns={"reward": "rewrad"})
NEVER = FRAME.drop(columns="rho").assign(propensity=0.0, target_prob=1.0)
ACTED = FRAME.assign(propensity=0.5, action=np.arange(len(FRAME)) % 2)
BAD = [
    (RENAMED, {}, "A column of rewards must be in the log. Got none of that name. Did you mean"),
    (FRAME, {"columns": {"reward": "rewards"}}, "The column 'rewards' for 'reward' must be in the log."),
    (FRAME, {"columns": {"rewrad": "reward"}}, "Unknown role of a column 'rewrad'. Did you mean 'reward'?"),
    (FRAME[["reward", "rho"]], {}, "A log must have observations, such as obs_0, obs_1, …. Got 'reward', 'rho'."),
    (corrupted("x2", 17, np.nan), {}, "Column 'x2' in row 17 must be a finite number. Got nan."),
    (corrupted("reward", 41, np.inf), {}, "Column 'reward' in row 41 must be a finite number. Got inf."),
    (corrupted("rho", 5, -0.5), {}, "Column 'rho' in row 5 must be a number that is zero or more. Got -0.5."),
    (corrupted("rho", 6, np.inf), {}, "Column 'rho' in row 6 must be a number that is zero or more. Got inf."),
    (corrupted("terminated", 7, 2), {}, "Column 'terminated' in row 7 must be 0 or 1, or true or false. Got 2."),
    (changed(discount=1.5), {}, "Column 'discount' in row 0 must be from 0 to 1. Got 1.5."),
    (changed(episode=FRAME["episode"] % 3), {}, "Column 'episode' in row"),
    (changed(reward="much"), {}, "Column 'reward' in row 0 must be a number. Got 'much'."),
    (NEVER, {}, "Column 'propensity' in row 0 must be above 0, because this action was taken. Got 0."),
    (FRAME[:0], {}, "The log the frame must have rows. Got none."),
    (FRAME, {"discount": None}, "'discount' must be given unless the log has a column of discounts. Got none."),
    (FRAME, {"target": [[1.0]]}, "With a target policy, a column of the role 'action' must be in the log. Got none"),
    (FRAME, {"features": "tile"}, "Unknown features 'tile'. Did you mean 'tiles'?"),
    (FRAME, {"features": 3}, "'features' must be a feature map, a function, or one of raw, standard, quadratic,"),
    (ACTED, {"target": lambda x, a: x["position"]}, "The policy 'target' must run on a batch of observations. Got Ind"),
    (ACTED, {"target": lambda x, a: x[:, 0] - 1}, "The output of the target policy for row 0 must be a probability."),
    (ACTED, {"target": lambda x: 3 * np.ones((len(x), 2))}, "The probabilities that 'target' gives must be zero or"),
    (ACTED, {"target": lambda x: np.ones((len(x), 1))}, "The output of the policy 'target' must be of shape ("),
    ("nowhere.parquet", {}, "A log must be a file. Got 'nowhere.parquet'."),
    ("log.txt", {}, "A log must be a .parquet, .csv, .npz or .npy file, a folder of Parquet files, a data frame"),
    ({"x": np.ones((3, 2)), "reward": np.ones(2)}, {}, "The columns of the arrays must have the same length."),
    (FRAME.drop(columns="next_x4"), {}, "The columns of the next observation must be as many as the columns of"),
]  # fmt: skip


@pytest.mark.parametrize(("log", "options", "sentence"), BAD, ids=[sentence[:40] for *_, sentence in BAD])
def test_bad_input_is_one_sentence_with_the_row(log, options, sentence):
    with pytest.raises(BadRequestError) as caught:
        gdd.evaluate_log(log, **QUICK | options)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz", "npy"])
def test_a_file_that_is_cut_off_or_something_else_is_one_sentence(kind, tmp_path):
    whole = tmp_path / f"whole.{kind}"
    write = {
        "parquet": lambda: FRAME.to_parquet(whole),
        "csv": lambda: FRAME.to_csv(whole, index=False),
        "npz": lambda: np.savez(whole, **{name: FRAME[name].to_numpy() for name in FRAME}),
        "npy": lambda: np.save(whole, FRAME.to_records(index=False)),
    }
    write[kind]()
    content = whole.read_bytes()
    for name, damaged in (("cut", content[: len(content) // 2 - 3]), ("other", b"\x00\xff" * 40), ("empty", b"")):
        file = tmp_path / f"{name}.{kind}"
        file.write_bytes(damaged)
        with pytest.raises(BadRequestError, match=rf"^[^\n]*{name}\.{kind}[^\n]*$|^[^\n]*[Cc]olumn[^\n]*$"):
            gdd.evaluate_log(file, **QUICK)


def test_a_row_of_a_csv_file_without_all_its_cells_is_named(tmp_path):
    FRAME.to_csv(tmp_path / "whole.csv", index=False)
    lines = (tmp_path / "whole.csv").read_text().splitlines()
    (tmp_path / "torn.csv").write_text("\n".join([*lines[:39], "1,0"]))  # a line of names and 38 rows stand before it
    with pytest.raises(
        BadRequestError, match=r"^The log torn.csv must be readable in row 38\. Got Expected 14 columns"
    ):
        gdd.evaluate_log(tmp_path / "torn.csv", **QUICK)


def test_the_command_refuses_before_it_works(tmp_path):
    """A policy that is not in its file must not be taken for none, and a page needs a folder."""
    FRAME.to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "policy.py").write_text("def target(observations, actions):\n    return actions\n")
    for flags, sentence in (
        (["--target", f"{tmp_path}/policy.py:targt"], "'targt'. Did you mean 'target'?"),
        (["--report", f"{tmp_path}/nowhere/page.html"], "'--report' must be a file in an existing folder."),
    ):
        result = CliRunner().invoke(cli, ["evaluate", f"{tmp_path}/log.csv", "--discount", "1", *flags])
        assert isinstance(result.exception, BadRequestError)
        assert sentence in str(result.exception)
        assert result.stdout == ""


def test_text_in_a_csv_file_is_found(tmp_path):
    """In its first block or far behind it, where the kind of the column is settled already."""
    frame = pd.concat([FRAME] * 3, ignore_index=True).astype({"reward": object, "episode": float})
    frame["episode"] = np.cumsum(np.r_[False, frame["terminated"].to_numpy()[:-1]])
    for row in (3, 1700):
        corrupted = frame.copy()
        corrupted.loc[row, "reward"] = "much"
        corrupted.to_csv(tmp_path / "log.csv", index=False)
        with pytest.raises(BadRequestError, match=rf"^Column 'reward' in row {row:,} must be a number. Got 'much'.$"):
            gdd.evaluate_log(tmp_path / "log.csv", **QUICK)


def test_bad_rows_are_skipped_counted_and_said():
    frame = corrupted("x2", [17, 30, 31], np.nan)
    found = gdd.evaluate_log(frame, skip_bad_rows=True, **QUICK)
    assert found.rows == len(FRAME) - 3
    assert any(said.startswith("3 bad rows were skipped, the first in row 17 (x2)") for said in found.stated)


def test_one_episode_is_taken_with_care():
    frame = FRAME.assign(terminated=False, episode=0)
    assert gdd.evaluate_log(frame, **QUICK | {"discount": 0.9}).verdict.word != "trust"


def test_a_log_that_is_not_kept_gives_the_same_bits(monkeypatch):
    """It is read again for every pass; the sums are those of the same pieces."""
    kept = gdd.evaluate_log(FRAME, **QUICK)
    monkeypatch.setattr("gradient_dd.evaluation.rows.KEPT_NUMBERS", 100)
    again = gdd.evaluate_log(FRAME, **QUICK)
    assert np.array_equal(kept.w, again.w)
    assert kept.start_interval == again.start_interval
    assert kept.verdict == again.verdict


def test_a_learner_may_take_the_place_of_least_squares():
    exact = gdd.evaluate_log(FRAME, **QUICK)
    near = gdd.evaluate_log(FRAME, learner="td", alpha=0.05, **QUICK)
    far = gdd.evaluate_log(FRAME, learner="td", alpha=1e-6, **QUICK)
    assert near.chosen == "td(alpha=0.05)"
    assert near.start_value == pytest.approx(exact.start_value, abs=0.05)
    assert [one.level for one in near.verdict.findings if one.about == "least squares"] == ["fine"]
    assert [one.level for one in far.verdict.findings if one.about == "least squares"] == ["not"]
    assert far.start_interval.low <= far.start_value


def test_the_command_prints_writes_json_and_a_page(tmp_path, answer):
    FRAME.to_csv(tmp_path / "log.csv", index=False)
    flags = ["--discount", "1"]
    page = tmp_path / "page.html"
    run = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "log.csv"), *flags, "--json", "--report", str(page)])
    assert run.exit_code == 0, run.output
    facts = json.loads(run.stdout)
    assert facts["value"] == answer.start_value
    assert facts["verdict"] == answer.verdict.word
    assert all(finding.about in page.read_text() for finding in answer.verdict.findings)
    text = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "log.csv"), *flags])
    assert text.stdout.startswith("Observations are 'x0', 'x1', …, 'x4'.\n")  # what was taken for what comes first
    assert f"\n\nValue at the start of episodes: {answer.start_value:.4g}" in text.stdout
    assert text.stdout.count("Observations are") == 1
    bad = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "log.csv"), "--report", str(tmp_path / "none.html")])
    assert isinstance(bad.exception, BadRequestError)
    assert not (tmp_path / "none.html").exists()


def test_columns_that_nothing_uses_need_care_unless_the_observation_was_named():
    """A state that is read in part gives a confident, wrong value."""
    frame = FRAME.assign(speed=np.arange(len(FRAME)) % 3)
    guessed = gdd.evaluate_log(frame, discount=0.9)
    assert [one.level for one in guessed.verdict.findings if one.about == "unused columns"] == ["with care"]
    assert any("'speed'" in reason for reason in guessed.verdict.reasons)
    named = [name for name in FRAME.columns if name.startswith("x")]
    assert named
    confirmed = gdd.evaluate_log(frame, discount=0.9, columns={"observation": named})
    assert not [one for one in confirmed.verdict.findings if one.about == "unused columns"]


def test_one_number_alone_gets_a_constant():
    names = [name for name in FRAME.columns if not name.startswith(("x", "next"))]
    frame = FRAME[names].assign(x=1.0 + np.arange(len(FRAME)) % 2)
    assert gdd.evaluate_log(frame, features="standard", **QUICK).found.map.p == 2
    assert any("a table of 2 distinct states" in words for words in gdd.evaluate_log(frame, **QUICK).stated)


def test_columns_that_contradict_each_other_are_found():
    visits = shop_visits(seed=1, visits=100)
    named = {"episode": "visit", "observation": "interest"}

    def levels(**columns):
        found = gdd.evaluate_log(visits, discount=0.9, columns=named | columns)
        return {one.about: one for one in found.verdict.findings if one.about in ("ends", "left out")}

    assert not levels(reward="bought", terminated="left")
    swapped = levels(reward="left", terminated="bought")
    assert swapped["ends"].level == swapped["left out"].level == "not"
    inside = np.flatnonzero(visits["bought"][:-1].astype(bool) & (np.diff(visits["visit"]) == 0))
    assert f"in {len(inside)} rows, first after row {inside[0]}." in swapped["ends"].sentence
    without = levels(reward="left")
    assert without["ends"].level == "with care"
    assert "Their mean reward is 1, the mean of the others is 0," in without["left out"].sentence
