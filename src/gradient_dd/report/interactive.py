"""The interactive twin of a figure: the same numbers for Plotly, as JSON."""

import json
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from gradient_dd.figures import name_of
from gradient_dd.panels import LineData, Panel
from gradient_dd.studies import Study


def plotly_library() -> str:
    """Return the source of the plotting library, so that the page needs no network."""
    return get_plotlyjs()


def numbers(values: Any) -> list[float | None]:
    """Return numbers with five digits; what is infinite or undefined is a gap."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values]


def interactive(panels: list[Panel], study: Study) -> str:
    """Return JSON: for each panel its title, and for each view (over alpha, over time) its traces."""
    time = "episodes" if study.episodes else "steps"
    data = [
        {
            "title": name_of(panel),
            "views": {
                "step size": {"x": "step size α", "log": True, "traces": [over_alpha(line) for line in panel.lines]},
                time: {"x": time, "log": False, "traces": [over_time(line, panel) for line in panel.lines]},
            },
        }
        for panel in panels
    ]
    return json.dumps(data, ensure_ascii=False)


def trace(line: LineData, x: Any, y: Any, sem: Any) -> dict[str, Any]:
    """Return one line for Plotly."""
    style = {"color": line.line.colour, "dash": "dash" if line.line.dashed else "solid", "width": 2}
    bars = {"type": "data", "array": numbers(sem), "visible": True, "thickness": 1}
    return {"name": line.line.label, "x": numbers(x), "y": numbers(y), "error_y": bars, "line": style}


def over_alpha(line: LineData) -> dict[str, Any]:
    """Return a line's errors over alpha."""
    return trace(line, line.alphas, line.mean, line.sem) | {"mode": "lines+markers"}


def over_time(line: LineData, panel: Panel) -> dict[str, Any]:
    """Return a line's learning curve; its setting shows when it is pointed at."""
    thin = slice(None, None, 4)
    shown = trace(line, panel.middle[thin], line.curve[thin], line.curve_sem[thin])
    return shown | {"mode": "lines", "text": str(line.best), "hovertemplate": "%{y:.4g} at %{x}<br>%{text}"}
