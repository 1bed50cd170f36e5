"""The rate of the mean: the decay of its slowest mode in one step. If it is negative, the mean diverges.

Figures show rates against the step size, the transition from GTD2 to TD as κα grows, curves without noise, maps of the
rate over step size and κ or ζ, and the off-policy cost of κα.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.patches import Patch

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.report.canvas import drawn, key, plain_numbers, thousands
from gradient_dd.report.figure import BLACK, GREEK, ORANGE, RAMP, RED, SKY
from gradient_dd.theory import expected_run, rate
from gradient_dd.theory.effective import diverging_mdps, effective_matrix, flow_edge, flow_rate, interpolation
from gradient_dd.theory.stability import (
    EDGE_PRECISION,
    RatePlane,
    SquareOperator,
    bisected,
    gradient_dd,
    in_row_space,
    rate_of_alpha,
)

SAMPLINGS = {"iid": "independent draws", "trajectory": "trajectories"}
LINES = {  # label, colour, width of curves: GTD2 remains visible where Gradient-DD covers it
    "td": ("TD", BLACK, 1.5),
    "gtd2": ("GTD2", ORANGE, 3.0),
    "gradient_dd": ("Gradient-DD, κ = 1", RED, 1.5),
}
FINE = np.geomspace(0.01, 1.0, 21)
COARSE = np.array([0.01, 0.04, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0])
SIZES = {5: FINE, 10: FINE, 20: COARSE}  # states of the walk, step sizes; one step size takes half a second at m = 40

ALPHAS = {0.03: RAMP[0], 0.3: RAMP[2], 0.6: RAMP[4]}
EXACT = np.linspace(0, 1, 22) ** 1.5  # κα, as a share of the largest shown
NEAR = 1 - np.array([0.1, 0.05, 0.02, 0.005])  # shares of the κα at which the mean becomes unstable
FLOW = np.linspace(0, 0.99, 34)  # κα of the effective matrix
N_STATES, ALPHA, STEPS, EVERY, RUNS = 10, 0.3, 2400, 200, 100

ROWS = 19  # number of values of the parameter
SQUARES = 10  # number of values at which the mean square is computed
HATCHED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#999999", "hatch": "////", "linewidth": 0}
DECADES = 3.0  # decades of the rate that colours show

COUNT = 12  # number of random tasks
SHARES = np.geomspace(3e-4, 3, 42)  # κα, in units of 1 / max ‖x‖²
CLASSES = {"stable": SKY, "diverges, GTD2 does not": ORANGE, "GTD2 diverges too": "#999999"}
SAFETY_PANELS = (("iid", 1e-4), ("trajectory", 1e-4), ("trajectory", 1e-2))  # the sampling, and the step size


def draw_rates(folder: Path) -> None:
    """Draw folder/rates.svg and .png: rates against the step size."""

    def keys() -> list[Any]:
        lines = [key(label, colour) for label, colour, _ in LINES.values()]
        kinds = [key("trajectories", "#666666"), key("independent draws", "#666666", "--")]
        return by_columns([*lines, *kinds, key("Gradient-DD, first order", RED, ":", 2.2)])

    texts = DRAWINGS["rates"].title, "exact mean dynamics on tabular random walks, ζ = 1, no sampling"
    with drawn(folder, "rates", texts, keys, 3, columns=len(SIZES), heights=(3.2,)) as sheet:
        all_axes = [sheet.axes(0, column) for column in range(len(SIZES))]
        for axes, (size, alphas) in zip(all_axes, SIZES.items(), strict=True):
            task = tasks.random_walk(size)
            for learner, (_, colour, _) in LINES.items():
                for sampling, style in (("iid", "--"), ("trajectory", "-")):
                    rate_at, _ = rate_of_alpha(task, learner, sampling, {})
                    rates = np.array([rate_at(alpha) for alpha in alphas])
                    stable = np.where(rates > 0, rates, np.nan)
                    axes.plot(alphas, stable, color=colour, linestyle=style, linewidth=1.4)
            predicted = [alpha * flow_rate(task, effective_matrix(task, alpha, kappa=1.0)) for alpha in alphas]
            axes.plot(alphas, predicted, ":", color=RED, linewidth=2.2)
            axes.set(xscale="log", yscale="log", xlabel="step size α")
            plain_numbers(axes.xaxis)
            axes.set(title=f"walk, m = {size}")
        all_axes[0].set_ylabel("rate: decay of the slowest mode in one step")
        limits = [limit for axes in all_axes for limit in axes.get_ylim()]
        for axes in all_axes:
            axes.set_ylim(min(limits), max(limits))
            plain_numbers(axes.yaxis)


def by_columns(entries: list[Any]) -> list[Any]:
    """Return the entries of two rows in the order in which a legend fills its columns."""
    half = len(entries) // 2
    return [entry for pair in zip(entries[:half], entries[half:], strict=True) for entry in pair]


def draw_gtd2_to_td(folder: Path) -> None:
    """Draw folder/gtd2-to-td.svg and .png: the rate as κα grows."""

    def keys() -> list[Any]:
        exact = [key(f"exact, α = {alpha:g}", colour) for alpha, colour in ALPHAS.items()]
        others = [
            key("unstable from here", "#666666", "", marker="x", markeredgewidth=2),
            key("effective matrix, α → 0", BLACK, ":", 2.2),
            key("… to leading order in κα", "#777777", "-.", 1.2),
            key("TD", BLACK, width=1.0),
            key("GTD2, α → 0", ORANGE, width=1.0),
        ]
        return by_columns([*exact, *others])

    cases = (  # the title, the task, and the largest κα shown
        ("walk, m = 10, tabular", tasks.random_walk(10), 2.3),
        ("walk, m = 13, linear features, p = 4", tasks.random_walk(13, features="linear"), 2.3),
        ("Boyan chain, p = 5", tasks.boyan_chain(5), 8.0),
    )
    texts = DRAWINGS["gtd2-to-td"].title, "exact along trajectories, ζ = 1; all rates at the same step size"
    with drawn(folder, "gtd2-to-td", texts, keys, 4, columns=len(cases), heights=(3.2,)) as sheet:
        all_axes = [sheet.axes(0, column) for column in range(len(cases))]
        heights, depths = [1.0], list[float]()
        for axes, (title, task, largest) in zip(all_axes, cases, strict=True):
            heights += [exact_line(axes, task, largest, alpha, place) for place, alpha in enumerate(ALPHAS)]
            depths.append(flow_lines(axes, task))
            axes.set(title=title, xlabel="κα", yscale="log", xlim=(0, largest))
        all_axes[0].set_ylabel("rate, relative to that of TD")
        for axes in all_axes:
            axes.set_ylim(min(depths) / 6, 1.3 * max(heights))
            plain_numbers(axes.yaxis)


def exact_line(axes: Any, task: tasks.Task, largest: float, alpha: float, place: int) -> float:
    """Draw the exact rate relative to TD's, with a cross where the mean becomes unstable; return its maximum."""
    colour, td = ALPHAS[alpha], rate(task, LEARNERS["td"].setting(alpha=alpha))
    plane, x = RatePlane(task, "kappa"), largest * EXACT
    shares = plane.rates(alpha, x / alpha) / td
    end = int(np.argmax(np.append(shares, -1.0) <= 0))
    x, shares, beyond = x[:end], shares[:end], x[end:]
    if len(beyond):
        edge = bisected(lambda value: bool(plane.rates(alpha, value / alpha) > 0), x[-1], beyond[0], EDGE_PRECISION)
        near = edge * NEAR
        near = near[near > x[-1]]
        x = np.concatenate([x, near, [edge]])
        shares = np.concatenate([shares, plane.rates(alpha, near / alpha) / td, [1e-9]])
        height = 0.025 + 0.045 * place  # of the axes
        cross = {"color": colour, "markersize": 7, "markeredgewidth": 2, "transform": axes.get_xaxis_transform()}
        axes.plot(edge, height, "x", zorder=4, **cross)
    axes.plot(x, shares, color=colour, linewidth=1.4)
    return float(shares.max())


def flow_lines(axes: Any, task: tasks.Task) -> float:
    """Draw the rates of the mean flow with the effective matrix, of GTD2 and of TD; return GTD2's rate over TD's."""
    found = interpolation(task, FLOW)
    leading: Array = np.array([flow_rate(task, effective_matrix(task, 1.0, value)) for value in FLOW])
    axes.plot(FLOW, leading / found.td, color="#777777", linestyle="-.", linewidth=1.2)
    axes.plot(FLOW, found.effective / found.td, ":", color=BLACK, linewidth=2.2)
    axes.axhline(1.0, color=BLACK, linewidth=1.0)
    axes.axhline(found.gtd2 / found.td, color=ORANGE, linewidth=1.0)
    return float(found.gtd2 / found.td)


def draw_expected_runs(folder: Path) -> None:
    """Draw folder/expected-runs.svg and .png: exact mean learning curves and sampled ones."""

    def keys() -> list[Any]:
        lines = [key(label, colour, width=width) for label, colour, width in LINES.values()]
        look: dict[str, Any] = {"colour": "#555555", "markerfacecolor": "white"}
        kinds = [
            key("error of the exact mean weights", width=1.5, **look),
            key("… of the mean of sampled weights", style="", marker="o", **look),
            key("mean error of single runs", width=0.8, **look),
        ]
        return by_columns([*lines, *kinds])

    task = tasks.random_walk(N_STATES)
    settings = [LEARNERS[name].setting(alpha=ALPHA) for name in LINES]
    at = EVERY * np.arange(1, STEPS // EVERY + 1)
    words = f"random walk, m = {N_STATES}, tabular; constant α = {ALPHA:g}, ζ = 1; {RUNS} sampled runs, seed 0"
    texts = DRAWINGS["expected-runs"].title, words
    with drawn(folder, "expected-runs", texts, keys, 3, columns=2, heights=(3.2,), width=3.9) as sheet:
        panels = [sheet.axes(0, column) for column in range(2)]
        for axes, (sampling, title) in zip(panels, SAMPLINGS.items(), strict=True):
            of_mean, of_runs, noise = sampled(task, settings, sampling)
            for place, (setting, (_, colour, width)) in enumerate(zip(settings, LINES.values(), strict=True)):
                exact = expected_run(task, setting, STEPS, sampling=sampling)
                axes.plot(exact.steps, exact.errors, color=colour, linewidth=width)
                axes.plot(at, of_mean[:, place], "o", color=colour, markersize=3.5, markerfacecolor="white")
                axes.plot(at, of_runs[:, place], color=colour, linewidth=0.8, alpha=0.6)
            axes.axhspan(1e-9, noise.max(), color="#bbbbbb", alpha=0.35, linewidth=0)
            axes.text(STEPS / 50, 0.0022, f"noise of the mean of {RUNS} runs")
            axes.set(title=title, xlabel="steps", yscale="log", xlim=(0, STEPS * 1.02))
            axes.set_ylim(0.002, 1.3 * task.rmsve(task.initial_weights))
            thousands(axes.xaxis)
            plain_numbers(axes.yaxis)
        panels[0].set_ylabel("RMS error of the values")


def sampled(task: tasks.Task, settings: list[Setting], sampling: str) -> tuple[Array, Array, Array]:
    """Return the error of the mean weights of RUNS runs, the mean of their errors, and the noise in the first.

    The first two are (points, settings), the last is the standard error of the mean values at the end, (settings,).
    """
    points = STEPS // EVERY
    weights = np.empty((RUNS, points, len(settings), task.n_features))
    for run in range(RUNS):
        lanes = LaneRun(task, settings, Horizon(steps=STEPS, every=EVERY), sampling=sampling, run=run)
        for point in range(points):
            lanes.advance(EVERY)
            weights[run, point] = lanes.weights()[0]

    def errors(weights: Array) -> Array:
        return np.asarray(np.sqrt((weights @ task.features.T - task.true_values) ** 2 @ task.visits))

    noise = np.sqrt((weights[:, -1] @ task.features.T).var(axis=0) @ task.visits / (RUNS - 1))
    return errors(weights.mean(axis=0)), errors(weights).mean(axis=0), noise


# Maps -----------------------------------------------------------------------------------------------------------------


class Plane(NamedTuple):
    """A column of the maps: a task, the parameter and its range, the range of alpha."""

    title: str
    task: tasks.Task
    parameter: str
    values: tuple[float, float]
    alphas: tuple[float, float]
    columns: int
    squares: bool


def planes() -> list[Plane]:
    """Return the columns of the maps, without second moments for Baird's task, which take ten seconds."""
    walk, baird = tasks.random_walk(5), tasks.baird(7)
    return [
        Plane("walk, m = 5, ζ = 1", walk, "kappa", (1 / 16, 16), (0.01, 4), 32, True),
        Plane("walk, m = 5, κ = 1", walk, "zeta", (1 / 64, 16), (0.01, 4), 32, True),
        Plane("Baird, N = 7, ζ = 1", baird, "kappa", (1 / 16, 16), (0.001, 1), 26, False),
    ]


def draw_stability_maps(folder: Path) -> None:
    """Draw folder/stability-maps.svg and .png: rates over step size and κ or ζ."""

    def keys() -> list[Any]:
        return [
            Patch(**HATCHED, label="the mean diverges"),
            key("largest α at which the mean is stable", RED, width=1.8),
            key("… at which the mean square is (walk only)", BLACK, "--", 1.4),
        ]

    chosen, texts = planes(), (DRAWINGS["stability-maps"].title, "exact mean dynamics of Gradient-DD, no sampling")
    shape: dict[str, Any] = {"columns": len(chosen), "heights": (2.3, 2.3, 0.13), "width": 3.3, "gap": 0.7}
    with drawn(folder, "stability-maps", texts, keys, 3, **shape) as sheet:
        for column, plane in enumerate(chosen):
            alphas, values = np.geomspace(*plane.alphas, plane.columns), np.geomspace(*plane.values, ROWS)
            means = {sampling: RatePlane(plane.task, plane.parameter, sampling) for sampling in SAMPLINGS}
            rates = {sampling: mean.rates(alphas, values[:, None]) for sampling, mean in means.items()}
            top = max(float(found.max()) for found in rates.values())
            for row, (sampling, mean) in enumerate(means.items()):
                axes = sheet.axes(row, column)
                limit = np.array([mean.edge(alphas, *pair) for pair in zip(rates[sampling], values, strict=True)])
                mesh = map_of(axes, alphas, values, rates[sampling], limit, LogNorm(top / 10**DECADES, top))
                if plane.squares:
                    mean_square_limit(axes, plane, sampling, alphas, values)
                axes.set(xlim=plane.alphas, ylim=plane.values)
                axes.set(title=f"{plane.title}: {SAMPLINGS[sampling]}", xlabel="step size α")
                axes.set_ylabel(GREEK[plane.parameter], rotation=0, labelpad=2)
                plain_numbers(axes.xaxis, axes.yaxis)
            bar = sheet.canvas.colorbar(mesh, cax=sheet.axes(2, column), orientation="horizontal", extend="min")
            bar.ax.set_xlabel("rate: decay of the slowest mode in one step")
            plain_numbers(bar.ax.xaxis)


def map_of(axes: Any, alphas: Array, values: Array, rates: Array, limit: Array, norm: LogNorm) -> Any:
    """Draw rates in colours over hatching, which shows where the mean is unstable."""
    axes.patch.set(**HATCHED)
    axes.set(xscale="log", yscale="log")
    axes.grid(False)
    shown = up_to_the_edge(rates)
    mesh = axes.pcolormesh(alphas, values, shown, norm=norm, cmap="viridis", shading="nearest", rasterized=True)
    begin = np.minimum(limit, alphas[-1])
    axes.fill_betweenx(values, begin, begin * (alphas[1] / alphas[0]) ** 5, **HATCHED)
    axes.plot(np.where(np.isinf(limit), np.nan, limit), values, color=RED, linewidth=1.8)
    return mesh


def up_to_the_edge(rates: Array) -> Any:
    """Return rates masked where they are negative, except for two cells of a row that its edge may pass through."""
    filled = rates.copy()
    for row in filled:
        first = int(np.argmax(np.append(row, -1.0) <= 0))
        if first:
            row[first : first + 2] = np.where(row[first : first + 2] <= 0, row[first - 1], row[first : first + 2])
    return np.ma.masked_less_equal(filled, 0.0)


def mean_square_limit(axes: Any, plane: Plane, sampling: str, alphas: Array, values: Array) -> None:
    """Draw the largest alpha that is stable in mean square."""
    task, some = in_row_space(plane.task), values[:: (ROWS - 1) // (SQUARES - 1)]
    squares = [SquareOperator(task, gradient_dd(plane.parameter, value), sampling).is_stable for value in some]
    safe = [bisected(one, alphas[0], alphas[-1], precision=0.02) if one(alphas[0]) else 0.0 for one in squares]
    axes.plot(safe, some, color="white", linewidth=2.6)
    axes.plot(safe, some, color=BLACK, linewidth=1.4, linestyle="--")


def draw_safety(folder: Path) -> None:
    """Draw folder/safety.svg and .png: stability off-policy as κα grows."""

    def keys() -> list[Any]:
        edge: dict[str, Any] = {"marker": "|", "markersize": 9, "markeredgewidth": 1.6}
        patches = [Patch(color=colour, label=label) for label, colour in CLASSES.items()]
        return [*patches, key("limit by the effective matrix, α → 0", BLACK, "", **edge)]

    chosen = [tasks.baird(7), *diverging_mdps(COUNT)]
    names = ["Baird", *(f"seed {task.parameters['seed']}" for task in chosen[1:])]
    longest = [float((task.features**2).sum(axis=1).max()) for task in chosen]  # ‖x‖²
    edges = [flow_edge(task) * length for task, length in zip(chosen, longest, strict=True)]
    words = "exact mean dynamics of Gradient-DD, ζ = 1, on tasks whose A has an eigenvalue with negative real part"
    texts = DRAWINGS["safety"].title, f"{words}\nrandom: 3 states, 2 actions, 2 features, γ = 0.99, by seed"
    colours: dict[str, Any] = {"cmap": ListedColormap(list(CLASSES.values())), "vmin": -0.5, "vmax": len(CLASSES) - 0.5}
    with drawn(folder, "safety", texts, keys, 4, columns=len(SAFETY_PANELS), heights=(3.6,)) as sheet:
        for place, (sampling, alpha) in enumerate(SAFETY_PANELS):
            axes, grid = sheet.axes(0, place), []
            for task, length in zip(chosen, longest, strict=True):  # the class of every κα
                rates = RatePlane(task, "kappa", sampling).rates(alpha, np.append(0.0, SHARES / length / alpha))
                grid.append(np.where(rates[1:] > 0, 0, 1 if rates[0] > 0 else 2))
            rows = np.arange(len(chosen))
            axes.pcolormesh(SHARES, rows, np.array(grid), **colours, shading="nearest", rasterized=True)
            if sampling == "trajectory":
                for row, edge in enumerate(edges):
                    if edge < 0.999:  # otherwise the flow is stable wherever it is defined
                        axes.plot([edge, edge], [row - 0.5, row + 0.5], color=BLACK, linewidth=1.6)
            axes.set_title(f"{SAMPLINGS[sampling]}, α = {alpha:g}")
            axes.set(xscale="log", xlim=SHARES[[0, -1]], ylim=(len(chosen) - 0.5, -0.5), xlabel="κα max‖x‖²")
            axes.grid(False)
            axes.hlines(rows[:-1] + 0.5, *SHARES[[0, -1]], color="white", linewidth=1.5)
            axes.set_yticks(rows, names if place == 0 else [""] * len(chosen))
            axes.tick_params(axis="y", length=0)
            plain_numbers(axes.xaxis)
