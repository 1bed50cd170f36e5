"""Logs from files: what is not a log, or not whole, gets one sentence."""

import os
import zipfile

import numpy as np
import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.stream.log import LogReader

X = np.eye(3)
COLUMNS = {"x": X, "reward": np.ones(3), "discount": np.full(3, 0.9), "x_next": X[::-1]}


def read_log(source):
    """Return x (n, p) and ρ (n,) of a log."""
    reader = LogReader(source)
    reader.first_rows()  # raises if there are none
    parts = [(rows.observation, rows.rho) for rows in reader.tables()]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def sentence_of(call, *arguments):
    with pytest.raises(BadRequestError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_array_is_no_log(tmp_path):
    np.save(tmp_path / "log.npy", X)
    (tmp_path / "log.npy").rename(tmp_path / "log.npz")
    assert "The log log.npz must be readable." in sentence_of(read_log, tmp_path / "log.npz")


def test_every_truncation_of_a_log_is_refused(tmp_path):
    file = tmp_path / "log.npz"
    np.savez(file, **COLUMNS)
    whole = file.read_bytes()
    for length in range(0, len(whole), 50):
        file.write_bytes(whole[:length])
        assert "must be readable" in sentence_of(read_log, file)


def test_a_damaged_number_is_refused(tmp_path):
    """In .npz files, which hold a checksum of every array; a .csv file has none."""
    file = tmp_path / "log.npz"
    np.savez(file, **COLUMNS)
    whole = bytearray(file.read_bytes())
    place = whole.find(np.float64(0.9).tobytes())
    whole[place + 6] ^= 1
    file.write_bytes(whole)
    assert "must be readable. Got BadZipFile: Bad CRC-32" in sentence_of(read_log, file)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_logs_may_be_compressed_and_hold_more(save, tmp_path):
    save(tmp_path / "log.npz", **COLUMNS, note=np.array("mine"), rho=np.array([1, 2, 0]))
    x, rho = read_log(tmp_path / "log.npz")
    assert rho.tolist() == [1, 2, 0]
    assert np.array_equal(x, X)


def test_a_log_beyond_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    wide = {name: np.zeros((1000, 1000) if name.startswith("x") else 1000) for name in COLUMNS}
    np.savez_compressed(tmp_path / "log.npz", **wide)
    monkeypatch.setenv("GRADIENT_DD_MEMORY", "1e6")
    assert "must take at most 1 MB" in sentence_of(read_log, tmp_path / "log.npz")


def test_an_array_that_unpacks_to_more_than_it_says_is_refused_before_it_is_unpacked(tmp_path):
    np.savez(tmp_path / "log.npz", **COLUMNS)
    with zipfile.ZipFile(tmp_path / "log.npz") as old:
        content = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(tmp_path / "log.npz", "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in content.items():
            new.writestr(name, data + bytes(10**7) * (name == "reward.npy"))
    sentence = sentence_of(read_log, tmp_path / "log.npz")
    assert "must be readable. Got an array of shape (3,) in 10000152 bytes" in sentence


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "log.npz", **(COLUMNS | {"reward": np.array([{}, 1, 2], object)}))
    assert "must be readable. Got an array of object" in sentence_of(read_log, tmp_path / "log.npz")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "x0,x2,next0,next1,reward,discount\n1,1,1,1,1,1\n",
            "The columns of the next observation must have the same numbers as",
        ),
        (
            "x0,next1,reward,discount\n1,1,1,1\n",
            "must have the same numbers as the columns of the observation. Got 'next1' for 'x0'.",
        ),
        ("x0,next0,reward,discount\n1,a,1,1\n", "Column 'next0' in row 0 must be a number. Got 'a'."),
        ("x0,next0,reward,discount\n", "The log log.csv must have rows. Got none."),
        ("x0,next0,reward,discount\n1,,1,1\n", "Column 'next0' in row 0 must be a finite number. Got nan."),
        ("x0,next0,reward,discount\n1e99,1,1,1\n", "Column 'x0' in row 0 must be a finite number. Got 1e+99."),
        ("\0\0\0", "must"),
        ('"', "must be readable"),
    ],
)
def test_a_csv_file_has_its_columns(text, sentence, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    assert sentence in sentence_of(read_log, tmp_path / "log.csv")


def test_a_log_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "log.npz")
    for path in (tmp_path / "log.npz", tmp_path, "", None, 3, "a\0b.npz", tmp_path / "none.csv"):
        assert "A log must be " in sentence_of(read_log, path)
    assert "must be a file whose name has at most 255 bytes." in sentence_of(read_log, tmp_path / ("x" * 300 + ".csv"))
    with zipfile.ZipFile(tmp_path / "empty.npz", "w"):
        pass
    assert "The columns of empty.npz must have the same length. Got none." in sentence_of(
        read_log, tmp_path / "empty.npz"
    )
