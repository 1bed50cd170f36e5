"""The paper: Zhu & Murray, Gradient Descent Temporal Difference-difference Learning, every figure and every claim.

The answer stands in a few sentences and two pictures, all made from the verdicts.
"""

from collections.abc import Sequence

from gradient_dd.experiments import by_study
from gradient_dd.experiments.by_study import ByStudy, dot, rival_of, study_experiment
from gradient_dd.experiments.experiment import HELD, Job, PageContent
from gradient_dd.experiments.paper.asking import WIDE
from gradient_dd.experiments.paper.baird import STARTS, matrix_of, reading_name
from gradient_dd.experiments.paper.exact_statements import check_statements
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.readings import ERRATA, READINGS
from gradient_dd.experiments.paper.studies import COMPANIONS, PAPER_STUDIES
from gradient_dd.experiments.verdicts import ALIKE, MAIN, ClaimVerdict, Comparison
from gradient_dd.report.figure import BLACK, COLOURS, NAMES, SYMBOLS
from gradient_dd.report.small_svg import Dot, Series, domain_of, forest, over_size

SAMPLED_TEST = "test_a_claim_does_not_hold_where_it_is_false[{claim}]"
TESTS = {  # by the kind of a claim's comparisons; all others have the one above
    "time": "test_the_cost_is_read_from_the_units_of_the_study",
    "exact": "test_statements_of_theory_are_computed[{claim}]",
}
WORLDS = {"random_walk": "random walk", "boyan_chain": "Boyan chain", "baird": "Baird's counterexample"}
FORESTS = {  # TD and TDRC are rivals in each; on Baird TD diverges
    "Random walk, on-policy, last 100 episodes": ("walk-better", "walk-as-td"),
    "Boyan chain, on-policy, last 100 episodes": ("boyan-better", "boyan-as-td"),
    "Random walk, on-policy, over all episodes": ("walk-faster", "walk-as-fast"),
    "Boyan chain, on-policy, over all episodes": ("boyan-faster", "boyan-as-fast"),
    "Independent transitions, on-policy, over all episodes": ("walk-iid", "walk-iid-td", "boyan-iid", "boyan-iid-td"),
    "Constant steps, on-policy, last 100 episodes": (
        "walk-constant", "walk-constant-td", "boyan-constant", "boyan-constant-td",
    ),
    "Linear features, on-policy, last 100 episodes": ("walk-linear", "walk-linear-td"),
}  # fmt: skip
BAIRD_FOREST = "Baird, off-policy, {reading}: last 100 errors; TD diverges"


def found(verdicts: Sequence[ClaimVerdict], claim: str, tuning: str = MAIN) -> list[Comparison]:
    """Return the comparisons of a claim under a way of tuning, tuned for what is measured."""
    judgements = [one for verdict in verdicts if verdict.claim == claim for one in verdict.judgements]
    some = [one for judgement in judgements if judgement.tuning == tuning for one in judgement.comparisons]
    return [one for one in some if one.tuned_for in (one.measure, "what is measured")]


def largest(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return those of the largest size."""
    return [one for one in comparisons if one.size == max(other.size for other in comparisons)]


def headline(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Return the answer: against GTD2 and TDC, against TD and TDRC, and without trajectories."""
    gradient = largest(found(verdicts, "walk-better")) + largest(found(verdicts, "boyan-better"))
    td_like = largest(found(verdicts, "walk-as-td")) + largest(found(verdicts, "boyan-as-td"))
    alone = found(verdicts, "walk-iid") + found(verdicts, "boyan-iid")
    sentences = []
    if gradient:
        bounded = [one for one in gradient if one.edge]
        wider = largest(found(verdicts, "boyan-better", WIDE))
        remark = ""
        if bounded and wider:
            remark = f" The paper's grid ends at their best step size; with wider grids for them it is {ratios(wider)}."
        sentences.append(f"On the largest problems Gradient-DD ends with {word(gradient)}: {ratios(gradient)}.{remark}")
    if td_like:
        sentences.append(f"There it ends with {word(td_like)}: {ratios(td_like)}.{on_baird(verdicts)}")
    if alone:
        same = [one for name in ("walk-faster", "boyan-faster") for one in found(verdicts, name)]
        beside = [one for one in same if any(one.task == other.task for other in alone)]
        besides = f"; on trajectories it is {ratios(beside)}" if beside else ""
        lead = "On independent transitions, which the theorem assumes, it has"
        sentences.append(f"{lead} {word(alone)} over all episodes: {ratios(alone)}{besides}.")
    return sentences


def on_baird(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return how often it is lower than its rivals on Baird's counterexample, over all readings."""
    lead = "On Baird's counterexample, which is off-policy, it ends lower than GTD2, TDC and TDRC in"
    return "".join(
        f" {lead} {one.held} comparisons, higher in {one.refuted}, and {one.open} are open."
        for one in verdicts
        if one.claim == "baird-better"
    )


def word(comparisons: Sequence[Comparison]) -> str:
    """Return on which side of 1 the intervals lie, with the names of the rivals."""
    rivals = list(dict.fromkeys(NAMES.get(rival_of(one), "") for one in comparisons))
    named = " and ".join(rivals)
    if all(one.high < 1 for one in comparisons):
        return f"a lower error than {named}"
    if all(one.low > 1 for one in comparisons):
        return f"a higher error than {named}"
    if all(one.high >= 1 for one in comparisons):
        return f"no lower error than {named}"
    return f"an error that is not always lower than that of {named}"


def ratios(comparisons: Sequence[Comparison]) -> str:
    """Return the ratios, by task: "0.204 × GTD2 and 0.451 × TDC (random walk, m = 40)"."""
    groups: dict[tuple[str, int], list[str]] = {}
    for one in comparisons:
        label = NAMES.get(rival_of(one), "")
        groups.setdefault((one.task, one.size), []).append(f"{one.estimate:.3g} × {label}")
    return "; ".join(f"{' and '.join(parts)} ({place(*key)})" for key, parts in groups.items())


def place(task: str, size: int) -> str:
    """Return a task and its size in words."""
    name = task.partition("(")[0]
    return f"{WORLDS.get(name, name)}, {SYMBOLS.get(name, 'size')} = {size}"


def forests(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Return a forest plot for each group of claims that was judged, all with the same axis; hollow is tuned alike."""
    groups: dict[str, list[Dot]] = {}
    for title, claims in FORESTS.items():
        for claim in claims:
            alike = {key(one): one for one in found(verdicts, claim, ALIKE)}
            for one in found(verdicts, claim):
                groups.setdefault(title, []).append(dot(one))
                if key(one) in alike:
                    groups[title].append(dot(alike[key(one)], hollow=True))
    for start in STARTS.values():
        reading = reading_name("standard", "R", start)
        some = [one for one in found(verdicts, "baird-better") if one.reading == reading]
        if some:
            groups[BAIRD_FOREST.format(reading=start)] = [dot(one) for one in some]
    everything = [one for dots in groups.values() for one in dots]
    return [forest(title, dots, domain_of(everything)) for title, dots in groups.items()]


def key(one: Comparison) -> tuple[str, str]:
    """Return what two comparisons share if they are about the same learners and task."""
    return one.task, rival_of(one)


def hero(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Return the errors against size on the walk and on the Boyan chain, then Baird, then what trajectories do."""
    pictures = []
    for title, symbol, claims in (
        ("Random walk, on-policy: error at the end", "m", ("walk-better", "walk-as-td")),
        ("Boyan chain, on-policy: error at the end", "p", ("boyan-better", "boyan-as-td")),
    ):
        lines: dict[str, dict[int, float]] = {}
        for one in (one for claim in claims for one in found(verdicts, claim)):
            for side in (one.ours, one.rival):
                if side is not None:
                    lines.setdefault(side["learner"], {})[one.size] = side["mean"]
        if lines:
            series = [
                Series(
                    NAMES.get(name, name),
                    COLOURS.get(name, BLACK),
                    name == "gradient_dd",
                    list(some),
                    list(some.values()),
                )
                for name, some in sorted(lines.items(), key=lambda item: item[0] == "gradient_dd")
            ]
            pictures.append(over_size(title, symbol, series))
    return pictures + on_baird_in_dots(verdicts) + with_and_without(verdicts)


def on_baird_in_dots(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Return Gradient-DD over its rivals on Baird's counterexample, from both kinds of first weights, side by side."""
    places = [reading_name("standard", "R", start) for start in STARTS.values()]
    given, drawn = ([one for one in found(verdicts, "baird-better") if one.reading == place] for place in places)
    random = {key(one): one for one in drawn}
    dots = []
    for one in given:
        dots += [dot(one)._replace(label=f"{dot(one).label.removesuffix(' ⚠')}: paper's start")]
        if key(one) in random:
            dots += [dot(random[key(one)])._replace(label="random start", colour=BLACK)]
    return [forest("Baird, off-policy, at the end; TD diverges", dots, domain_of(dots), left=180)] if dots else []


def with_and_without(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Return Gradient-DD over its gradient rivals on trajectories and on independent transitions of the same tasks."""
    alone = found(verdicts, "walk-iid") + found(verdicts, "boyan-iid")
    same = {key(one): one for name in ("walk-faster", "boyan-faster") for one in found(verdicts, name)}
    dots = []
    for one in alone:
        if key(one) in same:
            dots += [dot(same[key(one)])._replace(label=f"{dot(one).label.removesuffix(' ⚠')}: trajectory")]
            dots += [dot(one)._replace(label="independent draws", colour=BLACK)]
    lower = [all(one.high < 1 for one in some) for some in (list(same.values()), alone)]
    title = "The gain needs trajectories" if lower == [True, False] else "With and without trajectories"
    return [forest(title, dots, domain_of(dots), left=180)] if dots else []


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
    columns={
        "claim": "where",
        "statement": "statement",
        HELD: "counted",
        "tuned alike": "alike",
        "tuned fully": "fully",
    },
    folder="experiments/paper",
)
