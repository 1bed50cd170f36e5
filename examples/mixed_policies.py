"""A log of three policies: estimate the value of a fourth policy.

A shop shows one of three banners at each page view. Over the year, three versions of its software chose the banner with
known probabilities. Each row of the log has the propensity of the version that acted, so the mixture needs no special
treatment. The true value is the mean return of the fourth policy in the same simulation.

python examples/mixed_policies.py
"""

import numpy as np

import gradient_dd as gdd

DISCOUNT = 0.9
VERSIONS = np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [1 / 3, 1 / 3, 1 / 3]])  # banner probabilities
WANTED = np.array([0.1, 0.3, 0.6])
PULL = np.array([-0.1, 0.0, 0.15])  # how each banner changes the interest of the visitor


def visit(policy, rng, record=None):
    """Simulate one visit and return its discounted return; `record` gets a row for each page view."""
    interest, total, weight = rng.uniform(0.2, 0.8), 0.0, 1.0
    while True:
        banner = rng.choice(3, p=policy)
        bought = rng.random() < 0.3 * interest
        leaves = rng.random() < 0.25 - 0.15 * interest
        if record is not None:
            record.append((interest, banner, float(bought), leaves, policy[banner], WANTED[banner]))
        total, weight = total + weight * bought, weight * DISCOUNT
        if leaves:
            return total
        interest = float(np.clip(interest + PULL[banner] + 0.05 * rng.normal(), 0.0, 1.0))


def log_of(visits, rng):
    """Return the log as columns, one row for each page view, and the mean return of its visits."""
    rows, episodes, earned = [], [], 0.0
    for i in range(visits):
        earned += visit(VERSIONS[3 * i // visits], rng, rows) / visits
        episodes += [i] * (len(rows) - len(episodes))
    names = ("observation", "action", "reward", "terminated", "behaviour_probability", "target_probability")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return columns | {"episode": np.array(episodes)}, earned


def main(visits=4_000, played=20_000):
    """Print the value of the fourth policy, its interval and the truth, and return them."""
    rng = np.random.default_rng(0)
    log, earned = log_of(visits, rng)
    found = gdd.evaluate_log(log, discount=DISCOUNT, features="polynomial")
    truth = np.mean([visit(WANTED, rng) for _ in range(played)])
    low, high = found.start_interval
    print(f"{len(log['reward']):,} page views of {visits:,} visits; the three versions earned {earned:.3f} a visit")
    print(f"value of the new policy {found.start_value:.3f}, from {low:.3f} to {high:.3f}; truth {truth:.3f}")
    print(found.verdict.word + ": " + found.chosen)
    return found.start_value, (low, high), truth


if __name__ == "__main__":
    main()
