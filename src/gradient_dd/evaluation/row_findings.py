"""Findings on the rows: drift, heavy tails, copied episodes, their order, holes, shifted rewards."""

from typing import NamedTuple

from gradient_dd.evaluation.findings import Found, finding
from gradient_dd.evaluation.row_signs import RowSigns

UNLIKELY = 0.002  # chance of such cumulative sums without a drift
LARGE = 0.1  # of the mean size of rewards
HEAVY, SOME, TIMES = 0.5, 0.25, 10.0  # shares of the squares in the largest rewards; times a usual reward that they are
COPIED, SURE_COPIES = 0.02, 4.0
LINKED = 4.0  # standard errors
SURE_HOLE, DEEP = 6.0, 1.2
GAIN, SURE_SHIFT = 0.05, 6.0


class RowEvidence(NamedTuple):
    """The signs that rows gave, and the names of the columns of the observation."""

    signs: RowSigns
    names: tuple[str, ...]


@finding("rows", "drift", "with care")
def drift(rows: RowEvidence) -> Found:
    """Rewards or next states, given state and action, change over the log: cumulative sums of their residuals go
    farther than those of episodes in random order. Remedy: the part of the log that is like today
    """
    found = rows.signs.drift
    if found is None:
        return
    if found.chance > UNLIKELY:
        yield "fine", f"Rewards and next states do not drift over the log (p = {found.chance:.2g})."
        return
    what = "What is paid" if found.reward else "What follows"
    yield (
        "with care",
        f"{what} after the same state and action changes at about {found.since:.0%} of the log "
        f"(p = {found.chance:.2g}), so the value is a mean over times that differ. Evaluate the part that is "
        "like today.",
    )


@finding("rows", "heavy tails", "not")
def heavy_tails(rows: RowEvidence) -> Found:
    """A thousandth of the rows holds half of all squared rewards, and these are ten times as large as usual ones. A log
    of another day would have others. Remedy: more data; a cap on rewards, if the question allows it
    """
    tail = rows.signs.tail
    if tail is not None and tail.share > SOME and tail.times > TIMES:
        yield (
            "not" if tail.share > HEAVY else "with care",
            f"The largest 0.1% of the rewards hold {tail.share:.0%} of all squared rewards and are {tail.times:.3g} "
            "times as large as usual ones. Another log would have other large ones, which no interval allows for. "
            "Collect more data, or cap the rewards if the question allows it.",
        )


@finding("rows", "copied episodes", "with care")
def copied_episodes(rows: RowEvidence) -> Found:
    """Episodes that are the same in every row, more often than chance makes them: they count twice, and the interval is
    too narrow. Remedy: leave out the copies
    """
    twins = rows.signs.twins
    if twins is not None and twins.share > COPIED and twins.beyond > SURE_COPIES:
        yield (
            "with care",
            f"{twins.share:.0%} of the episodes equal another one in every row, more than chance allows. Copies count "
            "twice, so the interval is too narrow: leave them out.",
        )


@finding("rows", "order", "with care")
def order(rows: RowEvidence) -> Found:
    """A state does not depend on the state before it: the rows may have been shuffled. Remedy: sort the rows by
    time; if states are drawn independently in each step, nothing
    """
    linked = rows.signs.linked
    if linked is not None and linked < LINKED:
        yield (
            "with care",
            "A state does not depend on the state before it. If the rows were shuffled, the values are wrong: sort the "
            "rows by episode and time. If states are independent, ignore this.",
        )


@finding("rows", "missing rows", "with care")
def missing_rows(rows: RowEvidence) -> Found:
    """At regular distances a state is farther from the state before than elsewhere: rows are missing there. Remedy: all
    rows, or columns of next observations
    """
    hole = rows.signs.hole
    if hole is not None and hole.sure > SURE_HOLE and hole.times > DEEP:
        yield (
            "with care",
            f"After every {hole.period} rows the state jumps farther than elsewhere: rows seem to be missing there, "
            "and their rewards with them. Use all rows, or a log with next observations.",
        )


@finding("rows", "shifted rewards", "not")
def shifted_rewards(rows: RowEvidence) -> Found:
    """The row before, or the row after, explains the rewards far better than the row in which they stand. Remedy: put
    each reward into the row of the step that it was paid for
    """
    shift = rows.signs.shift
    if shift is not None and shift.gain > GAIN and shift.sure > SURE_SHIFT:
        where = "before" if shift.rows < 0 else "after"
        yield (
            "not",
            f"The row {where} explains {shift.gain:.0%} more of the variance of the rewards than their own row: "
            "rewards are shifted, and credited to other states and actions. Put each reward into the row of its step.",
        )
