"""Tuned fully: every learner chooses among as many settings over all parameters it has, and none of them at an edge.

The other ways of tuning give Gradient-DD a step size, or a step size and κ; but ζ is what it needs on one task and κ on
another. Here it has α × ζ × κ, and every rival the same number of settings: TDRC α × ζ × reg, gtd2_to_td α × ζ × c,
GTD2, TDC and HTD α × ζ more finely, TD α alone. Ranges were placed by a first look at two runs of another seed.
On-policy HTD is TD and ζ of HTD-DD makes no difference; along trajectories of a table HTD-DD is TD too. Those that are
TD are left out, and HTD-DD on independent draws, for it keeps a trace.
"""

from dataclasses import dataclass, replace

from gradient_dd.studies import Grid, Study, grid

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
