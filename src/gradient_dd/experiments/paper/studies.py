"""The studies of the paper, as data: grids, sizes and scale.

Several figures may read the same study. This module settles points that the paper leaves open (docs/evidence/paper.md):
the episodes of the Boyan chain, the steps of Baird, TDC's wider grid, and the variants of Baird.

The paper tunes its learners unequally: GTD2 and TDC have five times as many settings as Gradient-DD, TD and TDRC.
Companions of a study have the same tasks and tune learners equally: with the same number of settings (`alike`), or with
the same search budget for all parameters (`fully`). Other companions tune Gradient-DD with κ = ζ = 1 (`at_one`),
draw Baird's initial weights at random, or run Baird for longer. No figure shows companions, but claims are also
judged on companions. The store shares equal settings, so only new settings run.

On-policy, HTD equals TD, and ζ of HTD-DD makes no difference; along tabular trajectories, HTD-DD equals TD too.
`fully` leaves out learners that equal TD, and HTD-DD on independent draws, because it keeps a trace.
"""

from dataclasses import fields, replace

from gradient_dd.engine.schedules import constant, tapered
from gradient_dd.experiments.paper.figures import KAPPAS, US, ZETAS
from gradient_dd.learners import find
from gradient_dd.studies import Grid, Study, grid, task
from gradient_dd.studies.search import Budget, SearchStudy, space_of

RUNS = 50
WALK_SIZES, BOYAN_SIZES, BAIRD_SIZES = (10, 20, 40), (20, 50, 100), (7, 20)
WALK_EPISODES, BOYAN_EPISODES, BAIRD_STEPS = 20_000, 10_000, 200_000

WALK_ALPHAS = tuple(10 ** (-i / 4) for i in range(12, -1, -1))
BOYAN_ALPHAS = tuple(10**i for i in (-2, -1.5, -1, -3 / 4, -1 / 2, -1 / 4, -1 / 8, 0, 1 / 8, 1 / 4))
BAIRD_ALPHAS = tuple(2 ** (-i / 2) for i in range(24, 3, -1))
BAIRD_WIDER = tuple(2 ** (-i / 2) for i in range(32, -1, -1))  # for TDC
BAIRD_ZETAS = (4.0**-2, 4.0**-1, 1.0, 4.0**2, 4.0**3)
BAIRD_KAPPAS = (0.25, 1.0, 4.0)


def compared(alphas: tuple[float, ...]) -> tuple[Grid, ...]:
    """Return grids of the five learners that the paper compares: ζ is tuned for GTD2 and TDC, and κ is 1."""
    return (
        grid("td", alpha=alphas),
        grid("tdrc", alpha=alphas),
        grid("gtd2", alpha=alphas, zeta=ZETAS),
        grid("tdc", alpha=alphas, zeta=ZETAS),
        grid("gradient_dd", alpha=alphas),
    )


WALK_TASKS = tuple(task("random_walk", n_states=m) for m in WALK_SIZES)
BOYAN_TASKS = tuple(task("boyan_chain", n_features=p) for p in BOYAN_SIZES)
WALK = Study(
    "walk",
    tasks=WALK_TASKS,
    grids=(
        *compared(WALK_ALPHAS),
        grid("gradient_dd", alpha=WALK_ALPHAS, zeta=ZETAS),
        grid("gradient_dd", alpha=WALK_ALPHAS, kappa=KAPPAS),
    ),
    schedule=tapered(1000),
    episodes=WALK_EPISODES,
    runs=RUNS,
)
WALK_IID = replace(WALK, name="walk-iid", tasks=WALK_TASKS[1:2], grids=compared(WALK_ALPHAS), sampling="iid")
WALK_CONSTANT = replace(WALK_IID, name="walk-constant", schedule=constant, sampling="trajectory")
WALK_LINEAR = replace(
    WALK, name="walk-linear", tasks=(task("random_walk", n_states=20, features="linear"),), grids=compared(WALK_ALPHAS)
)
WALK_U = replace(
    WALK,
    name="walk-u",
    tasks=WALK_TASKS[:2],
    grids=tuple(grid("gradient_dd", alpha=a, kappa=tuple(u / a for u in US)) for a in WALK_ALPHAS),
)
WALK_NATURAL = replace(
    WALK,
    name="walk-natural",
    tasks=WALK_TASKS[1:2],
    grids=(
        grid("natural_gtd2", alpha=WALK_ALPHAS, zeta=ZETAS),
        grid("natural_tdc", alpha=WALK_ALPHAS, zeta=ZETAS),
        grid("gradient_dd", alpha=WALK_ALPHAS),  # the same settings as on the walk, so no new settings run
    ),
)
BOYAN = Study(
    "boyan",
    tasks=BOYAN_TASKS,
    grids=(
        *compared(BOYAN_ALPHAS),
        grid("gradient_dd", alpha=BOYAN_ALPHAS, kappa=KAPPAS),
        grid("gradient_dd", alpha=BOYAN_ALPHAS, zeta=ZETAS),
    ),
    schedule=tapered(2000),
    episodes=BOYAN_EPISODES,
    runs=RUNS,
)
BOYAN_IID = replace(BOYAN, name="boyan-iid", tasks=BOYAN_TASKS[1:2], grids=compared(BOYAN_ALPHAS), sampling="iid")
BOYAN_CONSTANT = replace(BOYAN_IID, name="boyan-constant", schedule=constant, sampling="trajectory")
BAIRD = Study(
    "baird",
    tasks=tuple(task("baird", n_states=n, ratios=ratios) for ratios in ("paper", "standard") for n in BAIRD_SIZES),
    grids=(
        grid("td", alpha=BAIRD_ALPHAS),
        grid("tdrc", alpha=BAIRD_ALPHAS),
        *(grid("gtd2", alpha=BAIRD_ALPHAS, zeta=BAIRD_ZETAS, rho_mode=mode) for mode in ("R", "T")),
        grid("tdc", alpha=BAIRD_WIDER, zeta=BAIRD_ZETAS),
        *(grid("gradient_dd", alpha=BAIRD_ALPHAS, kappa=BAIRD_KAPPAS, rho_mode=mode) for mode in ("R", "T")),
    ),
    steps=BAIRD_STEPS,
    every=100,
    runs=RUNS,
)

PAPER_STUDIES = (
    WALK,
    WALK_U,
    WALK_CONSTANT,
    WALK_IID,
    WALK_NATURAL,
    WALK_LINEAR,
    BOYAN,
    BOYAN_CONSTANT,
    BOYAN_IID,
    BAIRD,
)


BAIRD_FIVE_KAPPAS = (4.0**-2, 4.0**-1, 1.0, 4.0, 4.0**2)
SELECTION_STARTS = range(1, 6)  # seeds of initial weights; settings are judged on other seeds


def with_starts(tasks: tuple, seeds: range) -> tuple:
    """Return the same tasks with initial weights drawn from each seed."""
    return tuple(task(one.name, **dict(one.parameters), start_seed=seed) for one in tasks for seed in seeds)


BAIRD_STARTS = replace(
    BAIRD, name="baird-starts", tasks=with_starts(BAIRD.tasks, SELECTION_STARTS), every=BAIRD_STEPS // 10, runs=2
)
BAIRD_LONG = replace(
    BAIRD,
    name="baird-long",
    grids=tuple(one for one in BAIRD.grids if one.rho_mode == "R" and one.learner != "td"),
    steps=5 * BAIRD_STEPS,
    every=BAIRD_STEPS // 2,
    runs=10,
)


def alike(study: Study, alphas: tuple[float, ...], zetas: tuple[float, ...], kappas: tuple[float, ...]) -> Study:
    """Return the companion in which every learner has the same number of settings.

    The settings are alphas × zetas for TDRC, GTD2 and TDC, as many alphas for TD, and alphas × kappas for Gradient-DD.
    """
    modes = ("R", "T") if study.name.startswith("baird") else ("R",)
    low, high, last = min(alphas), max(alphas), len(alphas) * len(zetas) - 1
    return replace(
        study,
        name=f"{study.name}-alike",
        grids=(
            grid("td", alpha=tuple(low * (high / low) ** (i / last) for i in range(last + 1))),
            grid("tdrc", alpha=alphas, zeta=zetas),
            *(grid("gtd2", alpha=alphas, zeta=zetas, rho_mode=mode) for mode in modes),
            grid("tdc", alpha=alphas, zeta=zetas),
            *(grid("gradient_dd", alpha=alphas, kappa=kappas, rho_mode=mode) for mode in modes),
        ),
    )


STEPS = (1.0, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125)
BUDGET = Budget(coarse=160, refined=480, runs=2, steps=STEPS, starts=16, finals=((48, 8), (16, 28), (5, 80)))
FEWER = Budget(coarse=56, refined=48, runs=2, steps=(1.0, 0.5, 0.25), starts=8, finals=((8, 8), (4, 28), (2, 80)))
BOX = {  # values at which a search begins; the search may go beyond these values
    "alpha": (2.0**-12, 2.0**2),
    "zeta": (1 / 64, 1 / 8, 1.0, 8.0),
    "kappa": (1 / 4, 1.0, 4.0, 16.0),
    "reg": (1 / 16, 1.0, 16.0),
    "c": (1 / 4, 1 / 2, 1.0),
    "lam": (0.0,),
}
ON_TABLES = ("td", "tdrc", "gtd2", "tdc", "gtd2_to_td", "gradient_dd")
PLACED = ("gtd2", "gtd2_to_td", "gradient_dd")  # learners for which the placement of ρ makes a difference
TD_TOO = ("walk", "walk-constant")  # studies in which HTD-DD equals TD: along trajectories of tabular tasks
FIRST_START = 1001  # the seed of the initial weights of the first tuning run


def searched(learner: str, rho_mode: str = "R", budget: Budget = BUDGET, **held: float) -> Grid:
    """Return the grid at which the search of a learner begins; a held parameter has one value."""
    values = {one.name: (held[one.name],) if one.name in held else BOX[one.name] for one in find(learner).parameters}
    space = space_of(find(learner), values, budget=budget)
    return Grid(learner, tuple((axis.name, axis.values) for axis in space.axes), rho_mode)


def fully(study: Study, budget: Budget = BUDGET) -> SearchStudy:
    """Return the companion of a study in which every learner is tuned fully."""
    if study.name.startswith("baird"):
        grids = [searched(name, budget=budget) for name in ("td", "tdrc", "tdc", "htd", "htd_dd")]
        grids += [searched(name, mode, budget) for name in PLACED for mode in ("R", "T")]
    else:
        grids = [searched(name, budget=budget) for name in ON_TABLES]
        if study.name not in TD_TOO and study.sampling != "iid":
            grids.append(searched("htd_dd", budget=budget, zeta=1.0))
    return tuned_by_search(study, "fully", budget, *grids)


def at_one(study: Study) -> SearchStudy:
    """Return the companion with κ = 1 for Gradient-DD: on Baird with both placements of ρ, else also with ζ = 1."""
    if study.name.startswith("baird"):
        return tuned_by_search(study, "one", FEWER, *(searched("gradient_dd", one, FEWER, kappa=1.0) for one in "RT"))
    return tuned_by_search(study, "one", FEWER, searched("gradient_dd", budget=FEWER, zeta=1.0, kappa=1.0))


def tuned_by_search(study: Study, suffix: str, budget: Budget, *grids: Grid) -> SearchStudy:
    """Return a companion of a study that is tuned by search."""
    plain = {one.name: getattr(study, one.name) for one in fields(Study)}
    tasks = with_starts(BAIRD.tasks, range(FIRST_START, FIRST_START + 1)) if study is BAIRD_STARTS else study.tasks
    changed = {"name": f"{study.name}-{suffix}", "tasks": tasks, "grids": grids, "runs": budget.all_runs}
    return SearchStudy(**plain | changed, budget=budget)


COMPANIONS: dict[str, tuple[Study, ...]] = {
    study.name: (alike(study, alphas, ZETAS, KAPPAS), fully(study), at_one(study))
    for studies, alphas in (
        ((WALK, WALK_CONSTANT, WALK_IID, WALK_LINEAR), WALK_ALPHAS),
        ((BOYAN, BOYAN_CONSTANT, BOYAN_IID), BOYAN_ALPHAS),
    )
    for study in studies
}
COMPANIONS["baird"] = (
    *(alike(study, BAIRD_ALPHAS, BAIRD_ZETAS, BAIRD_FIVE_KAPPAS) for study in (BAIRD, BAIRD_STARTS)),
    *(BAIRD_STARTS, BAIRD_LONG, fully(BAIRD_STARTS), at_one(BAIRD_STARTS), fully(BAIRD), at_one(BAIRD)),
)
STUDIES = {study.name: study for study in (*PAPER_STUDIES, *(one for some in COMPANIONS.values() for one in some))}
