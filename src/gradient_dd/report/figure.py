"""A figure of a study, as data: which study it reads, and which lines it shows."""

from dataclasses import dataclass

from gradient_dd.learners import Setting

# Colours of Okabe and Ito, which remain distinct for the colour-blind.
BLACK, SKY, ORANGE, GREEN, RED, PURPLE, BLUE, YELLOW = (
    "#000000", "#56B4E9", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#0072B2", "#B8A800",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One line of a figure: a learner with some parameters held; the others are tuned."""

    label: str
    learner: str
    held: tuple[tuple[str, float], ...] = ()
    rho_mode: str = "R"
    colour: str = "#000000"
    dashed: bool = False

    def has(self, setting: Setting) -> bool:
        """Return whether a setting belongs to the line."""
        held = all(setting.values.get(name) == value for name, value in self.held)
        return setting.rule.name == self.learner and setting.rho_mode == self.rho_mode and held


@dataclass(frozen=True)
class Figure:
    """What to draw of a study: errors over alpha above, learning curves below, a column for each task.

    `measure` is what alpha is tuned by and what is drawn above: "last100" or "area".
    """

    name: str
    title: str
    study: str
    lines: tuple[Line, ...]
    measure: str = "last100"
    remark: str = ""
