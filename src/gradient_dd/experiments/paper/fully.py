"""Our own claims on learners that are tuned by search over all their parameters."""

from dataclasses import replace
from functools import partial
from itertools import product

from gradient_dd.experiments.claims import Ask, Claim
from gradient_dd.experiments.paper import baird
from gradient_dd.experiments.paper.asking import (
    AS_GOOD,
    AS_GOOD_AS,
    WHOLE,
    ByStudy,
    Criterion,
    ratio,
    together,
    versus,
)
from gradient_dd.experiments.paper.figures import PLAIN_DD
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.experiments.verdicts import FULLY, ClaimQuestion, Pair
from gradient_dd.report.figure import Line

WORDS = {
    "walk": "Random walk",
    "walk-constant": "Random walk, constant steps",
    "walk-linear": "Random walk, linear features",
    "walk-iid": "Random walk, independent draws",
    "boyan": "Boyan chain",
    "boyan-constant": "Boyan chain, constant steps",
    "boyan-iid": "Boyan chain, independent draws",
}
AS_FAST = Criterion(AS_GOOD_AS.words, bound=AS_GOOD, measure="mean_error", tuned_for=("mean_error",))
GOALS = (AS_GOOD_AS, AS_FAST)
ONE = Line("Gradient-DD, κ = ζ = 1", "gradient_dd", PLAIN_DD)
PREFIX = "fully-"


def rivals(study: str) -> tuple[str, ...]:
    """Return the learners that are tuned fully beside Gradient-DD."""
    learners = (str(one.learner) for one in STUDIES[f"{study}-fully"].grids)
    return tuple(learner for learner in learners if learner != "gradient_dd")


def as_good_as_all(study: str) -> Ask:
    """Ask whether Gradient-DD is as good as every rival, in the final and the mean error."""
    return together(*(versus(study, rivals(study), goal, (FULLY,)) for goal in GOALS))


def as_tuned(*studies: str) -> Ask:
    """Ask whether κ = ζ = 1 is as good as tuning both, in the final and the mean error."""

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        found = []
        for goal in GOALS:
            for study in (study for study in studies if f"{study}-fully" in evidence):
                plain, tuned = evidence[f"{study}-one"], evidence[f"{study}-fully"]
                for case in tuned.cases:
                    ours = plain.choose(case, ONE, goal.measure)
                    best = tuned.choose(case, WHOLE["gradient_dd"], goal.measure)
                    found.append(ratio(Pair(ours, best, goal.measure), goal, FULLY, goal.measure))
        return found

    return Ask(AS_GOOD_AS.words, studies, questions)


def as_good_on_baird(evidence: ByStudy) -> list[ClaimQuestion]:
    """Return the questions whether Gradient-DD is as good as every rival on Baird's counterexample, by reading."""
    found = []
    for one in baird.readings(evidence, baird.MODES, tunings=(FULLY,)):
        placed = [Line(WHOLE[name].label, name, rho_mode=one.mode) for name in ("gradient_dd", "gtd2", "gtd2_to_td")]
        others = [*placed[1:], *(WHOLE[name] for name in ("td", "tdrc", "tdc", "htd", "htd_dd"))]
        for goal, case in product(("last100", "mean_error"), one.cases):
            ours = one.evidence.choose(case, placed[0], goal)
            for rival in others:
                pair = Pair(ours, one.evidence.choose(case, rival, goal), goal)
                found.append(replace(baird.question(one, "ratio", pair, "below", AS_GOOD), tuned_for=goal))
    return found


ours = partial(Claim, source="ours")
CLAIMS = (
    *(
        ours(f"{PREFIX}{study}", "5.1, 5.2", f"{words}: tuned fully, as good as every rival", as_good_as_all(study))
        for study, words in WORDS.items()
    ),
    ours(
        f"{PREFIX}baird",
        "5.3",
        "Baird: tuned fully, as good as every rival",
        Ask(AS_GOOD_AS.words, ("baird",), as_good_on_baird),
    ),
    ours("kappa-zeta-one", "6", "κ = ζ = 1 is as good as tuning both", as_tuned(*WORDS)),
)
