"""An experiment as data, the scale at which it is run, and one call of it.

A folder of results holds results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json, scale.json, report.html,
preview.png and play.html.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import gcd
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from gradient_dd.errors import Unquoted, bad_request, whole_number
from gradient_dd.experiments.claims import Claim
from gradient_dd.report.figure import Drawing, Figure
from gradient_dd.report.own_study import check_complete
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results
from gradient_dd.studies.search import SearchStudy
from gradient_dd.studies.sweep import Progress, run_all

STORE, SCALE = "results.db", "scale.json"
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


class Section(NamedTuple):
    """A section of the report: its name in claims and figures, its title, where the paper has it, and the set-up.

    by_size   plots of errors over size: a title, a measure, and the claims whose comparisons have the errors
    short     the title where there is little space
    """

    name: str
    title: str
    where: str
    setup: str
    by_size: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    short: str = ""


class PaperQuestion(NamedTuple):
    """A question that the first screen answers, from claims on the final error and from claims on the mean error."""

    text: str
    final: tuple[str, ...]
    mean: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """All that an experiment is: studies and their companions, figures, claims, and what the report says besides.

    companions   by study: those that claims on it are judged on besides
    exact        returns statements that are checked without any run
    readings, errata   how the paper is read where it is silent, and what is wrong in it
    """

    name: str
    title: str
    own_studies: tuple[Study, ...]
    claims: tuple[Claim, ...]
    figures: Mapping[str, Figure]
    companions: Mapping[str, tuple[Study, ...]] = field(default_factory=dict)
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    questions: tuple[PaperQuestion, ...] = ()
    exact: Callable[[], list[Any]] = list
    readings: Sequence[tuple[str, str]] = ()
    errata: Sequence[str] = ()

    @cached_property
    def studies(self) -> dict[str, Study]:
        """The studies that figures show or claims rest on, by name."""
        beside = (one for some in self.companions.values() for one in some)
        return {one.name: one for one in (*self.own_studies, *beside)}

    @cached_property
    def full(self) -> Scale:
        """The scale of a run without --runs and --episodes."""
        longest = max(one.episodes or (one.steps or 0) // STEPS for one in self.own_studies)
        return Scale(max(one.runs for one in self.own_studies), max(1, longest))

    def unit(self, study: str) -> str:
        """Return what the runs of a study are counted in."""
        return "episodes" if self.studies[study].episodes else "steps"

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
        return Path("results-quick" if self.note(scale) else "results")


@dataclass(frozen=True)
class Job:
    """One call of an experiment: which figures are wanted, the folder, the scale, and whether anything may run.

    how            keywords of `run_all`; without them results are only read
    minutes_left   about how long the other runs take, for the page of a first look
    """

    experiment: Experiment
    names: tuple[str, ...]
    folder: Path
    scale: Scale
    how: Mapping[str, Any] | None = None
    on_stage: OnNotice = lambda sentence: None
    minutes_left: Callable[[], int] | None = None

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

    def results(self, studies: Sequence[Study], what: str = "") -> list[Results]:
        """Return the results of studies: run what the store lacks, or raise where nothing may run.

        `what` names them for a sentence on what was done. Settings that studies share are counted in each of them.
        """
        begin = perf_counter()
        if self.how is not None:
            found = run_all(studies, self.store, **self.how)
        else:
            found = [Results(study, self.store) for study in studies]
            for one in found:
                check_complete(one, "gradient-dd reproduce")
        if what:
            self.tell(what, studies, begin)
        return found

    def tell(self, what: str, studies: Iterable[Study], begin: float) -> None:
        """Say what was done since a time, and how many updates it was."""
        updates = sum(study.estimate()["updates"] for study in studies)
        self.on_stage(f"{what}, {updates:.3g} updates: {perf_counter() - begin:.1f} s")


def write_text(file: Path, text: str) -> None:
    """Write a file as it stands, line ends included, in a folder that is made if need be."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8"))


def write_scale(folder: Path, scale: Scale, record: Mapping[str, Any] | None = None) -> None:
    """Write into a folder the scale of its results, and the record of how they were made."""
    write_text(folder / SCALE, json.dumps({"experiment": "paper", **asdict(scale), "record": record or {}}) + "\n")


def read_scale(folder: Path) -> tuple[Scale | None, dict[str, Any]]:
    """Return what `write_scale` wrote into a folder; None and an empty record if it has no results of an experiment."""
    file = folder / SCALE
    if not file.is_file():
        return None, {}
    try:
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        scale = Scale(data["runs"], data["episodes"], data.get("is_first_look") is True)
        return (scale, data.get("record") or {}) if data["experiment"] == "paper" else (None, {})
    except (ValueError, KeyError, TypeError) as error:
        hint = "Delete it, and `gradient-dd reproduce` writes it again."
        raise bad_request(
            f"{str(file)!r}", "be as `gradient-dd reproduce` wrote it", Unquoted(repr(error)), hint
        ) from None


def holds(store: Path) -> bool:
    """Return whether a results file is that of an experiment."""
    return store.name == STORE and read_scale(store.parent)[0] is not None
