"""The facts of `gradient-dd analyse` as text."""

from math import isfinite, isinf, log
from typing import Any

from gradient_dd.cli.tables import table
from gradient_dd.theory.advice.advise import NOT_TRIED

Facts = dict[str, Any]
HEAD = ("learner", "its best setting", "over the run", "at the end", "stable below", "safe below")
SHADOW_HEAD = ("learner", "alpha", "growth a step", "so it", "no growth up to", "stable below", "safe below")
MEASURES = {"area": "over the whole run", "last100": "at the end"}
BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 40  # of the picture of the curve
SHARES = (0.01, 0.1, 0.5, 1.0)  # of a run at which the error is printed
NOT_PARAMETERS = ("learner", "area", "last100", "refined", "stable", "safe", "rate", "shadow")


def facts_page(facts: Facts) -> str:
    """Return all facts as text."""
    about = f"{facts['task']}, {facts['horizon']}, step size {facts['schedule']}, sampling: {facts['sampling']}"
    blocks = [[about, f"The error to keep small is the one {MEASURES[facts['measure']]}.", "", *advice_lines(facts)]]
    blocks += [[table(map(row, facts["candidates"]), HEAD), *notes(facts)]]
    if any("shadow" in one for one in facts["candidates"]):
        blocks += [shadow_lines(facts["candidates"])]
    blocks += [[f"TD is {facts['TD']}.", *doubt_lines(facts.get("doubt"))]]
    if facts.get("assumptions"):
        blocks += [assumption_lines(facts["assumptions"])]
    return "\n\n".join("\n".join(lines) for lines in blocks)


def advice_lines(facts: Facts) -> list[str]:
    """Return the advice, the errors it leads to, and the error of the initial weights."""
    best, still = facts["advice"], facts["initial error"]
    if best is None:
        return ["Every setting that was tried diverged, so there is no advice. Look at the features and the ratios."]
    words = f"{best['learner']} with {parameters(best)}"
    lines = [f"Take {words}."]
    if not best["beats standing still"]:
        lines = [
            "Nothing that was tried has a smaller error than the initial weights: do not learn, or change features.",
            f"What comes nearest is {words}.",
        ]
    lines += [
        f"  predicted error  {estimate(best['area'])} {MEASURES['area']}, {estimate(best['last100'])} "
        f"{MEASURES['last100']}, on {best['runs']} pilot runs",
        f"  initial weights  {still:.4g}",
        *curve_lines(facts["curve"]),
    ]
    safe = next(one["safe"] for one in facts["candidates"] if one["learner"] == best["learner"])
    if safe is not None and best["alpha"] > safe:
        lines += [
            f"This alpha is above {safe:.3g}, where the mean square stops converging: a rare run can do much worse "
            "than those of the pilot. A smaller alpha is safer."
        ]
    if best["extrapolated from"]:
        lines += [
            f"The pilot ran {best['extrapolated from']}. For {facts['horizon']} alpha and the predicted error are "
            "extrapolated. The curve and the table are for the pilot."
        ]
    return lines


def parameters(facts: Facts) -> str:
    """Return the parameters of a setting in words; where ρ stands only if it is not the usual place."""
    values = {name: value for name, value in facts.items() if isinstance(value, float) and name not in NOT_PARAMETERS}
    values = {name: value for name, value in values.items() if name not in ("predicted error", "doubt")}
    words = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    return words + (", rho_mode T" if facts.get("rho_mode") == "T" else "")


def estimate(error: Facts) -> str:
    """Return a predicted error with its doubt."""
    doubt = error["doubt"]
    return f"{error['mean']:.4g}" + (f" ± {doubt:.1g}" if isfinite(doubt) else "")


def curve_lines(curve: Facts) -> list[str]:
    """Return the curve as a picture with a logarithmic scale, and its value at a few points."""
    mean, at = curve["mean"], curve["at"]
    if not all(isfinite(value) and value > 0 for value in mean):
        return []
    chosen = [mean[i * len(mean) // COLUMNS] for i in range(COLUMNS)] if len(mean) > COLUMNS else mean
    low, high = log(min(chosen)), log(max(chosen))
    heights = [round((log(value) - low) / (high - low) * (len(BARS) - 1)) if high > low else 0 for value in chosen]
    places = dict.fromkeys(max(0, round(share * len(mean)) - 1) for share in SHARES)
    points = ", ".join(f"{mean[place]:.3g} at {at[place]:,}" for place in places)
    return [f"  error by {curve['unit']}  {''.join(BARS[height] for height in heights)}  {points}"]


def row(one: Facts) -> tuple[str, ...]:
    """Return a learner as a row of the table."""
    errors = (f"{estimate(one[name])}{'' if one['refined'] else ' *'}" for name in ("area", "last100"))
    return (one["learner"], parameters(one), *errors, limit(one["stable"]), limit(one["safe"]))


def shadow_lines(candidates: list[Facts]) -> list[str]:
    """Return the measured growth of every setting's shadows beside its exact limits."""
    steps = next((one["shadow"]["steps"] for one in candidates if one["shadow"]), 0)
    return [
        table(map(shadow_row, candidates), SHADOW_HEAD),
        f"shadows: copies without rewards, from random starts, on {steps:,} transitions. How quickly they grow in a "
        "step, with a 95 % interval, is how quickly the learner forgets its start (below 0) or diverges (above 0).",
        "Shadows show what nearly every run does. Above the alpha that is safe, rare runs burst all the same.",
    ]


def shadow_row(one: Facts) -> tuple[str, ...]:
    """Return what shadows say of a learner's best setting, as a row of the table."""
    exact = limit(one["stable"]), limit(one["safe"])
    if one["shadow"] is None:
        return one["learner"], f"{one['alpha']:.3g}", "not measured: not linear in w and η", "", "?", *exact
    shadow = one["shadow"]
    growth = f"{shadow['growth']:.2e} [{shadow['low']:.2e}, {shadow['high']:.2e}]"
    return one["learner"], f"{one['alpha']:.3g}", growth, shadow["says"], limit(shadow["no growth up to"]), *exact


def limit(value: float | None) -> str:
    """Return a limit of alpha as it stands in the table."""
    return "?" if value is None else "never" if value == 0 else "any" if isinf(value) else f"{value:.3g}"


def notes(facts: Facts) -> list[str]:
    """Return what the signs of the table mean, and why a learner is not in it."""
    rows = facts["candidates"]
    lines = []
    if not all(one["refined"] for one in rows):
        lines += ["*: far behind at the first look, so its setting was not refined."]
    if any(value is not None for one in rows for value in (one["stable"], one["safe"])):
        lines += ["stable, safe: below this alpha the mean, and the mean square, converge with a constant step size."]
    if any(value is None for one in rows for value in (one["stable"], one["safe"])):
        lines += ["?: not computed, for it would take too long, or the rule is not linear. The pilot does not need it."]
    for reason in dict.fromkeys(facts["left out"].values()):
        names = ", ".join(name for name, why in facts["left out"].items() if why == reason)
        lines += [f"{names}: {reason}." + (" Add --learner NAME to try one." if reason == NOT_TRIED else "")]
    return lines


def doubt_lines(doubt: Facts | None) -> list[str]:
    """Return what bootstrap samples of a log say, and what the advice for a log assumes."""
    if doubt is None:
        return []
    low, high = doubt["error"]
    return [
        f"On bootstrap samples of the log the pilot ends with an error of {low:.3g} to {high:.3g} (5 % to 95 %), "
        f"below that of the initial weights in {doubt['improves']:.0%} of them. In {doubt['td_stable']:.0%} of them "
        "TD is stable in the mean for small step sizes.",
        f"The solution of A w = b on the same half of the log has an error of {doubt['solution']:.3g}.",
        "Half of the log was replayed in random order, from w = 0. The error is the root of the MSPBE on the other "
        "half, not the unknown error of the values. The advice holds for transitions in random order.",
    ]


def assumption_lines(assumptions: list[Facts]) -> list[str]:
    """Return the theorem's assumptions, and what follows where one fails."""
    lines = ["The theorem's assumptions, for Gradient-DD with alpha 0.1 and kappa 1:"]
    for one in assumptions:
        lines += [f"({one['name']}) {'holds' if one['holds'] else 'fails'}: {one['statement']}. Here {one['why']}."]
        lines += [] if one["holds"] else [f"   so {one['consequence']}."]
    return lines
