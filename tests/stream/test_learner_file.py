"""Saved learners: a file that is damaged, odd or hostile is refused in one sentence, and nothing of it is believed."""

import json
import os
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest

from gradient_dd import features
from gradient_dd.errors import BadRequestError
from gradient_dd.files import open_saved, write_file
from gradient_dd.stream.learner import Learner


@pytest.fixture
def saved(tmp_path):
    """A function that saves a learner and writes its file anew with other arrays or another header."""

    def save(name="gradient_dd", arrays=None, **changes):
        agent = Learner(name, 3, alpha=0.1)
        agent.update([1.0, 0, 2], 1.0, 0.9, [0.0, 1, 0])
        file = tmp_path / f"{name}.npz"
        agent.save(file)
        with open_saved(file, Learner.file) as (header, content):
            pass
        content = {key: value for key, value in (content | (arrays or {})).items() if value is not None}
        write_file(file, Learner.file, header | changes, content)  # with a checksum that fits
        return file

    return save


def sentence_of(file):
    with pytest.raises(BadRequestError) as caught:
        Learner.load(file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_written_anew_unchanged_is_read(saved):
    assert Learner.load(saved()).updates == 1


@pytest.mark.parametrize(
    "weights",
    [
        np.array([np.nan, 0, 0]),
        np.array([np.inf, 0, 0]),
        np.array([1, 2, 3]),
        np.array(["a", "b", "c"]),
        np.zeros(3, [("a", float)]),
        np.array([1j, 0, 0]),
        np.zeros(3, "<f4"),
        np.zeros(3, ">f8"),
        np.zeros(4),
        np.zeros((3, 1)),
        np.float64(0.0),
        None,
    ],
    ids=repr,
)
def test_weights_are_finite_floats_of_the_right_shape(saved, weights):
    assert "must be a learner saved by gradient-dd. Got a damaged file" in sentence_of(saved(arrays={"w": weights}))


def test_arrays_are_those_of_the_learner(saved):
    for name, arrays in (
        ("natural_tdc", {"metric": None}),
        ("natural_tdc", {"metric": np.zeros(3)}),
        ("td", {"metric": np.eye(3)}),
        ("td", {"more": np.zeros(3)}),
    ):
        assert "must be a learner saved by gradient-dd" in sentence_of(saved(name, arrays))


COUNTS = {"updates": 1, "episodes": 0, "scale": 1.0}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"counts": COUNTS | {"updates": -1}}, "'updates' must be a whole number, 0 or more. Got -1."),
        ({"counts": COUNTS | {"updates": 1.5}}, "'updates' must be a whole number, 0 or more. Got 1.5."),
        ({"counts": COUNTS | {"episodes": "1"}}, "'episodes' must be a whole number, 0 or more. Got '1'."),
        ({"counts": COUNTS | {"scale": 0}}, "'scale' must be a number that is not zero."),
        ({"counts": COUNTS | {"scale": np.nan}}, "'scale' must be a number that is not zero. Got nan."),
        ({"counts": {}}, "must be a learner saved by gradient-dd."),
        ({"counts": [1, 2, 3]}, "must be a learner saved by gradient-dd."),
        ({"values": {"alpha": -1}}, "'alpha' of gradient_dd must be a positive number. Got -1."),
        ({"values": {"alfa": 1}}, "gradient_dd has no parameter 'alfa'."),
        ({"values": 3}, "must be a learner saved by gradient-dd."),
        ({"values": {"rho_mode": "T"}}, "must be a learner saved by gradient-dd."),
        ({"rho_mode": ["R"]}, "'rho_mode' of gradient_dd must be 'R' or 'T'."),
        ({"n_features": 10**9}, "must be a learner saved by gradient-dd."),
        ({"n_features": 10**13}, "must be a learner saved by gradient-dd."),
        ({"n_features": "3"}, "'n_features' must be a whole number"),
        ({"n_features": None}, "'n_features' must be a whole number"),
        ({"schedule": {"n0": "x", "per": "step"}}, "'n0' of a tapered schedule must be a number"),
        ({"schedule": {"n0": 1, "per": "year"}}, "'per' of a schedule must be 'episode' or 'step'."),
        ({"schedule": 3}, "must be a learner saved by gradient-dd."),
        ({"learner": ["td"]}, "must be a learner saved by gradient-dd."),
        ({"learner": "none"}, "was saved with a rule of your own, 'none'. Pass it again"),
        ({"features": 3}, "must be a learner saved by gradient-dd."),
        ({"features": {"kind": "none"}}, "Unknown type of features 'none'."),
        ({"version": "3"}, "must be of version 4. Got '3'. Another version of gradient-dd wrote it"),
        ({"version": 5}, "must be of version 4. Got 5. Another version of gradient-dd wrote it"),
        ({"kind": "evaluation"}, "must be a learner saved by gradient-dd."),
    ],
)
def test_a_header_is_checked(saved, change, sentence):
    assert sentence in sentence_of(saved(**change))


def test_deep_json_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", header=np.array("[" * 100_000))
    assert "must be a learner saved by gradient-dd" in sentence_of(tmp_path / "a.npz")


def member(shape, kind="<f8", data=b""):
    """Return the bytes of an array whose header says anything."""
    file = BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


@pytest.mark.parametrize("shape", [(10**12,), (10**8,), (-1,), (2**63, 2**63), (2, 2)])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_is_as_large_as_its_header_says(saved, shape, compression):
    """7 TiB of zeros, or 800 MB, are refused before they are taken."""
    file = saved()
    with zipfile.ZipFile(file) as old:
        content = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(file, "w", compression) as new:
        for name, data in (content | {"w.npy": member(shape, data=bytes(24))}).items():
            new.writestr(name, data)
    assert "must" in sentence_of(file)


def test_a_directory_that_lies_about_a_size_allocates_nothing(saved):
    file = saved()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("w.npy", member((10**8,), data=bytes(8000)))
        said = archive.getinfo("w.npy")
        said.file_size = said.compress_size = said.file_size - 8000 + 8 * 10**8
    tracemalloc.start()
    try:
        assert "must be a learner saved by gradient-dd" in sentence_of(file)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_an_object_array_is_not_unpickled(saved):
    file = saved()
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("more.npy", member((1,), "|O", b"cos\nsystem\n(S'false'\ntR."))
    assert "must be a learner saved by gradient-dd" in sentence_of(file)


def test_two_arrays_of_one_name_are_refused(saved):
    file = saved()
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("w.npy", member((3,), data=b"1" * 24))
    assert "must be a learner saved by gradient-dd" in sentence_of(file)


def test_an_encrypted_file_is_refused(saved):
    """The flag alone: Python cannot write one."""
    file = saved()
    content = bytearray(file.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(signature)
        while place >= 0:
            content[place + offset] |= 1
            place = content.find(signature, place + 1)
    file.write_bytes(content)
    assert "must be a learner saved by gradient-dd" in sentence_of(file)


def test_every_truncation_is_refused(saved):
    file = saved()
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        sentence_of(file)


def test_a_flipped_byte_is_refused_or_changes_nothing(saved):
    """A date in the archive may change; a number, a name or a shape may not."""
    file = saved()
    whole, right, refused = file.read_bytes(), content_of(file), 0
    places = range(0, len(whole), 3)
    for place in places:
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            assert content_of(file) == right
        except BadRequestError:
            refused += 1
    assert refused > 0.7 * len(places)


def content_of(file):
    """Return the header and the bytes of the arrays of a saved learner."""
    with open_saved(file, Learner.file) as (header, arrays):
        return header, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("change", ["a header", "an array", "a name", "a type", "a shape"])
def test_what_another_program_has_changed_is_refused(saved, change):
    """The archive is whole then, and every array has the checksum of the archive: only ours differs."""
    file = saved()
    with np.load(file) as opened:
        content = dict(opened)
    if change == "a header":
        content["header"] = np.array(str(content["header"]).replace('"n_features": 3', '"n_features": 3.0'))
    elif change == "a name":
        content["w"], content["initial_w"] = content["eta"], content["eta"] + 1
    else:
        changed = {"an array": lambda w: w + 1, "a type": lambda w: w.view("<i8"), "a shape": lambda w: w[:, None]}
        content["w"] = changed[change](content["w"])
    np.savez(file, **content)
    with pytest.raises(BadRequestError, match="must be a learner saved by gradient-dd"), open_saved(file, Learner.file):
        pytest.fail("it was opened")


def test_a_file_of_the_form_before_this_one_is_refused(saved):
    """Its header had no checksum."""
    file = saved()
    with np.load(file) as opened:
        content = dict(opened)
    header = json.loads(str(content.pop("header")))
    del header["checksum"]
    np.savez(file, header=np.array(json.dumps(header)), **content)
    assert "must be a learner saved by gradient-dd. Got a damaged file, a file of another type, or" in sentence_of(file)


def test_writers_of_one_path_do_not_disturb_each_other(tmp_path):
    """Threads have one process number, and so may processes in two containers: a file is still one writer's."""
    file = tmp_path / "a.npz"
    agents = [Learner("td", 20_000, initial_w=np.full(20_000, float(k))) for k in range(4)]

    def save_often(agent):
        for _ in range(10):
            agent.save(file)
            assert np.ptp(Learner.load(file).w) == 0

    with ThreadPoolExecutor(len(agents)) as pool:
        list(pool.map(save_often, agents))
    assert [one.name for one in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("path", ["", ".", "/", None, 3, "a\0b", "x" * 300, "missing/folder/a.npz"])
def test_a_place_that_cannot_be_gets_one_sentence(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (Learner("td", 2).save, Learner.load):
        with pytest.raises(BadRequestError, match=r" must be |^Cannot (read|write) ") as caught:
            use(path)
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    assert "must be a regular file. Got a pipe or a device." in sentence_of(tmp_path / "pipe.npz")


def test_the_feature_map_is_saved_with_the_learner(tmp_path):
    coder = features.TileCoder([0, 0], [1, 1], tiles=4, tilings=3)
    agent = Learner("td", coder.n_features, features=coder)
    agent.update(coder([0.2, 0.7]), 1.0, 0.0, None)
    agent.save(tmp_path / "agent.npz")
    again = Learner.load(tmp_path / "agent.npz")
    assert again.predict(again.features([0.2, 0.7])) == agent.predict(coder([0.2, 0.7])) != 0
    with pytest.raises(BadRequestError, match=r"'n_features' must be 75, as 'features' has\. Got 3\."):
        Learner("td", 3, features=coder)
    with pytest.raises(BadRequestError, match="'features' must be a feature map"):
        Learner("td", 3, features=len)


def test_features_of_your_own_are_given_again(tmp_path):
    squares = features.Own(lambda x: [x, x * x])
    Learner("td", 2, features=squares).save(tmp_path / "agent.npz")
    with pytest.raises(BadRequestError, match=r"was saved with features of your own\. Pass them again"):
        Learner.load(tmp_path / "agent.npz")
    assert Learner.load(tmp_path / "agent.npz", features=squares).features is squares
