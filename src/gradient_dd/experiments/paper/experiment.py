"""The paper: Zhu & Murray, Gradient Descent Temporal Difference-difference Learning, every figure and every claim."""

from gradient_dd.experiments import by_study
from gradient_dd.experiments.by_study import ByStudy, study_experiment
from gradient_dd.experiments.experiment import Job, PageContent
from gradient_dd.experiments.paper.answer import forests, headline, hero
from gradient_dd.experiments.paper.baird import matrix_of
from gradient_dd.experiments.paper.exact_statements import check_statements
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.readings import ERRATA, READINGS
from gradient_dd.experiments.paper.studies import COMPANIONS, PAPER_STUDIES
from gradient_dd.experiments.verdicts import ClaimVerdict

SAMPLED_TEST = "test_a_claim_does_not_hold_where_it_is_false[{claim}]"
TESTS = {  # by the kind of a claim's comparisons; all others have the one above
    "time": "test_the_cost_is_read_from_the_units_of_the_study",
    "exact": "test_statements_of_theory_are_computed[{claim}]",
}


def content(job: Job, evidence: ByStudy, verdicts: list[ClaimVerdict]) -> PageContent:
    """Return what the page shows besides the ledger and the figures: the answer in pictures, readings and errata."""
    plain = by_study.content(job, evidence, verdicts)
    long = evidence.get("baird-long")
    more = {
        "hero": hero(verdicts),
        "forests": forests(verdicts),
        "matrix": matrix_of(verdicts, long.study.steps) if long else None,
        "tests": {one.claim: held_by(one) for one in verdicts},
        "drawings": job.drawings,
        "readings": READINGS,
        "errata": ERRATA,
    }
    return PageContent({**plain.facts, **more}, plain.results, plain.studies)


def held_by(verdict: ClaimVerdict) -> str:
    """Return the test that shows that a claim's criterion tells true from false."""
    kinds = {one.kind for one in verdict.comparisons}
    test = next((test for kind, test in TESTS.items() if kind in kinds), SAMPLED_TEST)
    return f"tests/experiments/test_claims.py::{test.format(claim=verdict.claim)}"


EXPERIMENT = study_experiment(
    "paper",
    "Gradient-DD: the paper, reproduced",
    PAPER_STUDIES,
    CLAIMS,
    FIGURES.values(),
    COMPANIONS,
    heading="Gradient-DD: when is it better?",
    drawings=DRAWINGS,
    exact=check_statements,
    answer=lambda evidence, verdicts: headline(verdicts),
    content=content,
    columns={"claim": "where", "statement": "statement", "verdict": "counted", "tuned alike": "alike"},
    full_words="the paper's scale",
    folder="experiments/paper",
)
