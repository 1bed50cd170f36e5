"""The paper: Zhu & Murray, Gradient Descent Temporal Difference-difference Learning, every figure and every claim.

The answer stands in a few sentences and two pictures, all made from the verdicts.
"""

from collections.abc import Sequence

from gradient_dd.experiments import by_study
from gradient_dd.experiments.by_study import ByStudy, dot, rival_of, study_experiment
from gradient_dd.experiments.experiment import HELD, Job, PageContent
from gradient_dd.experiments.paper import fully
from gradient_dd.experiments.paper.answer import found, headline
from gradient_dd.experiments.paper.baird import STARTS, matrix_of, reading_name
from gradient_dd.experiments.paper.exact_statements import check_statements
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.readings import ERRATA, READINGS
from gradient_dd.experiments.paper.studies import COMPANIONS, PAPER_STUDIES
from gradient_dd.experiments.verdicts import FULLY, ClaimVerdict, Comparison
from gradient_dd.report.figure import BLACK, COLOURS, NAMES
from gradient_dd.report.svg import Dot, ForestSize, PlotAxis, Series, forest, over_size, ratio_axis

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
WIDE_LABELS = ForestSize(left=180)
BAIRD_FOREST = "Baird, off-policy, {reading}: last 100 errors; TD diverges"


def forests(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Return a forest plot for each group of claims that was judged, all with the same axis; hollow is tuned fully."""
    groups: dict[str, list[Dot]] = {}
    for title, claims in FORESTS.items():
        for claim in claims:
            full = {key(one): one for one in found(verdicts, claim, FULLY)}
            for one in found(verdicts, claim):
                groups.setdefault(title, []).append(dot(one))
                if key(one) in full:
                    groups[title].append(dot(full[key(one)], hollow=True))
    for start in STARTS.values():
        reading = reading_name("standard", "R", start)
        some = [one for one in found(verdicts, "baird-better") if one.reading == reading]
        if some:
            groups[BAIRD_FOREST.format(reading=start)] = [dot(one) for one in some]
    axis = ratio_axis([one for dots in groups.values() for one in dots])
    return [ratios(title, dots, axis, ForestSize()) for title, dots in groups.items()]


def ratios(title: str, dots: Sequence[Dot], axis: PlotAxis, size: ForestSize = WIDE_LABELS) -> str:
    """Return a forest plot of ratios, with a line at 1."""
    words = f"{title}: ratios with intervals; the numbers are in the ledger"
    return forest(dots, axis, title=title, words=words, size=size)


def key(one: Comparison) -> tuple[str, str]:
    """Return what two comparisons share if they are about the same learners and task."""
    return one.task, rival_of(one)


def hero(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Return the errors against size, tuned fully, on walk and Boyan chain; then Baird, then what trajectories do."""
    pictures = []
    for title, symbol, claims in (
        ("Random walk, on-policy: error at the end", "m", ("fully-walk",)),
        ("Boyan chain, on-policy: error at the end", "p", ("fully-boyan",)),
    ):
        lines: dict[str, dict[int, float]] = {}
        for one in (one for claim in claims for one in found(verdicts, claim, FULLY) if one.measure == "last100"):
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
    return [ratios("Baird, off-policy, at the end; TD diverges", dots, ratio_axis(dots))] if dots else []


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
    return [ratios(title, dots, ratio_axis(dots))] if dots else []


def content(job: Job, evidence: ByStudy, verdicts: list[ClaimVerdict]) -> PageContent:
    """Return what the page shows besides the ledger and the figures: the answer in pictures, readings and errata."""
    plain = by_study.content(job, evidence, verdicts)
    long = evidence.get("baird-long")
    more = {
        "hero": hero(verdicts),
        "forests": forests(verdicts),
        "full_rows": fully.full_rows(verdicts),
        "matrix": matrix_of(verdicts, long.study.steps) if long else None,
        "tests": {one.claim: one.test for one in verdicts},
        "drawings": job.drawings,
        "readings": READINGS,
        "errata": ERRATA,
    }
    return PageContent({**plain.facts, **more}, plain.results, plain.studies)


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
