"""Nexting: predict all sensors of a moving body over four time scales, and learn the predictions online.

A half cheetah runs with a gait of varying strength and with noise. Its sensors and its own commands are tile-coded,
each alone and each with the next one. The predictions are discounted sums of the future readings of each sensor.

python examples/nexting.py            needs: pip install "gymnasium[mujoco]"
"""

import argparse
from html import escape
from pathlib import Path

import numpy as np

import gradient_dd as gdd
from gradient_dd import features
from gradient_dd.errors import MissingExtraError

BODY = "HalfCheetah-v5"
STEPS, WARM_UP, WINDOW, SHOWN = 40_000, 2_000, 5_000, 400
TIME_SCALES = {1: 0.0, 5: 0.8, 20: 0.95, 80: 0.9875}  # steps that a return looks ahead, and the discount
AHEAD = 800  # steps after which what is left of a return does not count
LAM, STEP = 0.9, 0.1
COMMANDS = 6
SETTLING, LAP = 1_000, 300  # steps until the body has found its posture; steps in which its gait gets strong and weak
HEAD = {"name": "Question", "rupee": "RUPEE", "effective_rows": "Effective sample size", "explained": "Explained"}
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Nexting</title>
<body style="font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; padding: 1rem">
<h1>Nexting</h1><p>{about}</p>
<h2>Predicted and realised returns</h2>
<p>The thin line is the return that followed each step, the thick line the prediction before it.</p>
{pictures}
<h2>The questions</h2>
<p>RUPEE estimates the root of the projected Bellman error.</p>
<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></body></html>
"""


def body():
    """Return the environment, which never ends."""
    try:
        import gymnasium
        import mujoco  # noqa: F401
    except ImportError as error:
        sentence = f'The body {BODY} needs {error.name}, which is not installed. Try: pip install "gymnasium[mujoco]".'
        raise MissingExtraError(sentence) from None
    return gymnasium.make(BODY, max_episode_steps=10**9)


def move(env, steps, seed=0):
    """Return the data of all sensors, (steps, sensors): observations, and the commands that follow them."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    phase = np.array([0.0, 1.2, 2.4, 3.1, 4.3, 5.5])
    noise, readings = np.zeros(COMMANDS), []
    for t in range(SETTLING + steps):
        noise = 0.9 * noise + 0.1 * rng.normal(size=COMMANDS)
        strength = 0.5 + 0.3 * np.sin(2 * np.pi * t / LAP)
        command = np.clip(strength * np.sin(0.25 * t + phase) + noise, -1, 1)
        readings.append(np.concatenate([observation, command]))
        observation, *_ = env.step(command)
    return np.array(readings[SETTLING:])


def tile_coders(readings):
    """Return coders of each sensor alone and of each with the next sensor, for the range of the first data."""
    low, high = np.quantile(readings, [0.005, 0.995], axis=0)
    high = np.where(high > low, high, low + 1)
    count = len(low)
    alone = [((k,), features.TileCoder(low[[k]], high[[k]], tiles=8, tilings=8, outside="clip")) for k in range(count)]
    pairs = [(k, (k + 1) % count) for k in range(count)]
    two = [
        (pair, features.TileCoder(low[[*pair]], high[[*pair]], tiles=6, tilings=4, outside="clip")) for pair in pairs
    ]
    return alone + two


def coded(coders, readings):
    """Return the active features of every row, (n, k), in order; the last feature is always active."""
    parts, first = [], 0
    for columns, coder in coders:
        parts.append(first + coder.rows(readings[:, list(columns)]).indices)
        first += coder.n_features
    indices = np.column_stack([*parts, np.full(len(readings), first)])
    return (indices, np.ones(indices.shape)), first + 1


def realised(signals, discount):
    """Return the discounted sum of the rows after each row, (n, sensors)."""
    returns, total = np.empty_like(signals), np.zeros(signals.shape[1])
    for t in range(len(signals) - 1, -1, -1):
        total = signals[t] + discount * total
        returns[t] = total
    return returns


def main(steps=STEPS, window=WINDOW, page=None):
    """Learn, and return the share of questions that explain more than half of the variance, window by window."""
    env = body()
    readings = move(env, steps + AHEAD + 1)
    mean, spread = readings[:WARM_UP].mean(axis=0), readings[:WARM_UP].std(axis=0) + 1e-9
    signals = (readings[1:] - mean) / spread  # of each step: what is read next
    coders = tile_coders(readings[:WARM_UP])
    sensors = readings.shape[1] - COMMANDS
    names = [*(f"sensor {k}" for k in range(sensors)), *(f"command {k}" for k in range(COMMANDS))]
    asked = [
        gdd.Question(f"{name}, {scale} steps", name, discount)
        for scale, discount in TIME_SCALES.items()
        for name in names
    ]
    x, n_features = coded(coders, readings[: steps + 1])
    active = x[0].shape[1]
    horde = gdd.Questions(asked, n_features, learner="td", alpha=STEP / active, lam=LAM, precision="float32")
    print(f"{len(asked)} questions, {n_features:,} features, {active} of them at a time, {steps:,} steps")
    truth = np.column_stack([realised(signals, discount)[:steps] for discount in TIME_SCALES.values()])
    predicted, shares = np.empty((steps, len(asked)), np.float32), {}
    for begin in range(0, steps, 100):
        part, after = slice(begin, begin + 100), slice(begin + 1, begin + 101)
        rows, following = (x[0][part], x[1][part]), (x[0][after], x[1][after])
        predicted[part] = horde.predict(rows)
        columns = dict(zip(names, signals[part].T, strict=True))
        horde.update_many(rows, x_next=following, columns=columns)
        if (begin + 100) % window == 0:
            last = slice(begin + 100 - window, begin + 100)
            explained = 1 - ((truth[last] - predicted[last]) ** 2).mean(axis=0) / truth[last].var(axis=0)
            shares[begin + 100] = float((explained > 0.5).mean())
            print(f"step {begin + 100:7,}: {shares[begin + 100]:5.0%} of the questions explain more than half")
    by_scale = (explained > 0.5).reshape(len(TIME_SCALES), -1).mean(axis=1)
    print(
        "by time scale:",
        ", ".join(f"{scale} steps {one:.0%}" for scale, one in zip(TIME_SCALES, by_scale, strict=True)),
    )
    if page is not None:
        page.write_text(report(horde, asked, explained, truth, predicted, shares), encoding="utf-8")
        print(f"{page}: predicted and realised returns of the best, the median and the worst question")
    return shares


def report(horde, asked, explained, truth, predicted, shares):
    """Return the page: three questions over the last steps, and the summary of all."""
    order = np.argsort(-explained)
    chosen = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
    pictures = [
        picture(f"The {word}: {asked[k].name}, {explained[k]:.0%} explained", predicted[-SHOWN:, k], truth[-SHOWN:, k])
        for word, k in chosen.items()
    ]
    last = max(shares)
    rows = [[shown(record[name]) for name in HEAD] for record in horde.summary().to_dict("records")]
    return PAGE.format(
        about=f"{len(asked)} questions about {BODY}, {horde.n_features:,} features, {horde.updates:,} steps. In the "
        f"last steps up to {last:,}, {shares[last]:.0%} of them explain more than half of the variance.",
        pictures="\n".join(pictures),
        head="".join(f"<th>{word}</th>" for word in HEAD.values()),
        rows="\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows),
    )


def shown(value):
    """Return a cell of the table."""
    return escape(value) if isinstance(value, str) else "–" if value != value else f"{value:,.4g}"


def picture(label, predicted, realised):
    """Return predictions (steps,) over realised returns (steps,) as SVG."""
    low, high = min(predicted.min(), realised.min()), max(predicted.max(), realised.max())

    def line(values, width):
        across, down = np.linspace(60, 710, len(values)), 166 - 140 * (values - low) / (high - low or 1.0)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
        return f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="{width}"/>'

    marks = "".join(f'<text x="0" y="{y}">{value:.3g}</text>' for y, value in ((30, high), (170, low)))
    lines = line(realised, 1) + line(predicted, 2.6)
    return f'<h3>{escape(label)}</h3><svg viewBox="0 0 720 190" width="720" font-size="13">{marks}{lines}</svg>'


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--page", type=Path, default=Path("nexting.html"))
    given = parser.parse_args()
    main(given.steps, page=given.page)
