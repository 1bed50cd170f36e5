"""A stream with a million hashed features: clicks described by eight categories of 100,000 values each.

Each value of a category is hashed to one of 2²⁰ features, so no table of values is needed. The next click does not
depend on the present one, so the true value is known: V(s) = r(s) + γ E[V], where r(s) is a sum of effects.

python examples/million_features.py
"""

from time import process_time

import numpy as np

import gradient_dd as gdd

CATEGORIES, VALUES, FEATURES, DISCOUNT = 8, 100_000, 2**20, 0.5


def hashed(codes):
    """Return the feature of each value of each category, (n, categories)."""
    mixed = (codes.astype(np.uint64) * CATEGORIES + np.arange(CATEGORIES, dtype=np.uint64)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    return (mixed >> np.uint64(44)).astype(np.int64)  # the upper 20 bits


class Clicks:
    """Clicks with skewed categories: few values are frequent, as in real data."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.effects = np.random.default_rng(99).normal(size=(VALUES, CATEGORIES)) / np.sqrt(CATEGORIES)

    def draw(self, n):
        """Return features of n clicks, and the mean reward of each."""
        codes = (VALUES * self.rng.random((n, CATEGORIES)) ** 6).astype(np.int64)
        return (hashed(codes), np.ones(codes.shape)), self.effects[codes, np.arange(CATEGORIES)].sum(axis=1)


def main(batches=40, size=50_000, alpha=0.03, learners=("td", "tdrc")):
    """Learn from a stream, print speed and error, and return the error relative to the error without learning."""
    stream, found = Clicks(seed=0), {}
    for name in learners:
        agent, seconds = gdd.Learner(name, FEATURES, alpha=alpha), 0.0
        for _ in range(batches):
            x, mean = stream.draw(size)
            x_next, _ = stream.draw(size)
            reward = mean + 0.5 * stream.rng.normal(size=size)
            begin = process_time()
            agent.update_many(x, reward, DISCOUNT, x_next)
            seconds += process_time() - begin
        x, truth = stream.draw(20_000)
        truth = truth + DISCOUNT * truth.mean() / (1 - DISCOUNT)
        error, still = (np.sqrt(np.mean((guess - truth) ** 2)) for guess in (agent.predict(x), 0.0))
        speed = agent.updates / seconds / 1e6
        print(f"{name}: {speed:.1f} million updates a second, error {error:.3f}, {still:.3f} before")
        found[name] = error / still
    return found


if __name__ == "__main__":
    main()
