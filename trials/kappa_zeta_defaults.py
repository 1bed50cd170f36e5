"""Search for better defaults of Gradient-DD than κ = ζ = 1, and test them on other random tasks.

    python -m trials.kappa_zeta_defaults             all tasks: some minutes
    python -m trials.kappa_zeta_defaults --tasks 2   two tasks of each type

Tasks are random MDPs with constant step sizes and 10,000 steps: on-policy, off-policy, and off-policy where TD
diverges. The goal is the TD fixed point. On the design tasks, the search tries every (κ, ζ) and every (u, ζ) with
κ = u/α, and tunes α. It proposes the pair with the lowest geometric mean over off-policy tasks. The unseen tasks
compare this pair with all others, tuning only α, and all learners with 144 settings over all their parameters. Settings
are selected on 6 runs and tested on 10 others. The numbers are geometric means of the error relative to the best rival
on the 6 runs (TD, TDRC, HTD, TDC or GTD2 with 144 settings), with 95 % intervals over tasks. Errors are capped at 100
times the error of the rival.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies import grid
from gradient_dd.studies.intervals import percentile_interval, select
from gradient_dd.tasks import Task, random_mdp
from tools.programs import parser_of, print_table
from trials.auto_learner.trial import tune_then_show

STEPS, TUNED, SHOWN = 10_000, 6, 10
DESIGN, UNSEEN = 61_000_000, 62_000_000  # the first of the seeds
SIZES = ((8, 3, 4, 0.9), (20, 3, 8, 0.95), (12, 2, 6, 0.99), (30, 3, 8, 0.9))  # states, actions, features, discount
TASKS = {"on-policy": 6, "off-policy": 14, "diverging": 12}
FEW = tuple(2.0**-k for k in range(12))
MANY = tuple(2.0 ** (-k / 2) for k in range(24))
ZETAS, KAPPAS, US = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0), (0.25, 1.0, 4.0, 16.0), (0.1, 0.3, 1.0)
MEASURES = ("mean_error", "last100")
MOST = 100.0
FULL = {
    "td": {"alpha": tuple(2.0 ** (-k / 12) for k in range(144))},
    "tdrc": {"alpha": FEW, "zeta": (1 / 16, 1.0, 16.0), "reg": (1 / 16, 1 / 4, 1.0, 4.0)},
    "htd": {"alpha": MANY, "zeta": (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0)},
    "tdc": {"alpha": MANY, "zeta": (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0)},
    "gtd2": {"alpha": MANY, "zeta": (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0)},
    "gtd2_to_td": {"alpha": FEW, "zeta": (1 / 4, 1.0, 4.0), "c": (0.25, 0.5, 0.75, 1.0)},
    "htd_dd": {"alpha": FEW, "zeta": (1 / 16, 1 / 4, 1.0), "kappa": (0.25, 1.0, 4.0, 16.0)},
    "gradient_dd": {"alpha": FEW, "zeta": (1 / 16, 1 / 4, 1.0), "kappa": (0.25, 1.0, 4.0, 16.0)},
}
RIVALS = ("td", "tdrc", "htd", "tdc", "gtd2")
PLAIN = ("td", "tdrc", "htd", "tdc", "gtd2", "gtd2_to_td", "htd_dd", "gradient_dd")  # with their defaults, α tuned
Entrants = dict[str, list[Setting]]


class Case(NamedTuple):
    """A task and its type."""

    kind: str
    task: Task


def cases(first: int, most: int) -> Iterator[Case]:
    """Yield tasks with seeds from a given number on, at most a given number of each type."""
    for kind, number in TASKS.items():
        yield from (Case(kind, aimed(task)) for task in islice(made(kind, first), min(number, most)))


def made(kind: str, first: int) -> Iterator[Task]:
    """Yield tasks of a type without end."""
    if kind == "diverging":
        several = (random_mdp(3, 2, 2, 0.99, seed=seed) for seed in count(first))
        yield from (task for task in several if np.linalg.eigvals(task.moments.A).real.min() < 0)
    for number in count():
        n, actions, p, discount = SIZES[number % len(SIZES)]
        task = random_mdp(n, actions, p, discount, seed=first + number + (500_000 if kind == "on-policy" else 0))
        yield replace(task, target=np.array(task.behaviour)) if kind == "on-policy" else task


def aimed(task: Task) -> Task:
    """Return the task with the TD fixed point as its goal."""
    return replace(task, goal=task.features @ task.fixed_point)


def settings_of(learner: str, **values: tuple[float, ...] | float) -> list[Setting]:
    """Return the settings of a grid."""
    return list(grid(learner, "R", **values).settings())


def with_u(u: float, zeta: float, longest: float) -> list[Setting]:
    """Return Gradient-DD with κ = u / (α ‖x‖²), for the largest ‖x‖²."""
    return [s for a in MANY for s in settings_of("gradient_dd", alpha=a, zeta=zeta, kappa=u / (a * longest))]


def proposals(task: Task) -> Entrants:
    """Return all pairs (κ, ζ) and (u, ζ) of the search, with grids of α."""
    longest = float((task.features**2).sum(axis=1).max())
    found = {
        f"κ = {k:g}, ζ = {z:g}": settings_of("gradient_dd", alpha=MANY, zeta=z, kappa=k) for k in KAPPAS for z in ZETAS
    }
    return found | {f"u = {u:g}, ζ = {z:g}": with_u(u, z, longest) for u in US for z in ZETAS[1:5]}


def entrants(task: Task, proposed: list[str]) -> Entrants:
    """Return the entrants on an unseen task: with only α tuned, and with 144 settings."""
    alone = {f"{LEARNERS[name].label}, α": settings_of(name, alpha=MANY) for name in PLAIN}
    full = {f"{LEARNERS[name].label}, 144": settings_of(name, **values) for name, values in FULL.items()}
    return {name: proposals(task)[name] for name in proposed} | alone | full


def shown(case: Case, who: Entrants) -> dict[str, dict[str, float]]:
    """Return, for each measure, the error of each entrant relative to the best rival on the tuning runs."""
    rivals = {f"{name}, rival": settings_of(name, **FULL[name]) for name in RIVALS}
    flat = [setting for some in (who | rivals).values() for setting in some]
    results = run_lanes(case.task, flat, Horizon(steps=STEPS, every=STEPS // 100), runs=TUNED + SHOWN, workers=1)
    return {measure: over_best_rival(getattr(results, measure).T, who, rivals) for measure in MEASURES}


def over_best_rival(errors: Array, who: Entrants, rivals: Entrants) -> dict[str, float]:
    """Return the test errors of all entrants relative to the best rival; errors: (settings, runs)."""
    found, at, best = {}, 0, (np.inf, "")
    for name, some in (who | rivals).items():
        ours = errors[at : at + len(some)]
        at += len(some)
        place, after = tune_then_show(ours, TUNED)
        found[name] = float(after.mean())
        if name in rivals and ours[place, :TUNED].mean() < best[0]:
            best = float(ours[place, :TUNED].mean()), name
    return {name: min(MOST, found[name] / found[best[1]]) for name in who}


def rows(found: dict[str, list[dict[str, float]]]) -> Iterator[tuple[str, ...]]:
    """Yield for each entrant the geometric mean by type, and over all tasks with its interval; the lowest first."""
    names = next(iter(found.values()))[0]
    table = {name: {kind: np.log([one[name] for one in some]) for kind, some in found.items()} for name in names}
    for name, kinds in sorted(table.items(), key=lambda item: np.concatenate(list(item[1].values())).mean()):
        means = [f"{np.exp(logs.mean()):.2f}" for logs in kinds.values()]
        yield name, *means, interval(np.concatenate(list(kinds.values())))


def interval(logs: Array) -> str:
    """Return a geometric mean with its interval over tasks."""
    low, high = percentile_interval(logs, lambda drawn: drawn.mean(axis=1), 10_000)
    return f"{np.exp(logs.mean()):.2f} [{np.exp(low):.2f}, {np.exp(high):.2f}]"


def held(first: int, most: int, who: Callable[[Task], Entrants]) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Return the results of each task by measure and type."""
    found: dict[str, dict[str, list[dict[str, float]]]] = {measure: {} for measure in MEASURES}
    for case in cases(first, most):
        for measure, ratios in shown(case, who(case.task)).items():
            found[measure].setdefault(case.kind, []).append(ratios)
    return found


def best_of(found: dict[str, list[dict[str, float]]], letter: str) -> str:
    """Return the proposal with κ or with u that has the lowest geometric mean over off-policy tasks."""
    some = [one for kind, several in found.items() if kind != "on-policy" for one in several]
    names = [name for name in some[0] if name.startswith(letter)]
    return names[select(np.array([np.log([one[name] for one in some]) for name in names]))]


def main(words: list[str] | None = None) -> None:
    """Search, then test."""
    parser = parser_of(__doc__)
    parser.add_argument("--tasks", type=int, default=max(TASKS.values()), help="largest number of tasks of each type")
    most = parser.parse_args(words).tasks
    head = ("with", *TASKS, "all tasks")
    design = held(DESIGN, most, proposals)
    proposed = list(dict.fromkeys(best_of(design[measure], letter) for measure in MEASURES for letter in "κu"))
    unseen = held(UNSEEN, most, lambda task: entrants(task, proposed))
    for words_of, found in (("design", design), ("unseen", unseen)):
        for measure in MEASURES:
            print(f"\n{measure}, {words_of} tasks; proposed: {'; '.join(proposed)}", flush=True)
            print_table(head, rows(found[measure]))
            for name in proposed:
                print(f"{name} over κ = ζ = 1: {over_defaults(found[measure], name)}", flush=True)


def over_defaults(found: dict[str, list[dict[str, float]]], name: str) -> str:
    """Return a proposal relative to κ = ζ = 1, task by task: the geometric mean with its interval."""
    plain = {"κ = 1, ζ = 1", "Gradient-DD, α"}
    some = [one for several in found.values() for one in several]
    return interval(np.log([one[name] / next(one[key] for key in one if key in plain) for one in some]))


if __name__ == "__main__":
    main()
