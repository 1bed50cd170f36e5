"""Findings on the stream itself: its episodes, columns, ratios and features, and whether TD is stable on it."""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.diagnosis import Diagnosis
from gradient_dd.evaluation.findings import Found, finding
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.evaluation.portfolio import NOT_ASKED, TdStability
from gradient_dd.studies.intervals import error_of_groups

FEW_EPISODES = 10
LONG_STREAM = 2000  # rows without an end, of which stretches stand for episodes
FEWEST_PAIRS = 20  # of successive rows, to tell their order
IN_ORDER = 0.9  # share of the rows whose next state is the state of the row after
TOO_FEW_EFFECTIVE = 10.0  # effective rows below which there is no answer
FEW_EFFECTIVE, LOW_SHARE = 100.0, 0.05  # effective rows, and their share, below which the answer needs care
HEAVY, MANY_ROWS = 0.1, 100  # share of Σρ² in one row, among so many rows or more
SURE = 5.0  # standard errors by which a mean must be off
OFF, FAR_OFF = 0.03, 0.1  # by how much a mean ratio may miss 1


class Data(NamedTuple):
    """What is known of a stream, and the name of the candidate that was chosen."""

    diagnosis: Diagnosis
    sums: GroupSums
    stability: TdStability
    chosen: str


@finding("data", "episodes", "with care")
def episodes(data: Data) -> Found:
    """How many there are, and how they end. Fewer than 10 leave the interval unsure, unless nothing ends and there are
    2,000 rows. Remedy: more episodes
    """
    seen = data.diagnosis
    endless = seen.ended == 0 and seen.rows >= LONG_STREAM
    level = "fine" if seen.episodes >= FEW_EPISODES or endless else "with care"
    if seen.episodes == 1:
        yield level, f"There is one episode of {seen.rows:,} transitions, so intervals rest on stretches of it."
    else:
        words = f"{seen.rows:,} transitions in {seen.episodes:,} episodes"
        yield level, f"There are {words}; {seen.ended:,} ended, {seen.cut:,} were cut."


@finding("data", "time limit", "with care")
def time_limit(data: Data) -> Found:
    """Many episodes end at exactly the longest length. Remedy: record them as truncated"""
    if limit := data.diagnosis.time_limit:
        length, share = limit
        yield (
            "with care",
            f"{share:.0%} of the episodes end after exactly {length} steps, the longest there is. If that is a "
            "time limit, it must be recorded as truncated, not as terminated: values are wrong otherwise.",
        )


@finding("data", "columns", "not")
def order_of_columns(data: Data) -> Found:
    """The next state of a row is the state of the row after. If it is the other way round, the columns are swapped.
    Remedy: name the columns
    """
    seen = data.diagnosis
    if seen.pairs < FEWEST_PAIRS:
        return
    forward, backward = seen.next_is_next / seen.pairs, seen.next_is_last / seen.pairs
    if forward >= IN_ORDER:
        yield "fine", "The next state of a row is the state of the row after, as it should be."
    elif backward > IN_ORDER:
        words = "the state is the next state of the row after: the columns are swapped."
        yield "not", f"In {backward:.0%} of the rows {words}"
    else:
        yield (
            "with care",
            f"The next state is the state of the row after in {forward:.0%} of the rows only: rows are missing, out of "
            "order, or already sampled.",
        )


@finding("data", "ratios", "fine")
def no_ratios(data: Data) -> Found:
    """All ratios are 1: nothing else about ratios is reported."""
    if not data.diagnosis.with_ratios:
        yield "fine", "All ratios are 1: the value is that of the policy that made the data."


@finding("data", "effective rows", "not")
def effective_rows(data: Data) -> Found:
    """(Σρ)² / Σρ²: so many rows of your own policy would be worth as much. Remedy: below 100, or 5 %: a nearer
    behaviour, more data
    """
    if data.diagnosis.with_ratios:
        effective = data.sums.ratio.sum() ** 2 / max(data.sums.ratio_square.sum(), 1e-300)
        share = effective / data.diagnosis.rows
        few = effective < FEW_EFFECTIVE or share < LOW_SHARE
        level = "not" if effective < TOO_FEW_EFFECTIVE else "with care" if few else "fine"
        yield level, f"The ratios leave {effective:,.0f} effective rows, {share:.0%} of all."


@finding("data", "largest ratio", "with care")
def largest_ratio(data: Data) -> Found:
    """Its share of Σρ². One row with more than 10 % decides the answer. Remedy: look at that row"""
    seen = data.diagnosis
    if seen.with_ratios:
        heavy = seen.largest_ratio**2 / max(data.sums.ratio_square.sum(), 1e-300)
        level = "with care" if heavy > HEAVY and seen.rows >= MANY_ROWS else "fine"
        where = f"{seen.largest_ratio:.3g}, in row {seen.largest_at}"
        yield level, f"The largest ratio is {where}; it has {heavy:.0%} of the weight."


@finding("data", "mean ratio", "not")
def mean_ratio(data: Data) -> Found:
    """ρ averages to 1, over all rows and along each feature, if the propensities are those of the policy that acted and
    it takes every action of the target. Remedy: below 1: coverage is missing. Above 1: wrong or swapped propensities.
    Along one feature: the feature knows the action
    """
    if not data.diagnosis.with_ratios:
        return
    sums, used = data.sums, data.sums.rows > 0
    mean, error = ratio_of_sums(sums.ratio[used], sums.rows[used])
    if abs(mean - 1) > OFF and abs(mean - 1) > SURE * error:
        why = (
            "The behaviour never takes some actions of the target, or the propensities are not those of the policy "
            "that made the data."
            if mean < 1
            else "The propensities are not those of the policy that made the data, or the two columns are swapped."
        )
        yield grave(mean - 1), f"The ratios average to {mean:.3f} ± {error:.3f}, not to 1. {why}"
        return
    worst, off = worst_feature(sums)
    if off:
        where = f"feature {worst}" if sums.small else "some features"
        yield (
            grave(off),
            f"The ratios average to {mean:.3f}, but along {where} they are off by {off:+.2f}: the propensities "
            "are wrong there, an action of the target is missing there, or the feature knows the action that follows.",
        )
        return
    yield "fine", f"The ratios average to {mean:.3f} ± {error:.3f}, as they should to 1."


def grave(off: float) -> str:
    """Return the level of a mean ratio that is surely off by this much."""
    return "not" if abs(off) > FAR_OFF else "with care"


def worst_feature(sums: GroupSums) -> tuple[int, float]:
    """Return the test feature along which ρ is most surely off, and by how much; 0 where no feature is."""
    used = sums.rows > 0
    rows, z, size = sums.rows[used], sums.ratio_z[used], np.sqrt(np.einsum("gii->i", sums.C) / sums.rows.sum())
    scores, offs = np.zeros(sums.m), np.zeros(sums.m)
    for j in np.flatnonzero(size > 0):
        off, doubt = ratio_of_sums(z[:, j], rows)
        offs[j], scores[j] = off / size[j], abs(off) / max(doubt, 1e-300)
    scores = np.where(np.abs(offs) > OFF, scores, 0.0)
    worst = int(np.argmax(scores))
    return worst, float(offs[worst]) if scores[worst] > SURE + np.log10(sums.m) else 0.0


def ratio_of_sums(sums: Array, rows: Array) -> tuple[float, float]:
    """Return Σ sums / Σ rows over groups, and its standard error."""
    mean = float(sums.sum() / rows.sum())
    return mean, error_of_groups(sums - mean * rows, max(2, len(rows))) / float(rows.sum())


@finding("data", "constant features", "fine")
def constant_features(data: Data) -> Found:
    """Weights are not unique, values are. Remedy: nothing"""
    constant = data.diagnosis.constant
    if len(constant) > 1:
        yield "fine", f"Features {', '.join(map(str, constant[:5]))} never change: one constant is enough."


@finding("data", "duplicated features", "fine")
def duplicated_features(data: Data) -> Found:
    """Weights are not unique, values are. Remedy: nothing"""
    if twins := data.diagnosis.twins:
        i, j = twins[0]
        more = f", and {len(twins) - 1} more pairs" if len(twins) > 1 else ""
        yield "fine", f"Features {i} and {j} are the same up to a factor{more}: values are unique, weights are not."


@finding("data", "leaked future", "with care")
def leaked_future(data: Data) -> Found:
    """A feature tells the return of its own episode, far beyond the others. Remedy: leave it out, if it was computed
    later
    """
    for feature, share in data.diagnosis.leaks:
        yield (
            "with care",
            f"Feature {feature} tells the return of the rest of the episode almost exactly ({share:.0%} of what the "
            "other features leave open). If it was computed from what came later, leave it out.",
        )


@finding("data", "TD", "not")
def td_stability(data: Data) -> Found:
    """Copies of TD without rewards, from random starts. They die out where TD is stable and grow where it diverges.
    Remedy: a learner that is stable off-policy
    """
    verdict, dead, grown = data.stability
    if verdict == NOT_ASKED:
        return
    shares = f"of its copies without rewards {dead:.0%} died out, {grown:.0%} grew"
    if verdict == "unstable":
        level = "not" if data.chosen == "td" else "fine"
        yield level, f"TD diverges on these data: {shares}. Take a learner that is stable off-policy."
    elif verdict == "unclear":
        yield "fine", f"The data are too short to tell whether TD is stable: {shares}."
    else:
        yield "fine", f"TD is stable on these data: {shares}."
