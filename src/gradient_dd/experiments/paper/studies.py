"""The studies of the paper, as data: its grids, its sizes, its scale.

Several figures read one study. What the paper leaves open (docs/evidence/paper.md) is decided here: the episodes of
the Boyan chain, the steps of Baird, TDC's wider grid, and which readings of Baird are run.

The paper gives its learners unequal chances: GTD2 and TDC choose among five times as many settings as Gradient-DD, TD
and TDRC. So each study has a companion of the same tasks and runs in which every learner has as many (`alike`). Other
companions tune every learner over all its parameters (`fully`), widen a grid whose edge is best, draw Baird's first
weights at random, or run Baird for longer. No figure shows them; claims are judged on them too. The store shares equal
settings, so only the new ones run.

Tuned fully, every learner chooses among as many settings over all parameters it has, and none of them at an edge.

The other ways of tuning give Gradient-DD a step size, or a step size and κ; but ζ is what it needs on one task and κ on
another. Here it has α × ζ × κ, and every rival the same number of settings: TDRC α × ζ × reg, gtd2_to_td α × ζ × c,
GTD2, TDC and HTD α × ζ more finely, TD α alone. Ranges were placed by a first look at two runs of another seed.
On-policy HTD is TD and ζ of HTD-DD makes no difference; along trajectories of a table HTD-DD is TD too. Those that are
TD are left out, and HTD-DD on independent draws, for it keeps a trace.
"""

from dataclasses import dataclass, replace

from gradient_dd.engine.schedules import constant, tapered
from gradient_dd.experiments.paper.figures import KAPPAS, US, ZETAS
from gradient_dd.studies import Grid, Study, grid, task

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


def boyan(*sizes: int) -> tuple:
    """Return Boyan chains."""
    return tuple(task("boyan_chain", n_features=p) for p in sizes)


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
WALK_IID = replace(WALK, name="walk-iid", tasks=walk(20), grids=compared(WALK_ALPHAS), sampling="iid")
WALK_CONSTANT = replace(WALK_IID, name="walk-constant", schedule=constant, sampling="trajectory")
WALK_LINEAR = replace(
    WALK, name="walk-linear", tasks=(task("random_walk", n_states=20, features="linear"),), grids=compared(WALK_ALPHAS)
)
WALK_U = replace(
    WALK,
    name="walk-u",
    tasks=walk(*WALK_SIZES[:2]),
    grids=tuple(grid("gradient_dd", alpha=a, kappa=tuple(u / a for u in US)) for a in WALK_ALPHAS),
)
WALK_NATURAL = replace(
    WALK,
    name="walk-natural",
    tasks=walk(20),
    grids=(
        grid("natural_gtd2", alpha=WALK_ALPHAS, zeta=ZETAS),
        grid("natural_tdc", alpha=WALK_ALPHAS, zeta=ZETAS),
        grid("gradient_dd", alpha=WALK_ALPHAS),  # the same as on the walk: nothing more is run
    ),
)
BOYAN = Study(
    "boyan",
    tasks=boyan(*BOYAN_SIZES),
    grids=(
        *compared(BOYAN_ALPHAS),
        grid("gradient_dd", alpha=BOYAN_ALPHAS, kappa=KAPPAS),
        grid("gradient_dd", alpha=BOYAN_ALPHAS, zeta=ZETAS),
    ),
    schedule=tapered(2000),
    episodes=BOYAN_EPISODES,
    runs=RUNS,
)
BOYAN_IID = replace(BOYAN, name="boyan-iid", tasks=boyan(50), grids=compared(BOYAN_ALPHAS), sampling="iid")
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


def evenly(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return `count` step sizes from low to high, at equal ratios."""
    return tuple(low * (high / low) ** (i / (count - 1)) for i in range(count))


def alike(study: Study, alphas: tuple[float, ...], zetas: tuple[float, ...], kappas: tuple[float, ...]) -> Study:
    """Return a companion in which every learner has as many settings.

    That is alphas × zetas for TDRC, GTD2 and TDC, as many alphas for TD, and alphas × kappas for Gradient-DD.
    """
    modes = ("R", "T") if study.name.startswith("baird") else ("R",)
    return replace(
        study,
        name=f"{study.name}-alike",
        grids=(
            grid("td", alpha=evenly(min(alphas), max(alphas), len(alphas) * len(zetas))),
            grid("tdrc", alpha=alphas, zeta=zetas),
            *(grid("gtd2", alpha=alphas, zeta=zetas, rho_mode=mode) for mode in modes),
            grid("tdc", alpha=alphas, zeta=zetas),
            *(grid("gradient_dd", alpha=alphas, kappa=kappas, rho_mode=mode) for mode in modes),
        ),
    )


SETTINGS = 240  # of each learner
TUNING_RUNS = 6
SHARES = (1 / 16, 0.25, 0.5, 1.0)  # values of c
OCTAVES = tuple(8.0**k for k in range(-3, 3))  # values of ζ and of κ are some of these and of powers of 4
FOURS = tuple(4.0**k for k in range(-5, 6))


def powers(base: float, ends: tuple[float, float], count: int) -> tuple[float, ...]:
    """Return `count` powers of a base, from one exponent to another, evenly spaced."""
    first, last = ends
    return tuple(base ** (first + (last - first) * i / (count - 1)) for i in range(count))


@dataclass(frozen=True)
class Ranges:
    """Where the settings of a kind of task lie: exponents of 2 for α, and of 4 for ζ, κ and TDRC's regulariser.

    quick           α of TD, TDRC, HTD and HTD-DD
    slow            α of Gradient-DD and GTD2, and `between` that of gtd2_to_td and TDC
    gtd2, others    ζ of GTD2 and of gtd2_to_td; TDC, TDRC and HTD have `td_like`, since they become TD as ζ vanishes
    zetas, kappas   what Gradient-DD has besides α
    """

    quick: tuple[float, float]
    slow: tuple[float, float]
    between: tuple[float, float]
    gtd2: tuple[float, float]
    others: tuple[float, float]
    td_like: tuple[float, float]
    zetas: tuple[float, ...]
    kappas: tuple[float, ...]
    reg: tuple[float, float] = (-4, 2)

    def grids(self, off_policy: bool, with_htd_dd: bool) -> tuple[Grid, ...]:
        """Return the grids of all learners."""
        modes = ("R", "T") if off_policy else ("R",)
        few = SETTINGS // len(self.zetas) // len(self.kappas)
        quick, fine = (powers(2.0, self.quick, count) for count in (10, 20))
        twelve = {name: powers(4.0, getattr(self, name), 12) for name in ("gtd2", "td_like")}
        six = {name: powers(4.0, getattr(self, name), 6) for name in ("others", "td_like")}
        grids = [
            grid("td", alpha=powers(2.0, self.quick, SETTINGS)),
            grid("tdrc", alpha=quick, zeta=six["td_like"], reg=powers(4.0, self.reg, 4)),
            grid("tdc", alpha=powers(2.0, self.between, 20), zeta=twelve["td_like"]),
        ]
        for mode in modes:
            grids += [
                grid("gtd2", mode, alpha=powers(2.0, self.slow, 20), zeta=twelve["gtd2"]),
                grid("gtd2_to_td", mode, alpha=powers(2.0, self.between, 10), zeta=six["others"], c=SHARES),
                grid("gradient_dd", mode, alpha=powers(2.0, self.slow, few), zeta=self.zetas, kappa=self.kappas),
            ]
        if off_policy:
            own = powers(2.0, self.quick, few)
            grids += [
                grid("htd", alpha=fine, zeta=twelve["td_like"]),
                grid("htd_dd", alpha=own, zeta=self.zetas, kappa=self.kappas),
            ]
        elif with_htd_dd:
            grids.append(grid("htd_dd", alpha=fine, kappa=powers(4.0, (-5, 3), 12)))
        return tuple(grids)


ON_WALK = Ranges((-10, -1), (-8, 0), (-10, 0), (-6, 2), (-3, 4), (-6, 4), OCTAVES[1:], FOURS[4:10])
ON_INDEPENDENT = replace(ON_WALK, zetas=OCTAVES[:5], kappas=FOURS[2:8])
ON_CONSTANT = replace(ON_WALK, quick=(-13, -3), slow=(-11, -2), between=(-12, -2), kappas=FOURS[5:])
ON_LINEAR = Ranges((-10, 0), (-7, 2), (-9, 1), (-4, 2), (-3, 4), (-6, 3), OCTAVES[:5], FOURS[2:8], (-5, 2))
ON_BOYAN = Ranges((-8, 2), (-5, 4), (-8, 3), (-8, 0), (-3, 5), (-8, 2), FOURS[:6], FOURS[3:7])
ON_BOYAN_CONSTANT = replace(ON_BOYAN, quick=(-11, 1), slow=(-6, 3), between=(-10, 2), kappas=FOURS[4:8])
ON_BAIRD = Ranges((-16, -2), (-13, -4), (-13, -3), (-3, 4), (-3, 4), (-4, 6), OCTAVES[1:], FOURS[4:10], (-6, 4))
RANGES = {
    "walk": ON_WALK,
    "walk-iid": ON_INDEPENDENT,
    "walk-constant": ON_CONSTANT,
    "walk-linear": ON_LINEAR,
    "boyan": ON_BOYAN,
    "boyan-iid": ON_BOYAN,
    "boyan-constant": ON_BOYAN_CONSTANT,
    "baird": ON_BAIRD,
    "baird-starts": ON_BAIRD,
}
TD_TOO = ("walk", "walk-constant")  # where HTD-DD is TD: along trajectories of tables


def fully(study: Study) -> Study:
    """Return the companion of a study in which every learner is tuned fully."""
    off_policy = study.name.startswith("baird")
    grids = RANGES[study.name].grids(off_policy, study.name not in TD_TOO and study.sampling != "iid")
    return replace(study, name=f"{study.name}-fully", grids=grids, runs=min(study.runs, TUNING_RUNS))


WALKS = (WALK, WALK_CONSTANT, WALK_IID, WALK_LINEAR)
BOYANS = (BOYAN, BOYAN_CONSTANT, BOYAN_IID)
BAIRD_FIVE_KAPPAS = (4.0**-2, 4.0**-1, 1.0, 4.0, 4.0**2)

# The best step sizes of GTD2 and TDC on the long Boyan chains lie at the edge of the paper's grid.
BOYAN_WIDE_ALPHAS = (*BOYAN_ALPHAS, *(10 ** (i / 8) for i in (3, 4, 5, 6)))
BOYAN_WIDE = replace(
    BOYAN,
    name="boyan-wide",
    tasks=boyan(*BOYAN_SIZES[1:]),
    grids=(
        *(grid(learner, alpha=BOYAN_WIDE_ALPHAS, zeta=ZETAS) for learner in ("gtd2", "tdc")),
        grid("gradient_dd", alpha=BOYAN_ALPHAS),
    ),
    runs=20,
)
# Then their best ζ lies at its edge. Here all three have the same step sizes and the same ζ.
BOYAN_WIDER = replace(
    BOYAN_WIDE,
    name="boyan-wider",
    grids=tuple(
        grid(learner, alpha=BOYAN_WIDE_ALPHAS[5:], zeta=(4.0**-5, 4.0**-4, 4.0**-3, 4.0**-2, 4.0**-1, 1.0))
        for learner in ("gtd2", "tdc", "gradient_dd")
    ),
)

SELECTION_STARTS = range(1, 6)  # seeds of first weights; settings are judged on those of others


def with_starts(tasks: tuple, seeds: range) -> tuple:
    """Return the same tasks with first weights drawn from each seed."""
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

COMPANIONS = {
    **{study.name: (alike(study, WALK_ALPHAS, ZETAS, KAPPAS),) for study in WALKS},
    **{study.name: (alike(study, BOYAN_ALPHAS, ZETAS, KAPPAS),) for study in BOYANS},
    "baird": tuple(alike(study, BAIRD_ALPHAS, BAIRD_ZETAS, BAIRD_FIVE_KAPPAS) for study in (BAIRD, BAIRD_STARTS)),
}
COMPANIONS["boyan"] += (BOYAN_WIDE, BOYAN_WIDER)
COMPANIONS["baird"] += (BAIRD_STARTS, BAIRD_LONG, fully(BAIRD_STARTS))
for study in (*WALKS, *BOYANS, BAIRD):
    COMPANIONS[study.name] += (fully(study),)

STUDIES = {study.name: study for study in (*PAPER_STUDIES, *(one for some in COMPANIONS.values() for one in some))}
