"""The figures of the paper, as data: the study that each figure reads, and the lines that it shows.

Names are the paper's LaTeX labels. `boyan-constant`, `walk-iid`, `boyan-iid` and `walk-various-u` are ours: the paper
mentions the first in its text, and our interpretation of the paper is based on the other three.
"""

from functools import partial

from gradient_dd.report.figure import BLACK, GREEN, ORANGE, RAMP, RED, SKY, Drawing, Figure, Line

ZETAS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
KAPPAS = (0.25, 0.5, 1.0, 2.0, 4.0)
US = (0.03, 0.1, 0.3, 1.0, 2.0)  # α κ of the first episode
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
    for kappa, colour in zip(KAPPAS, RAMP, strict=True)
)
BY_ZETA = tuple(
    Line(f"ζ = {label}", "gradient_dd", (("zeta", zeta), ("kappa", 1.0)), colour=colour)
    for zeta, label, colour in zip(ZETAS, ZETA_NAMES, RAMP, strict=True)
)
BY_U = tuple(
    Line(f"u = {u:g}", "gradient_dd", (("zeta", 1.0), ("u", u)), colour=colour)
    for u, colour in zip(US, RAMP, strict=True)
)
NATURAL = (
    *(
        Line(f"{label}, ζ = {name}", learner, (("zeta", zeta),), colour=colour, dashed=learner == "natural_tdc")
        for label, learner in (("natural GTD2", "natural_gtd2"), ("natural TDC", "natural_tdc"))
        for zeta, name, colour in zip(ZETAS, ZETA_NAMES, RAMP, strict=True)
    ),
    Line("Gradient-DD", "gradient_dd", PLAIN_DD, colour=RED),
)
ON_BAIRD = (
    Line("TD", "td", colour=BLACK),
    Line("TDRC", "tdrc", colour=SKY),
    Line("GTD2, ζ tuned", "gtd2", colour=ORANGE),
    Line("GTD2, ζ tuned, ρ on the bootstrap", "gtd2", rho_mode="T", colour=ORANGE, dashed=True),
    Line("TDC, ζ tuned", "tdc", colour=GREEN),
    Line("Gradient-DD, κ tuned", "gradient_dd", colour=RED),
    Line("Gradient-DD, κ tuned, ρ on the bootstrap", "gradient_dd", rho_mode="T", colour=RED, dashed=True),
)

DRAWN_IN = "gradient_dd.experiments.paper.drawings"
STATES = f"{DRAWN_IN}.baird:state_diagram"  # drawn above the figure of Baird
TAPERED_U = "κ = u/α depends on the step size; u is the value in the first episode, and decreases with α"
DIPS = "constant step sizes, fixed horizon: a tiny α can look best because its error is passing through a dip (TDC)"

WALK, BOYAN = "Random walk", "Boyan chain"
LAST, ALL, IID = "last 100 episodes", "all episodes", "independent transitions, no trajectories"
FIXED, APPENDIX, TEXT = "constant step size", "appendix", "Section 5.2 (4), which has no figure"
NATURAL_TITLE = f"{WALK}: natural GTD2, natural TDC and Gradient-DD"


walk, boyan = partial(Figure, section="walk"), partial(Figure, section="boyan")
SHOWN = (
    walk("walk", f"{WALK}, tabular: {LAST}", "walk", COMPARED, tab="Final error", source="Fig. 2"),
    walk("walk-area", f"{WALK}, tabular: {ALL}", "walk", COMPARED, "mean_error", tab="Mean error", source=APPENDIX),
    walk("walk-various-kappa", f"{WALK}: Gradient-DD for several κ", "walk", BY_KAPPA, tab="κ", source=APPENDIX),
    walk("walk-beta", f"{WALK}: Gradient-DD for several ζ", "walk", BY_ZETA, tab="ζ", source=APPENDIX),
    walk("walk-natural", NATURAL_TITLE, "walk-natural", NATURAL, tab="Natural gradients", source=APPENDIX),
    walk("walk-constant", f"{WALK}: {FIXED}", "walk-constant", COMPARED, tab="Constant steps", source=APPENDIX),
    walk("walk-linear", f"{WALK}: linear features", "walk-linear", COMPARED, tab="Linear features", source=APPENDIX),
    walk("walk-various-u", f"{WALK}: Gradient-DD for several u = ακ", "walk-u", BY_U, tab="u = ακ", remark=TAPERED_U),
    walk("walk-iid", f"{WALK}: {IID}", "walk-iid", COMPARED, "mean_error", tab="Independent draws"),
    boyan("boyan", f"{BOYAN}: {LAST}", "boyan", COMPARED, tab="Final error", source="Fig. 3"),
    boyan("boyan-area", f"{BOYAN}: {ALL}", "boyan", COMPARED, "mean_error", tab="Mean error", source=APPENDIX),
    boyan("boyan-kappa", f"{BOYAN}: Gradient-DD for several κ", "boyan", BY_KAPPA, tab="κ", source=APPENDIX),
    boyan("boyan-constant", f"{BOYAN}: {FIXED}", "boyan-constant", COMPARED, tab="Constant steps", source=TEXT),
    boyan("boyan-iid", f"{BOYAN}: {IID}", "boyan-iid", COMPARED, "mean_error", tab="Independent draws"),
    Figure(
        "Baird",
        "Baird's counterexample",
        "baird",
        ON_BAIRD,
        remark=DIPS,
        header=STATES,
        section="baird",
        tab="Baird",
        source="Fig. 4",
        split="ratios",
        tabs={"": "Usual ratios", "paper": "Ratios as printed"},
    ),
)
FIGURES = {one.name: one for one in SHOWN}

theory = partial(Drawing, section="theory")
DRAWN = (
    theory(
        "illustration",
        "The trust region, on a real problem with two weights",
        "Contours of the MSPBE of a random off-policy task. The plain step follows the negative gradient out of "
        "the region in which values have changed little; the constrained step leads to the best point inside. The "
        "dashed path shows the penalised optimum as κ goes from 0 to ∞. Gradient-DD takes one gradient "
        "step on the penalised objective; it does not solve it (erratum 4).",
        f"{DRAWN_IN}.illustration:draw",
        tab="Trust region",
    ),
    theory(
        "stability-maps",
        "Where Gradient-DD is stable, and how fast",
        "The decay of the slowest mode of the mean in one step, over step size and κ or ζ: above with independent "
        "draws, which the theorem assumes, below along trajectories, which every experiment of the paper uses. "
        "Hatched: the mean diverges. Left of the dashed line the variance of the weights stays bounded too; this "
        "limit matters in practice. On the walk, learning along trajectories is faster, and unstable earlier.",
        f"{DRAWN_IN}.rates:draw_stability_maps",
        tab="Stability",
    ),
    theory(
        "rates",
        "The gain is in the trajectories",
        "The decay of the slowest mode of the mean in one step, against the step size. With independent draws "
        "(dashed), Gradient-DD is no faster than GTD2; along trajectories (solid), it moves from GTD2 towards TD "
        "as κα grows, most on long walks. Dotted: the prediction of its effective matrix to first order. "
        "A line ends where the mean becomes unstable.",
        f"{DRAWN_IN}.rates:draw_rates",
        tab="Rates",
    ),
    theory(
        "gtd2-to-td",
        "From GTD2 to TD as κα grows",
        "The rate of Gradient-DD along trajectories, relative to TD’s at the same step size. With tabular "
        "features it equals GTD2’s at κα = 0, and about TD’s at κα = 1. With features that states share, it is a "
        "few times GTD2’s, and far below TD’s. Crosses: the mean becomes unstable.",
        f"{DRAWN_IN}.rates:draw_gtd2_to_td",
        tab="From GTD2 to TD",
    ),
    theory(
        "safety",
        "What the gain costs off-policy",
        "Tasks on which TD diverges. With independent draws Gradient-DD is as safe as GTD2, up to κα‖x‖² of about "
        "1 and more. Along trajectories it inherits TD's instability on random tasks, often at a small κα; on "
        "Baird's counterexample it does not. With a larger step size, even GTD2 is unstable on some tasks.",
        f"{DRAWN_IN}.rates:draw_safety",
        tab="Off-policy cost",
    ),
    theory(
        "baird-frozen-mode",
        "Baird's counterexample: a frozen mode decides the final error",
        "The error after 200,000 steps, against the step size. Lines: the share of the slowest mode of the mean in "
        "the initial weights, by its left eigenvector; dots: sampled runs. That mode hardly decays in a run, so it "
        "determines the final error. With the paper's initial weights, Gradient-DD has a step size at which its "
        "share is zero, and seems to converge; with the random initial weights shown, it has none.",
        f"{DRAWN_IN}.baird:draw_frozen_mode",
        tab="Frozen mode",
    ),
    theory(
        "expected-runs",
        "Learning curves without noise, and sampled ones",
        "Lines: the error of the mean weights, computed exactly. Dots: the error of the mean over sampled runs of "
        "the lane engine. Thin lines: the mean error of single runs, which includes their noise. Gradient-DD "
        "differs from GTD2 only along trajectories.",
        f"{DRAWN_IN}.rates:draw_expected_runs",
        tab="Without noise",
    ),
)
DRAWINGS = {one.name: one for one in DRAWN}
