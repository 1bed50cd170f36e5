"""Tuned fully: every learner chooses among as many settings over all parameters it has, and none of them at an edge.

The other ways of tuning give Gradient-DD a step size, or a step size and κ; but ζ is what it needs on one task and κ on
another. Here it has α × ζ × κ, and every rival the same number of settings: TDRC α × ζ × reg, gtd2_to_td α × ζ × c,
GTD2, TDC and HTD α × ζ more finely, TD α alone. Ranges were placed by a first look at two runs of another seed.
On-policy HTD is TD and ζ of HTD-DD makes no difference; along trajectories of a table HTD-DD is TD too. Those that are
TD are left out.
"""

from dataclasses import dataclass, replace

from gradient_dd.studies import Grid, Study, grid

SETTINGS = 240  # of each learner
TUNING_RUNS = 6
SHARES = (0.25, 0.5, 0.75, 1.0)  # values of c


def powers(base: float, first: float, last: float, count: int) -> tuple[float, ...]:
    """Return `count` powers of a base, from one exponent to another, evenly spaced."""
    return tuple(base ** (first + (last - first) * i / (count - 1)) for i in range(count))


@dataclass(frozen=True)
class Ranges:
    """Where the settings of a kind of task lie: exponents of 2 for α, and of 4 for ζ, κ and TDRC's regulariser.

    `slow` is how far Gradient-DD and its like go in α; α of TD, TDRC and HTD lies in `quick`. `zetas` and `kappas` are
    the values of the learner that has both, `zeta` the range of all others.
    """

    quick: tuple[float, float]
    slow: tuple[float, float]
    zeta: tuple[float, float]
    zetas: tuple[float, ...]
    kappas: tuple[float, ...]
    reg: tuple[float, float] = (-4, 2)

    def grids(self, off_policy: bool, with_htd_dd: bool) -> tuple[Grid, ...]:
        """Return the grids of all learners."""
        modes = ("R", "T") if off_policy else ("R",)
        quick, slow = (powers(2.0, *ends, 10) for ends in (self.quick, self.slow))
        finely, fine = powers(2.0, *self.slow, 20), powers(2.0, *self.quick, 20)
        zetas, some = powers(4.0, *self.zeta, 12), powers(4.0, *self.zeta, 6)
        grids = [
            grid("td", alpha=powers(2.0, *self.quick, SETTINGS)),
            grid("tdrc", alpha=quick, zeta=some, reg=powers(4.0, *self.reg, 4)),
            grid("tdc", alpha=finely, zeta=zetas),
            *(grid("gtd2", mode, alpha=finely, zeta=zetas) for mode in modes),
            *(grid("gtd2_to_td", mode, alpha=slow, zeta=some, c=SHARES) for mode in modes),
            *(grid("gradient_dd", mode, alpha=slow, zeta=self.zetas, kappa=self.kappas) for mode in modes),
        ]
        if off_policy:
            grids += [
                grid("htd", alpha=fine, zeta=zetas),
                grid("htd_dd", alpha=quick, zeta=self.zetas, kappa=self.kappas),
            ]
        elif with_htd_dd:
            grids.append(grid("htd_dd", alpha=fine, kappa=powers(4.0, -5, 3, 12)))
        return tuple(grids)


WALK = Ranges((-9, 0), (-7, 2), (-4, 2), (1 / 16, 1 / 4, 1.0, 4.0), (0.25, 1.0, 4.0, 16.0, 64.0, 256.0))
LINEAR = Ranges((-9, 0), (-6, 3), (-4, 2), (1 / 64, 1 / 8, 1.0, 8.0), (1 / 64, 1 / 16, 0.25, 1.0, 4.0, 16.0))
BOYAN = Ranges((-5, 2), (-4, 5), (-6, 1), tuple(4.0**k for k in range(-5, 1)), (1 / 16, 0.25, 1.0, 4.0))
BAIRD = Ranges((-13, -2), (-13, -3), (-3, 4), (1 / 8, 1.0, 8.0, 64.0), (1 / 16, 0.25, 1.0, 4.0, 16.0, 64.0))
RANGES = {"walk": WALK, "walk-constant": WALK, "walk-iid": WALK, "walk-linear": LINEAR}
TD_TOO = ("walk", "walk-constant")  # where HTD-DD is TD: along trajectories of tables


def fully(study: Study) -> Study:
    """Return the companion of a study in which every learner is tuned fully."""
    off_policy = study.name.startswith("baird")
    ranges = RANGES.get(study.name, BAIRD if off_policy else BOYAN)
    grids = ranges.grids(off_policy, study.name not in TD_TOO)
    return replace(study, name=f"{study.name}-fully", grids=grids, runs=min(study.runs, TUNING_RUNS))
