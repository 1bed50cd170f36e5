"""A figure of a study, as data: the study, the lines to show, and their numbers. Nothing here draws."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies import intervals
from gradient_dd.studies.results import Results, places, tuned
from gradient_dd.studies.study import task_size
from gradient_dd.tasks import Task

# RED is strong and stands for Gradient-DD; the other colours are muted. All have a medium lightness, visible on white
# and on black, and hues as different as in the palette of Okabe and Ito. Markers distinguish lines without colour.
BLACK, SKY, ORANGE, GREEN, RED, PURPLE, BLUE, YELLOW, BROWN = (
    "#7a7a7a", "#5f97bf", "#a8873c", "#4f9a7f", "#d84a05", "#a878a0", "#4a7bb5", "#8f8a3a", "#7d5a46",
)  # fmt: skip
RAMP = ("#4157e4", "#1b79bc", "#1f9074", "#8f8f24", "#d58018")  # for one parameter, from small (dark) to large (light)
DECADES = 6  # largest number of decades on an axis of errors
MARKERS = "osv^DdPX<>"
STRONG = RED
COLOURS = {  # by learner, on all pages; a learner derived from another learner has the same colour and a dashed line
    "td": BLACK, "tdrc": SKY, "gtd2": ORANGE, "tdc": GREEN, "gradient_dd": RED, "htd": PURPLE, "pgtd2": YELLOW,
    "etd": BLUE, "vtrace": BROWN,
}  # fmt: skip
MADE_FROM = {
    "gtd": "gtd2", "natural_gtd2": "gtd2", "gtd2_momentum": "gtd2", "gtd2_to_td": "gtd2", "pgtd2_dd": "pgtd2",
    "natural_tdc": "tdc", "tdc_momentum": "tdc", "tdc_to_td": "tdc", "tdc_dd": "tdc", "tdrc_dd": "tdrc",
    "htd_dd": "htd", "etd_beta": "etd", "tree_backup": "vtrace", "abtd": "vtrace", "true_online_td": "td",
    "residual_gradient": "td",
}  # fmt: skip
COLOURS |= {name: COLOURS[base] for name, base in MADE_FROM.items()}
GREEK = {"alpha": "α", "zeta": "ζ", "kappa": "κ", "lam": "λ"}
SYMBOLS = {"random_walk": "m", "boyan_chain": "p", "baird": "N"}  # symbols for the size of a task
TASK_NAMES = {"random_walk": "random walk", "boyan_chain": "Boyan chain", "baird": "Baird's counterexample"}
RATIOS = {"paper": "printed", "standard": "usual"}  # of Baird's counterexample
NAMES = {name: rule.label for name, rule in LEARNERS.items()}


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return the colour of each learner; rules that are not registered get unused colours."""
    shown = list(dict.fromkeys(names))
    taken = {COLOURS[name] for name in shown if name in COLOURS}
    spare = cycle([one for one in (PURPLE, BLUE, YELLOW, BROWN) if one not in taken] or [BLACK])
    return {name: COLOURS[name] if name in COLOURS else next(spare) for name in shown}


@dataclass(frozen=True)
class Line:
    """One line of a figure: a learner with fixed parameters, e.g. "kappa" or "u" (= ακ); others are tuned."""

    label: str
    learner: str
    held: tuple[tuple[str, float], ...] = ()
    rho_mode: str = "R"
    colour: str = BLACK
    dashed: bool = False

    def has(self, setting: Setting) -> bool:
        """Return whether a setting belongs to the line."""
        values = dict(setting.values)
        if "kappa" in values:
            values["u"] = round(values["alpha"] * values["kappa"], 9)
        held = all(values.get(name) == value for name, value in self.held)
        return setting.rule.name == self.learner and setting.rho_mode == self.rho_mode and held


@dataclass(frozen=True)
class Figure:
    """A figure of a study: errors over alpha above, learning curves below, a column for each task.

    `measure`, "last100" or "mean_error", is the error drawn above, and settings are tuned to minimise it. `header`
    is the function, as "module:name", that draws a picture above the panels.

    section, tab   the section of a report that shows the figure, and the figure's name in the section
    source         the figure of the paper, e.g. "Fig. 2"; empty for a figure that is not in the paper
    split          a parameter of the tasks: a report has a tab for each of its values, named by `tabs`
    """

    name: str
    title: str
    study: str
    lines: tuple[Line, ...]
    measure: str = "last100"
    remark: str = ""
    header: str = ""
    section: str = ""
    tab: str = ""
    source: str = ""
    split: str = ""
    tabs: Mapping[str, str] = field(default_factory=dict)

    @property
    def compares_rivals(self) -> bool:
        """Whether the lines are tuned learners instead of values of a parameter."""
        return len({line.learner for line in self.lines}) > 1


@dataclass(frozen=True)
class Drawing:
    """A figure that needs no study: a function, given as "module:name", draws it from tasks into a folder."""

    name: str
    title: str
    explanation: str
    drawn_by: str
    section: str = ""
    tab: str = ""


class LineData(NamedTuple):
    """The numbers of a line.

    alphas, mean, sem     (alphas,) at each alpha, the mean error of the best setting, and its standard error
    exploded              (alphas,) the number of diverged runs in each mean
    best                  the best setting over all parameters, including alpha
    curve, curve_sem      (bins,) the learning curve of the best setting, and its standard error
    """

    line: Line
    alphas: Array
    mean: Array
    sem: Array
    exploded: Array
    best: Setting
    curve: Array
    curve_sem: Array


class Panel(NamedTuple):
    """A task of a figure: its lines, the middle of each bin in episodes or steps, and the initial error."""

    task: Task
    lines: list[LineData]
    middle: Array
    initial_error: float

    def beyond(self, means: Array) -> NDArray[np.bool_]:
        """Return whether each mean is so far beyond the initial error that it belongs above the axes."""
        return intervals.has_exploded(means, self.initial_error)


def panels_of(figure: Figure, results: Results) -> list[Panel]:
    """Return a panel for each task of a figure."""
    return [panel(results, name, figure.lines, figure.measure) for name in results.tasks]


def panel(results: Results, name: str, lines: tuple[Line, ...], measure: str) -> Panel:
    """Return the panel of one task."""
    settings, errors = results.errors(name, measure)
    task = results.tasks[name]
    mean, sem, _ = intervals.estimate(errors)
    first = task.rmsve(task.initial_weights)
    exploded = intervals.has_exploded(errors, first).sum(axis=1)
    best = [tuned(settings, errors, line.has) for line in lines]
    middle, curves = results.curves(name, [settings[place] for place in best])
    data = []
    for line, winner, runs in zip(lines, best, curves, strict=True):
        alphas = sorted({settings[place].values["alpha"] for place in places(settings, line.has)})
        at = [tuned(settings, errors, replace(line, held=(*line.held, ("alpha", alpha))).has) for alpha in alphas]
        curve = intervals.estimate(runs.T)
        over_alpha = np.array(alphas), mean[at], sem[at], exploded[at]
        data.append(LineData(line, *over_alpha, settings[winner], curve.mean, curve.sem))
    return Panel(task, data, middle, first)


def error_range(panels: Sequence[Panel], shown: str) -> tuple[float, float]:
    """Return the common limits of "mean" (errors over step sizes) or "curve" (learning curves): at most six decades.

    The limits include the initial errors and all errors that did not diverge.
    """
    lines = [(panel, getattr(line, shown)) for panel in panels for line in panel.lines]
    inside = [values[~panel.beyond(values)] for panel, values in lines]
    values = np.concatenate([*inside, *([panel.initial_error] for panel in panels)])
    top = float(np.nanmax(values)) * 1.4
    return max(float(np.nanmin(values)) * 0.7, top * 10.0**-DECADES), top


def diverged_rows(panels: Sequence[Panel]) -> int:
    """Return the largest number of lines in a panel that have a diverged step size."""
    return max(sum(bool(panel.beyond(line.mean).any()) for line in panel.lines) for panel in panels)


def evenly_in_log(bins: int, points: int) -> NDArray[np.intp]:
    """Return indices of curve points that are evenly spaced on a logarithmic axis, dense at the start of the curve."""
    return np.unique(np.geomspace(1, bins, points).round().astype(int)) - 1


def title_of(task: Task) -> str:
    """Return a panel's title, e.g. "m = 20, on-policy"; a task whose size has no symbol shows all parameters."""
    if task.name not in SYMBOLS:
        return f"{task}, {task.policies}"
    title = f"{SYMBOLS[task.name]} = {task_size(task)}"
    if task.name == "baird":
        title += f", {RATIOS[task.parameters.get('ratios', 'standard')]} ratios"
    linear = ", linear features" if task.parameters.get("features") == "linear" else ""
    return f"{title}{linear}, {task.policies}"


def joined(parts: list[str]) -> str:
    """Return parts joined as an enumeration in a sentence."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
