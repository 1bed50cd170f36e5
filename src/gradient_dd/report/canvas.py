"""The parts that all figures share: the style, the margins in inches, and the functions that save figures."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from gradient_dd.errors import extra
from gradient_dd.report.svg import plain

with extra("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas
    from matplotlib.gridspec import GridSpec
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "legend.fontsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.fonttype": "none",
    "path.simplify_threshold": 0.5,
    "svg.hashsalt": "gradient-dd",  # the same drawing gives the same file
}
LEFT, RIGHT, TOP, BOTTOM = 0.75, 0.2, 1.15, 0.5  # margins in inches; the top margin holds title and caption
LEGEND_ROW = 0.22
DPI = 150
BETWEEN = (2, 5)  # ticks between two decades; drawing all eight ticks would take half the time of a figure


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of this project, independently of the user's matplotlib settings."""
    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "agg", **STYLE}):
        yield


class Sheet:
    """A figure of rows × columns of panels with fixed margins, because a layout that measures text doubles the time."""

    def __init__(
        self,
        columns: int,
        heights: tuple[float, ...],
        width: float = 2.9,
        legend_rows: int = 0,
        gap: float = 0.62,
        top: float = TOP,
    ) -> None:
        bottom = BOTTOM + LEGEND_ROW * legend_rows + (0.1 if legend_rows else 0.0)
        self.size = LEFT + RIGHT + columns * width, top + bottom + sum(heights) + gap * (len(heights) - 1)
        self.canvas = Canvas(figsize=self.size)
        wide, high = self.size
        self.grid = GridSpec(
            len(heights),
            columns,
            self.canvas,
            left=LEFT / wide,
            right=1 - RIGHT / wide,
            top=1 - top / high,
            bottom=bottom / high,
            hspace=gap / (sum(heights) / len(heights)),
            wspace=0.55 / (width - 0.55),
            height_ratios=heights,
        )

    def axes(self, row: Any, column: Any) -> Any:
        """Return the axes of a panel; slices as `row` or `column` join panels."""
        return self.canvas.add_subplot(self.grid[row, column])


@contextmanager
def drawn(
    folder: Path,
    name: str,
    texts: tuple[str, str],
    keys: Callable[[], Sequence[Any]] = tuple,
    across: int = 1,
    **shape: Any,
) -> Iterator[Sheet]:
    """Yield a sheet to draw on, in the style of this project; then add title and caption, and save the figure.

    `keys` returns the entries of the legend below all panels, column by column in `across` columns. `shape` has other
    arguments of `Sheet`.
    """
    with styled():
        entries = list(keys())
        sheet = Sheet(legend_rows=-(-len(entries) // across), **shape)
        yield sheet
        (title, caption), high = texts, sheet.size[1]
        sheet.canvas.text(0.5, 1 - 0.1 / high, title, ha="center", va="top", fontweight="bold", gid="heading")
        sheet.canvas.text(0.5, 1 - 0.34 / high, caption, ha="center", va="top")
        if entries:
            sheet.canvas.legend(handles=entries, loc="lower center", ncols=across, frameon=False, borderaxespad=0.2)
        (folder / f"{name}.svg").write_text(svg_text(sheet.canvas), encoding="utf-8")
        sheet.canvas.savefig(folder / f"{name}.png", dpi=DPI)


def key(label: str, colour: str, style: Any = "-", width: float | None = None, **look: Any) -> Line2D:
    """Return a line's entry in a legend."""
    return Line2D([], [], label=label, color=colour, linestyle=style, linewidth=width, **look)


def svg_text(canvas: Canvas) -> str:
    """Return a drawing as SVG without background, for pages of any colour.

    To halve the size, coordinates (the numbers inside tags) are rounded to 0.1 points and indentation is removed.
    """
    with StringIO() as file:
        canvas.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
        text = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d+\.\d)\d+", r"\1", tag[0]), file.getvalue())
    return re.sub(r"\s*\n\s*", "\n", text)


def plain_numbers(*axes: Any) -> None:
    """Label logarithmic axes with plain numbers; label ticks between decades only if there are few decades."""
    for axis in axes:
        low, high = axis.get_view_interval()
        few = high / low < 30
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        axis.set_minor_locator(LogLocator(subs=(2, 3, 5) if few else BETWEEN))
        axis.set_minor_formatter(FuncFormatter(lambda value, _, few=few: plain(value) if few else ""))


def thousands(axis: Any) -> None:
    """Label an axis of episodes or steps with numbers such as 5k and 200k."""
    if axis.get_scale() == "log":
        axis.set_minor_locator(LogLocator(subs=BETWEEN))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    else:
        axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"))
