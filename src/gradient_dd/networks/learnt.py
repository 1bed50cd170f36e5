"""Features learnt from transitions: the last hidden layers of an ensemble, with a validated size and training time.

Networks of several sizes learn from part of the episodes by TDRC with Adam. The size and the number of updates with the
smallest error on the returns of the held-out episodes are selected. Each member of the ensemble is then trained on a
random half of all episodes, so that the members disagree where the data are uninformative.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.networks.learner import NetworkLearner
from gradient_dd.networks.network import Network
from gradient_dd.stream.features import Layers

SIZES = ((16,), (32, 16))
MEMBERS, BATCH, LOOKS, BETWEEN = 4, 64, 8, 400  # networks; rows of a batch; validations; updates between validations
STEP = 0.002
HELD_OUT, FEWEST = 0.25, 8  # share of the groups held out; smallest number of groups
WORSE = 2  # validations without progress after which training stops


class Learnable(NamedTuple):
    """Transitions of scaled observations (n, d), and the episode of each."""

    s: Array
    reward: Array
    discount: Array
    s_next: Array
    rho: Array
    episode: Any

    def part(self, rows: Booleans) -> "Learnable":
        """Return the rows where a mask is true."""
        return Learnable(*(column[rows] for column in self))


class Choice(NamedTuple):
    """A network size, a number of updates, and the error on held-out rows."""

    hidden: tuple[int, ...]
    updates: int
    error: float


def groups_of(episode: Integers) -> Integers:
    """Return the group of each row: its episode, or one of FEWEST equal pieces of a log with fewer episodes."""
    _, group = np.unique(episode, return_inverse=True)
    if group.max(initial=0) + 1 < FEWEST:
        group = np.arange(len(episode)) * FEWEST // len(episode)
    return np.asarray(group)


def held_out_error(agent: NetworkLearner, data: Learnable) -> float:
    """Return the mean squared difference of returns and values over held-out rows, or infinity if it is not finite.

    The return G = ρ (r + γ G') is computed backwards along each episode. If the rows stop before the episode ends, G
    starts from the value of the next state. The noise of the returns is the same for all networks. TD errors are not
    suitable: on a stochastic task, values that are too flat have a smaller mean squared TD error.
    """
    with np.errstate(all="ignore"):
        after, returns = agent.predict(data.s_next), np.empty(len(data.reward))
        for row in reversed(range(len(returns))):
            follows = row + 1 < len(returns) and data.episode[row + 1] == data.episode[row]
            ahead = returns[row + 1] if follows else after[row]
            returns[row] = data.rho[row] * (data.reward[row] + data.discount[row] * ahead)
        error = float(((returns - agent.predict(data.s)) ** 2).mean())
    return error if np.isfinite(error) else np.inf


def beginner(data: Learnable, hidden: tuple[int, ...], seed: int) -> NetworkLearner:
    """Return an untrained learner for the data."""
    return NetworkLearner("tdrc", Network(data.s.shape[1], hidden), alpha=STEP, optimiser="adam", seed=seed)


def choose_size(data: Learnable, seed: int) -> Choice:
    """Return the size and the number of updates with the smallest error on held-out groups."""
    group = groups_of(data.episode)
    n = int(group.max()) + 1
    order = np.random.default_rng([seed, 7]).permutation(n)
    out = np.isin(group, order[: max(1, round(HELD_OUT * n))])
    inside, outside = data.part(~out), data.part(out)
    found = []
    for hidden in SIZES:
        agent, best = beginner(data, hidden, seed), Choice(hidden, 0, np.inf)
        for look in range(1, LOOKS + 1):
            agent.replay(inside[:5], BETWEEN, BATCH)
            now = Choice(hidden, look * BETWEEN, held_out_error(agent, outside))
            best = min(best, now, key=lambda one: one.error)
            if now.updates - best.updates >= WORSE * BETWEEN:
                break
        found.append(best)
    return min(found, key=lambda one: one.error)


def learn_layers(data: Learnable, centre: Array, scale: Array, seed: int = 0) -> tuple[Layers, Choice]:
    """Return the features that an ensemble learns from data, and the chosen size and training time.

    The observations in the data are already scaled by `centre` and `scale`; the feature map scales its inputs itself.
    """
    size = max(1e-12, float(np.abs(data.reward).mean()))
    data = data._replace(reward=data.reward / size)
    choice = choose_size(data, seed)
    group, members = groups_of(data.episode), []
    n = int(group.max()) + 1
    for member in range(MEMBERS):
        half = np.random.default_rng([seed, 8, member]).permutation(n)[: max(1, n // 2)]
        agent = beginner(data, choice.hidden, seed + 1 + member)
        agent.replay(data.part(np.isin(group, half))[:5], max(BETWEEN, choice.updates), BATCH)
        members.append([(np.asarray(W), np.asarray(b)) for W, b in agent.network.layers(agent.w)[:-1]])
    return Layers(centre, scale, members), choice
