"""How fast the mean converges: rates against the step size, from GTD2 to TD as κα grows, and curves without noise."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.report.canvas import drawn, key, plain_numbers, thousands
from gradient_dd.report.figure import BLACK, ORANGE, RAMP, RED
from gradient_dd.theory import expected_run, rate
from gradient_dd.theory.effective import effective_matrix, flow_rate, interpolation
from gradient_dd.theory.stability import EDGE_PRECISION, RatePlane, bisected, rate_of_alpha

LINES = {"td": ("TD", BLACK), "gtd2": ("GTD2", ORANGE), "gradient_dd": ("Gradient-DD, κ = 1", RED)}
STYLES = {"iid": "--", "trajectory": "-"}
FINE = np.geomspace(0.01, 1.0, 21)
COARSE = np.array([0.01, 0.04, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0])
SIZES = {5: FINE, 10: FINE, 20: COARSE}  # states of the walk, step sizes; one of them takes half a second at m = 40

ALPHAS = {0.03: RAMP[0], 0.3: RAMP[2], 0.6: RAMP[4]}
EXACT = np.linspace(0, 1, 22) ** 1.5  # κα, as a share of the largest shown
NEAR = 1 - np.array([0.1, 0.05, 0.02, 0.005])  # shares of the κα at which the mean becomes unstable
FLOW = np.linspace(0, 0.99, 34)  # κα at which the effective matrix is made
RUN_LINES = {  # label, colour, width: GTD2 is seen below Gradient-DD where they coincide
    "td": ("TD", BLACK, 1.5),
    "gtd2": ("GTD2", ORANGE, 3.0),
    "gradient_dd": ("Gradient-DD, κ = 1", RED, 1.5),
}
SAMPLINGS = {"iid": "independent draws", "trajectory": "trajectories"}
N_STATES, ALPHA, STEPS, EVERY, RUNS = 10, 0.3, 2400, 200, 100


def draw_rates(folder: Path) -> None:
    """Draw into folder/rates.svg and .png."""
    texts = DRAWINGS["rates"].title, "exact mean dynamics on tabular random walks, ζ = 1, no sampling"
    with drawn(folder, "rates", texts, rate_keys, 3, columns=len(SIZES), heights=(3.2,)) as sheet:
        all_axes = [sheet.axes(0, column) for column in range(len(SIZES))]
        for axes, (size, alphas) in zip(all_axes, SIZES.items(), strict=True):
            panel(axes, tasks.random_walk(size), alphas)
            axes.set(title=f"walk, m = {size}")
        all_axes[0].set_ylabel("rate: what the slowest mode loses in one step")
        limits = [limit for axes in all_axes for limit in axes.get_ylim()]
        for axes in all_axes:
            axes.set_ylim(min(limits), max(limits))
            plain_numbers(axes.yaxis)


def panel(axes: Any, task: tasks.Task, alphas: Array) -> None:
    """Draw all lines of one task; what is unstable is left out."""
    for learner, (_, colour) in LINES.items():
        for sampling, style in STYLES.items():
            rate_at, _ = rate_of_alpha(task, learner, sampling, {})
            rates = np.array([rate_at(alpha) for alpha in alphas])
            axes.plot(alphas, np.where(rates > 0, rates, np.nan), color=colour, linestyle=style, linewidth=1.4)
    predicted = [alpha * flow_rate(task, effective_matrix(task, alpha, kappa=1.0)) for alpha in alphas]
    axes.plot(alphas, predicted, ":", color=RED, linewidth=2.2)
    axes.set(xscale="log", yscale="log", xlabel="step size α")
    plain_numbers(axes.xaxis)


def rate_keys() -> list[Any]:
    """Return the entries of the legend of the rates."""
    lines = [key(label, colour) for label, colour in LINES.values()]
    kinds = [key("trajectories", "#666666"), key("independent draws", "#666666", "--")]
    return by_columns([*lines, *kinds, key("Gradient-DD, first order", RED, ":", 2.2)])


def by_columns(entries: list[Any]) -> list[Any]:
    """Return entries of two rows in the order in which a legend fills its columns."""
    half = len(entries) // 2
    return [entry for pair in zip(entries[:half], entries[half:], strict=True) for entry in pair]


class RateCase(NamedTuple):
    """A panel: its title, its task, the largest κα shown."""

    title: str
    task: tasks.Task
    largest: float


def draw_gtd2_to_td(folder: Path) -> None:
    """Draw into folder/gtd2-to-td.svg and .png."""
    cases = [
        RateCase("walk, m = 10, tabular", tasks.random_walk(10), 2.3),
        RateCase("walk, m = 13, linear features, p = 4", tasks.random_walk(13, features="linear"), 2.3),
        RateCase("Boyan chain, p = 5", tasks.boyan_chain(5), 8.0),
    ]
    texts = DRAWINGS["gtd2-to-td"].title, "exact along trajectories, ζ = 1; all rates at the same step size"
    with drawn(folder, "gtd2-to-td", texts, way_keys, 4, columns=len(cases), heights=(3.2,)) as sheet:
        all_axes = [sheet.axes(0, column) for column in range(len(cases))]
        heights, depths = [1.0], list[float]()
        for axes, case in zip(all_axes, cases, strict=True):
            heights.append(max(exact_line(axes, case, alpha, number) for number, alpha in enumerate(ALPHAS)))
            depths.append(flow_lines(axes, case.task))
            axes.set(title=case.title, xlabel="κα", yscale="log", xlim=(0, case.largest))
        all_axes[0].set_ylabel("rate, relative to that of TD")
        for axes in all_axes:
            axes.set_ylim(min(depths) / 6, 1.3 * max(heights))
            plain_numbers(axes.yaxis)


def exact_line(axes: Any, case: RateCase, alpha: float, place: int) -> float:
    """Draw the exact rate over that of TD, with a cross where the mean becomes unstable; return the largest."""
    colour = list(ALPHAS.values())[place]
    td = rate(case.task, LEARNERS["td"].setting(alpha=alpha))
    plane, x = RatePlane(case.task, "kappa"), case.largest * EXACT
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
    """Draw the rates of the mean flow with the effective matrix, of GTD2 and of TD; return that of GTD2."""
    found = interpolation(task, FLOW)
    leading: Array = np.array([flow_rate(task, effective_matrix(task, 1.0, value)) for value in FLOW])
    axes.plot(FLOW, leading / found.td, color="#777777", linestyle="-.", linewidth=1.2)
    axes.plot(FLOW, found.effective / found.td, ":", color=BLACK, linewidth=2.2)
    axes.axhline(1.0, color=BLACK, linewidth=1.0)
    axes.axhline(found.gtd2 / found.td, color=ORANGE, linewidth=1.0)
    return float(found.gtd2 / found.td)


def way_keys() -> list[Any]:
    """Return the entries of the legend of the ways from GTD2 to TD."""
    exact = [key(f"exact, α = {alpha:g}", colour) for alpha, colour in ALPHAS.items()]
    others = [
        key("unstable from here", "#666666", "", marker="x", markeredgewidth=2),
        key("effective matrix, α → 0", BLACK, ":", 2.2),
        key("… to leading order in κα", "#777777", "-.", 1.2),
        key("TD", BLACK, width=1.0),
        key("GTD2, α → 0", ORANGE, width=1.0),
    ]
    return by_columns([*exact, *others])


def draw_expected_runs(folder: Path) -> None:
    """Draw into folder/expected-runs.svg and .png."""
    task = tasks.random_walk(N_STATES)
    settings = [LEARNERS[name].setting(alpha=ALPHA) for name in RUN_LINES]
    at = EVERY * np.arange(1, STEPS // EVERY + 1)
    words = f"random walk, m = {N_STATES}, tabular; constant α = {ALPHA:g}, ζ = 1; {RUNS} sampled runs, seed 0"
    texts = DRAWINGS["expected-runs"].title, words
    with drawn(folder, "expected-runs", texts, run_keys, 3, columns=2, heights=(3.2,), width=3.9) as sheet:
        panels = [sheet.axes(0, column) for column in range(2)]
        for axes, (sampling, title) in zip(panels, SAMPLINGS.items(), strict=True):
            of_mean, of_runs, noise = sampled(task, settings, sampling)
            for place, (setting, (_, colour, width)) in enumerate(zip(settings, RUN_LINES.values(), strict=True)):
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
    """Return the error of the mean weights of RUNS runs, the mean of their errors, and what noise adds to the first.

    The first two are (points, settings), the last is the standard error of the mean values at the end, (settings,).
    """
    points = STEPS // EVERY
    weights = np.empty((RUNS, points, len(settings), task.n_features))
    for run in range(RUNS):
        lanes = LaneRun(task, settings, Horizon(steps=STEPS, every=EVERY), sampling=sampling, run=run)
        for point in range(points):
            lanes.advance(EVERY)
            weights[run, point] = lanes.weights()[0]
    noise = np.sqrt((weights[:, -1] @ task.features.T).var(axis=0) @ task.visits / (RUNS - 1))
    return errors(task, weights.mean(axis=0)), errors(task, weights).mean(axis=0), noise


def errors(task: tasks.Task, weights: Array) -> Array:
    """Return the RMSVE of weights (…, p)."""
    return np.asarray(np.sqrt((weights @ task.features.T - task.true_values) ** 2 @ task.visits))


def run_keys() -> list[Any]:
    """Return the entries of the legend, column by column."""
    lines = [key(label, colour, width=width) for label, colour, width in RUN_LINES.values()]
    look: dict[str, Any] = {"colour": "#555555", "markerfacecolor": "white"}
    kinds = [
        key("error of the exact mean weights", width=1.5, **look),
        key("… of the mean of sampled weights", style="", marker="o", **look),
        key("mean error of single runs", width=0.8, **look),
    ]
    return by_columns([*lines, *kinds])
