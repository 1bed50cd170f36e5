"""A saved ShadowLearner learns on as if it had never been saved; a file that is not one is refused in a sentence."""

import numpy as np
import pytest

from gradient_dd.engine.schedules import Schedule, tapered
from gradient_dd.errors import BadRequestError
from gradient_dd.files import open_saved, write_file
from gradient_dd.stream.learner import Learner
from gradient_dd.stream.shadow_copies import ARRAYS, NUMBERS, ShadowCopies
from gradient_dd.stream.shadows import SHADOW_FILE, ShadowLearner


def transitions(n, seed=0):
    """Return n transitions of random features."""
    rng = np.random.default_rng(seed)
    return list(zip(rng.standard_normal((n, 3)), rng.standard_normal(n), rng.standard_normal((n, 3)), strict=True))


def feed(agent, part):
    for x, reward, x_next in part:
        agent.update(x, reward, 0.5, x_next)


@pytest.mark.parametrize("alpha", [None, 0.05], ids=["wide", "narrow"])
def test_a_loaded_learner_goes_on_with_the_same_bits(alpha, tmp_path):
    """It is saved in the middle of a block, and its shadows are started again later: the random numbers go on too."""
    agent = ShadowLearner(3, alpha, initial_w=[1.0, 2.0, 3.0], schedule=tapered(100, per="step"), seed=5)
    feed(agent, transitions(330))
    agent.save(tmp_path / "agent.npz")
    loaded = ShadowLearner.load(tmp_path / "agent.npz")
    for one in (agent, loaded):
        feed(one, transitions(270, seed=1))
        one.restart_shadows()
        feed(one, transitions(200, seed=2))
    assert np.array_equal(agent.w, loaded.w)
    assert agent.choice == loaded.choice
    assert (agent.updates, agent.episodes, repr(agent)) == (loaded.updates, loaded.episodes, repr(loaded))
    for name in ARRAYS:
        assert np.array_equal(getattr(agent._copies, name), getattr(loaded._copies, name)), name


def test_a_file_holds_all_that_changes():
    """Every array or number of the copies that an update changes is among those that are kept."""
    agent = ShadowLearner(3, 0.05)
    before = {name: np.copy(value) for name, value in vars(agent._copies).items() if name != "ladder"}
    feed(agent, transitions(400))
    changed = {name for name, value in before.items() if not np.array_equal(value, getattr(agent._copies, name))}
    assert changed <= {*ARRAYS, *NUMBERS}
    assert {"w", "bias", "age", "chosen"} <= changed
    assert isinstance(agent._copies, ShadowCopies)


def test_a_schedule_of_ones_own_is_given_again(tmp_path):
    agent = ShadowLearner(3, schedule=Schedule(lambda n: 1 / n, "step"))
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(BadRequestError, match="give it again"):
        ShadowLearner.load(tmp_path / "agent.npz")
    assert ShadowLearner.load(tmp_path / "agent.npz", schedule=agent.schedule).schedule is agent.schedule


def changed_file(tmp_path, change):
    """Return a saved learner whose header and arrays have been changed."""
    path = tmp_path / "agent.npz"
    ShadowLearner(3, 0.1).save(path)
    with open_saved(path, SHADOW_FILE) as (header, arrays):
        pass
    change(header, arrays)
    write_file(path, SHADOW_FILE, header, arrays)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header["numbers"].update(chosen=50),
        lambda header, arrays: header["numbers"].update(steps=-1),
        lambda header, arrays: header.update(alpha=None),
        lambda header, arrays: header.update(random={}),
        lambda header, arrays: header.update(n_features=10**9),
        lambda header, arrays: header.update(numbers=None),
        lambda header, arrays: arrays.pop("w"),
        lambda header, arrays: arrays.update(w=np.zeros(3)),
        lambda header, arrays: arrays.update(bias=np.zeros(7, int)),
    ],
)
def test_a_changed_file_is_refused(change, tmp_path):
    with pytest.raises(BadRequestError):
        ShadowLearner.load(changed_file(tmp_path, change))


@pytest.mark.parametrize("version", [1, 99])
def test_a_file_of_another_version_is_called_so(version, tmp_path):
    path = changed_file(tmp_path, lambda header, arrays: header.update(version=version))
    with pytest.raises(BadRequestError, match=rf"must be of version 3\. Got {version}\. Another gradient-dd wrote it"):
        ShadowLearner.load(path)


def test_another_learners_file_is_refused(tmp_path):
    Learner("td", 3).save(tmp_path / "td.npz")
    with pytest.raises(BadRequestError, match="must be a ShadowLearner saved by gradient-dd"):
        ShadowLearner.load(tmp_path / "td.npz")
    with pytest.raises(BadRequestError, match="must be"):
        ShadowLearner.load(tmp_path / "none.npz")
