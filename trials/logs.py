"""Make valid logs with known true values, for the trials of evaluation, comparison and trust.

    python -m trials.logs          rows, episodes and true value of one log of each type

A type is a function of a seed. The dynamics, the policies and the true value are fixed; the seed draws the log. The
true value comes from the table if there is one, and otherwise from the mean of 10,000 episodes of the target policy.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.stream.features import OneHot
from tools.programs import parser_of, print_table
from trials.worlds import TableWorld, World, cart_pole, mountain_car, recommender

Policy = Callable[[Array], Array]


class KnownLog(NamedTuple):
    """A log, the policy to evaluate, and the value of the policy.

    log       columns by name;  target  observations (n, d) to probabilities (n, actions);  truth  its value
    features  as `evaluate_log` takes them, None for the default
    policies  several policies by name; "today" is the logging policy;  worth  the value of a policy by name
    """

    log: dict[str, Any]
    target: Policy
    discount: float
    features: Any
    truth: float
    policies: dict[str, Policy]
    worth: Callable[[str], float]

    def words(self) -> dict[str, Any]:
        """Return the arguments of `evaluate_log` for reading the log."""
        return {"discount": self.discount, "features": self.features, "columns": None}


class Setting(NamedTuple):
    """The parts of a type of log: a world, the number of episodes, and policies; "today" is the logging policy."""

    world: World
    discount: float
    episodes: int
    steps: int
    policies: dict[str, Policy]
    features: Any = None
    propensities: bool = True
    names: tuple[str, ...] | None = None  # of the actions


def drawn(setting: Setting, seed: int, target: str = "target") -> KnownLog:
    """Return a log of a setting."""
    rng = np.random.default_rng([seed, 99])
    log = setting.world.log(setting.policies["today"], setting.episodes, setting.steps, rng)
    if not setting.propensities:
        del log["propensity"]
    if setting.names is not None:
        log["action"] = np.array(setting.names)[log["action"]]
    first, truth = setting.policies[target], truth_of(setting, target)
    worth = partial(truth_of, setting)
    return KnownLog(log, first, setting.discount, setting.features, truth, setting.policies, worth)


TRUTHS: dict[tuple[int, str], tuple[Setting, float]] = {}  # by the setting, which is kept alive, and the policy


def truth_of(setting: Setting, name: str) -> float:
    """Return the value of a policy in a setting, computed once."""
    key = id(setting), name
    if key not in TRUTHS:
        TRUTHS[key] = setting, setting.world.value(setting.policies[name], setting.discount)
    return TRUTHS[key][1]


def by_state(table: Array) -> Policy:
    """Return the policy of a table (states, actions); the observation begins with the number of the state."""
    return lambda seen: table[np.asarray(seen)[:, 0].astype(int)]


def mixtures(good: Array, today: Array, bad: Array) -> dict[str, Policy]:
    """Return six mixtures of a good and a bad policy, tables (states, actions), including "today"."""
    tables = {
        "today": today,
        "target": 0.5 * good + 0.5 * today,
        "good": 0.8 * good + 0.2 * today,
        "slightly": 0.15 * good + 0.85 * today,
        "mixed": 0.3 * good + 0.3 * bad + 0.4 * today,
        "bad": 0.5 * bad + 0.5 * today,
    }
    return {name: by_state(table) for name, table in tables.items()}


def policies_of(world: TableWorld, discount: float, rng: np.random.Generator) -> dict[str, Policy]:
    """Return six policies of a table: mixtures of the best one, the worst one and a random one."""
    S, A = world.rewards.shape
    today = 0.3 / A + 0.7 * rng.dirichlet(np.full(A, 2.0), size=S)
    return mixtures(world.extreme(discount, 1.0), today, world.extreme(discount, -1.0))


@cache
def tabular_setting() -> Setting:
    """Return a table of ten states and three actions, with terminations and one feature per state."""
    rng = np.random.default_rng(1)
    world = TableWorld.random(rng, 10, 3, 0.1)
    return Setting(world, 0.95, 300, 200, policies_of(world, 0.95, rng), OneHot(10))


@cache
def strings_setting() -> Setting:
    """Return the tabular setting with named actions and without propensities."""
    one = tabular_setting()
    return one._replace(names=("left", "right", "stay"), propensities=False)


@cache
def queue_setting() -> Setting:
    """Return a queue of up to 20 customers, served slowly, or quickly at a cost; episodes are cut after 60 steps."""
    S = 21
    P, R = np.zeros((S, 2, S)), np.zeros((S, 2))
    for n in range(S):
        for fast, served in enumerate((0.35, 0.7)):
            for arrives, a in ((1, 0.4), (0, 0.6)):
                for leaves, b in ((1, served), (0, 1 - served)):
                    after = min(S - 1, max(0, n + arrives - (leaves if n else 0)))
                    P[n, fast, after] += a * b
            R[n, fast] = -0.1 * n - 0.5 * fast
    start = np.full(S, 1 / S)
    world = TableWorld(P, R, np.zeros(S, bool), start, noise=0.1)
    today = np.tile([0.5, 0.5], (S, 1))
    good, bad = world.extreme(0.95, 1.0), world.extreme(0.95, -1.0)
    return Setting(world, 0.95, 100, 60, mixtures(good, today, bad), "quadratic")


@cache
def aliased_setting(number: int = 0) -> Setting:
    """Return twenty states, observed as twelve random features and a constant; values are not linear in them."""
    rng = np.random.default_rng(7 + number)
    world = TableWorld.random(rng, 20, 3, 0.05)
    features = np.column_stack([rng.standard_normal((20, 12)), np.ones(20)])
    return Setting(world, 0.9, 200, 100, policies_of(world, 0.9, rng), Table(features))


@cache
def continuing_setting() -> Setting:
    """Return eight states without termination: one long stream from a fixed initial state."""
    rng = np.random.default_rng(3)
    world = TableWorld.random(rng, 8, 2, 0.0)
    world.start[:] = np.eye(8)[0]
    return Setting(world, 0.9, 1, 8000, policies_of(world, 0.9, rng), OneHot(8))


@cache
def short_setting() -> Setting:
    """Return fifty short episodes of six states and two actions."""
    rng = np.random.default_rng(5)
    world = TableWorld.random(rng, 6, 2, 0.25)
    return Setting(world, 0.95, 50, 50, policies_of(world, 0.95, rng), OneHot(6))


@cache
def bandit_setting() -> Setting:
    """Return a bandit: episodes of one step, five contexts and four actions."""
    rng = np.random.default_rng(6)
    world = TableWorld.random(rng, 5, 4, 1.0)
    return Setting(world, 0.9, 1500, 5, policies_of(world, 0.9, rng), OneHot(5))


@cache
def far_setting() -> Setting:
    """Return a target far from the logging policy: after a few steps, ratios carry little information."""
    one = tabular_setting()
    world = one.world
    assert isinstance(world, TableWorld)
    good = 0.95 * world.extreme(0.95, 1.0) + 0.05 / 3
    return one._replace(policies={**one.policies, "target": by_state(good)})


@cache
def cart_pole_setting() -> Setting:
    """Return CartPole, where the logging policy pushes the pole back with probability 0.70, the target with 0.78."""
    policies = {"today": back(0.7), "target": back(0.78), "good": back(0.9), "slightly": back(0.73)}
    policies |= {"mixed": back(0.5), "bad": back(0.4)}
    return Setting(cart_pole(), 0.99, 250, 500, policies)


@cache
def angle_setting() -> Setting:
    """Return CartPole with policies of the angle only: values have an edge, which Fourier features can represent."""
    policies = {"today": back(0.7, 0.0), "target": back(0.9, 0.0), "good": back(0.97, 0.0), "slightly": back(0.75, 0.0)}
    policies |= {"mixed": back(0.5, 0.0), "bad": back(0.4, 0.0)}
    return cart_pole_setting()._replace(policies=policies, features="fourier")


@cache
def unknown_cart_pole_setting() -> Setting:
    """Return CartPole without propensities."""
    return cart_pole_setting()._replace(propensities=False)


def back(chance: float, ahead: float = 0.3) -> Policy:
    """Return the policy that pushes CartPole's pole back with this probability, for the pole's state `ahead` later."""

    def probabilities(seen: Array) -> Array:
        right = np.where(np.asarray(seen)[:, 2] + ahead * np.asarray(seen)[:, 3] >= 0, chance, 1 - chance)
        return np.column_stack([1 - right, right])

    return probabilities


@cache
def mountain_car_setting() -> Setting:
    """Return Mountain Car: the logging policy pushes along the velocity with probability 0.6, the target with 0.8."""
    policies = {"today": along(0.6), "target": along(0.8), "good": along(0.95), "slightly": along(0.65)}
    policies |= {"mixed": along(0.5), "bad": along(0.4)}
    return Setting(mountain_car(), 0.98, 100, 200, policies, "fourier")


def along(chance: float) -> Policy:
    """Return the policy that pushes along Mountain Car's velocity with this probability, else takes another action."""

    def probabilities(seen: Array) -> Array:
        right = np.asarray(seen)[:, 1] >= 0
        rest = (1 - chance) / 2
        return np.column_stack(
            [np.where(right, rest, chance), np.full(len(right), rest), np.where(right, chance, rest)]
        )

    return probabilities


@cache
def recommender_setting() -> Setting:
    """Return sessions of a shop that shows products to customers, who differ in taste, grow tired and leave."""

    def show(match: float) -> Policy:
        def probabilities(seen: Array) -> Array:
            scores = match * np.asarray(seen)[:, :3]
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            return np.asarray(e / e.sum(axis=1, keepdims=True))

        return probabilities

    policies = {"today": show(0.5), "target": show(1.5), "good": show(3.0), "slightly": show(0.7)}
    policies |= {"mixed": show(0.0), "bad": show(-1.0)}
    return Setting(recommender(), 0.95, 400, 60, policies, names=("books", "films", "games"))


class Table:
    """Features of states, looked up by state number, (states, p)."""

    def __init__(self, features: Array) -> None:
        self.features = features

    def transform(self, observations: Any) -> Array:
        """Return the features of n observations."""
        return self.features[np.asarray(observations)[:, 0].astype(int)]


SETTINGS: dict[str, Callable[[], Setting]] = {
    "tabular": tabular_setting,
    "named actions, no propensities": strings_setting,
    "queue": queue_setting,
    "cart pole": cart_pole_setting,
    "cart pole, no propensities": unknown_cart_pole_setting,
    "cart pole, by the angle": angle_setting,
    "mountain car": mountain_car_setting,
    "recommender": recommender_setting,
    "aliased features": aliased_setting,
    "continuing": continuing_setting,
    "50 short episodes": short_setting,
    "bandit": bandit_setting,
    "far target": far_setting,
}


def kind(name: str) -> Callable[[int], KnownLog]:
    """Return a type of logs: a function of the seed."""
    return lambda seed: drawn(SETTINGS[name](), seed)


KINDS: dict[str, Callable[[int], KnownLog]] = {name: kind(name) for name in SETTINGS}


def main(words: list[str] | None = None) -> None:
    """Print the types."""
    parser_of(__doc__).parse_args(words)
    rows = []
    for name, make in KINDS.items():
        one = make(0)
        counts = len(one.log["reward"]), int(one.log["episode"][-1]) + 1
        rows.append((name, *map(str, counts), f"{one.truth:.4g}", f"{one.worth('today'):.4g}"))
    print_table(("type", "rows", "episodes", "truth", "today"), rows)


if __name__ == "__main__":
    main()
