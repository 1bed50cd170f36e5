"""Findings on the columns and rows of a log, its episodes, and the ratios of a policy on it."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array
from gradient_dd.evaluation.findings import Found, finding
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.rows import HOLE, Piece, joined
from gradient_dd.stream.log import listed
from gradient_dd.studies.intervals import error_of_groups

FEW_EPISODES = 10
LONG_STREAM = 2000  # rows without an end, of which stretches stand for episodes
FEWEST_PAIRS = 20  # of successive rows, to tell their order
IN_ORDER = 0.9  # share of the rows whose next state is the state of the row after
TOO_FEW_EFFECTIVE = 10.0  # effective sample size below which there is no answer
FEW_EFFECTIVE, LOW_SHARE = 100.0, 0.05  # effective sample size, and its share, below which the answer needs care
HEAVY, MANY_ROWS = 0.1, 100  # share of Σρ² in one row, among so many rows or more
SURE = 5.0  # standard errors by which a mean must be off
OFF, FAR_OFF = 0.03, 0.1  # by how much a mean ratio may miss 1
RATIO_GROUPS = 200
FEWEST_ENDS, UNLIKELY = 20, 1e-6  # episodes that ended; probability of such a spike without a time limit
NEAR = 0.2  # lengths within this share of the longest tell how often episodes end by themselves
UNKNOWN = 0.01  # share of the variance of the steps that features with a clock leave
FEWEST_VALUES = 10  # a column with so many different values is a quantity, not a category
LEFT, OPEN = 0.2, 0.1  # a leak leaves less than this share of a variance of which the others leave more than this
MANY_LEFT_OUT, TOO_MANY_LEFT_OUT = 0.01, 0.1  # shares of the rows: the answer needs care, or is not to be trusted
LOOKED_AT = 20_000  # rows, for what is fitted to them


class DataFacts(NamedTuple):
    """What a log shows before anything is solved.

    data           the log;  sample  its first rows
    forward, backward  pairs of successive rows in which the next state of the first is the state of the second, and
                   the other way round;  pairs  all of them
    limit          the length at which too many episodes end, and their share; None if there is none
    leaks          columns of the observation that tell the return of the rest of the episode, and how well
    discount       γ
    """

    data: LogData
    pairs: int
    forward: int
    backward: int
    limit: tuple[int, float] | None
    leaks: list[tuple[int, float]]


class RatioFacts(NamedTuple):
    """The ratios of one policy.

    rows, total, squares, largest, at  their number, Σρ, Σρ², the largest and its row
    mean, error    their mean, with its standard error from groups of episodes
    feature, off   the feature along which ρ is most surely off, and by how much; 0 where no feature is
    """

    rows: int
    total: float
    squares: float
    largest: float
    at: int
    mean: float
    error: float
    feature: int
    off: float


def data_facts(data: LogData) -> DataFacts:
    """Return what the first rows of a log show."""
    sample = joined(data.rows.sample)
    follows = (np.diff(sample.episode) == 0) & (sample.step[1:] < HOLE)
    forward = follows & (sample.after[:-1] == sample.seen[1:]).all(axis=1)
    backward = follows & (sample.seen[:-1] == sample.after[1:]).all(axis=1)
    counts = int(follows.sum()), int(forward.sum()), int(backward.sum())
    limit = time_limit_of(sample)
    if limit is not None and knows_time(data, sample):
        limit = None
    return DataFacts(data, *counts, limit, [] if data.maps[0].table else leaks_of(sample))


def ratio_facts(data: LogData, ratio: Array, sample: Piece) -> RatioFacts:
    """Return what the ratios of a policy show on the first rows of a log."""
    group = sample.group if data.rows.few else sample.episode % RATIO_GROUPS
    groups = int(group.max()) + 1
    count = np.bincount(group, minlength=groups).astype(float)
    used = count > 0
    mean, error = ratio_of_sums(np.bincount(group, ratio, minlength=groups).astype(float)[used], count[used])
    X = data.maps[0].matrix(sample.seen)
    deal = sparse.csr_matrix((ratio - 1, (group, np.arange(len(group)))), (groups, len(group)))
    z = deal @ X
    z = np.asarray(z.todense() if sparse.issparse(z) else z)[used]
    squared = X.multiply(X) if sparse.issparse(X) else X**2
    size = np.sqrt(np.asarray(squared.sum(axis=0)).ravel() / len(ratio))
    feature, off = worst_feature(z, count[used], size)
    most = int(ratio.argmax())
    sums = float(ratio.sum()), float((ratio**2).sum()), float(ratio[most])
    return RatioFacts(len(ratio), *sums, most, mean, error, feature, off)


def worst_feature(z: Array, rows: Array, size: Array) -> tuple[int, float]:
    """Return the feature along which ρ is most surely off, and by how much; 0 where no feature is."""
    scores, offs = np.zeros(len(size)), np.zeros(len(size))
    for j in np.flatnonzero(size > 0):
        off, uncertain = ratio_of_sums(z[:, j], rows)
        offs[j], scores[j] = off / size[j], abs(off) / max(uncertain, 1e-300)
    scores = np.where(np.abs(offs) > OFF, scores, 0.0)
    worst = int(np.argmax(scores))
    return worst, float(offs[worst]) if scores[worst] > SURE + np.log10(len(size)) else 0.0


def ratio_of_sums(sums: Array, rows: Array) -> tuple[float, float]:
    """Return Σ sums / Σ rows over groups, and its standard error."""
    mean = float(sums.sum() / rows.sum())
    return mean, error_of_groups(sums - mean * rows, max(2, len(rows))) / float(rows.sum())


def time_limit_of(sample: Piece) -> tuple[int, float] | None:
    """Return the length at which too many episodes end, and their share; None if there is none.

    Episodes that end by themselves rarely all end at the same step. If an episode that has made L − 1 steps ends with a
    probability λ, as shorter ones do, all k that reach the longest length L end there with probability λᵏ.
    """
    _, first, counts = np.unique(sample.episode, return_index=True, return_counts=True)
    lengths = counts[sample.ended[first + counts - 1]]
    if len(lengths) < FEWEST_ENDS:
        return None
    longest = int(lengths.max())
    heap = int((lengths == longest).sum())
    begin = int(np.floor((1 - NEAR) * longest)) if longest >= 10 else 1
    ended = int(((lengths >= begin) & (lengths < longest)).sum())
    at_risk = int(np.minimum(np.maximum(lengths - begin + 1, 0), longest - begin).sum())
    if longest < 2 or heap * np.log((ended + 1) / (at_risk + 2)) > np.log(UNLIKELY):
        return None
    return longest, heap / len(lengths)


def knows_time(data: LogData, sample: Piece) -> bool:
    """Return whether the features tell how many steps an episode has made: a fixed horizon is then an end."""
    part = sample.part(slice(LOOKED_AT))
    X, step = data.maps[0].matrix(part.seen), part.step.astype(float)
    X = X.toarray() if sparse.issparse(X) and X.shape[1] <= MANY_ROWS * 10 else X
    if sparse.issparse(X):
        return False
    return unexplained(X - X.mean(axis=0), step) < UNKNOWN


def leaks_of(sample: Piece) -> list[tuple[int, float]]:
    """Return columns that tell the return of the rest of the episode beyond what the others tell, and how well."""
    from gradient_dd.evaluation.maps import returns_of

    part = sample.part(slice(LOOKED_AT))
    returns, weight = returns_of(part, np.zeros(len(part)))
    known, x = weight == 0, part.seen
    if known.sum() < 10 * x.shape[1] + 50 or np.ptp(returns[known]) == 0:
        return []
    x, y = x[known], returns[known]
    centred = x - x.mean(axis=0)
    full, found = unexplained(centred, y), []
    for j in range(x.shape[1]):
        if len(np.unique(x[:, j])) >= FEWEST_VALUES:
            without = unexplained(np.delete(centred, j, axis=1), y)
            if without > OPEN and full / without < LEFT:
                found.append((j, 1 - full / without))
    return found


def unexplained(x: Array, y: Array) -> float:
    """Return the share of the variance of y that a linear function of x leaves."""
    y = y - y.mean()
    rest = y - x @ np.linalg.lstsq(x, y, rcond=1e-10)[0] if x.shape[1] else y
    return float((rest**2).sum() / max(1e-300, (y**2).sum()))


@finding("data", "episodes", "with care")
def episodes(facts: DataFacts) -> Found:
    """How many there are, and how they end. Fewer than 10 say little about others, unless nothing ends and there are
    2,000 rows. Remedy: log more episodes
    """
    rows = facts.data.rows
    endless = rows.ended == 0 and rows.n >= LONG_STREAM
    ends = f"{rows.ended:,} ended, {rows.cut:,} were cut"
    words = f"The log has {rows.n:,} transitions in {rows.episodes:,} episodes; {ends}."
    if rows.episodes == 1:
        words = f"The log is one episode of {rows.n:,} transitions, so intervals are computed from stretches of it."
    if rows.episodes >= FEW_EPISODES or endless:
        yield "fine", words
    else:
        yield "with care", f"{words} So few episodes say little about others: log more of them."


@finding("data", "time limit", "with care")
def time_limit(facts: DataFacts) -> Found:
    """Too many episodes end at exactly the longest length, and the state does not know the time. An end has no value
    after it, a time limit has. Remedy: record them as truncated
    """
    if facts.limit:
        length, share = facts.limit
        yield (
            "with care",
            f"{share:.0%} of the episodes that ended have exactly {length} steps, the longest length. If this is a "
            "time limit, the values are wrong, because they count nothing after it: record these rows as truncated, "
            "not as terminated.",
        )


@finding("data", "columns", "not")
def order_of_columns(facts: DataFacts) -> Found:
    """The next state of a row is the state of the row after. The other way round, the columns are swapped. Remedy: name
    the columns
    """
    if facts.pairs < FEWEST_PAIRS:
        return
    forward, backward = facts.forward / facts.pairs, facts.backward / facts.pairs
    if forward >= IN_ORDER:
        yield "fine", "The next state of a row is the state of the row after it."
    elif backward > IN_ORDER:
        yield (
            "not",
            f"In {backward:.0%} of the rows the state is the next state of the row after: the two columns are swapped, "
            "and the values run backwards in time. Name the columns of the observation and the next observation.",
        )
    else:
        yield (
            "with care",
            f"The next state is the state of the row after in only {forward:.0%} of the rows. Rows are missing or out "
            "of order, so returns along episodes cannot check the values: sort the rows by episode and time.",
        )


@finding("data", "leaked future", "with care")
def leaked_future(facts: DataFacts) -> Found:
    """A column of the observation tells the return of its own episode, far beyond the others. Remedy: leave it out, if
    it was computed later
    """
    names = facts.data.reader.columns.observation
    for column, share in facts.leaks:
        which = repr(names[column]) if column < len(names) else f"number {column}"
        yield (
            "with care",
            f"Column {which} alone explains {share:.0%} of the return that the other columns leave open. If it was "
            "computed after the episode, the values are not those of a policy that acts without it: leave it out.",
        )


@finding("ratios", "effective sample size", "not")
def effective_rows(facts: RatioFacts) -> Found:
    """(Σρ)² / Σρ²: so many rows of the target policy would say as much. Remedy: below 100, or 5 %: a policy nearer to
    the logging policy, more data
    """
    effective = facts.total**2 / max(facts.squares, 1e-300)
    share = effective / facts.rows
    words = f"The effective sample size of the ratios is {effective:,.0f} rows, {share:.0%} of all"
    if effective >= FEW_EFFECTIVE and share >= LOW_SHARE:
        yield "fine", f"{words}."
    else:
        yield (
            "not" if effective < TOO_FEW_EFFECTIVE else "with care",
            f"{words}: the policy is far from the logging policy, and few rows check its value. Collect data with a "
            "policy nearer to it.",
        )


@finding("ratios", "largest ratio", "with care")
def largest_ratio(facts: RatioFacts) -> Found:
    """Its share of Σρ². One row with more than 10 % decides the answer. Remedy: check the propensity in that row"""
    heavy = facts.largest**2 / max(facts.squares, 1e-300)
    if heavy > HEAVY and facts.rows >= MANY_ROWS:
        yield (
            "with care",
            f"The ratio of row {facts.at:,}, {facts.largest:.3g}, has {heavy:.0%} of the weight of all rows, so that "
            "row decides the returns: check its propensity.",
        )


@finding("ratios", "mean ratio", "not")
def mean_ratio(facts: RatioFacts) -> Found:
    """ρ averages to 1, over all rows and along each feature, if the propensities are those of the logging policy and it
    takes every action of the target. Remedy: below 1: data with the missing actions. Above 1: the right propensities.
    Along one feature: leave out a feature that knows the action
    """
    mean, error = facts.mean, facts.error
    if abs(mean - 1) > OFF and abs(mean - 1) > SURE * error:
        why = (
            "The logging policy never takes some actions of the target, or the propensities are not its own."
            if mean < 1
            else "The propensities are not those of the logging policy, or the two columns are swapped."
        )
        yield grave(mean - 1), f"The ratios average to {mean:.3f} ± {error:.3f} instead of 1. {why} Check both columns."
    elif facts.off:
        yield (
            grave(facts.off),
            f"The ratios average to {mean:.3f}, but along feature {facts.feature} they are off by {facts.off:+.2f}: "
            "the propensities are wrong there, an action of the target is missing there, or the feature knows the "
            "action. Check the propensities and that feature.",
        )
    else:
        yield "fine", f"The ratios average to {mean:.3f} ± {error:.3f}; right propensities give 1."


def grave(off: float) -> str:
    """Return the level of a mean ratio that is surely off by this much."""
    return "not" if abs(off) > FAR_OFF else "with care"


@finding("data", "ends", "not")
def ends_inside(facts: DataFacts) -> Found:
    """The column of episodes goes on with an episode after its end. Remedy: name the right columns"""
    last = facts.data.last
    if last.ends_inside:
        rows = "1 row" if last.ends_inside == 1 else f"{last.ends_inside:,} rows"
        yield (
            "not",
            f"The column of episodes, {facts.data.reader.columns.episode!r}, continues the same episode after an end "
            f"in {rows}, first after row {last.first_inside:,}. One of the two columns has another meaning: name the "
            "right columns.",
        )


@finding("data", "ends", "with care")
def no_ends(facts: DataFacts) -> Found:
    """No column tells where episodes end. Remedy: name the column of ends"""
    columns = facts.data.reader.columns
    told = columns.terminated or columns.truncated or columns.done or columns.discount
    if not told and facts.data.reader.discount > 0:
        yield (
            "with care",
            "No column says where episodes end, so all are taken to continue, and their values hold rewards that are "
            "never paid. If episodes end, name the column.",
        )


@finding("data", "left out", "not")
def left_out(facts: DataFacts) -> Found:
    """Rows without a next observation were left out, and they pay differently from the rest. Remedy: name the column of
    ends
    """
    dropped, used = facts.data.last.dropped, facts.data.last.used
    rows, apart = dropped.count + used.count, abs(dropped.mean - used.mean)
    if dropped.count >= MANY_LEFT_OUT * rows and apart > SURE * np.sqrt(dropped.variance + used.variance):
        yield (
            "not" if dropped.count > TOO_MANY_LEFT_OUT * rows else "with care",
            f"{dropped.count:,} of {rows:,} rows were left out because their next observation is not known. They pay "
            f"{dropped.mean:.3g} on average, the others {used.mean:.3g}, so their rewards are missing from the value. "
            "If episodes end there, name the column that says so.",
        )


@finding("data", "unused columns", "with care")
def unused_columns(facts: DataFacts) -> Found:
    """The log has columns that nothing uses, and you did not name those of the observation: a state that is read in
    part gives a confident, wrong value. Remedy: name all columns of the observation
    """
    unused = facts.data.reader.columns.unused
    if unused and not facts.data.named:
        yield (
            "with care",
            f"Nothing uses the columns {listed(unused)}. If the state is incomplete without them, the value is wrong. "
            "Name all columns of the observation, or those that are used, to confirm them.",
        )
