"""A figure of a study, as data: which study it reads, and which lines it shows."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle

from gradient_dd.learners import LEARNERS, Setting

# RED is strong and stands for Gradient-DD; the others are muted. All are of middle lightness, so that they can be
# seen on white and on black, and differ in hue as those of Okabe and Ito do. Markers tell lines apart without
# colour.
BLACK, SKY, ORANGE, GREEN, RED, PURPLE, BLUE, YELLOW, BROWN = (
    "#7a7a7a", "#5f97bf", "#a8873c", "#4f9a7f", "#d84a05", "#a878a0", "#4a7bb5", "#8f8a3a", "#7d5a46",
)  # fmt: skip
RAMP = ("#4157e4", "#1b79bc", "#1f9074", "#8f8f24", "#d58018")  # for one parameter, small to large: lighter and lighter
MARKERS = "osv^DdPX<>"
STRONG = RED
COLOURS = {  # of a learner, on every page; a learner made from another has its colour, and a dashed line
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
SYMBOLS = {"random_walk": "m", "boyan_chain": "p", "baird": "N"}  # what the size of a task is called
NAMES = {name: rule.label for name, rule in LEARNERS.items()}


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return the colour of each learner; rules that are not registered get colours that no other one here has."""
    shown = list(dict.fromkeys(names))
    taken = {COLOURS[name] for name in shown if name in COLOURS}
    spare = cycle([one for one in (PURPLE, BLUE, YELLOW, BROWN) if one not in taken] or [BLACK])
    return {name: COLOURS[name] if name in COLOURS else next(spare) for name in shown}


@dataclass(frozen=True)
class Line:
    """One line of a figure: a learner with some parameters held; the others are tuned. What is held may be "u", α κ."""

    label: str
    learner: str
    held: tuple[tuple[str, float], ...] = ()
    rho_mode: str = "R"
    colour: str = BLACK
    dashed: bool = False

    def has(self, setting: Setting) -> bool:
        """Return whether a setting belongs to the line."""
        held = all(held_value(setting, name) == value for name, value in self.held)
        return setting.rule.name == self.learner and setting.rho_mode == self.rho_mode and held


def held_value(setting: Setting, name: str) -> float | None:
    """Return the value of a parameter, None where a setting has none; "u" is α κ up to rounding."""
    if name == "u" and "kappa" in setting.values:
        return round(setting.values["alpha"] * setting.values["kappa"], 9)
    return setting.values.get(name)


@dataclass(frozen=True)
class Figure:
    """What to draw of a study: errors over alpha above, learning curves below, a column for each task.

    `measure` is what alpha is tuned by and what is drawn above: "last100" or "area". `header` names the function
    "module:name" that draws what stands above the panels.
    """

    name: str
    title: str
    study: str
    lines: tuple[Line, ...]
    measure: str = "last100"
    remark: str = ""
    header: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure that needs no study: computed from tasks alone, by a function "module:name" that takes the folder."""

    name: str
    title: str
    explanation: str
    drawn_by: str
