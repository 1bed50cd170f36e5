"""What the answer says of itself: held-out error, interval, movement, LSTD, and the returns of the log."""

from gradient_dd.arrays import Array
from gradient_dd.evaluation.choice import Candidate
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.return_checks import ReturnCheck
from gradient_dd.evaluation.verdict import FAR_OFF, Finding

FAR = 2.0  # doubts by which returns and values must differ for a "not"
BLIND = 0.5  # of the size of the values: returns that would not notice such an error check nothing


def findings_after(
    evaluation: Evaluation,
    chosen: Candidate,
    lstd: Candidate | None,
    moved: tuple[Array, Array] | None,
    by_returns: bool,
) -> list[Finding]:
    """Return what the answer says of itself."""
    still = next(one for one in evaluation.candidates if one.name == "initial weights")
    found = []
    if chosen.diverged:
        found.append(Finding("not", "divergence", f"{chosen.words} diverged at update {chosen.diverged:,}."))
    if chosen.name == "initial weights":
        sentence = "Nothing that was tried does better on held-out data than the initial weights: nothing was learnt."
        found.append(Finding("not", "held-out error", sentence))
    elif by_returns:
        sentence = (
            "The returns of the log prefer these values to those with the smallest Bellman error: the features do not "
            "carry all that the values need."
        )
        found.append(Finding("with care", "returns", sentence))
    elif not chosen.error < still.error and still.error > 0:
        sentence = (
            f"The held-out error, {chosen.error:.3g}, is not below that of the initial weights, {still.error:.3g}."
        )
        found.append(Finding("not", "held-out error", sentence))
    else:
        sentence = f"The held-out error is {chosen.error:.3g}; that of the initial weights is {still.error:.3g}."
        found.append(Finding("fine", "held-out error", sentence))
    if len(evaluation.switches) > 1:
        ahead = "; ".join(f"{words} from row {rows:,} on" for rows, words in evaluation.switches)
        found.append(Finding("fine", "switches", f"The smallest held-out error had {ahead}."))
    value = evaluation.start_value
    low, high = evaluation.start_interval
    half = (high - low) / 2
    if moved is not None:
        drift = float(evaluation.start @ (moved[1] - moved[0]))
        level = "with care" if abs(drift) > max(half, 1e-9 * abs(value)) else "fine"
        found.append(Finding(level, "still moving", f"The value moved by {drift:+.3g} from one half to the next."))
    if lstd is not None and chosen.name != "lstd":
        apart = float(evaluation.start @ (lstd.w - chosen.w))
        level = "with care" if half > 0 and value in (low, high) else "fine"  # the interval is that of LSTD
        beyond = ", more than its own interval" if level != "fine" else ""
        sentence = f"The exact solution of the sample, LSTD, differs by {apart:+.3g}{beyond}."
        found.append(Finding(level, "LSTD", sentence))
    level = "with care" if half > 0.5 * evaluation.scale else "fine"
    bounds = f"from {low:.4g} to {high:.4g} at {evaluation.spread.confidence:.0%}"
    sentence = f"The value where episodes begin is {value:.4g}, {bounds}."
    found.append(Finding(level, "interval", sentence))
    return [*found, *against_returns(evaluation.checks, evaluation.scale)]


def against_returns(checks: tuple[ReturnCheck, ...], scale: float) -> list[Finding]:
    """Return whether the returns of the log agree with the values, whose size is `scale`.

    The check that is farthest off decides. Where all agree, one of them must be able to see an error of half the size.
    """
    if not checks:
        return []
    worst = max(checks, key=lambda one: abs(one.gap) / max(one.doubt, 1e-300) if one.steps else 0.0)
    if worst.steps and abs(worst.gap) > worst.doubt:
        far = abs(worst.gap) > FAR * worst.doubt and abs(worst.gap) > FAR_OFF * max(
            abs(worst.returns), abs(worst.value)
        )
        sentence = (
            f"{in_words(worst)}, but the values there average to {worst.value:.4g}. They differ by {worst.gap:+.3g}, "
            f"where {worst.doubt:.2g} may be chance. The features do not carry the values, or a column is not what it "
            "was taken for."
        )
        return [Finding("not" if far else "with care", "returns", sentence)]
    sharp = [one for one in checks if one.blind <= BLIND * max(scale, abs(one.value))]
    if sharp:
        return [Finding("fine", "returns", f"{in_words(sharp[0])}; the values agree: {sharp[0].value:.4g}.")]
    best = min(checks, key=lambda one: one.blind)
    unseen = f"by {best.blind:.2g}, where the largest is {scale:.2g}," if best.steps else "by any amount"
    sentence = (
        f"{in_words(best)}; the values agree: {best.value:.4g}. But values that are all wrong {unseen} would agree as "
        "well, so nothing has checked them."
    )
    if best.rest >= BLIND:
        sentence += (
            f" Episodes are cut, or their ratios too heavy, after {best.steps} steps: {best.rest:.0%} of the returns "
            "are values themselves."
        )
    return [Finding("with care", "returns", sentence)]


def in_words(check: ReturnCheck) -> str:
    """Return what a check found, as the beginning of a sentence."""
    where = "where episodes begin" if check.kind == "episodes" else "from all rows on"
    weighted = ", weighted by the ratios," if check.effective < check.starts - 0.5 else ""
    return f"The returns{weighted} average to {check.returns:.4g}, from {check.low:.4g} to {check.high:.4g}, {where}"
