"""Make the tasks of the trial of AutoLearner: ten small types, greedy targets, and three large types.

    python -m trials.learner_tasks          features, initial error and stability of TD for one task of each type

The docstring of each function describes its type; docs/evidence/auto-learner.md describes the trial. TD is mostly
unstable in hover, fishery and reach. The targets of improved are nearly greedy. Ads, reach and the large types have
dependent features, but the values of the fixed point are still unique.
"""

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
from scipy.stats import binom

from gradient_dd.arrays import Array, Integers
from gradient_dd.tasks import Task, from_tables
from tools.programs import parser_of, print_table
from trials.auto_learner.cases import (
    LONG,
    LONGEST,
    SHORT,
    USUAL,
    Case,
    aimed_at_the_fixed_point,
    first_error,
    mixed,
    td_is_stable,
)


def grid(*sizes: int) -> Integers:
    """Return the coordinates (axes, cells) of the cells of a grid."""
    return np.indices(sizes).reshape(len(sizes), -1)


def landing(after: Array, places: Array, width: float) -> Array:
    """Return the probabilities (..., places) of landing at places (n, axes), normal around points (..., axes)."""
    P = np.exp(-0.5 * ((after[..., None, :] - places) ** 2).sum(axis=-1) / width**2)
    return P / P.sum(axis=-1, keepdims=True)


def admission(seed: int) -> Task:
    """Return a call centre that accepts or rejects calls of 3 types, which pay up to 2,000; hat functions."""
    rng = np.random.default_rng(seed)
    lines, shares, pays = int(rng.integers(8, 21)), rng.dirichlet(np.full(3, 4.0)), rng.uniform(200, 2000, 3)
    busy, call = grid(lines + 1, 3)
    taken, ends = np.minimum(busy[:, None] + np.arange(2), lines), rng.uniform(0.8, 1.6) / lines
    P = (binom.pmf(np.arange(lines + 1), taken[..., None], 1 - ends)[..., None] * shares).reshape(len(busy), 2, -1)
    R = np.stack([np.full(len(busy), -50.0), np.where(busy < lines, pays[call], -50.0)], axis=1)
    hats = np.clip(1 - np.abs(busy[:, None] - np.linspace(0, lines, 5)) * 4 / lines, 0, 1)
    X = (hats[:, :, None] * np.eye(3)[call][:, None]).reshape(len(busy), -1)
    welcome = busy < np.where(call == pays.argmin(), 0.6, 1.0) * lines
    policies = np.tile([0.3, 0.7], (len(busy), 1)), mixed(np.eye(2)[welcome.astype(int)], 0.1)
    return from_tables(P, R, 0.99, *policies, features=X, name="admission")


def dice(seed: int) -> Task:
    """Return a game of Pig to 14 to 20 points, tabular: roll or bank; a one loses the turn, and only a win pays."""
    rng = np.random.default_rng(seed)
    goal, loses, limit = int(rng.integers(14, 21)), rng.uniform(0.05, 0.15), int(rng.integers(5, 9))
    won, lost, turn = goal**2, goal**2 + 1, np.append(grid(goal, goal)[1], [0, 0])
    P, R = np.zeros((2, lost + 1, 2, lost + 1))
    for state, (banked, points) in enumerate(grid(goal, goal).T):
        P[state, 0, banked * goal], P[state, 1, min(banked + points, goal - 1) * goal] = (1 - loses) / 6, 1 - loses
        for face in range(2, 7):
            P[state, 0, won if banked + points + face >= goal else state + face] += 1 / 6
    P[:won, :, lost], P[won, :, won], P[lost, :, lost], R[:won, :, won] = 1 - P[:won].sum(axis=2), 1.0, 1.0, 1.0
    policies = np.tile([0.6, 0.4], (lost + 1, 1)), mixed(np.eye(2)[(turn >= limit).astype(int)], 0.1)
    return from_tables(P, R, 0.995, *policies, start=0, keep="reachable", name="dice")


def elevator(seed: int) -> Task:
    """Return a lift with 6 to 9 floors and one call at a time; random Fourier features; nonzero initial weights."""
    rng = np.random.default_rng(seed)
    floors, p, asked = int(rng.integers(6, 10)), int(rng.integers(10, 31)), rng.uniform(0.2, 0.6)
    floor, call = grid(floors, floors + 1)
    none, n, w = call == floors, len(floor), 2 * rng.standard_normal(p)
    calls, idle = asked * np.append(mixed(np.eye(1, floors), 0.6)[0], 1 / asked - 1), none | (call == floor)
    moves = np.eye(floors)[np.clip(floor[:, None] + [-1, 0, 1], 0, floors - 1)]
    later = np.where(idle[:, None], calls, np.eye(floors + 1)[call])
    P = np.einsum("saf,sc->safc", moves, later).reshape(n, 3, n)
    wanted = np.eye(3)[np.where(none, 1, 1 + np.sign(call - floor))]
    Z = np.stack([floor / floors, np.where(none, 0.5, call / floors), none], axis=1)
    X = np.sqrt(2 / p) * np.cos(Z @ rng.normal(0, 4, (3, p)) + rng.uniform(0, 2 * np.pi, p))
    R, policies = -1.0 * ~idle[:, None] - [0.2, 0.0, 0.2], (mixed(wanted, 0.7), mixed(wanted, 0.2))
    return from_tables(P, R, 0.9, *policies, features=X, initial_weights=w, name="elevator")


def upkeep(seed: int) -> Task:
    """Return a machine that ages for 20 to 40 days and is run or replaced; 5 features of very different scales."""
    rng = np.random.default_rng(seed)
    days, worst, limit = int(rng.integers(20, 41)), rng.uniform(0.3, 0.7), rng.uniform(0.4, 0.7)
    age, (P, R) = np.arange(days), np.zeros((2, days, 2, days))
    fails, late = 0.01 + worst * (age / days) ** 3, np.eye(2)[(age >= limit * days).astype(int)]
    P[age, 0, np.minimum(age + 1, days - 1)], P[:, 0, 0], P[:, 1, 0] = 1 - fails, fails, 1.0
    R[:, 0], R[:, 0, 0], R[:, 1] = 1.0, -20.0, -6.0
    X = np.stack([np.ones(days), 3.0 * age, fails, np.log1p(age), 10.0 * (age == 0)], axis=1)
    return from_tables(P, R, 0.98, np.tile([0.9, 0.1], (days, 1)), mixed(late, 0.1), features=X, name="upkeep")


def epidemic(seed: int) -> Task:
    """Return an epidemic among 10 to 14 people, on-policy, until it ends; 6 or 10 monomials of the counts."""
    rng = np.random.default_rng(seed)
    people, degree, rate = int(rng.integers(10, 15)), int(rng.choice([2, 3])), rng.uniform(1.5, 4.0)
    well, ill = grid(people + 1, people + 1)
    over, spreads = (ill == 0) | (well + ill > people), rate * np.array([1.0, 0.4])  # schools open, and closed
    P, live = np.tile(np.eye(len(well))[:, None], (1, 2, 1)), np.flatnonzero(~over)
    P[live], chance = 0.0, (well[:, None] * spreads / (people + well[:, None] * spreads))[live]
    P[live, :, live - people], P[live, :, live - 1] = chance, 1 - chance
    R, x, y = -(ill[:, None] / people + [0.0, 0.3]) * ~over[:, None], well / people, ill / people
    X = np.stack([x**a * y**b for a in range(degree + 1) for b in range(degree + 1 - a)], axis=1)
    policy, start = mixed(np.eye(2)[(y > 0.25).astype(int)], 0.2), (well + ill == people) & (ill > 0) & (ill < 4)
    return from_tables(P, R, 0.95, policy, start=start / 3, features=X, keep="reachable", name="epidemic")


def portfolio(seed: int) -> Task:
    """Return a share traded in a market with 3 moods; noisy rewards near 0.001, 12 to 24 correlated signals."""
    rng, (mood, held, last) = np.random.default_rng(seed), grid(3, 5, 5)
    p, changes, now = int(rng.integers(12, 25)), rng.uniform(0.05, 0.2), np.clip(held[:, None] + [-1, 0, 1], 0, 4)
    returns = landing(np.array([[1.5], [2.0], [2.6]]), np.arange(5.0)[:, None], 1.2)
    market = (mixed(np.eye(3), changes)[:, :, None] * returns)[mood]  # (states, next mood, next return)
    P = (market[:, None, :, None, :] * np.eye(5)[now][:, :, None, :, None]).reshape(75, 3, 75)
    R = 0.001 * now[:, :, None] / 4 * (last - 2) - 0.0001 * np.array([1, 0, 1])[:, None]
    base = np.stack([mood - 1, held / 4, (last - 2) / 2, (mood - 1) * held / 4], axis=1)
    signals = base @ rng.standard_normal((4, p - 1)) + 0.2 * rng.standard_normal((75, p - 1))
    X, target = np.hstack([np.ones((75, 1)), signals]), mixed(np.eye(3)[mood], rng.uniform(0.2, 0.6))
    return from_tables(P, R, 0.995, np.full((75, 3), 1 / 3), target, features=X, name="portfolio")


def ads(seed: int) -> Task:
    """Return 4 groups of people who tire of 3 advertisements; a click pays 1; 16 to 48 signed hashed features."""
    rng, sizes = np.random.default_rng(seed), np.array([4, 5, 6])
    p, taste, discount = int(rng.integers(16, 49)), rng.uniform(0.02, 0.4, (4, 3)), rng.choice([0.5, 0.8])
    group, tired, hour = state = grid(*sizes)
    clicks, more = (taste[group] * (1 - 0.15 * tired[:, None]))[..., None], np.eye(5)[np.minimum(tired + 1, 4)]
    tires = clicks * np.eye(5)[0] + (1 - clicks) * more[:, None]
    groups = np.where(hour[:, None] == 5, 0.25, np.eye(4)[group])
    P = np.einsum("sg,sat,sh->sagth", groups, tires, np.eye(6)[(hour + 1) % 6]).reshape(120, 3, 120)
    R, X = np.tile(tired == 0, (120, 3, 1)).astype(float), np.zeros((120, p))
    for axes in (list(axes) for size in (1, 2) for axes in combinations(range(3), size)):
        cross = np.ravel_multi_index(tuple(state[axes]), tuple(sizes[axes]))
        X[np.arange(120), rng.integers(0, p, 30)[cross]] += rng.choice([-1.0, 1.0], 30)[cross]
    behaviour, target = mixed(rng.dirichlet(np.ones(3), size=4), 0.4), mixed(np.eye(3)[taste.argmax(axis=1)], 0.2)
    return from_tables(P, R, discount, behaviour[group], target[group], features=X, name="ads")


def hover(seed: int) -> Task:
    """Return a hovering craft, 4 or 6 quadratic features; the behaviour steadies it, the target rarely does."""
    rng, kicks = np.random.default_rng(seed), [-0.8, 0.0, 0.8]
    side, p, tips = int(rng.choice([9, 11])), int(rng.choice([4, 6])), rng.uniform(0.2, 0.32)
    places = 4.0 * (grid(side, side).T / (side - 1) - 0.5)
    offset, speed = places.T[..., None]
    after = np.stack(np.broadcast_arrays(offset + 0.4 * speed, speed + tips * offset + kicks), axis=2)
    P = 0.995 * landing(np.clip(after, -2, 2), places, 0.25) + 0.005 / side**2  # gusts
    X = np.hstack([offset**2, offset * speed, speed**2, np.ones((side**2, 1)), offset, speed])[:, :p]
    steady = np.eye(3)[1 - np.clip(np.round(offset + 1.2 * speed), -1, 1).astype(int)[:, 0]]
    R, lets_go = -(offset**2 + 0.3 * speed**2) - 0.1 * np.abs(kicks), np.tile([0.03, 0.94, 0.03], (side**2, 1))
    return from_tables(P, R, 0.98, mixed(steady, 0.1), lets_go, features=X, name="hover")


def fishery(seed: int) -> Task:
    """Return an overfished stock with 2 to 4 powers of its tonnage as features; the target lets the stock recover."""
    rng = np.random.default_rng(seed)
    n, p, grows = int(rng.integers(20, 33)), int(rng.integers(2, 5)), rng.uniform(0.5, 0.8)
    stock, caught = np.arange(1.0, n + 1) / n, np.array([0.05, rng.uniform(0.3, 0.4)])
    after = stock + grows * stock * (1 - stock)
    P = landing((after[:, None] * (1 - caught))[..., None], stock[:, None], 0.06)
    R = 10 * after[:, None, None] * caught[:, None] + rng.standard_normal((n, 2, n))
    X = (20 * stock[:, None]) ** np.array([1.0, 2.0, 0.5, 1.5])[:p] / [1, 20, 1, 4][:p]
    return from_tables(P, R, 0.97, *np.tile([[[0.15, 0.85]], [[0.95, 0.05]]], (n, 1)), features=X, name="fishery")


def reach(seed: int) -> Task:
    """Return a two-joint arm near its rest position, with 8 to 24 rounded ReLU features; the target stretches it."""
    rng = np.random.default_rng(seed)
    side, p, steps = int(rng.integers(8, 12)), int(rng.integers(8, 25)), np.array([[1, 0], [0, 1], [-1, -1]])
    n, joints, Z = side * side, grid(side, side).T, grid(side, side).T / (side - 1)
    P = 0.9 * np.eye(n)[np.clip(joints[:, None] + steps, 0, side - 1) @ [side, 1]] + 0.1 * np.eye(n)[:, None]
    R = -np.abs(Z - rng.uniform(0.3, 1.0, 2)).sum(axis=1)[:, None] + 0.3 * rng.standard_normal((n, 3))
    X = np.maximum(np.round(Z @ rng.standard_normal((2, p)) + rng.uniform(-0.1, 0.1, p), 1), 0)
    policies = np.tile([[[0.25, 0.25, 0.5]], [[0.46, 0.46, 0.08]]], (n, 1))
    return from_tables(P, R, 0.98, *policies, features=X, name="reach")


def improved(seed: int) -> Task:
    """Return 20 to 40 states with 4 to 8 features, and a nearly greedy target for fitted values of the behaviour."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(20, 41)), int(rng.integers(4, 9))
    P, X = 0.95 * rng.dirichlet(np.full(n, 0.05), size=(n, 5)) + 0.05 / n, rng.exponential(1.0, (n, p))
    R = (X @ rng.standard_normal(p))[:, None] + 0.5 * rng.standard_normal((n, 5))
    fitted = X @ np.linalg.pinv(X) @ np.linalg.solve(np.eye(n) - 0.98 * P.mean(axis=1), R.mean(axis=1))
    target = mixed(np.eye(5)[(R + 0.98 * P @ fitted).argmax(axis=1)], 0.05)
    return from_tables(P, R, 0.98, np.full((n, 5), 0.2), target, features=X, name="improved")


def customers(seed: int) -> Task:
    """Return 900 states of a customer who may receive a letter; 863 features, one for each 1, 2 or 3 attributes."""
    rng, sizes = np.random.default_rng(seed), np.array([6, 5, 5, 6])
    since, often, spent, month = state = grid(*sizes)
    scores = (rng.normal(0, 0.7, 6)[month] - 1.2 - 0.2 * since + 0.3 * often)[:, None] + [0.0, rng.uniform(0.2, 1.0)]
    later, buys = np.eye(6)[(month + 1) % 6], (1 / (1 + np.exp(-scores)))[..., None]
    more = 0.5 * np.eye(5)[often] + 0.5 * np.eye(5)[np.minimum(often + 1, 4)]
    less = 0.8 * np.eye(5)[often] + 0.2 * np.eye(5)[np.maximum(often - 1, 0)]
    bought = np.eye(6)[0 * since], more, mixed(np.eye(5), 0.6)[spent], later
    passed = np.eye(6)[np.minimum(since + 1, 5)], less, np.eye(5)[spent], later
    both = [np.einsum("si,sj,sk,sl->sijkl", *parts).reshape(900, 1, 900) for parts in (bought, passed)]
    R = (20.0 * (since == 0) * (1 + spent) - np.array([0.0, 3.0])[:, None]) * np.ones((900, 1, 1))
    X, width = np.zeros((900, 863)), 0
    for axes in (list(axes) for size in (1, 2, 3) for axes in combinations(range(4), size)):
        X[np.arange(900), width + np.ravel_multi_index(tuple(state[axes]), tuple(sizes[axes]))] = 1.0
        width += int(np.prod(sizes[axes]))
    policies = np.full((900, 2), 0.5), mixed(np.eye(2)[(since >= rng.integers(1, 5)).astype(int)], 0.2)
    return from_tables(buys * both[0] + (1 - buys) * both[1], R, 0.9, *policies, features=X, name="customers")


def meadow(seed: int) -> Task:
    """Return an on-policy walk among 1,000 points of a square; weights of the 12 nearest of 1,600 prototypes."""
    rng, steps = np.random.default_rng(seed), 0.08 * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    points, prototypes, P = rng.random((1000, 2)), rng.random((1600, 2)), np.zeros((1000, 4, 1000))
    gaps = np.linalg.norm(np.clip(points[:, None] + steps, 0, 1)[:, :, None] - points, axis=3)
    np.put_along_axis(P, np.argsort(gaps, axis=2)[..., :5], 0.19, axis=2)
    P += 0.05 * np.roll(np.eye(1000), 1, axis=1)[:, None]  # the wind carries the walker to the next point
    far, policy = np.linalg.norm(points[:, None] - prototypes, axis=2), mixed(rng.dirichlet(np.ones(4), size=1), 0.6)
    X = np.where(far <= np.sort(far, axis=1)[:, 11:12], np.exp(-far / 0.05), 0.0)
    R = (np.linalg.norm(points - rng.random(2), axis=1) < 0.15)[:, None] + 0.2 * rng.standard_normal((1000, 4))
    return from_tables(P, R, 0.95, np.tile(policy, (1000, 1)), features=X, name="meadow")


def songs(seed: int) -> Task:
    """Return 1,000 songs played one after another; 3,500 features: song, artist, genre and 5 of 2,280 tags."""
    rng, n, song = np.random.default_rng(seed), 1000, np.arange(1000)[:, None]
    artist, genre, P, X = song // 5, song // 50, np.zeros((n, 3, n)), np.zeros((n, 3500))
    similar, others = 50 * genre + rng.integers(0, 50, (n, 8)), rng.integers(0, n, (n, 8))
    for action, chosen in enumerate((5 * artist + np.arange(5), similar, others)):
        np.put_along_axis(P[:, action], chosen, 1.0, axis=1)
    P = 0.95 * P / P.sum(axis=2, keepdims=True) + 0.05 * np.roll(np.eye(n), 1, axis=1)[:, None]
    liked = rng.standard_normal(200)[artist] + rng.standard_normal(20)[genre] + 0.5 * rng.standard_normal((n, 1))
    tags = 1220 + 114 * genre + np.argsort(rng.random((n, 114)), axis=1)[:, :5]
    np.put_along_axis(X, np.hstack([song, 1000 + artist, 1200 + genre, tags]), 1.0, axis=1)
    R, target = (liked > 1.0) - np.array([0.0, 0.0, 0.2]), mixed(np.eye(3)[[rng.integers(0, 3)]], 0.6)
    return from_tables(P, R, 0.9, np.full((n, 3), 1 / 3), np.tile(target, (n, 1)), features=X, name="songs")


SMALL = admission, dice, elevator, upkeep, epidemic, portfolio, ads, hover, fishery, reach
KINDS: dict[str, Callable[[int], Task]] = {make.__name__: make for make in SMALL}
STEPS_IN_TURN = (USUAL, SHORT, LONG)  # of successive tasks of a type


def case(make: Callable[[int], Task], seed: int, steps: int) -> Case:
    """Return the task of a seed, named after its type."""
    return Case(make.__name__, f"{make.__name__}, seed {seed}, {steps} steps", make(seed), steps)


def small_cases(first: int, each: int = 3) -> Iterator[Case]:
    """Yield a number of small tasks of every type, with 20,000, 2,000 and 50,000 steps in turn."""
    for place, make in enumerate(SMALL):
        yield from (case(make, first + 1000 * place + i, STEPS_IN_TURN[i % 3]) for i in range(each))


def greedy_cases(first: int, each: int = 6) -> Iterator[Case]:
    """Yield a number of tasks with nearly greedy targets."""
    yield from (case(improved, first + 80_000 + i, USUAL) for i in range(each))


def large_cases(first: int) -> Iterator[Case]:
    """Yield tasks with 863, 1,600 and 3,500 features."""
    for place, (make, steps) in enumerate(((customers, USUAL), (meadow, LONG), (songs, LONG))):
        yield case(make, first + 90_000 + place, steps)


def long_case(first: int) -> Case:
    """Return a task of 300,000 steps."""
    return case(portfolio, first + 95_000, LONGEST)


def main(words: list[str] | None = None) -> None:
    """Print a line for each type."""
    parser_of(__doc__).parse_args(words)
    made = [*small_cases(1, each=1), *greedy_cases(1, each=1), *large_cases(1)]
    tasks = ((one.kind, aimed_at_the_fixed_point(one.task)) for one in made)
    head = "type", "features", "initial error", "TD is stable"
    facts = ((kind, str(t.n_features), f"{first_error(t):.3g}", str(td_is_stable(t))) for kind, t in tasks)
    print_table(head, facts)


if __name__ == "__main__":
    main()
