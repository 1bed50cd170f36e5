"""Checkpoints of evaluations: the same bits after a stop, and nothing else than what was saved for the same request."""

import pickle

import gymnasium
import numpy as np
import pytest

from gradient_dd import BadRequestError, evaluate, features
from gradient_dd.engine.stream_lanes import LaneMemory
from gradient_dd.evaluation import stream
from gradient_dd.evaluation.checkpoint import EVALUATION_FILE, digest_of
from gradient_dd.evaluation.portfolio import AutoCopies
from gradient_dd.evaluation.stream import Evaluator
from gradient_dd.evaluation.transitions import transitions_of
from gradient_dd.files import DamagedFileError, open_saved, write_file

UNIFORM = np.full((16, 4), 0.25)
RIGHT = np.tile([0.1, 0.3, 0.5, 0.1], (16, 1))
GIVEN = {"target": RIGHT, "behaviour": UNIFORM, "discount": 0.9, "steps": 900, "round_steps": 300, "learner": "td"}


class StopError(Exception):
    """Raised by a progress function."""


def stopped(file, after=300, env="FrozenLake-v1", **given):
    """Evaluate until so many steps are made, and return the file that is left."""

    def stop(done, steps):
        if done >= after:
            raise StopError

    with pytest.raises(StopError):
        evaluate(env, **GIVEN | given, checkpoint=file, on_progress=stop)
    return file


def sentence_of(file, env="FrozenLake-v1", **given):
    """Return the sentence with which a checkpoint is refused, and see that the file is left as it was."""
    before = file.read_bytes()
    with pytest.raises(BadRequestError) as caught:
        evaluate(env, **GIVEN | given, checkpoint=file)
    assert file.read_bytes() == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kept", [400, 20_000], ids=["long", "short"])
def test_a_stopped_evaluation_goes_on_with_the_same_bits(kept, tmp_path, monkeypatch):
    """In the middle of a stream that is learnt as it passes, and of one that is kept whole."""
    monkeypatch.setattr(stream, "KEPT", kept)
    whole = evaluate("FrozenLake-v1", **GIVEN)
    stopped(tmp_path / "half", after=300)
    stopped(tmp_path / "half", after=600)
    again = evaluate("FrozenLake-v1", **GIVEN, checkpoint=tmp_path / "half")
    assert np.array_equal(again.w, whole.w)
    assert np.array_equal(again.spread.copies, whole.spread.copies)
    assert str(again) == str(whole)
    assert str(again.verdict) == str(whole.verdict)


@pytest.mark.parametrize("kept", [400, 20_000], ids=["long", "short"])
def test_an_auto_learner_goes_on_with_the_same_bits(kept, tmp_path, monkeypatch):
    """Beyond 2,000 features: here one for each state, and many that are never seen."""
    monkeypatch.setattr(stream, "KEPT", kept)
    given = {"learner": "auto", "features": features.OneHot(2100)}
    whole = evaluate("FrozenLake-v1", **GIVEN | given)
    assert any(one.name == "AutoLearner" for one in whole.candidates)
    stopped(tmp_path / "half", after=600, **given)
    again = evaluate("FrozenLake-v1", **GIVEN | given, checkpoint=tmp_path / "half")
    for one, other in zip(whole.candidates, again.candidates, strict=True):
        assert np.array_equal(one.copies, other.copies)
        assert np.array_equal(one.w, other.w)


@pytest.mark.parametrize("change", [lambda one: one.fill(np.nan), lambda one: one.resize((1, 1), refcheck=False)])
def test_an_auto_learner_that_is_none_is_refused(change):
    autos = AutoCopies(np.zeros(5), np.ones((200, 2)))
    arrays = [one.copy() for one in autos.arrays]
    change(arrays[-2])
    with pytest.raises(DamagedFileError):
        autos.arrays = arrays


def parts_of(evaluator):
    """Return every part of an evaluator that names what is saved of it."""
    own = (evaluator.blocks, evaluator.sums, evaluator.diagnosis, evaluator.sample, evaluator.portfolio)
    shadows = evaluator.portfolio.shadows
    return [evaluator, *own, shadows, shadows.lanes, *evaluator.portfolio.lanes]


def test_a_state_holds_all_that_changes(monkeypatch):
    """Every attribute that a batch changes, in every part of an evaluator, is among those that are saved."""
    monkeypatch.setattr(stream, "KEPT", 50)
    rng = np.random.default_rng(0)
    evaluator = Evaluator(3, learner="td")

    def observe(n, episode):
        x, x_next = rng.normal(size=(2, n, 3))
        evaluator.observe(transitions_of(x, rng.normal(size=n), 0.9, x_next, episode=np.full(n, episode)))

    observe(100, 0)
    before = [{name: digest_of(value) for name, value in vars(part).items()} for part in parts_of(evaluator)]
    observe(2000, 1)
    for old, part in zip(before, parts_of(evaluator), strict=True):
        changed = {name for name, digest in old.items() if digest != digest_of(vars(part)[name])}
        assert changed <= set(part.saved), type(part)
    assert isinstance(parts_of(evaluator)[-1], LaneMemory)


def test_every_part_is_saved_by_its_owner():
    """A part that its owner does not name would begin anew, which digests of the owner do not show."""
    evaluator = Evaluator(2)
    evaluator.begin(1.0)
    for owner in parts_of(evaluator):
        for name, value in vars(owner).items():
            held = value if isinstance(value, list) else [value]
            assert name in owner.saved or not any(hasattr(one, "saved") for one in held), name


class Runs:
    """A pickle of it calls a function when it is read."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("wrapped", [lambda one: one, lambda one: {"format": "gradient-dd evaluation 2", "state": one}])
def test_a_pickle_is_refused_and_not_read(wrapped, tmp_path):
    mark = tmp_path / "mark"
    for function, *arguments in ((open, str(mark), "w"), (exec, f"open({str(mark)!r}, 'w')")):
        (tmp_path / "file").write_bytes(pickle.dumps(wrapped(Runs(function, *arguments))))
        assert "must be a checkpoint of an evaluation" in sentence_of(tmp_path / "file")
    assert not mark.exists()


def test_flipped_bytes_are_refused(tmp_path):
    file = stopped(tmp_path / "file")
    whole = file.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(whole), 30):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x04]) + whole[place + 1 :])
        assert "must be a checkpoint of an evaluation. Got another file, a damaged one" in sentence_of(file)


def test_what_a_checkpoint_belongs_to_is_compared(tmp_path):
    """The sentence names what differs."""
    file = stopped(tmp_path / "file")
    left = np.tile([0.5, 0.3, 0.1, 0.1], (16, 1))
    slippery = gymnasium.make("FrozenLake-v1", is_slippery=False)
    for name, sentence in (
        ("env", sentence_of(file, slippery)),
        ("env", sentence_of(file, gymnasium.make("FrozenLake-v1", map_name="8x8"), target=np.full((64, 4), 0.25))),
        ("target", sentence_of(file, target=left)),
        ("target", sentence_of(file, target=lambda seen: left[np.asarray(seen)])),
        ("behaviour", sentence_of(file, behaviour=left)),
        ("behaviour", sentence_of(file, behaviour=None)),
        ("features", sentence_of(file, features=features.OneHot(17))),
        ("features", sentence_of(file, features=lambda seen: [1.0, seen])),
        ("options", sentence_of(file, alpha=0.3)),
    ):
        assert f"{name!r} must be that of the checkpoint" in sentence, (name, sentence)
    for name, value in {"discount": 0.8, "seed": 3, "learner": "gtd2", "round_steps": 299}.items():
        assert f"{name!r} must be" in sentence_of(file, **{name: value})
    assert evaluate("FrozenLake-v1", **GIVEN, checkpoint=file).rows == 900


class Walk(gymnasium.Env):
    """A walk of its own over five states, which has no name and no list of arguments."""

    observation_space = gymnasium.spaces.Discrete(5)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, slips):
        self.slips = slips

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 2
        return self.at, {}

    def step(self, action):
        slipped = self.np_random.random() < self.slips
        self.at = int(np.clip(self.at + (1 if action != slipped else -1), 0, 4))
        return self.at, float(self.at == 4), self.at in (0, 4), False, {}


def test_functions_and_environments_of_ones_own_are_known_by_what_they_do(tmp_path):
    table = np.tile([0.3, 0.7], (5, 1))
    given = {
        "target": lambda seen: table[np.asarray(seen)],
        "behaviour": lambda seen: np.full((len(seen), 2), 0.5),
        "features": lambda seen: np.eye(5)[seen],
    }
    file = stopped(tmp_path / "file", env=Walk(0.1), **given)
    assert "'env' must be" in sentence_of(file, Walk(0.4), **given)
    assert "'target' must be" in sentence_of(file, Walk(0.1), **given | {"target": lambda seen: 1 - table[seen]})
    assert "'behaviour' must be" in sentence_of(file, Walk(0.1), **given | {"behaviour": given["target"]})
    assert "'features' must be" in sentence_of(file, Walk(0.1), **given | {"features": lambda seen: np.eye(6)[seen]})
    again = evaluate(Walk(0.1), **GIVEN | given, checkpoint=file)
    assert np.array_equal(again.w, evaluate(Walk(0.1), **GIVEN | given).w)


def test_what_does_not_repeat_itself_goes_on_too(tmp_path):
    """A policy that draws random numbers is known by its name."""

    def fickle(seen):
        first = np.random.default_rng().random(len(seen))
        return np.column_stack([first, 1 - first])

    file = stopped(tmp_path / "file", env=Walk(0.1), target=fickle, behaviour=np.full((5, 2), 0.5))
    found = evaluate(Walk(0.1), **GIVEN | {"target": fickle, "behaviour": np.full((5, 2), 0.5)}, checkpoint=file)
    assert found.rows == 900


CHANGES = {
    "no state": lambda header, arrays: header.update(state=None),
    "an empty state": lambda header, arrays: header.update(state={}),
    "an array as state": lambda header, arrays: header.update(state={"array": "a0"}),
    "a number for a list": lambda header, arrays: header["state"].update(kept=3),
    "an array for a part": lambda header, arrays: header["state"].update(blocks={"array": "a0"}),
    "other counts": lambda header, arrays: header.update(counts=[1, 2, 3]),
    "more features": lambda header, arrays: header.update(n_features=17),
    "many features": lambda header, arrays: header.update(n_features=10**9),
    "another kind of array": lambda header, arrays: arrays.update(a0=arrays["a0"].astype(int)),
    "a missing array": lambda header, arrays: arrays.pop("a3"),
    "groups out of range": lambda header, arrays: arrays.update(
        {name: array + 200 for name, array in arrays.items() if array.dtype == np.int64}
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_state_that_is_none_is_refused(change, tmp_path):
    """Also where its checksum fits."""
    file = stopped(tmp_path / "file")
    with open_saved(file, EVALUATION_FILE) as (header, arrays):
        pass
    change(header, arrays)
    write_file(file, EVALUATION_FILE, header, arrays)
    assert " must " in sentence_of(file)
