"""Simulate small worlds that make logs quickly: tables, CartPole, Mountain Car and a shop.

python -m trials.worlds
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Booleans
from gradient_dd.stream.policies import drawn
from tools.programs import parser_of

Policy = Callable[[Array], Array]
EPISODES = 10_000  # for the values of worlds without a table


class World:
    """A simulator of episodes in many parallel copies.

    begin(n, rng) returns initial observations (n, d); step(seen, action, rng) next observations, rewards and ends
    """

    def __init__(self, begin: Any, step: Any) -> None:
        self.begin, self.step = begin, step

    def log(self, policy: Policy, episodes: int, steps: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return a log as columns, episode after episode; longer episodes are cut after `steps` steps."""
        seen, alive, rows = self.begin(episodes, rng), np.arange(episodes), []
        for t in range(steps):
            chances = policy(seen)
            action = drawn(chances, rng)
            after, reward, ended = self.step(seen, action, rng)
            chance = chances[np.arange(len(seen)), action]
            cut = ~ended & (t == steps - 1)
            rows.append((alive, np.full(len(seen), t), seen, after, action, reward, ended, cut, chance))
            seen, alive = after[~ended], alive[~ended]
            if not len(alive):
                break
        episode, t, seen, after, action, reward, ended, cut, chance = map(np.concatenate, zip(*rows, strict=True))
        order = np.lexsort((t, episode))
        columns = {f"obs_{i}": seen[order, i] for i in range(seen.shape[1])}
        columns |= {f"next_obs_{i}": after[order, i] for i in range(seen.shape[1])}
        columns |= {"episode": episode[order], "action": action[order], "reward": reward[order]}
        return columns | {"terminated": ended[order], "truncated": cut[order], "propensity": chance[order]}

    def value(self, policy: Policy, discount: float) -> float:
        """Return the mean discounted return of a policy over EPISODES episodes."""
        rng = np.random.default_rng(12345)
        seen, total = self.begin(EPISODES, rng), 0.0
        for t in range(int(np.ceil(np.log(1e-3) / np.log(discount)))):
            seen, reward, ended = self.step(seen, drawn(policy(seen), rng), rng)
            total += discount**t * float(reward.sum())
            seen = seen[~ended]
        return total / EPISODES


class TableWorld(World):
    """A world of numbered states: P (S, A, S), rewards (S, A), terminal states, and probabilities of initial states."""

    def __init__(self, P: Array, rewards: Array, ends: Booleans, start: Array, noise: float = 0.0) -> None:
        self.P, self.rewards, self.ends, self.start, self.noise = P, rewards, ends, start, noise
        self.cumulative = P.cumsum(axis=2)
        super().__init__(self._begin, self._step)

    @classmethod
    def random(cls, rng: np.random.Generator, states: int, actions: int, end: float) -> "TableWorld":
        """Return a random world with S states and a terminal one, entered with probability about `end` (0: never)."""
        S = states
        P = np.zeros((S + 1, actions, S + 1))
        P[:S, :, :S] = rng.dirichlet(np.full(S, 0.3), size=(S, actions))
        leave = np.clip(end * rng.uniform(0.5, 1.5, size=(S, actions)), 0, 1) if end < 1 else np.ones((S, actions))
        P[:S, :, :S] *= (1 - leave)[:, :, None]
        P[:S, :, S] = leave
        P[S, :, S] = 1.0
        rewards = np.vstack([rng.standard_normal((S, actions)) + 0.5, np.zeros((1, actions))])
        start = np.append(rng.dirichlet(np.full(S, 1.0)), 0.0)
        world = cls(P, rewards, np.eye(S + 1, dtype=bool)[S], start, noise=0.5)
        return world.without_unused() if end == 0 else world

    def without_unused(self) -> "TableWorld":
        """Return the world without its terminal state, which is never entered."""
        S = len(self.ends) - 1
        return TableWorld(self.P[:S, :, :S], self.rewards[:S], self.ends[:S], self.start[:S], self.noise)

    def _begin(self, n: int, rng: np.random.Generator) -> Array:
        return rng.choice(len(self.start), size=n, p=self.start)[:, None].astype(float)

    def _step(self, seen: Array, action: Any, rng: np.random.Generator) -> tuple[Array, Array, Booleans]:
        s = seen[:, 0].astype(int)
        draws = rng.random(len(s))[:, None]
        after = (self.cumulative[s, action] < draws).sum(axis=1).clip(0, len(self.ends) - 1)
        reward = self.rewards[s, action] + self.noise * rng.standard_normal(len(s))
        ended = self.ends[after]
        return np.where(ended, s, after)[:, None].astype(float), reward, ended

    def values(self, table: Array, discount: float) -> Array:
        """Return V of every state for a policy (S, A)."""
        P = np.einsum("sa,sat->st", table, self.P) * discount
        P[:, self.ends] = 0.0
        return np.asarray(np.linalg.solve(np.eye(len(P)) - P, (table * self.rewards).sum(axis=1)))

    def extreme(self, discount: float, sign: float) -> Array:
        """Return the best policy (S, A), or the worst one with sign = −1."""
        V = np.zeros(len(self.ends))
        for _ in range(3000):
            Q = sign * self.rewards + discount * self.P @ np.where(self.ends, 0.0, V)
            V = Q.max(axis=1)
        return np.eye(Q.shape[1])[Q.argmax(axis=1)]

    def value(self, policy: Policy, discount: float) -> float:
        """Return the value of a policy at the start of episodes."""
        table = policy(np.arange(len(self.ends), dtype=float)[:, None])
        return float(self.start @ self.values(table, discount))


def cart_pole() -> World:
    """Return Gymnasium's CartPole."""

    def begin(n: int, rng: np.random.Generator) -> Array:
        return rng.uniform(-0.05, 0.05, size=(n, 4))

    def step(seen: Array, action: Any, rng: np.random.Generator) -> tuple[Array, Array, Booleans]:
        x, v, angle, turn = seen.T
        force, cos, sin = np.where(action == 1, 10.0, -10.0), np.cos(angle), np.sin(angle)
        push = (force + 0.05 * turn**2 * sin) / 1.1
        twist = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        slide = push - 0.05 * twist * cos / 1.1
        after = np.column_stack([x + 0.02 * v, v + 0.02 * slide, angle + 0.02 * turn, turn + 0.02 * twist])
        ended = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 12 * 2 * np.pi / 360)
        return after, np.ones(len(seen)), ended

    return World(begin, step)


def mountain_car() -> World:
    """Return Gymnasium's Mountain Car with random initial position and speed."""

    def begin(n: int, rng: np.random.Generator) -> Array:
        return np.column_stack([rng.uniform(-1.0, 0.3, size=n), rng.uniform(-0.03, 0.03, size=n)])

    def step(seen: Array, action: Any, rng: np.random.Generator) -> tuple[Array, Array, Booleans]:
        speed = np.clip(seen[:, 1] + 0.001 * (action - 1) - 0.0025 * np.cos(3 * seen[:, 0]), -0.07, 0.07)
        place = np.clip(seen[:, 0] + speed, -1.2, 0.6)
        speed = np.where((place <= -1.2) & (speed < 0), 0.0, speed)
        return np.column_stack([place, speed]), np.full(len(seen), -1.0), place >= 0.5

    return World(begin, step)


def recommender() -> World:
    """Return a shop: a customer has a taste for three types of things and grows tired; a good match keeps them."""

    def begin(n: int, rng: np.random.Generator) -> Array:
        return np.column_stack([rng.standard_normal((n, 3)), np.zeros(n)])

    def step(seen: Array, action: Any, rng: np.random.Generator) -> tuple[Array, Array, Booleans]:
        n = len(seen)
        taste = seen[np.arange(n), action]
        buys = rng.random(n) < 1 / (1 + np.exp(1.0 - taste + seen[:, 3]))
        tired = np.clip(seen[:, 3] + 0.15 - 0.1 * buys, 0.0, 3.0)
        ended = rng.random(n) < 0.08 + 0.1 * tired
        return np.column_stack([seen[:, :3], tired]), buys.astype(float), ended

    return World(begin, step)


def main(words: list[str] | None = None) -> None:
    """Print the first rows of a log of each world."""
    parser_of(__doc__).parse_args(words)
    even = {"cart pole": (cart_pole(), 2), "mountain car": (mountain_car(), 3), "recommender": (recommender(), 3)}
    for name, (world, actions) in even.items():
        log = world.log(lambda seen, k=actions: np.full((len(seen), k), 1 / k), 10, 50, np.random.default_rng(0))
        print(f"{name}: {len(log['reward'])} rows of 10 episodes, mean reward {log['reward'].mean():.3f}")


if __name__ == "__main__":
    main()
