"""The scale at which the paper is reproduced: its own, or less of it for a quick look."""

from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path

from gradient_dd.errors import Words, must, whole_number
from gradient_dd.experiments.paper.studies import BAIRD_STEPS, PAPER_STUDIES, RUNS
from gradient_dd.studies.store import Store
from gradient_dd.studies.study import Study


@dataclass(frozen=True)
class Scale:
    """How many runs, and how many episodes each; None stands for the paper's own number."""

    runs: int | None = None
    episodes: int | None = None

    def __post_init__(self) -> None:
        for name in ("runs", "episodes"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(f"'{name}'", value))

    @property
    def is_smaller(self) -> bool:
        """Whether it differs from the paper's scale."""
        return self != Scale()

    @property
    def note(self) -> str:
        """The warning that a figure of another scale carries."""
        return "Smaller than the paper's scale" if self.is_smaller else ""

    def of(self, study: Study) -> Study:
        """Return a study at this scale; a run counted in steps has ten for each episode.

        `runs` is what stands for the paper's 50; a study that has fewer runs gets fewer in proportion, at least one. A
        study with longer runs gets longer ones in proportion.
        """
        runs = study.runs if self.runs is None else max(1, study.runs * self.runs // RUNS)
        if self.episodes is None:
            return replace(study, runs=runs)
        if study.episodes:
            return replace(study, runs=runs, episodes=self.episodes)
        steps = -(-self.episodes // 10) * 100 * (study.steps or BAIRD_STEPS) // BAIRD_STEPS
        return replace(study, runs=runs, steps=steps, every=gcd(study.every, steps))


def stored_scale(store: Path) -> Scale:
    """Return the scale at which a results file was made: that of the last of the paper's studies started in it."""
    with Store(store) as opened:
        started = opened.studies()
    known = {study.name: study for study in PAPER_STUDIES}
    for one in reversed(started):
        if one["name"] in known:
            study, length = known[one["name"]], one["episodes"] or one["steps"]
            return Scale(
                runs=None if one["runs"] == study.runs else one["runs"],
                episodes=None if length in (study.episodes, study.steps) else one["episodes"] or length // 10,
            )
    raise must(f"{str(store)!r}", "hold results of the paper's studies", Words("none"), "Run gradient-dd reproduce.")


def holds_the_paper(store: Path) -> bool:
    """Return whether one of the paper's studies was started in a results file."""
    known = {study.name for study in PAPER_STUDIES}
    with Store(store) as opened:
        return any(one["name"] in known for one in opened.studies())
