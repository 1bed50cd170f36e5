"""An analysis as text, for `gradient-dd analyse`."""

from math import isfinite, isinf, log

from gradient_dd.learners import Setting
from gradient_dd.theory.advice.advise import NOT_TRIED, PredictedError, TunedLearner
from gradient_dd.theory.advice.from_log import LogDoubt
from gradient_dd.theory.analysis import Analysis, Facts, curve_facts, length
from gradient_dd.theory.limits import Growth, Limits
from gradient_dd.theory.recursion import Assumption

Row = tuple[str, ...]
Line = str | tuple[list[Row], Row]  # a sentence, or the rows and the head of a table
HEAD = ("learner", "its best setting", "over the run", "at the end", "stable below", "safe below")
GROWTH_HEAD = ("learner", "alpha", "growth a step", "so it", "no growth up to", "stable below", "safe below")
WHEN = {"area": "over the whole run", "last100": "at the end"}
BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 40  # of the picture of the curve
SHARES = (0.01, 0.1, 0.5, 1.0)  # of a run at which the error is printed


def page_lines(found: Analysis, details: bool = True) -> list[Line]:
    """Return what was found, line by line; without `details` only the advice and what limits it."""
    advice = found.advice
    lines: list[Line] = [
        f"{found.subject}, {length(advice.horizon)}, step size {found.schedule}, sampling: {found.sampling}",
        f"The error to keep small is the one {WHEN[advice.measure]}.",
        "",
        *advice_lines(found),
        "",
    ]
    if details:
        rows = [table_row(*pair) for pair in zip(advice.candidates, found.limits, strict=True)]
        lines += [(rows, HEAD), *notes(found), ""]
    if found.growth is not None:
        lines += [*growth_lines(found, found.growth), ""]
    lines += [f"TD is {found.td}.", *doubt_lines(found.doubt)]
    if details and found.assumptions:
        lines += ["", *assumption_lines(found.assumptions)]
    return lines if details else [*lines, "--details shows the other learners, their limits and the assumptions."]


def advice_lines(found: Analysis) -> list[str]:
    """Return the advice, the errors it leads to, and the error of the initial weights."""
    advice, best = found.advice, found.advice.best
    if best is None:
        return ["Every setting that was tried diverged, so there is no advice. Look at the features and the ratios."]
    words = f"{best.setting.rule.name} with {parameters(best.setting)}"
    lines = [f"Take {words}."]
    if not advice.beats_standing_still:
        lines = [
            "Nothing that was tried has a smaller error than the initial weights: do not learn, or change features.",
            f"What comes nearest is {words}.",
        ]
    lines += [
        f"  predicted error  {error_words(best.area)} {WHEN['area']}, {error_words(best.last100)} "
        f"{WHEN['last100']}, on {best.area.runs} pilot runs",
        f"  initial weights  {advice.initial_error:.4g}",
        *curve_lines(curve_facts(advice.pilot_horizon, best)),
    ]
    tried = zip(advice.candidates, found.limits, strict=True)
    safe = next(limits.safe for one, limits in tried if one.setting.rule == best.setting.rule)
    if safe is not None and best.setting.values["alpha"] > safe:
        lines += [
            f"This alpha is above {safe:.3g}, where the mean square stops converging: a rare run can do much worse "
            "than those of the pilot. A smaller alpha is safer."
        ]
    if advice.is_extrapolated:
        lines += [
            f"The pilot ran {length(advice.pilot_horizon)}. For {length(advice.horizon)} alpha and the predicted error "
            "are extrapolated. The curve and the table are for the pilot."
        ]
    return lines


def parameters(setting: Setting) -> str:
    """Return the parameters of a setting in words; where ρ stands only if it is not the usual place."""
    words = ", ".join(f"{name} {value:.3g}" for name, value in setting.values.items())
    return words + (", rho_mode T" if setting.rule.has_rho_mode and setting.rho_mode == "T" else "")


def error_words(error: PredictedError) -> str:
    """Return a predicted error with its doubt."""
    return f"{error.mean:.4g}" + (f" ± {error.doubt:.1g}" if isfinite(error.doubt) else "")


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


def table_row(one: TunedLearner, limits: Limits) -> Row:
    """Return a learner as a row of the table."""
    errors = (f"{error_words(error)}{'' if one.refined else ' *'}" for error in (one.area, one.last100))
    return (one.setting.rule.name, parameters(one.setting), *errors, limit(limits.stable), limit(limits.safe))


def limit(value: float | None) -> str:
    """Return a limit of alpha as it stands in the table."""
    return "?" if value is None else "never" if value == 0 else "any" if isinf(value) else f"{value:.3g}"


def notes(found: Analysis) -> list[str]:
    """Return what the signs of the table mean, and why a learner is not in it."""
    limits = [value for one in found.limits for value in (one.stable, one.safe)]
    lines = []
    if not all(one.refined for one in found.advice.candidates):
        lines += ["*: far behind at the first look, so its setting was not refined."]
    if any(value is not None for value in limits):
        lines += ["stable, safe: below this alpha the mean, and the mean square, converge with a constant step size."]
    if any(value is None for value in limits):
        lines += ["?: not computed, for it would take too long, or the rule is not linear. The pilot does not need it."]
    left_out = found.advice.left_out
    for reason in dict.fromkeys(left_out.values()):
        names = ", ".join(name for name, why in left_out.items() if why == reason)
        lines += [f"{names}: {reason}." + (" Add --learner NAME to try one." if reason == NOT_TRIED else "")]
    return lines


def growth_lines(found: Analysis, growth: list[Growth | None]) -> list[Line]:
    """Return the measured growth of every setting's shadows beside its exact limits."""
    rows = [growth_row(*one) for one in zip(found.advice.candidates, found.limits, growth, strict=True)]
    steps = next((one.steps for one in growth if one), 0)
    return [
        (rows, GROWTH_HEAD),
        f"shadows: copies without rewards, from random starts, on {steps:,} transitions. How quickly they grow in a "
        "step, with a 95 % interval, is how quickly the learner forgets its start (below 0) or diverges (above 0).",
        "Shadows show what nearly every run does. Above the alpha that is safe, rare runs burst all the same.",
    ]


def growth_row(one: TunedLearner, limits: Limits, growth: Growth | None) -> Row:
    """Return what shadows say of a learner's best setting, as a row of the table."""
    first = one.setting.rule.name, f"{one.setting.values['alpha']:.3g}"
    exact = limit(limits.stable), limit(limits.safe)
    if growth is None:
        return *first, "not measured: not linear in w and η", "", "?", *exact
    interval = f"{growth.growth:.2e} [{growth.low:.2e}, {growth.high:.2e}]"
    return *first, interval, growth.says, limit(growth.no_growth_up_to), *exact


def doubt_lines(doubt: LogDoubt | None) -> list[str]:
    """Return what bootstrap samples of a log say, and what the advice for a log assumes."""
    if doubt is None:
        return []
    low, high = doubt.error
    return [
        f"On bootstrap samples of the log the pilot ends with an error of {low:.3g} to {high:.3g} (5 % to 95 %), "
        f"below that of the initial weights in {doubt.improves:.0%} of them. In {doubt.td_stable:.0%} of them "
        "TD is stable in the mean for small step sizes.",
        f"The solution of A w = b on the same half of the log has an error of {doubt.solution:.3g}.",
        "Half of the log was replayed in random order, from w = 0. The error is the root of the MSPBE on the other "
        "half, not the unknown error of the values. The advice holds for transitions in random order.",
    ]


def assumption_lines(assumptions: list[Assumption]) -> list[str]:
    """Return the theorem's assumptions, and what follows where one fails."""
    lines = ["The theorem's assumptions, for Gradient-DD with alpha 0.1 and kappa 1:"]
    for one in assumptions:
        lines += [f"({one.name}) {'holds' if one.holds else 'fails'}: {one.statement}. Here {one.why}."]
        lines += [] if one.holds else [f"   so {one.consequence}."]
    return lines
