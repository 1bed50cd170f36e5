"""The scale of a reproduction, and the description of one call.

A folder of results holds results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json, scale.json, report.html and
play.html.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import gcd
from pathlib import Path
from time import perf_counter
from typing import Any

from gradient_dd.errors import Unquoted, bad_request, whole_number
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.studies import RUNS, WALK_EPISODES
from gradient_dd.report.figure import Drawing, Figure
from gradient_dd.report.own_study import check_complete
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results
from gradient_dd.studies.search import SearchStudy
from gradient_dd.studies.sweep import run_all

STORE, SCALE = "results.db", "scale.json"

OnNotice = Callable[[str], None]


@dataclass(frozen=True)
class Scale:
    """The number of runs, and of episodes per run; None stands for the paper's number.

    A first look, before all runs, omits searches, and companions of which it would run less than one run.
    """

    runs: int | None = None
    episodes: int | None = None
    is_first_look: bool = False

    def __post_init__(self) -> None:
        for name in ("runs", "episodes"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole_number(f"{name!r}", getattr(self, name)))

    def of(self, study: Study) -> Study:
        """Return a study at this scale.

        `runs` refers to studies with the paper's number of runs; a study with fewer runs is scaled in proportion, to at
        least one run. A study of 200,000 steps gets ten steps for each episode; a longer study gets more in proportion.
        """
        runs = study.runs if self.runs is None else max(1, study.runs * self.runs // RUNS)
        if self.episodes is None:
            return replace(study, runs=runs)
        if study.steps is None:
            return replace(study, runs=runs, episodes=self.episodes)
        steps = -(-self.episodes // 10) * 10 * study.steps // WALK_EPISODES
        return replace(study, runs=runs, steps=steps, every=gcd(study.every, steps))

    @property
    def note(self) -> str:
        """The warning that accompanies results of a smaller scale; empty at the full scale."""
        parts = [
            f"{own:,} of {full:,} {name}"
            for name, own, full in (("runs", self.runs, RUNS), ("episodes", self.episodes, WALK_EPISODES))
            if own and own < full
        ]
        return f"First look: {', '.join(parts)}" if parts else ""

    @property
    def folder(self) -> Path:
        """The default folder of results at this scale."""
        return Path("results-quick" if self.note else "results")


@dataclass(frozen=True)
class Job:
    """One call of a reproduction: the names of figures (() for all), the folder, the scale, and how to run.

    how            keywords of `run_all`; None to read stored results only
    minutes_left   returns the minutes that the other runs will take, for the page of a first look
    """

    names: tuple[str, ...]
    folder: Path
    scale: Scale
    how: Mapping[str, Any] | None = None
    on_stage: OnNotice = lambda sentence: None
    minutes_left: Callable[[], int] | None = None

    def leaves_out(self, study: Study) -> bool:
        """Return whether a first look leaves out a study: a search, or a study whose share is less than one run."""
        too_few = study.runs * (self.scale.runs or 0) < RUNS
        return self.scale.is_first_look and (isinstance(study, SearchStudy) or too_few)

    @property
    def store(self) -> Path:
        """The path of the results file."""
        return self.folder / STORE

    @property
    def figures(self) -> list[Figure]:
        """The requested figures of studies."""
        return [one for name, one in FIGURES.items() if not self.names or name in self.names]

    @property
    def drawings(self) -> list[Drawing]:
        """The requested drawings."""
        return [one for name, one in DRAWINGS.items() if not self.names or name in self.names]

    def results(self, studies: Sequence[Study], what: str = "") -> list[Results]:
        """Return the results of studies: run missing results, or raise if this job only reads results.

        `what` names the studies in the message about this stage, which counts shared settings once per study.
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
        """Report a stage: its number of updates, and its duration since `begin`."""
        updates = sum(study.estimate()["updates"] for study in studies)
        self.on_stage(f"{what}, {updates:.3g} updates: {perf_counter() - begin:.1f} s")


def write_text(file: Path, text: str) -> None:
    """Write a text with unchanged line endings; create the folder if necessary."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8"))


def write_scale(folder: Path, scale: Scale, record: Mapping[str, Any] | None = None) -> None:
    """Write the scale of the results in a folder, and the record of how they were made."""
    write_text(folder / SCALE, json.dumps({"experiment": "paper", **asdict(scale), "record": record or {}}) + "\n")


def read_scale(folder: Path) -> tuple[Scale | None, dict[str, Any]]:
    """Return the scale and the record that `write_scale` wrote; None and {} for a folder without a reproduction."""
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
