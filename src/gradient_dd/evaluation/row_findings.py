"""Findings on the rows: drift, heavy tails, copied episodes, their order, holes, shifted rewards."""

from typing import NamedTuple

from gradient_dd.evaluation.findings import Found, finding
from gradient_dd.evaluation.row_signs import RowSigns

UNLIKELY, VERY_UNLIKELY = 1e-3, 1e-4  # chances
LARGE = 0.1  # of the size of the values
HEAVY, SOME, TIMES = 0.5, 0.25, 10.0  # shares of the squares in the largest rewards; times a usual reward that they are
COPIED, SURE_COPIES = 0.02, 4.0
LINKED = 4.0  # standard errors
SURE_HOLE, DEEP = 6.0, 1.2
GAIN, SURE_SHIFT = 0.05, 6.0


class RowEvidence(NamedTuple):
    """The signs that rows gave, and the size of the values."""

    signs: RowSigns
    scale: float


@finding("rows", "drift", "not")
def drift(rows: RowEvidence) -> Found:
    """The value is another one in the second half of the log than in the first, or in one quarter than in another.
    Remedy: the part of the log that is like today
    """
    found = rows.signs.drift
    if found is None:
        return
    large = abs(found.halves) > LARGE * rows.scale
    apart = f"Between the halves of the log the value moves by {found.halves:+.3g}, between quarters by up to "
    apart += f"{found.quarters:.3g}"
    if found.chance < VERY_UNLIKELY and large:
        yield "not", f"{apart}: rewards, transitions or ratios drift."
    elif min(found.chance, found.chance_of_quarters) < VERY_UNLIKELY or (found.chance < UNLIKELY and large):
        yield "with care", f"{apart}, more than chance allows: something drifts."
    else:
        yield "fine", f"{apart}, which may be chance."


@finding("rows", "heavy tails", "not")
def heavy_tails(rows: RowEvidence) -> Found:
    """A thousandth of the rows holds half of all squared rewards, and these are ten times as large as usual ones. A log
    of another day would have others. Remedy: more data; a cap on rewards, if the question allows it
    """
    tail = rows.signs.tail
    if tail is not None and tail.share > SOME and tail.times > TIMES:
        yield (
            "not" if tail.share > HEAVY else "with care",
            f"The largest 0.1% of the rewards hold {tail.share:.0%} of all squares, and are {tail.times:.3g} times as "
            "large as usual ones: no interval knows what a larger one would do.",
        )


@finding("rows", "copied episodes", "with care")
def copied_episodes(rows: RowEvidence) -> Found:
    """Episodes that are the same in every row, more often than chance makes them: they count twice, and the interval is
    too narrow. Remedy: leave out the copies
    """
    twins = rows.signs.twins
    if twins is not None and twins.share > COPIED and twins.beyond > SURE_COPIES:
        yield "with care", f"{twins.share:.0%} of the episodes are the same as another one in every row: copies."


@finding("rows", "order", "with care")
def order(rows: RowEvidence) -> Found:
    """A state has nothing to do with the state before it: the rows may have been shuffled. Remedy: sort the rows by
    time; if states are drawn anew in each step, nothing
    """
    linked = rows.signs.linked
    if linked is not None and linked < LINKED:
        yield "with care", "Successive states have nothing to do with each other: the rows may be shuffled."


@finding("rows", "missing rows", "with care")
def missing_rows(rows: RowEvidence) -> Found:
    """At regular distances a state is farther from the state before than elsewhere: rows are missing there. Remedy: all
    rows, or columns of next observations
    """
    hole = rows.signs.hole
    if hole is not None and hole.sure > SURE_HOLE and hole.times > DEEP:
        yield "with care", f"After every {hole.period} rows the state jumps: rows seem to be missing there."


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
            f"The row {where} explains {shift.gain:.0%} more of the rewards than their own row: rewards are shifted.",
        )
