"""Logs are read right, or refused with the row: every column has a kind that its cells must be."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradient_dd as gdd
from gradient_dd import BadRequestError

N = 400
QUICK = {"discount": 0.9}


def honest():
    """Return 400 honest rows: lists of two numbers, rewards, ends, and whole-number names of episodes."""
    rng = np.random.default_rng(0)
    return {
        "observation": rng.standard_normal((N, 2)).round(3),
        "reward": rng.standard_normal(N).round(3),
        "terminated": np.arange(N) % 8 == 7,
        "episode": np.arange(N) // 8,
    }


def value_of(log, **options):
    return gdd.evaluate_log(log, **QUICK | options).start_value


def refusal_of(log, **options):
    """Return the sentence with which a log is refused."""
    with pytest.raises(BadRequestError) as caught:
        value_of(log, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


HONEST = honest()
VALUE = value_of(HONEST)


def in_parquet(folder, **changes):
    """Return the path of the honest rows as a Parquet file, some columns changed."""
    columns = HONEST | {"observation": HONEST["observation"].tolist()} | changes
    pq.write_table(pa.table(dict(columns)), folder / "log.parquet")
    return folder / "log.parquet"


def in_csv(folder, **changes):
    """Return the path of the honest rows as a CSV file, some columns changed."""
    x = HONEST["observation"]
    columns = {"obs_0": x[:, 0], "obs_1": x[:, 1]} | {k: v for k, v in HONEST.items() if k != "observation"} | changes
    pd.DataFrame(columns).to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


def with_cell(name, row, cell):
    """Return a column of the honest rows as a list, one cell changed."""
    column = HONEST[name].tolist()
    column[row] = cell
    return column


# Lists


@pytest.mark.parametrize("form", ["parquet", "frame", "dictionary"])
@pytest.mark.parametrize("cells", [([1.0], [1.0, 2.0, 3.0]), (None, [1.0, 2.0, 3.0, 4.0]), ([], [1.0, 2.0, 3.0, 4.0])])
def test_lists_of_several_lengths_shift_nothing(cells, form, tmp_path):
    lists = HONEST["observation"].tolist()
    lists[30], lists[60] = cells
    made = {
        "parquet": lambda: in_parquet(tmp_path, observation=lists),
        "frame": lambda: pd.DataFrame(HONEST | {"observation": lists}),
        "dictionary": lambda: HONEST | {"observation": lists},
    }
    sentence = refusal_of(made[form]())
    if cells[0] is None:
        assert "Column 'observation' in row 60 must have 2 numbers, as in the rows before. Got 4." in sentence
    else:
        assert (
            f"Column 'observation' in row 30 must have 2 numbers, as in the rows before. Got {len(cells[0])}."
            in sentence
        )
    left = gdd.evaluate_log(made[form](), **QUICK, skip_bad_rows=True)
    assert any(words.startswith("2 bad rows were skipped") for words in left.stated)


def test_lists_stay_as_wide_as_the_first_row_from_piece_to_piece(tmp_path, monkeypatch):
    lists = HONEST["observation"].tolist()[:200] + [[1.0, 2.0, 3.0]] * 200
    pq.write_table(pa.table(HONEST | {"observation": lists}), tmp_path / "log.parquet", row_group_size=200)
    assert "Column 'observation' in row 200 must have 2 numbers" in refusal_of(tmp_path / "log.parquet")


def test_a_missing_number_in_a_list_is_refused_with_the_row(tmp_path):
    lists = HONEST["observation"].tolist()
    lists[5] = [1.0, None]
    assert "Column 'observation' in row 5 must be a finite number. Got nan." in refusal_of(
        in_parquet(tmp_path, observation=lists)
    )
    lists[5] = None
    assert "Column 'observation' in row 5 must be a finite number. Got nan." in refusal_of(
        in_parquet(tmp_path, observation=lists)
    )
    lists[5] = [[1.0], [2.0]]
    assert "Column 'observation' in row 5 must be a number. Got [1.0]." in refusal_of(HONEST | {"observation": lists})
    assert "Got (400, 2, 1)." in refusal_of(HONEST | {"observation": HONEST["observation"][:, :, None]})


# Names of episodes


def without_ends():
    return {"terminated": np.zeros(N, bool)}


@pytest.mark.parametrize("names", [2**60 + np.arange(N) // 8, np.array([f"{n:02}" for n in np.arange(N) // 8])])
def test_names_of_episodes_stay_what_they_are(names, tmp_path):
    """Whole numbers above 2**53 do not merge, and "01" is not 1."""
    log = HONEST | {"episode": names} | without_ends()
    wanted = value_of(HONEST | without_ends())
    assert value_of(log) == wanted
    assert value_of(in_csv(tmp_path, episode=names, **without_ends())) == wanted
    assert value_of(in_parquet(tmp_path, episode=names.tolist(), **without_ends())) == wanted
    assert value_of({name: column.tolist() for name, column in log.items()}) == wanted


def test_text_names_under_another_column_name(tmp_path):
    names = np.array([f"visit-{n}" for n in np.arange(N) // 8])
    path = in_csv(tmp_path, visit=names)
    assert value_of(path, columns={"episode": "visit", "observation": ["obs_0", "obs_1"]}) == VALUE


MISSING_NAME = "must have the name or the number of the episode."


@pytest.mark.parametrize("cells", [[None] * N, [float("nan")] * N, with_cell("episode", 11, None)])
def test_missing_names_are_refused_in_every_form(cells, tmp_path):
    row = 0 if cells[0] is None or cells[0] != cells[0] else 11
    forms = [
        HONEST | {"episode": cells},
        pd.DataFrame(HONEST | {"observation": HONEST["observation"].tolist(), "episode": pd.Series(cells)}),
        in_parquet(tmp_path, episode=pa.array(cells, from_pandas=True, type=pa.int64())),
        in_csv(tmp_path, episode=cells),
    ]
    for form in forms:
        assert f"Column 'episode' in row {row} {MISSING_NAME}" in refusal_of(form)
    if row:
        found = gdd.evaluate_log(forms[0], **QUICK, skip_bad_rows=True)
        assert "1 bad rows were skipped, the first in row 11 (episode)." in found.stated


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (np.repeat([[0], [1]], 200, axis=0), "Got an array (400, 1)."),
        ([[n // 8] for n in range(N)], "Got an array (400, 1)."),
        (with_cell("episode", 9, {1}), "in row 9 must be a whole number or the name of an episode. Got {1}."),
        (with_cell("episode", 9, "one"), "Column 'episode' in row 9 must be a number, as before. Got 'one'."),
        (with_cell("episode", 9, Fraction(10**400, 3)), "in row 9 must be a whole number or the name of an episode."),
        (with_cell("episode", 9, Decimal("NaN")), "in row 9 must be a whole number or the name of an episode."),
        (with_cell("episode", 9, b"1"), "Column 'episode' in row 9 must be a whole number or the name of an episode."),
        (np.arange(N) // 8 + 2.0**53 + 2, "in row 0 must be a whole number or the name of an episode."),
        (np.arange(N) > 200, "Column 'episode' in row 0 must be a whole number or the name of an episode. Got flags."),
        (np.arange(N) * 1j, "Column 'episode' in row 0 must be a whole number or the name of an episode. Got complex"),
        ([{"a": 1}] * N, "Column 'episode' in row 0 must be a whole number or the name of an episode. Got {'a': 1}."),
    ],
)
def test_odd_names_of_episodes_are_refused(cells, sentence):
    assert sentence in refusal_of(HONEST | {"episode": cells})


# Flags and numbers


def test_flags_are_0_1_true_and_false_and_nothing_else(tmp_path):
    ends = HONEST["terminated"]
    for cells in (
        ends.astype(int),
        ends.astype(float),
        ends.astype(str),
        np.where(ends, "true", "false"),
        ends.tolist(),
    ):
        assert value_of(HONEST | {"terminated": cells}) == VALUE
        assert value_of(in_csv(tmp_path, terminated=cells)) == VALUE
        assert value_of(in_parquet(tmp_path, terminated=cells)) == VALUE
    for cell in (0.5, 0.999, 2, -1, float("nan")):
        column = np.where(np.arange(N) == 7, cell, ends)
        for log in (
            HONEST | {"terminated": column},
            in_csv(tmp_path, terminated=column),
            in_parquet(tmp_path, terminated=column),
        ):
            assert "Column 'terminated' in row 7 must be 0 or 1, or true or false. Got " in refusal_of(log)
    for column in (with_cell("terminated", 7, "yes"), ends * 1j, ends.reshape(N, 1), ends.astype("M8[D]")):
        assert "Column 'terminated'" in refusal_of(HONEST | {"terminated": column})


REWARD = HONEST["reward"]


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (np.ma.masked_array(REWARD, np.arange(N) == 3), "Column 'reward' in row 3 must be a finite number. Got nan."),
        (REWARD + 1j, "Column 'reward' in row 0 must be a number. Got complex numbers."),
        (np.arange(N).astype("M8[D]"), "Column 'reward' in row 0 must be a number. Got dates."),
        (np.arange(N).astype("m8[s]"), "Column 'reward' in row 0 must be a number. Got durations."),
        (REWARD.astype("S"), "Column 'reward' in row 0 must be a number. Got bytes."),
        (REWARD[:, None], "Column 'reward' must have one number in each row. Got an array (400, 1)."),
        ([[1.0]] * 399 + [[1.0, 2.0]], "Column 'reward' in row 0 must be a number. Got [1.0]."),
        (with_cell("reward", 4, b"1"), "Column 'reward' in row 4 must be a number. Got b'1'."),
        (with_cell("reward", 4, 1j), "Column 'reward' in row 4 must be a number. Got 1j."),
        (with_cell("reward", 4, 10**400), "Column 'reward' in row 4 must be a finite number. Got inf."),
        (with_cell("reward", 4, "1_0"), "Column 'reward' in row 4 must be a number. Got '1_0'."),
        (with_cell("reward", 4, object), "Column 'reward' in row 4 must be a number. Got <class 'object'>."),
        (iter(()), "The column 'reward' must be an array."),
    ],
)
def test_rewards_are_real_numbers(cells, sentence):
    assert sentence in refusal_of(HONEST | {"reward": cells})


def test_rewards_of_a_parquet_file_are_real_numbers(tmp_path):
    for kind, words in ((pa.timestamp("s"), "dates"), (pa.duration("s"), "durations"), (pa.date32(), "dates")):
        cells = pa.array(np.arange(N, dtype="i4" if kind == pa.date32() else "i8")).cast(kind)
        assert f"Column 'reward' in row 0 must be a number. Got {words}." in refusal_of(
            in_parquet(tmp_path, reward=cells)
        )
    assert "Column 'reward' in row 0 must be a number. Got b'1'." in refusal_of(in_parquet(tmp_path, reward=[b"1"] * N))
    exact = [Decimal(str(one)) for one in REWARD]
    assert value_of(in_parquet(tmp_path, reward=exact)) == VALUE
    assert value_of(HONEST | {"reward": REWARD.astype(str)}) == VALUE  # text counts as what it spells


def test_two_columns_of_one_name_are_refused(tmp_path):
    names = [*HONEST, "reward"]
    columns = [pa.array(HONEST["observation"].tolist()), *(pa.array(HONEST[name]) for name in names[1:])]
    pq.write_table(pa.Table.from_arrays(columns, names), tmp_path / "log.parquet")
    text = in_csv(tmp_path).read_text().replace("obs_1", "obs_0", 1)
    (tmp_path / "log.csv").write_text(text)
    frame = pd.DataFrame(HONEST | {"observation": REWARD})
    frame.columns = ["observation", "reward", "terminated", "reward"]
    for log in (tmp_path / "log.parquet", tmp_path / "log.csv", frame, {**HONEST, 1: REWARD}):
        assert "must have different names, as text." in refusal_of(log)


@pytest.mark.parametrize(
    "columns",
    [
        *(5, "reward", ["reward"], {"reward": 3}, {"reward": None}, {"reward": []}, {"reward": ["reward", "episode"]}),
        *({1: "reward"}, {"observation": {"observation"}}, {"observation": ["observation", "observation"]}),
        *({"observation": [["observation"]]}, {"next": "reward", "next_observation": "reward"}),
    ],
)
def test_odd_roles_are_refused(columns):
    refusal_of(HONEST, columns=columns)


def test_long_names_of_columns_are_shortened():
    sentence = refusal_of({"x" + "9" * 5000: REWARD, "y" * 5000: REWARD})
    assert "A log must have rewards and observations" in sentence
    assert len(sentence) < 800


def test_a_table_of_a_target_is_for_whole_numbers_of_states_and_good_rows():
    states = np.arange(N) % 3
    log = {"state": states.astype(float), "action": states % 2, "reward": 1.0, "done": states == 2, "propensity": 0.5}
    table = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    given = {"target": table}
    wanted = value_of(log, **given)
    assert wanted != value_of(log)
    with_gaps = log | {"state": np.where(np.arange(N) == 9, 0.5, log["state"])}
    assert "Observations for the table 'target' must be whole numbers, one for each state." in refusal_of(
        with_gaps, **given
    )
    with_gaps["state"][9] = np.nan
    assert np.isfinite(value_of(with_gaps, **given, skip_bad_rows=True))
    by_text = log | {"action": (states % 2).astype(str), "state": states.astype(str)}
    assert value_of(by_text, **given) == wanted


def test_whether_actions_are_text_is_decided_over_the_whole_column(tmp_path, monkeypatch):
    """A rare text late in the log makes text of all actions, in every form, and not a fourth kind of number."""
    monkeypatch.setattr("gradient_dd.stream.log.sources.CHUNK", 50)
    monkeypatch.setattr("gradient_dd.stream.log.sources.CSV_BYTES", 600)
    action = np.array(["1", "2"] * 100, dtype="<U4")
    action[190] = "stop"
    log = {
        "obs": np.arange(200) % 3,
        "action": action,
        "reward": (action == "2") * 1.0,
        "done": np.arange(200) % 4 == 3,
    }
    pd.DataFrame(log).to_csv(tmp_path / "log.csv", index=False)
    even = lambda seen: np.full((len(seen), 3), 1 / 3)  # noqa: E731
    found = [gdd.evaluate_log(one, target=even, discount=0.5) for one in (log, tmp_path / "log.csv")]
    assert [one.found.policy.actions.names for one in found] == [("1", "2", "stop")] * 2
    assert found[0].start_value == found[1].start_value
