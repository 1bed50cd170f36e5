"""Findings on the columns, rows and episodes of a log, and on the ratios of a policy."""

from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array
from gradient_dd.evaluation.design import squared
from gradient_dd.evaluation.findings import Found, finding, level_of
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.maps import returns_of
from gradient_dd.evaluation.pieces import HOLE, Piece
from gradient_dd.stream.log import listed
from gradient_dd.stream.log.cells import number_of
from gradient_dd.studies.intervals import error_of_groups

IN_ORDER = 0.9  # share of the rows whose next state is the state of the following row
SURE = 5.0  # standard errors by which a mean must differ from its expectation
OFF, FAR_OFF = 0.03, 0.1  # tolerated deviations of a mean ratio from 1
RATIO_GROUPS = 200
LOOKED_AT = 20_000  # rows used by the fits


class RatioFacts(NamedTuple):
    """The ratios of one policy.

    rows, total, squares, largest, at  number of ratios, Σρ, Σρ², the largest ratio and its row
    mean, error    the mean ratio, and its standard error from groups of episodes
    feature, off   the feature along which ρ deviates most significantly, and by how much; 0 if there is none
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


def ratio_facts(data: LogData, ratio: Array) -> RatioFacts:
    """Return the properties of a policy's ratios on the sample of a log."""
    sums: Any = 0.0
    squares: Any = 0.0
    at, total, count = 0, np.zeros(RATIO_GROUPS), np.zeros(RATIO_GROUPS)
    for piece in data.sampled:
        own = ratio[at : at + len(piece)]
        group = piece.group if data.rows.few else piece.episode % RATIO_GROUPS
        rows, each = data.features(data.maps[0], piece), np.arange(len(piece))
        deal = sparse.csr_matrix(((own - 1)[rows.order], (group[rows.order], each)), (RATIO_GROUPS, len(each)))
        z = deal @ rows.X
        sums = sums + (z.toarray() if sparse.issparse(z) else z)
        squares = squares + np.asarray(squared(rows.X).sum(axis=0)).ravel()
        total += np.bincount(group, own, minlength=RATIO_GROUPS)
        count += np.bincount(group, minlength=RATIO_GROUPS)
        at += len(piece)
    used, most = count > 0, int(ratio.argmax())
    feature = worst_feature(sums[used], count[used], np.sqrt(squares / len(ratio)))
    whole = float(ratio.sum()), float((ratio**2).sum()), float(ratio[most])
    return RatioFacts(len(ratio), *whole, most, *ratio_of_sums(total[used], count[used]), *feature)


def worst_feature(z: Array, rows: Array, size: Array) -> tuple[int, float]:
    """Return the feature along which ρ deviates most significantly, and by how much; 0 if there is none."""
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
    """Return the length at which too many episodes end, and the share of these episodes; None if there is none.

    Episodes that end by themselves rarely all end at the same step. If an episode ends after L − 1 steps with
    probability λ, estimated from lengths near L, all k episodes of the longest length L end there with chance λᵏ.
    """
    _, first, counts = np.unique(sample.episode, return_index=True, return_counts=True)
    lengths = counts[sample.ended[first + counts - 1]]
    if len(lengths) < 20:
        return None
    longest = int(lengths.max())
    heap = int((lengths == longest).sum())
    begin = int(np.floor((1 - 0.2) * longest)) if longest >= 10 else 1
    ended = int(((lengths >= begin) & (lengths < longest)).sum())
    at_risk = int(np.minimum(np.maximum(lengths - begin + 1, 0), longest - begin).sum())
    by_chance = longest < 2 or heap * np.log((ended + 1) / (at_risk + 2)) > np.log(1e-6)
    return None if by_chance else (longest, heap / len(lengths))


def knows_time(data: LogData) -> bool:
    """Return whether the features contain the time since the episode's start, so that a time limit is a termination."""
    part = data.first.part(slice(LOOKED_AT))
    X = data.maps[0].matrix(part.seen)
    X = X.toarray() if sparse.issparse(X) and X.shape[1] <= 1000 else X
    return not sparse.issparse(X) and unexplained(X - X.mean(axis=0), part.step.astype(float)) < 0.01


def in_order(sample: Piece) -> tuple[int, int, int]:
    """Return the number of pairs of successive rows, and of pairs whose states match forward and backward."""
    follows = (np.diff(sample.episode) == 0) & (sample.step[1:] < HOLE)
    forward = follows & (sample.after[:-1] == sample.seen[1:]).all(axis=1)
    backward = follows & (sample.seen[:-1] == sample.after[1:]).all(axis=1)
    return int(follows.sum()), int(forward.sum()), int(backward.sum())


def leaks_of(sample: Piece) -> list[tuple[int, float]]:
    """Return each column that predicts the remaining return better than all others, and the share only it explains."""
    part = sample.part(slice(LOOKED_AT))
    returns, weight = returns_of(part, np.zeros(len(part)))
    known, x = weight == 0, part.seen
    if known.sum() < 10 * x.shape[1] + 50 or np.ptp(returns[known]) == 0:
        return []
    x, y = x[known], returns[known] - returns[known].mean()
    centred = x - x.mean(axis=0)
    scale = np.sqrt((centred**2).mean(axis=0))
    Z = centred / np.where(scale > 0, scale, 1.0)
    inverse = np.linalg.inv(Z.T @ Z + 1e-9 * len(Z) * np.eye(Z.shape[1]))
    w = inverse @ (Z.T @ y)
    total, full = float((y**2).sum()), float(((y - Z @ w) ** 2).sum())
    without = full + w**2 / np.diag(inverse)  # unexplained if one column is omitted
    varied = [len(np.unique(column)) >= 10 for column in x.T]  # a quantity, not a category
    told = np.flatnonzero(varied & (without > 0.1 * total) & (full < 0.2 * without))
    return [(int(j), float(1 - full / without[j])) for j in told]


def unexplained(x: Array, y: Array) -> float:
    """Return the share of the variance of y that a linear function of x leaves unexplained."""
    y = y - y.mean()
    rest = y - x @ np.linalg.lstsq(x, y, rcond=1e-10)[0] if x.shape[1] else y
    return float((rest**2).sum() / max(1e-300, (y**2).sum()))


def likely_ends(data: LogData) -> list[str]:
    """Return, as text, unused columns that may mark ends of episodes: flags, and columns whose values never recur."""
    unused, found = list(data.reader.columns.unused), []
    chunk = next(data.reader.source.chunks(unused, None), {}) if unused else {}
    for name, column in chunk.items():
        cells = column.tolist() if column.ndim == 1 else []
        runs = [cell for cell, _ in groupby(map(str, cells))]
        if set(map(number_of, cells)) == {0.0, 1.0}:
            found.append(f"{name!r} contains only 0 and 1")
        elif 1 < len(set(runs)) == len(runs) <= len(cells) / 2:
            found.append(f"{name!r} looks like the number of an episode")
    return found


@finding("data", "episodes", "with care", "Log more episodes.")
def episodes(data: LogData) -> Found:
    """The log has fewer than 10 episodes, and is not a continuing stream of at least 2,000 rows."""
    rows = data.rows
    others = rows.episodes - rows.ended - rows.cut
    ends = f"{rows.ended:,} terminated, {rows.cut:,} were truncated{f', {others:,} have no known end' * (others > 0)}"
    words = f"The log has {rows.n:,} transitions in {rows.episodes:,} episodes; {ends}."
    if rows.episodes == 1:
        words = f"The log is one episode of {rows.n:,} transitions, so intervals are computed from stretches of it."
    if rows.episodes >= 10 or (rows.ended == 0 and rows.n >= 2000):
        yield "fine", words
    else:
        yield f"{words} So few episodes may not be representative."


@finding("data", "time limit", "with care", "If it is a time limit, record these rows as truncated, not as terminated.")
def time_limit(data: LogData) -> Found:
    """Too many episodes terminate at exactly the longest length, and the state does not contain the time. No
    reward follows a termination, but after a time limit the process continues.
    """
    limit = time_limit_of(data.first)
    if limit is not None and not knows_time(data):
        yield (
            f"{limit[1]:.0%} of the terminated episodes have exactly {limit[0]} steps, the longest length. This is "
            "probably a time limit. If so, the values are wrong, because they omit all rewards after it."
        )


@finding("data", "columns", "not", "Sort the rows by episode and time, and check the columns of both observations.")
def order_of_columns(data: LogData) -> Found:
    """The next state of a row is the state of the following row, unless columns are swapped or rows are missing."""
    pairs, *counts = in_order(data.first)
    if pairs < 20:
        return
    forward, backward = (count / pairs for count in counts)
    if forward >= IN_ORDER:
        yield "fine", "The next state of a row is the state of the following row."
    elif backward > IN_ORDER:
        yield (
            f"In {backward:.0%} of the rows the state is the next state of the following row. The two columns seem to "
            "be swapped, so values propagate backwards."
        )
    else:
        yield (
            "with care",
            f"The next state is the state of the following row in only {forward:.0%} of the rows. Rows are missing or "
            "out of order, so the returns of episodes are wrong.",
        )


@finding("data", "leaked future", "with care", "Remove the column if it was computed after the episode.")
def leaked_future(data: LogData) -> Found:
    """A column of the observation predicts the return of its own episode far better than the other columns do."""
    names = data.reader.columns.observation
    for column, share in [] if data.maps[0].table else leaks_of(data.first):
        which = repr(names[column]) if column < len(names) else f"number {column}"
        yield (
            f"Column {which} alone explains {share:.0%} of the return that the other columns leave unexplained. It may "
            "contain the future, which no policy can observe. If so, the values are wrong."
        )


@finding("ratios", "effective sample size", "not", "Collect data with a policy closer to the target.")
def effective_rows(facts: RatioFacts) -> Found:
    """(Σρ)² / Σρ², the number of rows of the target policy with the same information, is below 100 or below 5 % of all
    rows.
    """
    effective = facts.total**2 / max(facts.squares, 1e-300)
    share = effective / facts.rows
    words = f"The effective sample size of the ratios is {effective:,.0f} rows, {share:.0%} of all"
    if effective >= 100.0 and share >= 0.05:
        yield "fine", f"{words}."
    else:
        yield (
            "not" if effective < 10.0 else "with care",
            f"{words}: the target is far from the logging policy, and few rows check its value.",
        )


@finding("ratios", "largest ratio", "with care", "Check the propensity in this row.")
def largest_ratio(facts: RatioFacts) -> Found:
    """The largest ratio has more than 10 % of Σρ²."""
    heavy = facts.largest**2 / max(facts.squares, 1e-300)
    if heavy > 0.1 and facts.rows >= 100:
        yield (
            f"The ratio of row {facts.at:,}, {facts.largest:.3g}, has {heavy:.0%} of the weight of all rows, so this "
            "row dominates the returns."
        )


@finding("ratios", "mean ratio", "not", "Check the propensities, and that no feature contains the action.")
def mean_ratio(facts: RatioFacts) -> Found:
    """ρ averages to 1, over all rows and along each feature, if the propensities are correct and the logging policy
    takes every action of the target.
    """
    mean, error = facts.mean, facts.error
    if abs(mean - 1) > OFF and abs(mean - 1) > SURE * error:
        why = "or the two columns are swapped" if mean > 1 else "or the logging policy never takes some of its actions"
        yield (
            level_of(abs(mean - 1), OFF, FAR_OFF),
            f"The ratios average to {mean:.3f} ± {error:.3f} instead of 1, so the value is biased: the propensities "
            f"are wrong, {why}.",
        )
    elif facts.off:
        yield (
            level_of(abs(facts.off), OFF, FAR_OFF),
            f"The ratios average to {mean:.3f}, but along feature {facts.feature} they are off by {facts.off:+.2f}: "
            "the propensities are wrong there, the log lacks an action of the target there, or the feature contains "
            "the action.",
        )
    else:
        yield "fine", f"The ratios average to {mean:.3f} ± {error:.3f}; correct propensities give 1."


@finding("data", "ends", "not", "Name the right columns of the episode and of terminations.")
def ends_inside(data: LogData) -> Found:
    """The episode column continues an episode after its end."""
    last = data.rows.read
    if last.ends_inside:
        rows = "1 row" if last.ends_inside == 1 else f"{last.ends_inside:,} rows"
        yield (
            f"The episode column, {data.reader.columns.episode!r}, continues the same episode after its end "
            f"in {rows}, first after row {last.first_inside:,}. One of the two columns means something else, so the "
            "values end at the wrong rows."
        )


@finding("data", "ends", "with care", "Name the columns of terminations and of episodes if episodes end.")
def no_ends(data: LogData) -> Found:
    """No column marks the ends of episodes, or no row ends an episode although an unused column may mark ends."""
    columns = data.reader.columns
    known = columns.terminated or columns.truncated or columns.done or columns.discount
    likely = [] if data.rows.ended or data.reader.discount == 0 else likely_ends(data)
    if likely:
        yield (
            f"No row ends an episode, although unused columns may mark ends: {', '.join(likely)}. If they do, the "
            "values include rewards of later episodes."
        )
    elif not known and data.reader.discount > 0:
        yield (
            "No column marks the ends of episodes, so all rows are treated as continuing. If episodes end, the values "
            "include rewards of later episodes."
        )


@finding("data", "left out", "not", "Name the column of terminations if episodes end there.")
def left_out(data: LogData) -> Found:
    """Rows without a next observation were omitted, and their rewards differ from the others."""
    dropped, used = data.rows.read.dropped, data.rows.read.used
    rows, apart = dropped.count + used.count, abs(dropped.mean - used.mean)
    if dropped.count >= 0.01 * rows and apart > SURE * np.sqrt(dropped.variance + used.variance):
        yield (
            "not" if dropped.count > 0.1 * rows else "with care",
            f"{dropped.count:,} of {rows:,} rows were omitted because their next observation is unknown. Their mean "
            f"reward is {dropped.mean:.3g}, the mean of the others is {used.mean:.3g}, so the value lacks their "
            "rewards.",
        )


@finding(
    "data", "unused columns", "with care", "Name the columns of the observation to confirm them, or add the others."
)
def unused_columns(data: LogData) -> Found:
    """The log has unused columns, and you did not name the columns of the observation. An incomplete state gives a
    confident, wrong value.
    """
    unused = data.reader.columns.unused
    if unused and not data.named:
        yield f"Unused columns: {listed(unused)}. If the state is incomplete without them, the value is wrong."
