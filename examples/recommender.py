"""A recommender's log with propensities: compare a new ranking with the old one.

A user listens to a session of songs. The old ranking chose among five genres by a softmax of its scores and logged the
probability of its choice; the new ranking has other scores. The user's mood depends on the songs played, so the value
of a session is not the sum of the clicks that each song would get alone. Features are tiles over the user's mood and
energy. The true value comes from a simulation of the new ranking.

python examples/recommender.py
"""

import numpy as np

import gradient_dd as gdd
from gradient_dd import features

DISCOUNT, GENRES = 0.95, 5
RNG = np.random.default_rng(7)
TASTE, TIRING = RNG.normal(size=(2, GENRES)), RNG.uniform(0.02, 0.12, GENRES)
OLD = 0.6 * RNG.normal(size=(2, GENRES))
NEW = OLD + 0.5 * (TASTE - TASTE.mean(axis=1, keepdims=True))  # it has learnt something of the taste


def chances(scores, users):
    """Return the probability of each genre for users (n, 2), by a softmax of their scores."""
    raw = np.exp(users @ scores)
    return raw / raw.sum(axis=1, keepdims=True)


def sessions(scores, count, rng):
    """Simulate `count` sessions; return their transitions as columns, and the mean discounted return."""
    users, alive = rng.uniform(-1, 1, size=(count, 2)), np.ones(count, bool)
    number, columns, total, weight = np.arange(count), [], 0.0, 1.0
    while alive.any():
        users, number = users[alive], number[alive]
        likely = chances(scores, users)
        genre = (rng.random((len(users), 1)) > np.cumsum(likely, axis=1)).sum(axis=1).clip(max=GENRES - 1)
        click = rng.random(len(users)) < 1 / (1 + np.exp(1 - (users * TASTE[:, genre].T).sum(axis=1)))
        leaves = rng.random(len(users)) < TIRING[genre] + 0.1 * ~click
        propensity = likely[np.arange(len(users)), genre]
        columns.append((number, users, genre, click, leaves, propensity))
        total, weight = total + weight * click.sum() / count, weight * DISCOUNT
        users = np.clip(0.9 * users + 0.1 * TASTE[:, genre].T + 0.1 * rng.normal(size=users.shape), -1, 1)
        alive = ~leaves
    number, users, genre, click, leaves, propensity = map(np.concatenate, zip(*columns, strict=True))
    order = np.argsort(number, kind="stable")  # session by session
    log = {
        "session_id": number[order],
        "obs_mood": users[order, 0],
        "obs_energy": users[order, 1],
        "action": genre[order],
        "reward": click[order].astype(float),
        "terminated": leaves[order],
        "propensity": propensity[order],
        "target_probability": chances(NEW, users[order])[np.arange(len(genre)), genre[order]],
    }
    return log, total


def main(count=10_000, played=50_000):
    """Print both values and the truth, and return them."""
    log, old = sessions(OLD, count, np.random.default_rng(0))
    coder = features.TileCoder([-1, -1], [1, 1], tiles=4, tilings=4)
    columns = {"observation": ["obs_mood", "obs_energy"]}
    found = gdd.evaluate_log(log, discount=DISCOUNT, features=coder, columns=columns)
    _, truth = sessions(NEW, played, np.random.default_rng(1))
    low, high = found.start_interval
    print(f"{len(log['reward']):,} songs in {count:,} sessions; the old ranking earned {old:.3f} clicks, discounted")
    print(f"the new one: {found.start_value:.3f}, from {low:.3f} to {high:.3f}; truth {truth:.3f}")
    print(f"{found.verdict.word}: {found.chosen}")
    for finding in found.verdict.findings[:3]:
        print("  " + finding.sentence)
    return found.start_value, (low, high), truth


if __name__ == "__main__":
    main()
