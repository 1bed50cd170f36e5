"""Growth shadows, shares, and the variants of the learner that chooses."""

import numpy as np
import pytest

from gradient_dd.engine import ladder
from gradient_dd.engine.kernels import shadows as kernel
from gradient_dd.engine.ladder import COPIES, GROWTH
from gradient_dd.stream.shadow_copies import ShadowCopies
from trials import shadows_variants


@pytest.fixture
def copies():
    """Copies of the wide ladder with two features, all at the same level."""
    made = ShadowCopies(ladder.WIDE, np.zeros(2), np.ones((2, ladder.STARTS)))
    made.squares[:] = made.sums[:2] = ladder.BLOCK
    made.blocks = 1
    return made


def grow(copies, rung, factor):
    """Multiply the growth shadow of a rung, as a block of steps would."""
    copies.w[:, rung * COPIES + GROWTH] *= factor
    copies.age += 1
    with np.errstate(over="ignore", invalid="ignore"):  # as in `ShadowLearner.update`
        copies.measure_growth()


def test_growth_counts_from_the_last_reading_but_one(copies):
    """A shadow that doubles in every block: sizes are read at blocks 1, 2, 4, 8."""
    seen = []
    for _ in range(8):
        grow(copies, 2, 2.0)
        seen.append(copies.risk[2])
    since = [1, 1, 1, 1, 2, 2, 2, 2]
    assert seen == [4.0 ** (age - first) for age, first in zip(range(1, 9), since, strict=True)]
    assert copies.risk[15 + 1] == copies.risk[2]  # the average of that rung
    assert copies.risk[3] == 1


def test_a_shadow_that_shrinks_is_no_reason_to_prefer_a_rung(copies):
    for _ in range(5):
        grow(copies, 2, 0.5)
    assert copies.risk[2] == 1


@pytest.mark.parametrize("factor", [1e60, 1e-60])
def test_a_growth_shadow_never_leaves_the_numbers(copies, factor):
    for _ in range(20):
        grow(copies, 2, factor)
        assert 0 < np.abs(copies.w[0, 2 * COPIES + GROWTH]) < 1e170
    assert copies.risk[2] == (ladder.STEEPEST**2 if factor > 1 else 1.0)


def test_a_growth_shadow_that_overflows_starts_again_and_counts_as_the_steepest(copies):
    grow(copies, 2, 1.0)
    grow(copies, 2, np.inf)
    assert np.all(copies.w[:, 2 * COPIES + GROWTH] == 1)
    assert copies.risk[2] == ladder.STEEPEST**2


def test_long_runs_have_a_bounded_memory_of_growth(copies):
    """What grew tenfold long ago is forgotten after two windows."""
    copies.age = 10 * ladder.WINDOW
    grow(copies, 2, 10.0)
    for _ in range(2 * ladder.WINDOW):
        grow(copies, 2, 1.0)
    assert copies.risk[2] == 1


def test_a_copied_rung_keeps_its_growth_shadow(copies):
    """The second rung is hopeless: it gets the weights and shadows of the best, but not the growth shadow."""
    copies.w[:] = np.arange(copies.w.shape[1])
    copies.squares[COPIES : 2 * COPIES] *= 1e6
    copies.choose(1.0)
    assert copies.copied[1] == 1
    own = copies.own()
    assert np.array_equal(copies.w[:, COPIES : COPIES + GROWTH], copies.w[:, own : own + GROWTH])
    assert np.all(copies.w[:, COPIES + GROWTH] == COPIES + GROWTH)


def test_shares_fall_with_the_square_of_the_predicted_error_squared(copies):
    predicted = np.full(22, np.inf)
    predicted[:3] = 2.0, 4.0, 1.0
    copies.chosen, copies.waits[2] = 0, 3.0
    copies.share_out(predicted)
    assert copies.shares[:3] == pytest.approx([0.8, 0.2, 0.0])
    assert copies.shares.sum() == pytest.approx(1)


def test_without_any_prediction_the_choice_alone_is_read_out(copies):
    for worth in (0.0, np.inf):
        copies.chosen = 5
        copies.share_out(np.full(22, worth))
        assert copies.shares[5] == 1
        assert copies.shares.sum() == 1


def test_all_rungs_are_read_out_by_their_shares(copies):
    copies.w[:, ::COPIES] = np.random.default_rng(0).standard_normal((2, 22))
    copies.shares = np.random.default_rng(1).dirichlet(np.ones(22))
    assert np.allclose(copies.read_out(), copies.w[:, ::COPIES] @ copies.shares, rtol=1e-14)
    copies.w[0, COPIES] = np.inf
    assert np.array_equal(copies.read_out(), copies.w[:, copies.own()])


def test_a_rung_that_grows_has_a_smaller_share(copies):
    copies.risk[4] = 4.0
    copies.choose(1.0)
    assert copies.shares[4] == pytest.approx(copies.shares[5] / 16)


def test_a_variant_is_in_place_for_a_while():
    variant = shadows_variants.VARIANTS["6 bias shadows"]
    plain = kernel.run, ladder.STARTS, ladder.COPIES
    with shadows_variants.in_place(variant):
        assert kernel.run is not plain[0]
        assert (ladder.STARTS, ladder.COPIES, ladder.NOISE, ladder.GROWTH) == (6, 9, 7, 8)
    assert (kernel.run, ladder.STARTS, ladder.COPIES) == plain
    assert len(shadows_variants.PLAIN["WIDE"].rungs) == len(shadows_variants.WIDE_ORDER) == 16
    assert len(shadows_variants.PLAIN["NARROW"].rungs) == len(shadows_variants.NARROW_ORDER) == 7


def test_what_is_read_out_is_never_far_worse_than_the_best_prediction(copies):
    """The mean of the predictions with these shares is at most (1 + √K) / 2 times the smallest, and can be that."""
    random = np.random.default_rng(2)
    bound = (1 + np.sqrt(22)) / 2
    worst = np.full(22, 1 + np.sqrt(22))
    worst[0] = 1.0
    for predicted in (*(10 ** random.uniform(0, scale, 22) for scale in (0.1, 1, 3) for _ in range(50)), worst):
        copies.share_out(predicted)
        assert copies.shares @ predicted <= (1 + 1e-12) * bound * predicted.min()
    assert copies.shares @ worst == pytest.approx(bound)
