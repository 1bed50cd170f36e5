"""An experiment as data, the scale at which one is run, and one call of it.

A folder of results holds results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json, scale.json, report.html and
play.html.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import gcd
from pathlib import Path
from time import perf_counter
from typing import Any

from gradient_dd.errors import Unquoted, bad_request, whole_number
from gradient_dd.experiments import EXPERIMENTS
from gradient_dd.experiments.drawing import Picture
from gradient_dd.experiments.verdicts import ClaimVerdict
from gradient_dd.report.figure import Drawing, Figure
from gradient_dd.report.own_study import check_complete
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results
from gradient_dd.studies.search import SearchStudy
from gradient_dd.studies.sweep import Progress, run_all

STORE, SCALE = "results.db", "scale.json"
HELD = "verdict (held / open / refuted)"
COLUMNS = {"where": "where", "statement": "statement", HELD: "counted"}  # and what a verdict has under each
STEPS = 10  # of a run that is counted in steps, for each episode that is asked for

OnNotice = Callable[[str], None]
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Scale:
    """How many runs, and how many episodes each; None stands for the experiment's own number.

    A first look, before all runs, leaves out studies that have too few runs to take a small part of.
    """

    runs: int | None = None
    episodes: int | None = None
    is_first_look: bool = False

    def __post_init__(self) -> None:
        for name in ("runs", "episodes"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole_number(f"{name!r}", getattr(self, name)))

    @property
    def steps(self) -> int | None:
        """How many steps a run has that is counted in steps: ten for each episode."""
        return self.episodes and STEPS * self.episodes

    def of(self, study: Study, full: "Scale") -> Study:
        """Return a study at this scale.

        `runs` stands for those of the full scale; a study that has fewer runs gets fewer in proportion, at least one.
        In the same way a study with longer runs than others that are counted in steps gets longer ones.
        """
        runs = study.runs if self.runs is None else max(1, study.runs * self.runs // (full.runs or study.runs))
        if self.episodes is None:
            return replace(study, runs=runs)
        if study.steps is None:
            return replace(study, runs=runs, episodes=self.episodes)
        steps = -(-self.episodes // 10) * 10 * STEPS * study.steps // (full.steps or study.steps)
        return replace(study, runs=runs, steps=steps, every=gcd(study.every, steps))


@dataclass(frozen=True)
class PageContent:
    """What a page shows besides answer, verdicts and pictures.

    results   of studies, by name, for interactive figures
    studies   that are described at the end of the page
    facts     what the template asks for by name
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Results] = field(default_factory=dict)
    studies: Sequence[Study] = ()


@dataclass(frozen=True)
class Experiment:
    """All that one experiment is. `measure` returns what the other functions take: the evidence.

    full       the scale that a run without --runs and --episodes has
    studies    those that figures show or claims rest on, by name
    figures    of studies, and drawings that need none: by name, for those who ask for some alone
    measure    runs or reads studies through the job: all settings on some runs, then the selected ones on fresh runs
    judge      returns the verdicts on the claims
    pictures   returns what is drawn while verdicts are made
    tables     returns the text of tables/NAME.csv by name
    content    returns what the page shows; `folder` holds its template, page.html
    answer     returns what was found, in a few sentences
    exact      returns statements that are checked without any run
    columns    of the verdicts that a terminal shows, and the attribute of a verdict that each has
    """

    name: str
    title: str
    heading: str
    full: Scale
    measure: Callable[["Job"], Any]
    judge: Callable[["Job", Any], list[ClaimVerdict]]
    tables: Callable[["Job", Any], Mapping[str, str]]
    content: Callable[["Job", Any, list[ClaimVerdict]], PageContent]
    answer: Callable[[Any, list[ClaimVerdict]], list[str]] = lambda evidence, verdicts: []
    pictures: Callable[["Job", Any], list[Picture]] = lambda job, evidence: []
    exact: Callable[[], list[Any]] = list
    studies: Mapping[str, Study] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    folder: str = "experiments"

    def note(self, scale: Scale) -> str:
        """Return the warning that numbers of a smaller scale carry; empty at the full scale."""
        parts = [
            f"{getattr(scale, name):,} of {getattr(self.full, name):,} {name}"
            for name in ("runs", "episodes")
            if getattr(scale, name) and getattr(scale, name) < (getattr(self.full, name) or 0)
        ]
        return f"First look: {', '.join(parts)}" if parts else ""

    def results_folder(self, scale: Scale) -> Path:
        """Return the folder that results go to unless another is named."""
        plain = "results" if self.name == "paper" else f"results-{self.name}"
        return Path(f"{plain}-quick" if self.note(scale) else plain)


@dataclass(frozen=True)
class Job:
    """One call of an experiment: which figures are wanted, the folder, the scale, and whether anything may run.

    `how` are the keywords of `run_all`; without them results are only read.
    """

    experiment: Experiment
    names: tuple[str, ...]
    folder: Path
    scale: Scale
    how: Mapping[str, Any] | None = None
    on_stage: OnNotice = lambda sentence: None

    def leaves_out(self, study: Study) -> bool:
        """Return whether a first look leaves out a companion: a search, or one whose share of the runs is below 1."""
        scale, full = self.scale.runs or 0, self.experiment.full.runs or 1
        return self.scale.is_first_look and (isinstance(study, SearchStudy) or study.runs * scale < full)

    @property
    def note(self) -> str:
        """The warning about the scale."""
        return self.experiment.note(self.scale)

    @property
    def store(self) -> Path:
        """The results file."""
        return self.folder / STORE

    @property
    def figures(self) -> list[Figure]:
        """The figures of studies that are wanted."""
        return [one for name, one in self.experiment.figures.items() if not self.names or name in self.names]

    @property
    def drawings(self) -> list[Drawing]:
        """The drawings that are wanted."""
        return [one for name, one in self.experiment.drawings.items() if not self.names or name in self.names]

    def at_scale(self, study: Study) -> Study:
        """Return a study at the scale of this call."""
        return self.scale.of(study, self.experiment.full)

    def results(self, studies: Sequence[Study], what: str) -> list[Results]:
        """Return the results of studies: run what the store lacks, or raise where nothing may run; `what` names them.

        Settings that studies share are counted in each of them.
        """
        begin = perf_counter()
        found = self.obtain(studies)
        self.tell(what, studies, begin)
        return found

    def obtain(self, studies: Sequence[Study]) -> list[Results]:
        """Return the results of studies as `results` does, without a word."""
        if self.how is not None:
            return run_all(studies, self.store, **self.how)
        found = [Results(study, self.store) for study in studies]
        for one in found:
            check_complete(one, "gradient-dd reproduce")
        return found

    def tell(self, what: str, studies: Iterable[Study], begin: float) -> None:
        """Say what was done since a time, and how many updates it was."""
        updates = sum(study.estimate()["updates"] for study in studies)
        self.on_stage(f"{what}, {updates:.3g} updates: {perf_counter() - begin:.1f} s")


def write_text(file: Path, text: str) -> None:
    """Write a file as it stands, line ends included, in a folder that is made if need be."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8"))


def write_scale(folder: Path, experiment: str, scale: Scale) -> None:
    """Write into a folder which experiment it is of, and at which scale."""
    write_text(folder / SCALE, json.dumps({"experiment": experiment, **asdict(scale)}) + "\n")


def read_scale(folder: Path) -> tuple[str, Scale] | None:
    """Return of which experiment a folder is, and the scale it was made at last; None if it is of none."""
    file = folder / SCALE
    if not file.is_file():
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        name, scale = data["experiment"], Scale(data["runs"], data["episodes"], data.get("is_first_look") is True)
    except (ValueError, KeyError, TypeError) as error:
        hint = "Delete it, and `gradient-dd reproduce` writes it anew."
        raise bad_request(
            f"{str(file)!r}", "be as `gradient-dd reproduce` wrote it", Unquoted(repr(error)), hint
        ) from None
    return (name, scale) if name in EXPERIMENTS else None


def holds(store: Path) -> bool:
    """Return whether a results file is that of an experiment."""
    return store.name == STORE and read_scale(store.parent) is not None
