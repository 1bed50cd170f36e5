"""More tasks for the trial in docs/auto-learner.md, of kinds that were kept from whoever designed the learner.

There are nine kinds of small tasks and three large ones, each described at its function. Ladder, camps and slope are
made so that TD is mostly unstable. Tilings have dependent features: the values of the fixed point are unique still.
"""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array, Integers
from gradient_dd.experiments.learner.cases import LONG, LONGEST, SHORT, USUAL, Case, mixed
from gradient_dd.tasks import Task, from_tables

PLUS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])  # the four steps on a grid


def onto_grid(first: Array, second: Array, shape: tuple[int, int]) -> Array:
    """Return the probabilities (points, cells) of rounding points to the grid at random; the first axis wraps."""
    P, points = np.zeros((len(first), *shape)), np.arange(len(first))
    second = np.clip(second, 0, shape[1] - 1)
    for i, j in ((np.floor(first) + a, np.floor(second) + b) for a in (0, 1) for b in (0, 1)):
        weight = (1 - np.abs(first - i)) * (1 - np.abs(second - j))
        np.add.at(P, (points, i.astype(int) % shape[0], j.astype(int) % shape[1]), weight)
    return P.reshape(len(first), -1)


def cells(shape: tuple[int, ...]) -> Integers:
    """Return the coordinates (cells, axes) of the cells of a grid."""
    return np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)


def walk(shape: tuple[int, ...], steps: Integers) -> Array:
    """Return the probabilities (cells, steps, cells) of steps on a grid that has walls."""
    there = np.clip(cells(shape)[:, None] + steps, 0, np.array(shape) - 1)
    return np.eye(int(np.prod(shape)))[np.ravel_multi_index(tuple(np.moveaxis(there, 2, 0)), shape)]


def tiled(places: Integers, sizes: Integers, offsets: Integers, most: int | None = None) -> sp.csr_matrix:
    """Return a one for each tiling in the rows of places (n, axes): tiles numbered as they are seen, modulo `most`."""
    tilings, width = [], 0
    for size, offset in zip(sizes, offsets, strict=True):
        tile = np.unique((places + offset) // size, axis=0, return_inverse=True)[1].ravel() % (most or len(places))
        tilings.append(width + tile)
        width += int(tile.max()) + 1
    n, columns = len(places), np.stack(tilings, axis=1).ravel()
    return sp.csr_matrix((np.ones(len(columns)), (np.repeat(np.arange(n), len(sizes)), columns)), shape=(n, width))


def car(seed: int) -> Task:
    """Return a car in a valley, 3 tilings of its place and speed; the target pumps more often than the behaviour."""
    rng = np.random.default_rng(seed)
    shape, power = (int(rng.integers(13, 18)), int(rng.integers(8, 12))), rng.uniform(0.0012, 0.0018)
    places, cell = cells(shape), np.array([1.7, 0.14]) / (np.array(shape) - 1)
    n, ended = len(places), places[:, 0] == shape[0] - 1
    P = np.zeros((n, 3, n))
    for action in range(3):
        x, speed = (places * cell + [-1.2, -0.07]).T
        for _ in range(4):
            speed = np.clip(speed + power * (action - 1) - 0.0025 * np.cos(3 * x), -0.07, 0.07)
            x = np.clip(x + speed, -1.2, 0.5)
        P[:, action] = onto_grid((x + 1.2) / cell[0], (speed + 0.07) / cell[1], shape)
    P[ended] = np.eye(n)[ended][:, None]
    R, pump = -np.outer(~ended, np.ones(3)), np.eye(3)[np.where(2 * places[:, 1] >= shape[1], 2, 0)]
    X = tiled(places[~ended], np.tile([5, 4], (3, 1)), rng.integers(0, 4, 2) + np.array([[0, 0], [2, 1], [3, 2]]))
    return from_tables(P, R, 0.99, mixed(pump, rng.uniform(0.5, 0.9)), mixed(pump, 0.2), features=X, name="car")


def stock(seed: int) -> Task:
    """Return a store of 20 to 32 goods and 7 to 10 radial basis functions; the target orders up to a level."""
    rng = np.random.default_rng(seed)
    most, p, level = int(rng.integers(20, 33)), int(rng.integers(7, 11)), rng.uniform(0.4, 0.9)
    held, orders, demand = np.arange(most + 1), np.arange(4), mixed(rng.dirichlet(np.ones(8), size=1), 0.5)[0]
    filled = np.minimum(held[:, None] + 3 * orders, most)
    P = sum(demand[k] * np.eye(most + 1)[np.maximum(filled - k, 0)] for k in range(8))
    R = 2 * (filled[:, :, None] - held) + (held[:, None] - 1.1 * filled - (orders > 0))[:, :, None]
    target = mixed(np.eye(4)[np.clip((level * most - held) // 3, 0, 3).astype(int)], 0.2)
    centres = np.linspace(0, most, p)
    X = np.exp(-0.5 * ((held[:, None] - centres) / (0.9 * most / (p - 1))) ** 2)
    return from_tables(P, R, 0.95, np.full((most + 1, 4), 0.25), target, features=X, name="stock")


def machines(seed: int) -> Task:
    """Return 6 machines in a circle, of which one is mended at a time; the target mends the first that is broken."""
    rng, k = np.random.default_rng(seed), 6
    up = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    stays = rng.uniform(0.8, 0.95, k) - 0.3 * (1 - np.roll(up, 1, axis=1))
    P = np.zeros((2**k, k + 1, 2**k))
    for action in range(k + 1):
        chance = np.where(up == 1, stays, 0.05)
        chance[:, action : action + 1] = 0.99  # of the last action, to mend none
        P[:, action] = np.where(up[None] == 1, chance[:, None], 1 - chance[:, None]).prod(axis=2)
    R = (up @ rng.uniform(0.5, 1.5, k))[:, None] - 0.5 * (np.arange(k + 1) < k)
    behaviour = np.tile(np.append(np.full(k, 0.1), 0.4), (2**k, 1))
    target = mixed(np.eye(k + 1)[np.where(up.all(axis=1), k, up.argmin(axis=1))], rng.uniform(0.1, 0.6))
    X = np.hstack([np.ones((2**k, 1)), up, up + 0.1 * rng.standard_normal((2**k, k))])
    return from_tables(P, R, 0.95, behaviour, target, features=X, name="machines")


def wells(seed: int) -> Task:
    """Return a particle on 25 to 40 places between two wells, on policy, with 5 to 8 Legendre polynomials."""
    rng = np.random.default_rng(seed)
    n, p, tilt = int(rng.integers(25, 41)), int(rng.integers(5, 9)), rng.uniform(-0.1, 0.1)
    x = np.linspace(-1.6, 1.6, n)
    after = x[:, None] + 0.1 * (4 * x - 4 * x**3 + tilt)[:, None].clip(-6, 6) + 0.05 * np.array([-1, 1])
    P = np.exp(-0.5 * ((x - after[:, :, None]) / 0.2) ** 2)
    P = np.where(P > 1e-6, P, 0.0) / np.where(P > 1e-6, P, 0.0).sum(axis=2, keepdims=True)
    R = (x > 0.5)[:, None, None] + rng.standard_normal((n, 2, n))
    X = np.polynomial.legendre.legvander(x / 1.6, p - 1)
    return from_tables(P, R, 0.99, mixed(rng.dirichlet(np.ones(2), size=n), 0.2), features=X, name="wells")


def web(seed: int) -> Task:
    """Return 60 to 100 pages; one follows any link, or one to a popular page, or jumps; 8 to 16 features."""
    rng = np.random.default_rng(seed)
    n, p, near = int(rng.integers(60, 101)), int(rng.integers(8, 17)), rng.random() < 0.5
    links = np.eye(n, k=1) + np.eye(n, k=-1)
    for page in range(3, n):
        chosen = rng.choice(page, 2, replace=False, p=links[:page].sum(axis=1) / links[:page].sum())
        links[page, chosen] = links[chosen, page] = 1.0
    popular = links * links.sum(axis=0) ** 2
    P = np.stack([one / one.sum(axis=1, keepdims=True) for one in (links, popular, np.ones((n, n)))], axis=1)
    X = np.hstack([np.ones((n, 1)), rng.standard_normal((n, p - 1))]) * rng.permutation(np.logspace(0, 2, p))
    R = (rng.random(n) < 0.1)[:, None, None] * 5.0 + 0.5 * rng.standard_normal((n, 3, n))
    behaviour, other = np.tile([0.4, 0.4, 0.2], (n, 1)), np.tile(rng.permutation([0.7, 0.15, 0.15]), (n, 1))
    return from_tables(P, R, 0.5, behaviour, behaviour if near else other, features=X, name="web")


def wind(seed: int) -> Task:
    """Return a grid with a wind upwards in some columns, blocks of 2 × 2 cells; the target goes to the goal."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(6, 9)), int(rng.integers(8, 13))
    n, goal, places = shape[0] * shape[1], int(rng.integers(shape[0] * shape[1])), cells(shape)
    blown = rng.uniform(0, 0.25, shape[1])[places[:, 1]][:, None, None]
    P = (1 - blown) * walk(shape, PLUS) + blown * walk(shape, PLUS - [1, 0])
    P[goal], R = np.eye(n)[goal], np.zeros((n, 4, n))
    R[:, :, goal], R[goal] = 1.0, 0.0
    nearest = (P @ np.abs(places - places[goal]).sum(axis=1)).argmin(axis=1)
    X = tiled(np.delete(places, goal, axis=0), np.array([[2, 2]]), np.array([[0, 0]]))
    policies = np.full((n, 4), 0.25), mixed(np.eye(4)[nearest], rng.uniform(0.1, 0.6))
    return from_tables(P, R, rng.choice([0.95, 0.99]), *policies, features=X, name="wind")


def ladder(seed: int) -> Task:
    """Return 2 to 4 ladders of 5 to 8 rungs; the features grow from rung to rung, and one climbs or falls down."""
    rng = np.random.default_rng(seed)
    p, rungs, growth = int(rng.integers(2, 5)), int(rng.integers(5, 9)), rng.uniform(1.5, 1.8)
    n, (lane, rung) = p * rungs, cells((p, rungs)).T
    up, down = np.eye(n)[lane * rungs + np.minimum(rung + 1, rungs - 1)], np.tile((rung == 0) / p, (n, 1))
    P = 0.95 * np.stack([up, down], axis=1) + 0.05 / n
    X = growth ** rung[:, None] * (np.eye(p)[lane] + 0.1 * rng.standard_normal((n, p)))
    R, target = rng.standard_normal((n, 2, n)), np.tile([0.95, 0.05], (n, 1))
    return from_tables(P, R, 0.97, np.full((n, 2), 0.5), target, features=X, name="ladder")


def camps(seed: int) -> Task:
    """Return two camps of 12 to 20 states, partners with alike features of two sizes; the target goes to one camp."""
    rng = np.random.default_rng(seed)
    n, p, times = int(rng.integers(12, 21)), int(rng.integers(4, 11)), rng.uniform(2.0, 3.0)
    inside, P = mixed(rng.dirichlet(np.full(n, 0.5), size=4 * n), 0.2), np.zeros((2 * n, 2, 2 * n))
    P[:, 0, :n], P[:, 1, n:] = np.split(0.1 * inside + 0.9 * np.tile(np.eye(n), (4, 1)), 2)
    X = rng.standard_normal((n, p))
    X = np.vstack([X, times * X + 0.1 * rng.standard_normal((n, p))])
    behaviour, target = np.tile([0.85, 0.15], (2 * n, 1)), np.tile([0.1, 0.9], (2 * n, 1))
    R, w = rng.standard_normal((2 * n, 2)), 3 * rng.standard_normal(p)
    return from_tables(P, R, 0.95, behaviour, target, features=X, initial_weights=w, name="camps")


def slope(seed: int) -> Task:
    """Return a grid of side 5 or 6 with 2 to 4 features that rise to a corner, to which the target goes."""
    rng = np.random.default_rng(seed)
    side, p, growth = int(rng.integers(5, 7)), int(rng.integers(2, 5)), rng.uniform(1.4, 1.6)
    n, (y, x) = side * side, cells((side, side)).T
    even, aside = (-1.0) ** (x + y), (x - y) / side
    waves = np.stack([np.ones(n), aside, even, even * aside], axis=1)[:, :p]
    X = growth ** (x + y)[:, None] * (waves + 0.05 * rng.standard_normal((n, p)))
    behaviour, target = np.tile([0.12, 0.12, 0.38, 0.38], (n, 1)), np.tile([0.48, 0.48, 0.02, 0.02], (n, 1))
    P, R = walk((side, side), PLUS), rng.standard_normal((n, 4))
    return from_tables(P, R, 0.97, behaviour, target, features=X, name="slope")


def swing(seed: int) -> Task:
    """Return a pendulum of 24 angles and 25 speeds that is pushed at random, 10 tilings; the target pushes it on."""
    rng, shape, places = np.random.default_rng(seed), (24, 25), cells((24, 25))
    pull, speed = 2.0 * np.sin(2 * np.pi * places[:, 0] / 24), places[:, 1] - 12.0
    P = np.zeros((600, 3, 600))
    for action, kick in ((action, kick) for action in range(3) for kick in (-1.0, 1.0)):
        faster = 0.97 * speed - pull + 1.5 * (action - 1) + kick
        P[:, action] += 0.5 * onto_grid(places[:, 0] + 0.3 * faster, faster + 12, shape)
    R = np.cos(2 * np.pi * places[:, :1] / 24) + 0.5 * rng.standard_normal((600, 3))
    target = mixed(np.eye(3)[np.where(speed >= 0, 2, 0)], rng.uniform(0.3, 0.8))
    X = tiled(places, np.tile([4, 4], (10, 1)), rng.integers(0, 4, (10, 2)))
    return from_tables(P, R, 0.98, np.full((600, 3), 1 / 3), target, features=X, name="swing")


def pages(seed: int) -> Task:
    """Return 1,100 pages on 20 topics, on policy: 6 of 50 words of its topic on each, and 6 of 200 common words."""
    rng, n = np.random.default_rng(seed), 1100
    P, words = np.zeros((n, 2, n)), np.zeros((n, 12), dtype=int)
    for page, topic in enumerate(np.arange(n) // 55):
        P[page, 0, 55 * topic + rng.choice(55, 6, replace=False)] = rng.dirichlet(np.ones(6))
        P[page, 1, (page + np.append(1, 2 + rng.choice(n - 2, 3, replace=False))) % n] = 0.25
        words[page, :6] = 50 * topic + (page + np.append(0, 1 + rng.choice(49, 5, replace=False))) % 50
        words[page, 6:] = 1000 + (page + np.append(0, 1 + rng.choice(199, 5, replace=False))) % 200
    X = sp.csr_matrix((rng.uniform(0.5, 2.0, n * 12), (np.repeat(np.arange(n), 12), words.ravel())), shape=(n, 1200))
    R = (rng.standard_normal(20)[np.arange(n) // 55] + rng.standard_normal(n))[:, None] * np.ones(2)
    return from_tables(P, R, 0.9, np.tile([0.7, 0.3], (n, 1)), features=X, name="pages")


def box(seed: int) -> Task:
    """Return a box of 10 × 10 × 10 cells with 20 tilings, each hashed into 250 features; the target drifts."""
    rng, n, shape = np.random.default_rng(seed), 1000, (10, 10, 10)
    flat = [[[1, 2, 2], [0, a, b]] for a in (0, 1) for b in (0, 1)] + [[[1, 1, 4], [0, 0, c]] for c in range(4)]
    tilings = np.concatenate([np.roll(flat, axis, axis=2) for axis in range(3)])[rng.permutation(24)[:20]]
    X = tiled(cells(shape), tilings[:, 0], tilings[:, 1], most=250)
    P = walk(shape, np.vstack([np.eye(3, dtype=int), -np.eye(3, dtype=int)]))
    R = (rng.standard_normal(n) * (rng.random(n) < 0.1))[:, None] * np.ones(6)
    target = mixed(np.tile(rng.dirichlet(np.ones(6)), (n, 1)), 0.6)
    return from_tables(P, R, 0.95, np.full((n, 6), 1 / 6), target, features=X, name="box")


KINDS: dict[str, Callable[[int], Task]] = {
    make.__name__: make for make in (car, stock, machines, wells, web, wind, ladder, camps, slope)
}
STEPS_IN_TURN = (USUAL, SHORT, LONG)  # of the tasks of a kind


def case(make: Callable[[int], Task], seed: int, steps: int) -> Case:
    """Return the task that is made from a seed."""
    return Case(make.__name__, f"{make.__name__}, seed {seed}, {steps} steps", make(seed), steps)


def small_cases(first: int, each: int = 3) -> Iterator[Case]:
    """Yield so many small tasks of every kind."""
    for place, make in enumerate(KINDS.values()):
        for i in range(each):
            yield case(make, first + 1000 * place + i, STEPS_IN_TURN[i % len(STEPS_IN_TURN)])


def large_cases(first: int) -> Iterator[Case]:
    """Yield tasks with about 400, with 1,200 and with 5,000 features."""
    for place, (make, steps) in enumerate(((swing, USUAL), (pages, LONG), (box, LONG))):
        yield case(make, first + 90_000 + place, steps)


def long_case(first: int) -> Case:
    """Return a task of 300,000 steps."""
    return case(machines, first + 95_000, LONGEST)
