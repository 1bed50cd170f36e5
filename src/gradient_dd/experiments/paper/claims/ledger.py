"""The claims as data: every statement once, with its questions. What the paper does not say is marked as ours."""

from gradient_dd.experiments.paper.claims import baird, from_theory
from gradient_dd.experiments.paper.claims.asking import (
    THREE,
    WIDE,
    WIDER,
    as_fast_as,
    as_good_as,
    as_good_as_natural,
    faster_than,
    grows,
    insensitive,
    lower_than,
    lower_than_td_somewhere,
    narrower_than,
    one_is_good,
    slower_at_first,
    tapered_over_constant,
    together,
    values_of,
)
from gradient_dd.experiments.paper.claims.baird import on_baird
from gradient_dd.experiments.paper.claims.claim import Claim
from gradient_dd.experiments.paper.claims.cost import NEGLIGIBLE, costs_as_much
from gradient_dd.experiments.paper.claims.verdict import ALIKE, PAPER
from gradient_dd.experiments.paper.grids import KAPPAS, ZETAS

WALK, BOYAN, BAIRD = ("walk",), ("boyan",), ("baird",)
LOWER = "lower: ratio of errors below 1"
LOWER_ALL = "lower error over all episodes, tuned for it and for the end"
AS_GOOD = "as good: ratio of errors below 1.25"
AS_GOOD_ALL = "as good over all episodes, tuned for it and for the end"
GROWS = "the ratio grows from each size to the next"
SPEED_GROWS = "the ratio over all episodes grows from each size to the next"
INSENSITIVE = "worst over best value below 2"
BEST_KAPPA = "as good as the best κ: ratio below 1.25"
SEVERAL = 3

BY_KAPPA, BY_ZETA = values_of("kappa", KAPPAS), values_of("zeta", ZETAS)
TUNED_WIDELY = (PAPER, ALIKE, WIDE, WIDER)
GRADIENT, TD_LIKE = ("gtd2", "tdc"), ("tdrc", "td")

ON_WALK = (
    Claim("walk-better", "5.1 (1)", "Lower tuned error than GTD2 and TDC", LOWER, WALK, lower_than("walk", *GRADIENT)),
    Claim("walk-grows", "5.1 (1)", "The advantage over GTD2 grows with m", GROWS, WALK, grows("walk", "gtd2")),
    Claim("walk-grows-tdc", "5.1 (1)", "The advantage over TDC grows with m", GROWS, WALK, grows("walk", "tdc")),
    Claim("walk-as-td", "5.1 (2)", "As good as TDRC and TD", AS_GOOD, WALK, as_good_as("walk", *TD_LIKE)),
    Claim(
        "walk-sensitive",
        "5.1 (2)",
        "More sensitive to α than TD and TDRC",
        "fewer step sizes within twice the best error",
        WALK,
        narrower_than("walk", "td", "tdrc"),
    ),
    Claim("walk-faster", "5.1", "Converges faster than GTD2 and TDC", LOWER_ALL, WALK, faster_than("walk", *GRADIENT)),
    Claim("walk-as-fast", "5.1", "As fast as TDRC and TD", AS_GOOD_ALL, WALK, as_fast_as("walk", *TD_LIKE)),
    Claim(
        "walk-speed-grows",
        "5.1",
        "The advantage in speed over GTD2 grows with m",
        SPEED_GROWS,
        WALK,
        grows("walk", "gtd2", measure="area", tuned_for=("area", "last100")),
    ),
    Claim("walk-zeta", "3, 5.1, A.5", "Insensitive to ζ", INSENSITIVE, WALK, insensitive("walk", BY_ZETA)),
    Claim("walk-kappa-one", "6", "κ = 1 is a good choice", BEST_KAPPA, WALK, one_is_good("walk", BY_KAPPA)),
    Claim("walk-kappa", "A.5, 6", "Insensitive to κ", INSENSITIVE, WALK, insensitive("walk", BY_KAPPA)),
    Claim(
        "walk-constant",
        "5.1 (3)",
        "With constant steps: lower than GTD2 and TDC",
        LOWER,
        ("walk-constant",),
        lower_than("walk-constant", *GRADIENT),
    ),
    Claim(
        "walk-constant-td",
        "5.1 (3)",
        "With constant steps: as good as TDRC and TD",
        AS_GOOD,
        ("walk-constant",),
        as_good_as("walk-constant", *TD_LIKE),
    ),
    Claim(
        "walk-linear",
        "5.1, A.5",
        "With linear features: lower than GTD2 and TDC",
        LOWER,
        ("walk-linear",),
        lower_than("walk-linear", *GRADIENT),
    ),
    Claim(
        "walk-linear-td",
        "5.1, A.5",
        "With linear features: as good as TDRC and TD",
        AS_GOOD,
        ("walk-linear",),
        as_good_as("walk-linear", *TD_LIKE),
    ),
)
ON_BOYAN = (
    Claim(
        "boyan-better",
        "5.2 (1)",
        "Lower tuned error than GTD2 and TDC",
        LOWER,
        BOYAN,
        lower_than("boyan", *GRADIENT, tunings=(*THREE, WIDE, WIDER)),
    ),
    Claim(
        "boyan-faster",
        "5.2 (1)",
        "Faster than GTD2 and TDC",
        LOWER_ALL,
        BOYAN,
        faster_than("boyan", *GRADIENT, tunings=TUNED_WIDELY),
    ),
    Claim("boyan-as-td", "5.2 (2)", "Competitive with TDRC and TD", AS_GOOD, BOYAN, as_good_as("boyan", *TD_LIKE)),
    Claim(
        "boyan-slow-start",
        "5.2 (2)",
        "Somewhat slower than TDRC and TD at first",
        "higher error over the first twentieth, tuned for speed and for the end",
        BOYAN,
        slower_at_first("boyan", *TD_LIKE),
    ),
    Claim(
        "boyan-grows",
        "5.2 (3)",
        "The advantage over GTD2 grows with p",
        GROWS,
        BOYAN,
        grows("boyan", "gtd2", tunings=TUNED_WIDELY),
    ),
    Claim(
        "boyan-grows-tdc",
        "5.2 (3)",
        "The advantage over TDC grows with p",
        GROWS,
        BOYAN,
        grows("boyan", "tdc", tunings=TUNED_WIDELY),
    ),
    Claim(
        "boyan-tapered",
        "5.2 (4)",
        "Better with tapered than with constant steps",
        LOWER,
        ("boyan", "boyan-constant"),
        tapered_over_constant("boyan", "boyan-constant"),
    ),
    Claim("boyan-kappa", "A.5, 6", "Insensitive to κ", INSENSITIVE, BOYAN, insensitive("boyan", BY_KAPPA)),
    Claim("boyan-kappa-one", "6", "κ = 1 is a good choice", BEST_KAPPA, BOYAN, one_is_good("boyan", BY_KAPPA)),
    Claim("boyan-zeta", "3", "Insensitive to ζ", INSENSITIVE, BOYAN, insensitive("boyan", BY_ZETA)),
)
ON_BAIRD = (
    Claim(
        "baird-td",
        "5.3",
        "TD diverges",
        "no step size ends below the first error",
        BAIRD,
        on_baird(baird.td_diverges, modes=("R",)),
    ),
    Claim(
        "baird-better",
        "5.3",
        "Gradient-DD is better than GTD2, TDC and TDRC",
        LOWER,
        BAIRD,
        on_baird(baird.is_better),
    ),
    Claim(
        "baird-tdrc",
        "5.3",
        "TDRC is unstable at N = 20",
        "no step size halves the first error",
        BAIRD,
        on_baird(baird.tdrc_is_unstable, modes=("R",), largest_only=True),
    ),
    Claim(
        "baird-others-zero",
        "5.3",
        "GTD2, TDC and TDRC do not reach zero",
        "end above 1/1000 of the first error",
        BAIRD,
        on_baird(baird.others_stay_above_zero, long=True),
    ),
    Claim(
        "baird-zero",
        "5.3",
        "Gradient-DD reaches zero",
        "ends below 1/1000 of the first error",
        BAIRD,
        on_baird(baird.reaches_zero, long=True),
    ),
    Claim("baird-kappa-one", "6", "κ = 1 is a good choice", BEST_KAPPA, BAIRD, on_baird(baird.kappa_one_is_good)),
)
ON_ALL = (
    Claim(
        "better-than-td",
        "abstract, 1",
        "Better than TD in several cases",
        f"lower in at least {SEVERAL} cases, whatever is tuned for",
        ("walk", "walk-constant", "boyan"),
        lower_than_td_somewhere("walk", "walk-constant", "boyan"),
        needed=SEVERAL,
    ),
    Claim(
        "converges-better-than-td",
        "6",
        "Better convergence than conventional linear TD",
        LOWER_ALL,
        ("walk", "boyan"),
        together(faster_than("walk", "td"), faster_than("boyan", "td")),
    ),
    Claim(
        "large-spaces",
        "6",
        "The advantage over other methods is greatest in large spaces",
        "the ratio grows from the smallest size to the largest",
        ("walk", "boyan"),
        together(
            grows("walk", *GRADIENT, *TD_LIKE, ends_only=True), grows("boyan", *GRADIENT, *TD_LIKE, ends_only=True)
        ),
    ),
    Claim(
        "same-cost",
        "1, 1.1, 3",
        "The extra cost over GTD2 is negligible",
        f"time of an update below {NEGLIGIBLE:g} times",
        ("walk", "boyan"),
        costs_as_much("walk", "boyan"),
    ),
)
IN_THEORY = (
    Claim(
        "theorem",
        "4, theorem 1",
        "Gradient-DD converges where the assumptions hold",
        "the mean recursion is stable for small steps: smallest real part above 0",
        (),
        from_theory.exactly(from_theory.mean_flow_is_stable),
    ),
    Claim(
        "theorem-applies",
        "1, 4",
        "The experiments support the theorem",
        "none of its assumptions fails in them",
        (),
        from_theory.exactly(from_theory.assumptions_hold_in_the_experiments),
    ),
    Claim(
        "natural-gradient",
        "3, A.2",
        "Gradient-DD uses the natural gradient",
        "an angle below 0.05 between them",
        (),
        from_theory.exactly(from_theory.follows_the_natural_gradient),
    ),
    Claim(
        "less-drastic",
        "1, 3",
        "It prevents drastic changes of the values",
        "largest change in one step below 0.9 of that of GTD2",
        (),
        from_theory.exactly(from_theory.changes_are_less_drastic),
    ),
)
OURS = (
    Claim(
        "walk-natural",
        "3, A.5",
        "As good as natural GTD2 and natural TDC",
        AS_GOOD,
        ("walk", "walk-natural"),
        as_good_as_natural("walk", "walk-natural"),
        source="ours",
    ),
    Claim(
        "walk-iid",
        "4 (A1)",
        "Walk: faster than GTD2 and TDC on independent transitions",
        LOWER_ALL,
        ("walk-iid",),
        faster_than("walk-iid", *GRADIENT, tunings=THREE),
        source="ours",
    ),
    Claim(
        "boyan-iid",
        "4 (A1)",
        "Boyan chain: faster than GTD2 and TDC on independent transitions",
        LOWER_ALL,
        ("boyan-iid",),
        faster_than("boyan-iid", *GRADIENT, tunings=THREE),
        source="ours",
    ),
    Claim(
        "boyan-constant",
        "5.2 (4)",
        "Boyan chain with constant steps: lower than GTD2 and TDC",
        LOWER,
        ("boyan-constant",),
        lower_than("boyan-constant", *GRADIENT),
        source="ours",
    ),
)

CLAIMS = (*ON_WALK, *ON_BOYAN, *ON_BAIRD, *ON_ALL, *IN_THEORY, *OURS)
