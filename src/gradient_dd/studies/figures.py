"""The figures of the paper, as data: which study each reads, and which lines it shows.

Names are the paper's LaTeX labels. `boyan-constant`, `walk-iid` and `boyan-iid` are ours: the text speaks of the first,
our reading of the paper rests on the others.
"""

from dataclasses import dataclass

from gradient_dd.studies.paper import KAPPAS, ZETAS


@dataclass(frozen=True)
class Line:
    """One line of a figure: a learner with some parameters held; the others are tuned."""

    label: str
    learner: str
    held: tuple[tuple[str, float], ...] = ()
    rho_mode: str = "R"
    colour: str = "#000000"
    dashed: bool = False


@dataclass(frozen=True)
class Figure:
    """What to draw of a study: errors over alpha above, learning curves below, a column for each task.

    `measure` is what alpha is tuned by and what is drawn above: "last100" or "area".
    """

    name: str
    title: str
    study: str
    lines: tuple[Line, ...]
    measure: str = "last100"
    remark: str = ""


# Colours of Okabe and Ito, which remain distinct for the colour-blind.
BLACK, SKY, ORANGE, GREEN, RED, PURPLE, BLUE, YELLOW = (
    "#000000", "#56B4E9", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#0072B2", "#B8A800",
)  # fmt: skip
SHADES = (BLUE, SKY, RED, ORANGE, PURPLE)
ZETA_NAMES = ("1/64", "1/16", "1/4", "1", "4")

ONE = (("zeta", 1.0),)
PLAIN_DD = (("zeta", 1.0), ("kappa", 1.0))

COMPARED = (
    Line("TD", "td", colour=BLACK),
    Line("TDRC", "tdrc", colour=SKY),
    Line("GTD2, ζ tuned", "gtd2", colour=ORANGE),
    Line("GTD2, ζ = 1", "gtd2", ONE, colour=ORANGE, dashed=True),
    Line("TDC, ζ tuned", "tdc", colour=GREEN),
    Line("TDC, ζ = 1", "tdc", ONE, colour=GREEN, dashed=True),
    Line("Gradient-DD", "gradient_dd", PLAIN_DD, colour=RED),
)
BY_KAPPA = tuple(
    Line(f"κ = {kappa:g}", "gradient_dd", (("zeta", 1.0), ("kappa", kappa)), colour=colour)
    for kappa, colour in zip(KAPPAS, SHADES, strict=True)
)
BY_ZETA = tuple(
    Line(f"ζ = {label}", "gradient_dd", (("zeta", zeta), ("kappa", 1.0)), colour=colour)
    for zeta, label, colour in zip(ZETAS, ZETA_NAMES, SHADES, strict=True)
)
NATURAL = tuple(
    Line(f"{label}, ζ = {name}", learner, (("zeta", zeta),), colour=colour, dashed=learner == "natural_tdc")
    for label, learner in (("natural GTD2", "natural_gtd2"), ("natural TDC", "natural_tdc"))
    for zeta, name, colour in zip(ZETAS, ZETA_NAMES, SHADES, strict=True)
)
ON_BAIRD = (
    Line("TD", "td", colour=BLACK),
    Line("TDRC", "tdrc", colour=SKY),
    Line("GTD2, ζ tuned", "gtd2", colour=ORANGE),
    Line("GTD2, ζ tuned, ρ placed T", "gtd2", rho_mode="T", colour=ORANGE, dashed=True),
    Line("TDC, ζ tuned", "tdc", colour=GREEN),
    Line("Gradient-DD, κ tuned", "gradient_dd", colour=RED),
    Line("Gradient-DD, κ tuned, ρ placed T", "gradient_dd", rho_mode="T", colour=RED, dashed=True),
)

DIPS = "constant step sizes, fixed horizon: a tiny α can look best because its error is passing through a dip (TDC)"

FIGURES = {
    figure.name: figure
    for figure in (
        Figure("walk", "Random walk, tabular: last 100 episodes", "walk", COMPARED),
        Figure("walk-area", "Random walk, tabular: all episodes", "walk", COMPARED, measure="area"),
        Figure("walk-various-kappa", "Random walk: Gradient-DD for several κ", "walk", BY_KAPPA),
        Figure("walk-beta", "Random walk: Gradient-DD for several ζ", "walk", BY_ZETA),
        Figure("walk-natural", "Random walk: natural GTD2 and natural TDC", "walk-natural", NATURAL),
        Figure("walk-constant", "Random walk: constant step size", "walk-constant", COMPARED),
        Figure("walk-linear", "Random walk: linear features", "walk-linear", COMPARED),
        Figure("walk-iid", "Random walk: independent transitions, no trajectories", "walk-iid", COMPARED, "area"),
        Figure("boyan", "Boyan chain: last 100 episodes", "boyan", COMPARED),
        Figure("boyan-area", "Boyan chain: all episodes", "boyan", COMPARED, measure="area"),
        Figure("boyan-kappa", "Boyan chain: Gradient-DD for several κ", "boyan", BY_KAPPA),
        Figure("boyan-constant", "Boyan chain: constant step size", "boyan-constant", COMPARED),
        Figure("boyan-iid", "Boyan chain: independent transitions, no trajectories", "boyan-iid", COMPARED, "area"),
        Figure("Baird", "Baird's counterexample", "baird", ON_BAIRD, remark=DIPS),
    )
}


@dataclass(frozen=True)
class Drawing:
    """A figure that needs no study: computed from tasks alone, by the file of figures/ that has its name."""

    name: str
    title: str
    says: str


DRAWINGS = {
    drawing.name: drawing
    for drawing in (
        Drawing(
            "illustration",
            "The trust region, on a real problem with two weights",
            "Contours of the MSPBE of a random off-policy task. The plain step follows the negative gradient out of "
            "the region in which values have changed little; the constrained step leads to the best point inside. The "
            "dashed path is where the penalised optimum lies as κ goes from 0 to ∞. Gradient-DD takes one gradient "
            "step on the penalised objective; it does not solve it (erratum 4).",
        ),
    )
}
