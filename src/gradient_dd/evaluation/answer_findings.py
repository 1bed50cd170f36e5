"""Findings on the answer: held-out error, interval, movement, LSTD, and the returns of the log beside the values."""

from typing import NamedTuple

from gradient_dd.arrays import Array
from gradient_dd.evaluation.choice import NOTHING, Candidate
from gradient_dd.evaluation.findings import Found, finding
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.returns import ReturnCheck

WIDE = 0.5  # half an interval, over the size of the values: beyond it the answer needs care
FAR, FAR_OFF = 2.0, 0.1  # a gap of so many doubts, and of this share of the value, is a "not"
NEAR = 0.25  # of the larger of two numbers: up to such a gap they agree
MOSTLY = 0.9  # of the returns: where so much are values themselves, returns check nothing
BLIND = 0.5  # of the size of the values: returns that would not notice such an error check nothing


class Answer(NamedTuple):
    """An evaluation, and what it was made of.

    chosen      the candidate whose values are the answer;  lstd  the plain LSTD solution, if there is one
    moved       the weights of the older and of the newer window of the average, (p,) each
    by_returns  whether the returns of the log overruled the Bellman error
    """

    evaluation: Evaluation
    chosen: Candidate
    lstd: Candidate | None
    moved: tuple[Array, Array] | None
    by_returns: bool


@finding("answer", "divergence", "not")
def divergence(answer: Answer) -> Found:
    """The learner that you asked for diverged, and when. Remedy: a smaller step size, or another learner"""
    if answer.chosen.diverged:
        yield "not", f"{answer.chosen.words} diverged at update {answer.chosen.diverged:,}."


@finding("answer", "held-out error", "not")
def held_out_error(answer: Answer) -> Found:
    """Below that of the initial weights, or nothing was learnt. Remedy: more data, other features"""
    ours = answer.chosen.error
    still = next(one.error for one in answer.evaluation.candidates if one.name == NOTHING)
    if answer.chosen.name == NOTHING:
        words = "Nothing that was tried does better on held-out data than the initial weights: nothing was learnt."
        yield "not", words
    elif answer.by_returns:
        return
    elif not ours < still and still > 0:
        yield "not", f"The held-out error, {ours:.3g}, is not below that of the initial weights, {still:.3g}."
    else:
        yield "fine", f"The held-out error is {ours:.3g}; that of the initial weights is {still:.3g}."


@finding("answer", "returns", "with care")
def overruled_by_returns(answer: Answer) -> Found:
    """The returns overruled the Bellman error. Remedy: features that carry the values"""
    if answer.by_returns and answer.chosen.name != NOTHING:
        yield (
            "with care",
            "The returns of the log prefer these values to those with the smallest Bellman error: the features do not "
            "carry all that the values need.",
        )


@finding("answer", "switches", "fine")
def switches(answer: Answer) -> Found:
    """Which candidate was ahead, and from which row on, in a long stream."""
    if len(answer.evaluation.switches) > 1:
        ahead = "; ".join(f"{words} from row {rows:,} on" for rows, words in answer.evaluation.switches)
        yield "fine", f"The smallest held-out error had {ahead}."


@finding("answer", "still moving", "with care")
def still_moving(answer: Answer) -> Found:
    """The average moved by more than half of the interval from one window to the next. Remedy: more passes"""
    if answer.moved is not None:
        older, newer = answer.moved
        low, high = answer.evaluation.start_interval
        drift = float(answer.evaluation.start @ (newer - older))
        moves = abs(drift) > max((high - low) / 2, 1e-9 * abs(answer.evaluation.start_value))
        yield "with care" if moves else "fine", f"The value moved by {drift:+.3g} from one half to the next."


@finding("answer", "LSTD", "not")
def far_from_lstd(answer: Answer) -> Found:
    """The value is outside the interval of the exact solution of the sample; "not" where it is off by 10 %. Remedy:
    more passes, or LSTD
    """
    if answer.lstd is not None and answer.chosen.name != "lstd":
        apart = float(answer.evaluation.start @ (answer.lstd.w - answer.chosen.w))
        low, high = answer.evaluation.start_interval  # that of LSTD, made wide enough to hold the value
        beyond = high > low and answer.evaluation.start_value in (low, high)
        words = f"The exact solution of the sample, LSTD, differs by {apart:+.3g}"
        level = "not" if abs(apart) > FAR_OFF * max(answer.evaluation.scale, abs(apart)) else "with care"
        yield (level, f"{words}, more than its own interval.") if beyond else ("fine", f"{words}.")


@finding("answer", "interval", "with care")
def interval(answer: Answer) -> Found:
    """That of the value, see below; wider than the values themselves, it needs care. Remedy: more data"""
    found = answer.evaluation
    low, high = found.start_interval
    level = "with care" if (high - low) / 2 > WIDE * found.scale else "fine"
    bounds = f"from {low:.4g} to {high:.4g} at {found.spread.confidence:.0%}"
    yield level, f"The value where episodes begin is {found.start_value:.4g}, {bounds}."


@finding("answer", "returns", "not")
def returns_beside_values(answer: Answer) -> Found:
    """What episodes paid disagrees with the values, or cannot check them: see below. Remedy: features that carry the
    values, the right columns, more data
    """
    checks, scale = answer.evaluation.checks, answer.evaluation.scale
    if not checks:
        return
    worst = max(checks, key=lambda one: abs(one.gap) / max(one.doubt, 1e-300) if one.steps else 0.0)
    if worst.steps and abs(worst.gap) > worst.doubt:
        far = abs(worst.gap) > FAR * worst.doubt
        large = abs(worst.gap) > FAR_OFF * max(abs(worst.returns), abs(worst.value))
        yield (
            "not" if far and large else "with care",
            f"{in_words(worst)}, but the values there average to {worst.value:.4g}. They differ by {worst.gap:+.3g}, "
            f"where {worst.doubt:.2g} may be chance. The features do not carry the values, or a column is not what it "
            "was taken for.",
        )
        return
    able = [one for one in checks if one.rest < MOSTLY and agree(one, scale)]
    sharp = [one for one in able if one.blind <= BLIND * max(scale, abs(one.value))]
    if sharp:
        yield "fine", f"{in_words(sharp[0])}; the values agree: {sharp[0].value:.4g}."
        return
    best = min(checks, key=lambda one: one.blind)
    beside = (
        f"the values agree: {best.value:.4g}. But values"
        if agree(best, scale)
        else f"the values there average to {best.value:.4g}, which may differ by {best.gap:+.3g} by chance. Values"
    )
    unseen = f"by {best.blind:.2g}, where the largest is {scale:.2g}," if best.steps else "by any amount"
    rest = (
        f" Episodes are cut, or their ratios too heavy, after {best.steps} steps: {best.rest:.0%} of the returns are "
        "values themselves."
        if best.rest >= BLIND
        else ""
    )
    yield (
        "with care",
        f"{in_words(best)}; {beside} that are all wrong {unseen} would {'agree' if agree(best, scale) else 'do'} as "
        f"well, so nothing has checked them.{rest}",
    )


def agree(check: ReturnCheck, scale: float) -> bool:
    """Return whether returns and values are near enough to be called equal, whatever chance may do."""
    return abs(check.gap) <= max(NEAR * max(abs(check.returns), abs(check.value)), FAR_OFF * scale)


def in_words(check: ReturnCheck) -> str:
    """Return what a check found, as the beginning of a sentence."""
    where = "where episodes begin" if check.kind == "episodes" else "from all rows on"
    weighted = ", weighted by the ratios," if check.effective < check.starts - 0.5 else ""
    return f"The returns{weighted} average to {check.returns:.4g}, from {check.low:.4g} to {check.high:.4g}, {where}"
