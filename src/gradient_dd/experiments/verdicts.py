"""Verdicts on claims, from questions about test runs: plain data for the page, the tables and JSON.

    ClaimQuestion  two learners (or one and its initial error) on a case, and the claimed side of a bound on their ratio
    Comparison     the answer: the ratio on test runs, an interval, and whether the interval lies on that side
    Judgement      the comparisons of one variant and one way of tuning; their intervals have a joint level of 95 %
    ClaimVerdict   all judgements of a claim, summarised by a word, three counts and a sentence
    Claim          a statement, its place in the paper, and the questions that decide it

An outcome is "holds" if the whole interval is on the claimed side, "fails" if it is on the other side, and "open" if it
contains the bound. Each interval of a judgement of n comparisons has level 1 − 0.05/n, so that all n intervals cover
jointly with 95 % (Bonferroni). There is no correction across judgements: without any effect, about one judgement in
twenty would show an effect.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from gradient_dd.experiments.tuning import TunedSetting
from gradient_dd.experiments.wording import sentence
from gradient_dd.studies.intervals import LEVEL, Interval, ratio_interval

MAIN, ALIKE, FULLY = "as the paper has it", "tuned alike", "tuned fully"
SUFFIXES = {MAIN: "", ALIKE: "-alike", FULLY: "-fully"}  # suffixes of the names of companions, by way of tuning
WORDS = ("holds", "partly holds", "does not hold", "undecided", "not judged")  # words of verdicts
OUTCOMES = ("holds", "open", "fails")  # outcomes of a comparison; counted as held, open and refuted
SAMPLED_TEST = "test_a_claim_does_not_hold_where_it_is_false[{claim}]"
TESTS = {  # by the type of a claim's comparisons
    "time": "test_the_cost_is_read_from_the_units_of_the_study",
    "exact": "test_statements_of_theory_are_computed[{claim}]",
}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of a ratio, or of another number, with a bound.

    kind     "ratio" ours / rival, "growth" of rival / ours from `before` to here, "share" of the initial error, or
             "count", "time", "exact"
    side     "below" or "above": the claimed side of `bound`
    runs     number of test runs (or starts); 0 if nothing was sampled
    level    confidence level of the interval from `low` to `high`
    before   for a growth: the same two learners at the smaller size
    variant  variant of the task as text: "constant steps", or the interpretation of Baird's counterexample
    selection_runs   number of runs on which the settings were selected; 0 without selection
    """

    kind: str
    study: str = ""
    task: str = ""
    size: int = 0
    reading: str
    tuning: str
    tuned_for: str
    measure: str = ""
    ours: dict[str, Any] | None = None
    rival: dict[str, Any] | None = None
    before: dict[str, Any] | None = None
    side: str
    bound: float
    runs: int = 0
    level: float
    estimate: float
    low: float
    high: float
    outcome: str
    holds: bool
    edge: str = ""
    text: str = ""
    variant: str = ""
    selection_runs: int = 0


@dataclass(frozen=True)
class Pair:
    """Two tuned learners on a case; without a rival, one learner against the error of its initial weights."""

    ours: TunedSetting
    rival: TunedSetting | None
    measure: str

    def arrays(self) -> tuple[Any, Any]:
        """Return the errors of both learners on test runs, (units,) each."""
        ours = self.ours.errors(self.measure)
        if self.rival is None:
            return ours, 0 * ours + self.ours.evidence.first_error(self.ours.case)
        theirs = self.rival.errors(self.measure)
        common = min(len(ours), len(theirs))  # the runs that both studies have
        return ours[:common], theirs[:common]

    def facts(self) -> dict[str, Any]:
        """Return the facts about the pair that a comparison reports: case, number of runs, and both learners."""
        ours, evidence = self.ours, self.ours.evidence
        learners = [ours] if self.rival is None else [ours, self.rival]
        return evidence.place(ours.case) | {
            "study": ", ".join(dict.fromkeys(one.evidence.study.name for one in learners)),
            "measure": self.measure,
            "runs": len(self.arrays()[0]),
            "ours": ours.facts(self.measure),
            "rival": self.rival.facts(self.measure)
            if self.rival
            else {"label": "the initial error", "mean": evidence.first_error(ours.case)},
            "edge": "; ".join(f"{one.line.label}: {one.edge}" for one in learners if "alpha" in one.edge),
            "variant": evidence.variant(ours.case),
            "selection_runs": evidence.study.runs,
        }


@dataclass(frozen=True)
class ClaimQuestion:
    """A question about test runs of settings that were selected on tuning runs.

    `answer` returns the interval at a level; without `answer`, the result is the ratio of the pairs. `facts` has
    additional fields of the comparison.
    """

    kind: str
    pairs: tuple[Pair, ...]
    side: str
    bound: float
    reading: str = "default"
    tuning: str = MAIN
    tuned_for: str = "last100"
    answer: Callable[[float], Interval] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def compare(self, level: float) -> Comparison:
        """Return the answer as a comparison, with an interval at a level."""
        pairs = [pair.arrays() for pair in self.pairs]
        if self.kind == "growth":  # growth of rival / ours from the first pair to the second
            pairs = [(theirs, ours) for ours, theirs in reversed(pairs)]
        estimate, low, high = self.answer(level) if self.answer else ratio_interval(*pairs, level=level)
        outcome = outcome_of(low, high, self.side, self.bound)
        facts: dict[str, Any] = self.pairs[-1].facts() if self.pairs else {}
        if self.kind == "growth":
            facts["before"] = self.pairs[0].facts()
        if self.reading != "default":
            facts["variant"] = self.reading
        return Comparison(
            kind=self.kind, reading=self.reading, tuning=self.tuning, tuned_for=self.tuned_for, side=self.side,
            bound=self.bound, level=level, estimate=estimate, low=low, high=high, outcome=outcome,
            holds=outcome == "holds", **facts | self.facts,
        )  # fmt: skip


def exactly(value: float) -> Callable[[float], Interval]:
    """Return the `answer` for a number that is known exactly: the interval contains only the number."""
    return lambda level: Interval(value, value, value)


def outcome_of(low: float, high: float, side: str, bound: float) -> str:
    """Return "holds", "fails" or "open" if an interval is on a side of a bound, on the other side, or contains it."""
    if side == "below":
        return "holds" if high < bound else "fails" if low > bound else "open"
    return "holds" if low > bound else "fails" if high < bound else "open"


class Tally(NamedTuple):
    """The numbers of comparisons that held, are open and were refuted."""

    held: int
    open: int
    refuted: int

    def __str__(self) -> str:
        return " / ".join(map(str, self))


def tally(comparisons: Iterable[Comparison]) -> Tally:
    """Return the number of comparisons with each outcome."""
    found = [one.outcome for one in comparisons]
    return Tally(*map(found.count, OUTCOMES))


@dataclass(frozen=True)
class Judgement:
    """The comparisons of one variant and one way of tuning, summarised by a verdict and three counts."""

    reading: str
    tuning: str
    tuned_for: str
    verdict: str
    held: int
    open: int
    refuted: int
    comparisons: list[Comparison]


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with our findings; `Claim` describes the fields that the two classes share.

    verdict, held, open, refuted   over all judgements of the first way of tuning, which is the paper's if it has one
    alike      the verdict and its counts if all learners have equally many settings: "partly holds (3 / 2 / 1)", or ""
    fully      the same text if every learner is tuned by search
    finding    a sentence made from the numbers
    test       the test that shows that the criterion can fail
    variants   the variants of tasks in its comparisons
    runs, selection_runs   the numbers of test runs and of tuning runs in its comparisons
    """

    claim: str
    source: str
    where: str
    statement: str
    criterion: str
    verdict: str
    held: int
    open: int
    refuted: int
    alike: str
    fully: str
    finding: str
    studies: list[str]
    needed: int | None
    judgements: list[Judgement]
    section: str = ""
    group: str = ""
    figure: str = ""
    short: str = ""
    test: str = ""
    variants: list[str] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    selection_runs: list[int] = field(default_factory=list)

    @property
    def tally(self) -> str:
        """The numbers of comparisons that held, are open and were refuted: "2 / 4 / 0"."""
        return f"{self.held} / {self.open} / {self.refuted}"

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons of all judgements."""
        return compared(self.judgements)


def compared(judgements: Iterable[Judgement]) -> list[Comparison]:
    """Return the comparisons of several judgements."""
    return [one for judgement in judgements for one in judgement.comparisons]


def under(judgements: list[Judgement], tuning: str = "") -> list[Judgement]:
    """Return the judgements under a way of tuning; if there are none, the judgements of the first way."""
    asked = [one.tuning for one in judgements]
    return [one for one in judgements if one.tuning == (tuning if tuning in asked else asked[0])]


def in_words(comparisons: list[Comparison], needed: int | None = None) -> str:
    """Return the verdict of several comparisons, of which `needed` (by default all) must hold."""
    held = sum(one.holds for one in comparisons)
    if not comparisons:
        return "not judged"
    if held >= (needed or len(comparisons)):
        return "holds"
    if needed is None and held:
        return "partly holds"
    return "undecided" if all(one.outcome == "open" for one in comparisons) else "does not hold"


def over_all(judgements: list[Judgement], needed: int | None = None) -> str:
    """Return the verdict of several judgements; in each judgement, `needed` (by default all) comparisons must hold."""
    held = [judgement.verdict == "holds" for judgement in judgements]
    if needed is not None and any(held):
        return "holds" if all(held) else "partly holds"
    return in_words(compared(judgements), needed)


def judged(questions: list[ClaimQuestion], needed: int | None) -> list[Judgement]:
    """Return a judgement for each variant and way of tuning, in the order of the questions."""
    groups: dict[tuple[str, str, str], list[ClaimQuestion]] = {}
    for question in questions:
        groups.setdefault((question.reading, question.tuning, question.tuned_for), []).append(question)
    found = []
    for key, asked in groups.items():
        level = 1 - (1 - LEVEL) / len(asked)
        comparisons = [question.compare(level) for question in asked]
        found.append(Judgement(*key, in_words(comparisons, needed), *tally(comparisons), comparisons))
    return found


@dataclass(frozen=True)
class Ask:
    """The way to decide a claim: the criterion in words, the studies, and the questions about their evidence."""

    criterion: str
    studies: tuple[str, ...]
    questions: Callable[[Any], list[ClaimQuestion]]

    def __call__(self, evidence: Any) -> list[ClaimQuestion]:
        return self.questions(evidence)


@dataclass(frozen=True)
class Claim:
    """A statement in our words, its place in the paper, and the way to decide it.

    needed   number of comparisons that must hold; None stands for all comparisons
    section, group, figure   where the report shows the claim; a claim without a section is among the extras
    short    a short form of the statement for places with little space
    source   "paper"; "time" for a statement of the paper on wall-clock time, which depends on the machine and is not
             counted; "ours" for a statement that we added
    """

    name: str
    where: str
    statement: str
    ask: Ask
    needed: int | None = None
    source: str = "paper"
    section: str = "extras"
    group: str = ""
    figure: str = ""
    short: str = ""

    @property
    def studies(self) -> tuple[str, ...]:
        """The studies that the claim is about; none for claims of theory."""
        return self.ask.studies

    def judge(self, questions: list[ClaimQuestion]) -> ClaimVerdict:
        """Return the verdict, from test runs of the settings in the questions."""
        judgements = judged(questions, self.needed)
        main, every = under(judgements), compared(judgements)
        # The test that shows that the criterion distinguishes true from false
        test = next((TESTS[one.kind] for one in every if one.kind in TESTS), SAMPLED_TEST).format(claim=self.name)
        same = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("name", "ask")}
        return ClaimVerdict(
            **same,
            claim=self.name,
            criterion=self.ask.criterion,
            verdict=over_all(main, self.needed),
            **tally(compared(main))._asdict(),
            alike=self.told(judgements, ALIKE),
            fully=self.told(judgements, FULLY),
            finding=sentence(compared(main), self.needed),
            studies=list(self.studies),
            judgements=judgements,
            test=f"tests/experiments/test_claims.py::{test}",
            variants=list(dict.fromkeys(one.variant for one in every if one.variant)),
            runs=sorted({one.runs for one in every if one.runs}),
            selection_runs=sorted({one.selection_runs for one in every if one.selection_runs}),
        )

    def told(self, judgements: list[Judgement], tuning: str) -> str:
        """Return the verdict with its counts under one way of tuning; empty if there is no judgement."""
        some = [one for one in judgements if one.tuning == tuning]
        return f"{over_all(some, self.needed)} ({tally(compared(some))})" if some else ""
