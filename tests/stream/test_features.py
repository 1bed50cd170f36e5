"""Feature maps: what they declare is so, batches are single calls, and bad observations are never a tile."""

import json

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import BadRequestError, Learner
from gradient_dd.stream.features import (
    FEATURES,
    Categories,
    Columns,
    Fourier,
    OneHot,
    Own,
    Polynomial,
    RadialBasis,
    Table,
    TileCoder,
    features_of_space,
    from_data,
)

LOW, HIGH = np.array([-1.0, 0.0]), np.array([1.0, 6.0])
X = np.random.default_rng(0).uniform(LOW, HIGH, size=(300, 2))
MAPS = {
    "tiles": TileCoder(LOW, HIGH, tiles=(4, 3), tilings=5),
    "tiles that wrap": TileCoder(LOW, HIGH, tiles=4, tilings=8, wrap=(False, True)),
    "hashed tiles": TileCoder(LOW, HIGH, tiles=16, tilings=8, size=50),
    "fourier": Fourier(LOW, HIGH, order=3),
    "polynomial": Polynomial(LOW, HIGH, degree=2),
    "radial": RadialBasis(LOW, HIGH, per_dimension=4),
    "radial as they are": RadialBasis(LOW, HIGH, per_dimension=3, normalised=False),
    "columns": Columns.fitted(X),
}
every_map = pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)


@every_map
def test_what_a_map_declares_is_so(features):
    dense = features.rows(X).dense(features.n_features)
    assert dense.shape == (len(X), features.n_features)
    assert np.count_nonzero(dense, axis=1).max() <= features.nonzeros
    assert (dense**2).sum(axis=1).max() <= features.bound * (1 + 1e-12)


@every_map
def test_a_batch_is_its_single_calls(features):
    dense = features.rows(X[:20]).dense(features.n_features)
    for observation, row in zip(X[:20], dense, strict=True):
        agent = Learner("td", features.n_features, initial_w=np.arange(features.n_features) / 7)
        assert agent.predict(features(observation)) == pytest.approx(row @ agent.w)


@every_map
def test_a_map_comes_back_from_its_data(features):
    again = from_data(json.loads(json.dumps(features.as_data())))
    assert np.array_equal(again.rows(X).values, features.rows(X).values)
    assert (again.n_features, again.nonzeros) == (features.n_features, features.nonzeros)
    assert again.bound == pytest.approx(features.bound)


@every_map
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_one_is_refused(features, bad):
    wrong = X[:5].copy()
    wrong[3, 1] = bad
    with pytest.raises(BadRequestError, match="Dimension 1 of observation 3 must be a finite number"):
        features.rows(wrong)


def test_outside_is_refused_or_clipped_as_asked():
    beyond = np.array([[0.0, 7.0]])
    with pytest.raises(BadRequestError, match=r"Dimension 1 of observation 0 must be from 0 to 6\. Got 7\."):
        MAPS["tiles"].rows(beyond)
    clipped = TileCoder(LOW, HIGH, tiles=(4, 3), tilings=5, outside="clip")
    assert np.array_equal(clipped.rows(beyond).indices, clipped.rows([[0.0, 6.0]]).indices)


def test_each_tiling_has_one_active_tile_of_its_own():
    coder = MAPS["tiles"]
    tiles = coder.n_features // coder.tilings
    assert np.array_equal(coder.rows(X).indices // tiles, np.tile(np.arange(5), (len(X), 1)))


@given(st.floats(-1, 1), st.floats(0, 6))
def test_near_observations_share_tiles_and_far_ones_do_not(a, b):
    coder = TileCoder(LOW, HIGH, tiles=8, tilings=8)

    def shared(left, right):
        return len(set(coder.rows([left]).indices[0]) & set(coder.rows([right]).indices[0]))

    here = np.array([a, b])
    tile = (HIGH - LOW) / 8
    near = np.clip(here + tile / 1000, LOW, HIGH)
    assert shared(here, near) >= coder.tilings - 2  # at most one edge of each dimension lies between
    far = np.where(here > (LOW + HIGH) / 2, here - 2 * tile, here + 2 * tile)
    assert shared(here, far) == 0


def test_every_feature_of_a_coder_can_be_active():
    coder = TileCoder([0.0], [1.0], tiles=4, tilings=4)
    fine = np.linspace(0, 1, 10_001)[:, None]
    used = set(coder.rows(fine).indices.ravel().tolist())
    assert len(used) == coder.n_features


def test_a_dimension_that_wraps_has_no_seam():
    coder = TileCoder([0.0], [1.0], tiles=4, tilings=8, wrap=True)
    ends = coder.rows([[1e-9], [1 - 1e-9]]).indices
    assert len(set(ends[0]) & set(ends[1])) == coder.tilings - 1


def test_hashed_tiles_spread_evenly_and_collide_as_one():
    coder = TileCoder(np.zeros(4), np.ones(4), tiles=16, tilings=8, size=4096)
    many = np.random.default_rng(1).random((20_000, 4))
    indices, values = coder.rows(many)
    counts = np.bincount(indices.ravel(), minlength=4096)
    assert counts.min() > 0
    assert counts.max() < 5 * counts.mean()
    assert set(np.unique(values)) <= {0.0, 1.0}
    place, _ = coder(many[0])
    assert len(set(place.tolist())) == len(place)


def test_a_constant_is_represented_exactly():
    """Tiles and normalised bumps can say that all values are equal."""
    for name in ("tiles", "tiles that wrap", "radial"):
        features = MAPS[name]
        sums = features.rows(X).values.sum(axis=1)
        assert np.allclose(sums, sums[0])


def test_features_of_gymnasium_spaces():
    assert features_of_space(gymnasium.spaces.Discrete(5)).n_features == 5
    assert features_of_space(gymnasium.spaces.MultiDiscrete([2, 3])).n_features == 6
    car = gymnasium.make("MountainCar-v0").observation_space
    assert features_of_space(car, "tiles", tilings=4).nonzeros == 4
    assert features_of_space(car, "fourier", order=2).n_features == 9
    pole = gymnasium.make("CartPole-v1").observation_space
    with pytest.raises(BadRequestError, match="must be finite, and low below high"):
        features_of_space(pole)
    bounds = {"low": [-2.4, -3, -0.21, -3], "high": [2.4, 3, 0.21, 3], "outside": "clip"}
    assert features_of_space(pole, "tiles", **bounds).nonzeros == 8
    both = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2), "b": gymnasium.spaces.Box(0, 1, (2,))})
    assert features_of_space(both, "polynomial", degree=1).n_features == 16
    assert features_of_space(gymnasium.spaces.Discrete(3, start=5))(6)[0].tolist() == [1]
    assert features_of_space(gymnasium.spaces.MultiDiscrete([2, 3], start=[1, 0]))([2, 1])[0].tolist() == [4]
    with pytest.raises(BadRequestError, match="The observation space must be Discrete"):
        features_of_space(gymnasium.spaces.Text(3))


def test_a_function_or_a_transformer_of_your_own():
    squares = Own(lambda x: [x[0], x[0] ** 2, 1.0])
    assert squares.rows(X).values.shape == (300, 3)
    assert squares.bound == pytest.approx(((X[:, 0] ** 2) + X[:, 0] ** 4 + 1).max())

    class Doubler:
        def transform(self, rows):
            return 2 * np.asarray(rows)

    assert np.array_equal(Own(Doubler()).rows(X).values, 2 * X)
    with pytest.raises(BadRequestError, match="must be a finite number"):
        Own(lambda x: [np.nan]).rows(X[:1])
    with pytest.raises(BadRequestError, match="must be one of this package"):
        squares.as_data()


def test_one_hot_takes_whole_numbers_only():
    assert OneHot((2, 3))([1, 2])[0].tolist() == [5]
    for wrong, value in (([[1, 3]], "3"), ([[0.5, 1]], "0.5"), ([[-1, 0]], "-1")):
        with pytest.raises(BadRequestError, match=rf"must be a whole number from 0 to . *\. Got {value}\."):
            OneHot((2, 3)).rows(wrong)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TileCoder([0], [1], tilings=0), "'tilings' must be a whole number from 1 to 4096. Got 0."),
        (lambda: TileCoder([0], [0]), "'low' and 'high' must be finite, and low below high."),
        (lambda: TileCoder([0], [1, 2]), "'low' and 'high' must have one number for each dimension."),
        (lambda: TileCoder(np.zeros(9), np.ones(9), tiles=20), "The number of tiles must be at most 2³¹."),
        (lambda: Fourier(np.zeros(9), np.ones(9), order=9), "The number of Fourier features must be at most"),
        (lambda: TileCoder([0], [1], outside="wrap"), "'outside' must be 'refuse' or 'clip'. Got 'wrap'."),
        (lambda: MAPS["tiles"].rows(np.zeros((2, 3))), "The shape of observations must be (n, 2). Got (2, 3)."),
        (lambda: from_data({"kind": "tile"}), "Unknown type of features 'tile'. Did you mean 'tiles'?"),
        (lambda: from_data({"kind": "tiles", "hight": 3}), "Features of kind 'tiles' must be described by their own"),
        (lambda: Own(3), "A feature map of your own must be a function, or have 'transform'. Got 3."),
    ],
)
def test_a_bad_request_gets_one_sentence(make, sentence):
    with pytest.raises(BadRequestError) as caught:
        make()
    assert str(caught.value).startswith(sentence)


def test_every_kind_is_listed():
    others = {"one_hot", "structured", "table", "categories", "quadratic", "layers"}
    assert {features.kind for features in MAPS.values()} | others == set(FEATURES)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: TileCoder([0.0], [1.0], tiles=[1, 2]), "'tiles' must be one value, or one for each of 1 dimensions."),
        (lambda: TileCoder([0.0], [1.0], wrap="no"), "'wrap' must be true or false. Got 'no'."),
        (lambda: TileCoder([0.0], [1.0], tiles=10**30), "'tiles' must be a whole number from 1 to 2147483648."),
        (lambda: TileCoder([-1e300], [1e300]), "'low' and 'high' must be finite, and low below high."),
        (lambda: TileCoder([0j], [1.0]), "'low' must be numbers. Got [0j]."),
        (lambda: OneHot(10**30), "'sizes' must be a whole number from 1 to 2147483648."),
        (lambda: OneHot([]), "'sizes' must have at least one dimension. Got []."),
        (lambda: RadialBasis([0.0], [1.0], width=1e-320), "'width' must be a number from 1e-06 to 1e+06."),
        (lambda: RadialBasis([0.0], [1.0], normalised="no"), "'normalised' must be true or false. Got 'no'."),
        (lambda: Columns([0.0], [1e-300]), "'scale' must be positive, with one number for each number in 'shift'."),
        (lambda: Columns([0.0], [1.0], largest="5"), "'largest' must be a number that is zero or more, or infinite."),
        (lambda: Columns([0.0], [1e-50]).rows([1e300]), "Scaled observations must be finite. Got inf."),
        (lambda: Columns.fitted([]), "Observations must have at least one row and one column."),
        (lambda: Own(lambda x: ["a"])(1), "Features of your own must be numbers."),
        (lambda: from_data({"kind": ["tiles"]}), "Unknown type of features ['tiles']."),
        (
            lambda: from_data("tiles"),
            "The description of features must be a dictionary whose keys are text. Got 'tiles'.",
        ),
        (lambda: Fourier([0.0], [1.0])(np.ma.masked_array([0.5], [1])), "An observation must be plain numbers."),
        (lambda: Fourier([0.0], [1.0])([[1], [2, 3]]), "An observation must be numbers."),
    ],
)
def test_an_odd_map_or_observation_gets_one_sentence(call, sentence):
    with pytest.raises(BadRequestError) as caught:
        call()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_map_of_your_own_takes_any_observation():
    assert Own(lambda one: [one["a"], 2.0])({"a": 1.0}).tolist() == [1.0, 2.0]


def nested_space():
    """Return a space of a dictionary with a tuple inside."""
    inner = gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(3, start=2), gymnasium.spaces.Box(-1, 2, (2, 2))])
    return gymnasium.spaces.Dict({"who": gymnasium.spaces.MultiDiscrete([2, 3]), "where": inner}, seed=0)


def test_dictionaries_and_tuples_are_flattened_as_gymnasium_does():
    space = nested_space()
    seen = [space.sample() for _ in range(20)]
    features = features_of_space(space, "polynomial", degree=1)
    plain = gymnasium.spaces.flatten_space(space)
    flat = np.array([gymnasium.spaces.flatten(space, one) for one in seen])
    wanted = Polynomial(plain.low, plain.high, degree=1).rows(flat).values
    assert np.allclose(features.rows(seen).values, wanted)
    assert np.allclose(features(seen[3]), wanted[3])
    batch = gymnasium.vector.utils.concatenate(space, seen, gymnasium.vector.utils.create_empty_array(space, n=20))
    assert np.allclose(features.rows(batch).values, wanted)
    again = from_data(json.loads(json.dumps(features.as_data())))
    assert np.allclose(again.rows(seen).values, wanted)


def test_observations_without_their_parts_are_refused():
    features = features_of_space(nested_space(), "polynomial", degree=1)
    with pytest.raises(BadRequestError, match=r"must be a dictionary with \['where', 'who'\]\. Got \['who'\]"):
        features({"who": [0, 0]})
    with pytest.raises(BadRequestError, match="Observations must have the parts of their space"):
        features.rows({"who": np.zeros((3, 2)), "where": ([[2, 3], [4]], np.zeros((3, 2, 2)))})
    with pytest.raises(BadRequestError, match="must be a dictionary with"):
        features.rows({"who": np.zeros((3, 2))})


def test_tables_and_categories_are_plain_data():
    table = Table([[1.0, 2.0], [3.0, 4.0]])
    mixed = Categories([["a", "b"], None], Columns.fitted(np.eye(3)), spread=True)
    for one, observations in ((table, [[3.0, 4.0], [9.0, 9.0]]), (mixed, [["b", 1.5], ["a", 0.0]])):
        again = from_data(json.loads(json.dumps(one.as_data())))
        for part, same in zip(one.rows(observations), again.rows(observations), strict=True):
            assert np.array_equal(part, same)
    indices, values = table.rows([[3.0, 4.0], [9.0, 9.0]])
    assert (indices.tolist(), values.tolist()) == ([[1], [0]], [[1.0], [0.0]])
    assert np.array_equal(mixed(["b", 1.5]), mixed.features(np.array([0.0, 1.0, 1.5])))
    assert np.array_equal(Categories([["a", "b"]], Table([[0.0], [1.0]]))("b")[0], [1])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Table(np.empty((0, 1))), "A table must have from 1 to 100,000 different states. Got 0."),
        (lambda: Categories([["a"]], 3), "'features' of a map of kind 'categories' must be a feature map. Got 3."),
        (
            lambda: Categories([["a"], None], Table([[0.0, 0.0]])).rows([["a"]]),
            "The shape of observations must be (n, 2).",
        ),
    ],
)
def test_a_bad_table_gets_one_sentence(call, sentence):
    with pytest.raises(BadRequestError) as caught:
        call()
    assert str(caught.value).startswith(sentence)
