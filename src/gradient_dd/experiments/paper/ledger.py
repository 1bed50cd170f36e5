"""The claims as data: a list of statements with their questions. Statements not in the paper are marked as ours."""

from dataclasses import replace
from functools import partial

from gradient_dd.experiments.paper import baird
from gradient_dd.experiments.paper import exact_statements as exact
from gradient_dd.experiments.paper.asking import (
    AS_FAST_AS,
    AS_GOOD_AS,
    BEST_KAPPA,
    BOTH_AS_GOOD,
    ENDS_GROW,
    FASTER,
    LOWER,
    NEGLIGIBLE,
    SLOWER_AT_FIRST,
    SPEED_GROWS,
    TUNINGS,
    WHOLE,
    Side,
    against,
    as_tuned,
    cost,
    ends_low,
    fewer_step_sizes,
    grows,
    lower_than_td_somewhere,
    much_faster,
    on_cases,
    one_over_best,
    together,
    values_of,
    versus,
    worst_over_best,
)
from gradient_dd.experiments.paper.figures import FIGURES, KAPPAS, US, ZETAS
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.experiments.verdicts import FULLY, Ask, Claim

SEVERAL = 3
IN_SEVERAL = f"lower in at least {SEVERAL} cases, for each goal of tuning"
BY_KAPPA, BY_ZETA, BY_U = values_of("kappa", KAPPAS), values_of("zeta", ZETAS), values_of("u", US)
GRADIENT, TD_LIKE = ("gtd2", "tdc"), ("tdrc", "td")

# Questions about several studies
lower = partial(versus, rivals=GRADIENT, criterion=LOWER, tunings=TUNINGS)
faster = partial(versus, rivals=GRADIENT, criterion=FASTER, tunings=TUNINGS)
as_good = partial(versus, rivals=TD_LIKE, criterion=AS_GOOD_AS)
as_fast = partial(versus, rivals=TD_LIKE, criterion=AS_FAST_AS)
insensitive = partial(on_cases, "worst over best value below 2", worst_over_best)
one_is_good = partial(on_cases, BEST_KAPPA.words, one_over_best)
costs_as_much = partial(on_cases, f"time of an update below {NEGLIGIBLE:g} times", cost)
slower_at_first = partial(versus, rivals=TD_LIKE, criterion=SLOWER_AT_FIRST)
speed_grows, ends_grow = (partial(grows, criterion=one) for one in (SPEED_GROWS, ENDS_GROW))
faster_than_td = partial(versus, rivals=("td",), criterion=FASTER)
NARROWER = on_cases("fewer step sizes within twice the best error", fewer_step_sizes, "walk", than=TD_LIKE[::-1])
CONVERGES = on_cases("ends below a tenth of the initial error", ends_low, "walk", "boyan")
TAPERED, CONSTANT = Side("boyan", label="Gradient-DD, tapered"), Side("boyan-constant", label="Gradient-DD, constant")
TAPERED_IS_LOWER = against(TAPERED, [CONSTANT], LOWER)
NATURAL = [Side("walk-natural", learner, WHOLE[learner]) for learner in ("natural_gtd2", "natural_tdc")]
AS_GOOD_AS_NATURAL = against(Side("walk"), NATURAL, AS_GOOD_AS)

# The place of a claim in the report: its section, its group, and its figure, by default the figure of its study
on_walk, on_boyan = partial(Claim, section="walk"), partial(Claim, section="boyan")
walk_end, boyan_end = (partial(one, group="Final error") for one in (on_walk, on_boyan))
walk_speed = partial(on_walk, group="Speed", figure="walk-area")
boyan_speed = partial(on_boyan, group="Speed", figure="boyan-area")
walk_parameters = partial(on_walk, group="Its parameters κ and ζ", figure="walk-various-kappa")
constant_boyan = partial(boyan_end, figure="boyan-constant")
boyan_parameters = partial(on_boyan, group="Its parameters κ and ζ", figure="boyan-kappa")
other_walks = partial(on_walk, group="Constant steps and linear features")
off_policy = partial(Claim, section="baird", group="Off-policy", figure="Baird")
across = partial(Claim, section="theory", group="Across the tasks")
on_time = partial(across, source="time")
mechanism = partial(Claim, section="theory", group="Theorem and mechanism")
own = partial(Claim, source="ours", group="Our own statements")

BEATS_THREE, OTHERS_MISS = "Gradient-DD is better than GTD2, TDC and TDRC", "GTD2, TDC and TDRC do not reach zero"
OF_THE_PAPER = (
    walk_end("walk-better", "5.1 (1)", "Lower tuned error than GTD2 and TDC", lower("walk")),
    walk_end("walk-grows", "5.1 (1)", "The advantage over GTD2 grows with m", grows("walk", "gtd2")),
    walk_end("walk-grows-tdc", "5.1 (1)", "The advantage over TDC grows with m", grows("walk", "tdc")),
    walk_end("walk-as-td", "5.1 (2)", "As good as TDRC and TD", as_good("walk")),
    walk_end("walk-sensitive", "5.1 (2)", "More sensitive to α than TD and TDRC", NARROWER),
    walk_speed("walk-faster", "5.1", "Converges much more rapidly than GTD2 and TDC", much_faster("walk", GRADIENT)),
    walk_speed("walk-as-fast", "5.1", "As fast as TDRC and TD", as_fast("walk")),
    walk_speed("walk-speed-grows", "5.1", "The advantage in speed over GTD2 grows with m", speed_grows("walk", "gtd2")),
    walk_parameters(
        "walk-zeta", "3, 5.1, A.5", "Insensitive to ζ", insensitive("walk", among=BY_ZETA), figure="walk-beta"
    ),
    walk_parameters("walk-kappa-one", "6", "κ = 1 is a good choice", one_is_good("walk", among=BY_KAPPA)),
    walk_parameters("walk-kappa", "A.5, 6", "Insensitive to κ", insensitive("walk", among=BY_KAPPA)),
    other_walks("walk-constant", "5.1 (3)", "With constant steps: lower than GTD2 and TDC", lower("walk-constant")),
    other_walks("walk-constant-td", "5.1 (3)", "With constant steps: as good as TDRC and TD", as_good("walk-constant")),
    other_walks("walk-linear", "5.1, A.5", "With linear features: lower than GTD2 and TDC", lower("walk-linear")),
    other_walks("walk-linear-td", "5.1, A.5", "With linear features: as good as TDRC and TD", as_good("walk-linear")),
    boyan_end("boyan-better", "5.2 (1)", "Lower tuned error than GTD2 and TDC", lower("boyan")),
    boyan_speed("boyan-faster", "5.2 (1)", "Much faster than GTD2 and TDC", much_faster("boyan", GRADIENT)),
    boyan_end("boyan-as-td", "5.2 (2)", "Competitive with TDRC and TD", as_good("boyan")),
    boyan_speed("boyan-slow-start", "5.2 (2)", "Somewhat slower than TDRC and TD at first", slower_at_first("boyan")),
    boyan_end("boyan-grows", "5.2 (3)", "The advantage over GTD2 grows with p", grows("boyan", "gtd2")),
    boyan_end("boyan-grows-tdc", "5.2 (3)", "The advantage over TDC grows with p", grows("boyan", "tdc")),
    constant_boyan("boyan-tapered", "5.2 (4)", "Better with tapered than with constant steps", TAPERED_IS_LOWER),
    boyan_parameters("boyan-kappa", "A.5, 6", "Insensitive to κ", insensitive("boyan", among=BY_KAPPA)),
    boyan_parameters("boyan-kappa-one", "6", "κ = 1 is a good choice", one_is_good("boyan", among=BY_KAPPA)),
    boyan_parameters("boyan-zeta", "3", "Insensitive to ζ", insensitive("boyan", among=BY_ZETA)),
    off_policy("baird-td", "5.3", "TD diverges", baird.TD_DIVERGES),
    off_policy("baird-better", "5.3", BEATS_THREE, baird.IS_BETTER, short="beats all three"),
    off_policy("baird-tdrc", "5.3", "TDRC is unstable at N = 20", baird.TDRC_IS_UNSTABLE, short="TDRC unstable"),
    off_policy("baird-others-zero", "5.3", OTHERS_MISS, baird.OTHERS_STAY_ABOVE_ZERO, short="others miss 0"),
    off_policy("baird-zero", "5.3", "Gradient-DD reaches zero", baird.REACHES_ZERO, short="it reaches 0"),
    off_policy("baird-kappa-one", "6", "κ = 1 is a good choice", baird.KAPPA_ONE_IS_GOOD, short="κ = 1 good"),
    across(
        "better-than-td",
        "abstract, 1",
        "Better than TD in several cases",
        lower_than_td_somewhere("walk", "walk-constant", "boyan", words=IN_SEVERAL),
        needed=SEVERAL,
    ),
    across(
        "converges-better-than-td",
        "6",
        "Better convergence than conventional linear TD",
        together(faster_than_td("walk"), faster_than_td("boyan")),
    ),
    across(
        "large-spaces",
        "6",
        "The advantage over other methods is greatest in large spaces",
        together(*(ends_grow(study, *GRADIENT, *TD_LIKE) for study in ("walk", "boyan"))),
    ),
    on_time("same-cost", "1, 1.1, 3", "The extra cost over GTD2 is negligible", costs_as_much("walk", "boyan")),
    mechanism("theorem", "4, theorem 1", "Gradient-DD converges where the assumptions hold", exact.MEAN_IS_STABLE),
    mechanism(
        "theorem-applies",
        "1, 4",
        "On walks and Boyan chains, it ends below a tenth of the initial error",
        CONVERGES,
    ),
    mechanism(
        "natural-gradient", "1.1, 3, A.2", "Related to the natural gradient, but distinct from it", exact.IS_RELATED
    ),
    mechanism("less-drastic", "1, 3", "It prevents drastic changes of the values", exact.LESS_DRASTIC),
)
TUNED_BY_SEARCH = {  # studies in which every learner is tuned by search, in words
    "walk": "Random walk",
    "walk-constant": "Random walk, constant steps",
    "walk-linear": "Random walk, linear features",
    "walk-iid": "Random walk, independent draws",
    "boyan": "Boyan chain",
    "boyan-constant": "Boyan chain, constant steps",
    "boyan-iid": "Boyan chain, independent draws",
}


def as_good_by_search(study: str) -> Ask:
    """Ask whether Gradient-DD is as good as every other learner tuned by search, in final and mean error."""
    rivals = [str(one.learner) for one in STUDIES[f"{study}-fully"].grids if one.learner != "gradient_dd"]
    return together(*(versus(study, rivals, criterion, (FULLY,)) for criterion in BOTH_AS_GOOD))


OURS = (
    own("walk-u", "A.5, 6", "Insensitive to u = ακ", insensitive("walk-u", among=BY_U), figure="walk-various-u"),
    own(
        "theorem-assumptions",
        "4 (A0) to (A4)",
        "The experiments meet the theorem's assumptions",
        exact.ASSUMPTIONS_HOLD,
    ),
    own("boyan-as-fast", "5.2", "Boyan chain: as fast as TDRC and TD", as_fast("boyan"), figure="boyan-area"),
    own("walk-iid-td", "4 (A1)", "Walk: as fast as TDRC and TD on independent transitions", as_fast("walk-iid")),
    own(
        "boyan-iid-td", "4 (A1)", "Boyan chain: as fast as TDRC and TD on independent transitions", as_fast("boyan-iid")
    ),
    own(
        "boyan-constant-td",
        "5.2 (4)",
        "Boyan chain with constant steps: as good as TDRC and TD",
        as_good("boyan-constant"),
    ),
    own("walk-natural", "3, A.5", "As good as natural GTD2 and natural TDC", AS_GOOD_AS_NATURAL, figure="walk-natural"),
    own("walk-iid", "4 (A1)", "Walk: faster than GTD2 and TDC on independent transitions", faster("walk-iid")),
    own("boyan-iid", "4 (A1)", "Boyan chain: faster than GTD2 and TDC on independent transitions", faster("boyan-iid")),
    own(
        "boyan-constant", "5.2 (4)", "Boyan chain with constant steps: lower than GTD2 and TDC", lower("boyan-constant")
    ),
    *(
        own(f"fully-{name}", "5.1, 5.2", f"{words}: tuned fully, as good as every rival", as_good_by_search(name))
        for name, words in TUNED_BY_SEARCH.items()
    ),
    own("fully-baird", "5.3", "Baird: tuned fully, as good as every rival", baird.AS_GOOD_BY_SEARCH, figure="Baird"),
    own("kappa-zeta-one", "6", "κ = ζ = 1 is as good as tuning both", as_tuned(*TUNED_BY_SEARCH)),
)


def with_figure(claim: Claim) -> Claim:
    """Return a claim with the figure of its study, if it has one study and names no other figure."""
    (study, *others) = claim.studies or [""]
    return claim if claim.figure or others or study not in FIGURES else replace(claim, figure=study)


CLAIMS = tuple(map(with_figure, (*OF_THE_PAPER, *OURS)))
