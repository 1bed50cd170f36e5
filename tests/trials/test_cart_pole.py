"""The trial of CartPole: a learner is trained and judged, and the same seed gives the same return."""

from trials.cart_pole import greedy_return, trained


def test_a_seed_decides_the_return():
    one, other = (greedy_return(trained(0, steps=60)) for _ in range(2))
    assert one == other
    assert 8 <= one <= 500
