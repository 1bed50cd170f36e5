"""The studies of the paper, as data: its grids, its sizes, its scale.

Several figures read one study. What the paper leaves open (docs/paper.md) is said here: the number of episodes of the
Boyan chain, the steps of Baird, TDC's wider grid, and which readings of Baird are run.
"""

from gradient_dd.engine.schedules import constant, tapered
from gradient_dd.studies.study import Grid, Study, grid, task

RUNS = 50
WALK_SIZES, BOYAN_SIZES, BAIRD_SIZES = (10, 20, 40), (20, 50, 100), (7, 20)
WALK_EPISODES, BOYAN_EPISODES, BAIRD_STEPS = 20_000, 10_000, 200_000

WALK_ALPHAS = tuple(10 ** (-i / 4) for i in range(12, -1, -1))
BOYAN_ALPHAS = tuple(10**i for i in (-2, -1.5, -1, -3 / 4, -1 / 2, -1 / 4, -1 / 8, 0, 1 / 8, 1 / 4))
BAIRD_ALPHAS = tuple(2 ** (-i / 2) for i in range(24, 3, -1))
BAIRD_WIDER = tuple(2 ** (-i / 2) for i in range(32, -1, -1))  # for TDC
ZETAS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
BAIRD_ZETAS = (4.0**-2, 4.0**-1, 1.0, 4.0**2, 4.0**3)
KAPPAS = (0.25, 0.5, 1.0, 2.0, 4.0)
BAIRD_KAPPAS = (0.25, 1.0, 4.0)


def compared(alphas: tuple[float, ...]) -> tuple[Grid, ...]:
    """Return the five learners that the paper compares, ζ tuned for GTD2 and TDC, κ = 1."""
    return (
        grid("td", alpha=alphas),
        grid("tdrc", alpha=alphas),
        grid("gtd2", alpha=alphas, zeta=ZETAS),
        grid("tdc", alpha=alphas, zeta=ZETAS),
        grid("gradient_dd", alpha=alphas),
    )


def walk(*sizes: int) -> tuple:
    """Return tabular walks."""
    return tuple(task("random_walk", n_states=m) for m in sizes)


WALK = Study(
    "walk",
    tasks=walk(*WALK_SIZES),
    grids=(
        *compared(WALK_ALPHAS),
        grid("gradient_dd", alpha=WALK_ALPHAS, zeta=ZETAS),
        grid("gradient_dd", alpha=WALK_ALPHAS, kappa=KAPPAS),
    ),
    schedule=tapered(1000),
    episodes=WALK_EPISODES,
    runs=RUNS,
)
WALK_NATURAL = Study(
    "walk-natural",
    tasks=walk(20),
    grids=(
        grid("natural_gtd2", alpha=WALK_ALPHAS, zeta=ZETAS),
        grid("natural_tdc", alpha=WALK_ALPHAS, zeta=ZETAS),
    ),
    schedule=tapered(1000),
    episodes=WALK_EPISODES,
    runs=RUNS,
)
WALK_CONSTANT = Study(
    "walk-constant",
    tasks=walk(20),
    grids=compared(WALK_ALPHAS),
    schedule=constant,
    episodes=WALK_EPISODES,
    runs=RUNS,
)
WALK_LINEAR = Study(
    "walk-linear",
    tasks=(task("random_walk", n_states=20, features="linear"),),
    grids=compared(WALK_ALPHAS),
    schedule=tapered(1000),
    episodes=WALK_EPISODES,
    runs=RUNS,
)
WALK_IID = Study(
    "walk-iid",
    tasks=walk(20),
    grids=compared(WALK_ALPHAS),
    schedule=tapered(1000),
    episodes=WALK_EPISODES,
    runs=RUNS,
    sampling="iid",
)
BOYAN = Study(
    "boyan",
    tasks=tuple(task("boyan_chain", n_features=p) for p in BOYAN_SIZES),
    grids=(*compared(BOYAN_ALPHAS), grid("gradient_dd", alpha=BOYAN_ALPHAS, kappa=KAPPAS)),
    schedule=tapered(2000),
    episodes=BOYAN_EPISODES,
    runs=RUNS,
)
BOYAN_CONSTANT = Study(
    "boyan-constant",
    tasks=(task("boyan_chain", n_features=50),),
    grids=compared(BOYAN_ALPHAS),
    schedule=constant,
    episodes=BOYAN_EPISODES,
    runs=RUNS,
)
BOYAN_IID = Study(
    "boyan-iid",
    tasks=(task("boyan_chain", n_features=50),),
    grids=compared(BOYAN_ALPHAS),
    schedule=tapered(2000),
    episodes=BOYAN_EPISODES,
    runs=RUNS,
    sampling="iid",
)
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

STUDIES = {
    study.name: study
    for study in (WALK, WALK_CONSTANT, WALK_IID, WALK_NATURAL, WALK_LINEAR, BOYAN, BOYAN_CONSTANT, BOYAN_IID, BAIRD)
}
