"""The claims as data: every statement once, with its questions. What the paper does not say is marked as ours."""

from dataclasses import replace
from functools import partial

from gradient_dd.experiments.claims import Claim
from gradient_dd.experiments.paper import baird, exact_statements, fully
from gradient_dd.experiments.paper.asking import (
    AS_FAST_AS,
    AS_GOOD_AS,
    ENDS_GROW,
    FASTER,
    LOWER,
    SLOWER_AT_FIRST,
    SPEED_GROWS,
    WITH_ONE_ZETA,
    as_good_as_natural,
    converges,
    costs_as_much,
    grows,
    insensitive,
    lower_than_td_somewhere,
    much_faster,
    narrower_than,
    one_is_good,
    tapered_over_constant,
    together,
    values_of,
    versus,
)
from gradient_dd.experiments.paper.figures import FIGURES, KAPPAS, US, ZETAS

SEVERAL = 3
IN_SEVERAL = f"lower in at least {SEVERAL} cases, whatever is tuned for"
BY_KAPPA, BY_ZETA = values_of("kappa", KAPPAS), values_of("zeta", ZETAS)
GRADIENT, TD_LIKE = ("gtd2", "tdc"), ("tdrc", "td")
ALL_RIVALS = (*GRADIENT, *TD_LIKE)
ours = partial(Claim, source="ours")

ON_WALK = (
    Claim(
        "walk-better", "5.1 (1)", "Lower tuned error than GTD2 and TDC", versus("walk", GRADIENT, LOWER, WITH_ONE_ZETA)
    ),
    Claim("walk-grows", "5.1 (1)", "The advantage over GTD2 grows with m", grows("walk", ("gtd2",))),
    Claim("walk-grows-tdc", "5.1 (1)", "The advantage over TDC grows with m", grows("walk", ("tdc",))),
    Claim("walk-as-td", "5.1 (2)", "As good as TDRC and TD", versus("walk", TD_LIKE, AS_GOOD_AS)),
    Claim("walk-sensitive", "5.1 (2)", "More sensitive to α than TD and TDRC", narrower_than("walk", "td", "tdrc")),
    Claim("walk-faster", "5.1", "Converges much more rapidly than GTD2 and TDC", much_faster("walk", GRADIENT)),
    Claim("walk-as-fast", "5.1", "As fast as TDRC and TD", versus("walk", TD_LIKE, AS_FAST_AS)),
    Claim(
        "walk-speed-grows",
        "5.1",
        "The advantage in speed over GTD2 grows with m",
        grows("walk", ("gtd2",), SPEED_GROWS),
    ),
    Claim("walk-zeta", "3, 5.1, A.5", "Insensitive to ζ", insensitive("walk", BY_ZETA)),
    Claim("walk-kappa-one", "6", "κ = 1 is a good choice", one_is_good("walk", BY_KAPPA)),
    Claim("walk-kappa", "A.5, 6", "Insensitive to κ", insensitive("walk", BY_KAPPA)),
    Claim(
        "walk-constant",
        "5.1 (3)",
        "With constant steps: lower than GTD2 and TDC",
        versus("walk-constant", GRADIENT, LOWER, WITH_ONE_ZETA),
    ),
    Claim(
        "walk-constant-td",
        "5.1 (3)",
        "With constant steps: as good as TDRC and TD",
        versus("walk-constant", TD_LIKE, AS_GOOD_AS),
    ),
    Claim(
        "walk-linear",
        "5.1, A.5",
        "With linear features: lower than GTD2 and TDC",
        versus("walk-linear", GRADIENT, LOWER, WITH_ONE_ZETA),
    ),
    Claim(
        "walk-linear-td",
        "5.1, A.5",
        "With linear features: as good as TDRC and TD",
        versus("walk-linear", TD_LIKE, AS_GOOD_AS),
    ),
)
ON_BOYAN = (
    Claim(
        "boyan-better",
        "5.2 (1)",
        "Lower tuned error than GTD2 and TDC",
        versus("boyan", GRADIENT, LOWER, WITH_ONE_ZETA),
    ),
    Claim("boyan-faster", "5.2 (1)", "Much faster than GTD2 and TDC", much_faster("boyan", GRADIENT)),
    Claim("boyan-as-td", "5.2 (2)", "Competitive with TDRC and TD", versus("boyan", TD_LIKE, AS_GOOD_AS)),
    Claim(
        "boyan-slow-start",
        "5.2 (2)",
        "Somewhat slower than TDRC and TD at first",
        versus("boyan", TD_LIKE, SLOWER_AT_FIRST),
    ),
    Claim(
        "boyan-grows",
        "5.2 (3)",
        "The advantage over GTD2 grows with p",
        grows("boyan", ("gtd2",)),
    ),
    Claim(
        "boyan-grows-tdc",
        "5.2 (3)",
        "The advantage over TDC grows with p",
        grows("boyan", ("tdc",)),
    ),
    Claim(
        "boyan-tapered",
        "5.2 (4)",
        "Better with tapered than with constant steps",
        tapered_over_constant("boyan", "boyan-constant"),
    ),
    Claim("boyan-kappa", "A.5, 6", "Insensitive to κ", insensitive("boyan", BY_KAPPA)),
    Claim("boyan-kappa-one", "6", "κ = 1 is a good choice", one_is_good("boyan", BY_KAPPA)),
    Claim("boyan-zeta", "3", "Insensitive to ζ", insensitive("boyan", BY_ZETA)),
)
ON_BAIRD = (
    Claim("baird-td", "5.3", "TD diverges", baird.TD_DIVERGES),
    Claim(
        "baird-better", "5.3", "Gradient-DD is better than GTD2, TDC and TDRC", baird.IS_BETTER, short="beats all three"
    ),
    Claim("baird-tdrc", "5.3", "TDRC is unstable at N = 20", baird.TDRC_IS_UNSTABLE, short="TDRC unstable"),
    Claim(
        "baird-others-zero",
        "5.3",
        "GTD2, TDC and TDRC do not reach zero",
        baird.OTHERS_STAY_ABOVE_ZERO,
        short="others miss 0",
    ),
    Claim("baird-zero", "5.3", "Gradient-DD reaches zero", baird.REACHES_ZERO, short="it reaches 0"),
    Claim("baird-kappa-one", "6", "κ = 1 is a good choice", baird.KAPPA_ONE_IS_GOOD, short="κ = 1 good"),
)
ON_ALL = (
    Claim(
        "better-than-td",
        "abstract, 1",
        "Better than TD in several cases",
        lower_than_td_somewhere("walk", "walk-constant", "boyan", words=IN_SEVERAL),
        needed=SEVERAL,
    ),
    Claim(
        "converges-better-than-td",
        "6",
        "Better convergence than conventional linear TD",
        together(versus("walk", ("td",), FASTER), versus("boyan", ("td",), FASTER)),
    ),
    Claim(
        "large-spaces",
        "6",
        "The advantage over other methods is greatest in large spaces",
        together(*(grows(study, ALL_RIVALS, ENDS_GROW) for study in ("walk", "boyan"))),
    ),
    Claim(
        "same-cost",
        "1, 1.1, 3",
        "The extra cost over GTD2 is negligible",
        costs_as_much("walk", "boyan"),
        source="time",
    ),
)
IN_THEORY = (
    Claim(
        "theorem", "4, theorem 1", "Gradient-DD converges where the assumptions hold", exact_statements.MEAN_IS_STABLE
    ),
    Claim("theorem-applies", "1, 4", "The experiments support the theorem", converges("walk", "boyan")),
    Claim(
        "natural-gradient",
        "1.1, 3, A.2",
        "Related to the natural gradient, but distinct from it",
        exact_statements.IS_RELATED,
    ),
    Claim("less-drastic", "1, 3", "It prevents drastic changes of the values", exact_statements.LESS_DRASTIC),
)
OURS = (
    ours("walk-u", "A.5, 6", "Insensitive to u = ακ", insensitive("walk-u", values_of("u", US))),
    ours(
        "theorem-assumptions",
        "4 (A0) to (A4)",
        "The experiments meet the theorem's assumptions",
        exact_statements.ASSUMPTIONS_HOLD,
    ),
    ours("boyan-as-fast", "5.2", "Boyan chain: as fast as TDRC and TD", versus("boyan", TD_LIKE, AS_FAST_AS)),
    ours(
        "walk-iid-td",
        "4 (A1)",
        "Walk: as fast as TDRC and TD on independent transitions",
        versus("walk-iid", TD_LIKE, AS_FAST_AS),
    ),
    ours(
        "boyan-iid-td",
        "4 (A1)",
        "Boyan chain: as fast as TDRC and TD on independent transitions",
        versus("boyan-iid", TD_LIKE, AS_FAST_AS),
    ),
    ours(
        "boyan-constant-td",
        "5.2 (4)",
        "Boyan chain with constant steps: as good as TDRC and TD",
        versus("boyan-constant", TD_LIKE, AS_GOOD_AS),
    ),
    ours(
        "walk-natural", "3, A.5", "As good as natural GTD2 and natural TDC", as_good_as_natural("walk", "walk-natural")
    ),
    ours(
        "walk-iid",
        "4 (A1)",
        "Walk: faster than GTD2 and TDC on independent transitions",
        versus("walk-iid", GRADIENT, FASTER, WITH_ONE_ZETA),
    ),
    ours(
        "boyan-iid",
        "4 (A1)",
        "Boyan chain: faster than GTD2 and TDC on independent transitions",
        versus("boyan-iid", GRADIENT, FASTER, WITH_ONE_ZETA),
    ),
    ours(
        "boyan-constant",
        "5.2 (4)",
        "Boyan chain with constant steps: lower than GTD2 and TDC",
        versus("boyan-constant", GRADIENT, LOWER, WITH_ONE_ZETA),
    ),
)

# Where the report shows each claim: by section the groups, each with its figure and its claims.
SECTIONS = {
    "walk": (
        ("Final error", "walk", "walk-better walk-grows walk-grows-tdc walk-as-td walk-sensitive"),
        ("Speed", "walk-area", "walk-faster walk-as-fast walk-speed-grows"),
        ("Its parameters κ and ζ", "walk-various-kappa", "walk-kappa-one walk-kappa walk-zeta"),
        ("Constant steps and linear features", "walk-constant", "walk-constant walk-constant-td"),
        ("Constant steps and linear features", "walk-linear", "walk-linear walk-linear-td"),
    ),
    "boyan": (
        ("Final error", "boyan", "boyan-better boyan-grows boyan-grows-tdc boyan-as-td"),
        ("Final error", "boyan-constant", "boyan-tapered"),
        ("Speed", "boyan-area", "boyan-faster boyan-slow-start"),
        ("Its parameters κ and ζ", "boyan-kappa", "boyan-kappa-one boyan-kappa boyan-zeta"),
    ),
    "baird": (
        ("Off-policy", "Baird", "baird-td baird-better baird-tdrc baird-others-zero baird-zero baird-kappa-one"),
    ),
    "theory": (
        ("Across the tasks", "", "better-than-td converges-better-than-td large-spaces same-cost"),
        ("Theorem and mechanism", "", "theorem theorem-applies natural-gradient less-drastic"),
    ),
}
FIGURE_OF = {
    "walk-zeta": "walk-beta",
    "walk-u": "walk-various-u",
    "walk-iid-td": "walk-iid",
    "boyan-as-fast": "boyan-area",
    "boyan-iid-td": "boyan-iid",
    "boyan-constant-td": "boyan-constant",
    "fully-baird": "Baird",
    **{f"fully-{name}": name for name in fully.WORDS},
}
PLACES = {
    name: (section, group, figure)
    for section, groups in SECTIONS.items()
    for group, figure, names in groups
    for name in names.split()
}


def placed(claim: Claim) -> Claim:
    """Return a claim with its place in the report."""
    section, group, figure = PLACES.get(claim.name, ("extras", "Our own statements", claim.name))
    figure = FIGURE_OF.get(claim.name, figure)
    return replace(claim, section=section, group=group, figure=figure if figure in FIGURES else "")


CLAIMS = tuple(map(placed, (*ON_WALK, *ON_BOYAN, *ON_BAIRD, *ON_ALL, *IN_THEORY, *OURS, *fully.CLAIMS)))
