"""The verdict: what was found in the data and in the answer, each as a sentence, and one word for all of it."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.blocks import GROUPS
from gradient_dd.evaluation.diagnosis import Diagnosis
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.studies.intervals import error_of_groups

if TYPE_CHECKING:
    from gradient_dd.evaluation.choice import Candidate
    from gradient_dd.evaluation.shadows import Stability

LEVELS = ("fine", "with care", "not")
WORDS = {"fine": "trust", "with care": "with care", "not": "not"}
FEW_EPISODES = 10
FEW_EFFECTIVE, LOW_SHARE = 100.0, 0.05  # effective rows, and their share, below which the answer needs care
HEAVY = 0.1  # share of Σρ² in one row
SURE = 5.0  # standard errors by which a mean must be off
OFF, FAR_OFF = 0.03, 0.1  # by how much a mean ratio may miss 1


class Finding(NamedTuple):
    """One thing that was looked at: how it turned out, what it is about, and a sentence."""

    level: str
    about: str
    sentence: str


class Verdict(NamedTuple):
    """One word, "trust", "with care" or "not", and all findings, the gravest first."""

    word: str
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return self.word

    @property
    def reasons(self) -> list[str]:
        """The sentences that speak against trust."""
        return [one.sentence for one in self.findings if one.level != "fine"]


NOT_JUDGED = Verdict("not", (Finding("not", "verdict", "The answer has not been judged."),))


def verdict_of(findings: list[Finding]) -> Verdict:
    """Return the gravest word, and the findings, gravest first."""
    ordered = sorted(findings, key=lambda one: -LEVELS.index(one.level))
    return Verdict(WORDS[ordered[0].level] if ordered else "trust", tuple(ordered))


def findings_before(
    diagnosis: Diagnosis, sums: GroupSums, stability: "Stability", chosen: "Candidate"
) -> list[Finding]:
    """Return what the data say before anything is learnt."""
    return [
        *episodes(diagnosis),
        *order_of_columns(diagnosis),
        *ratios(diagnosis, sums),
        *features(diagnosis),
        td_stability(stability, chosen),
    ]


def episodes(diagnosis: Diagnosis) -> list[Finding]:
    """Return findings on the number and on the ends of episodes."""
    count = diagnosis.episodes
    level = "fine" if count >= FEW_EPISODES else "with care"
    words = f"{count:,} episodes" if count != 1 else "one episode"
    sentence = (
        f"There are {diagnosis.rows:,} transitions in {words}; {diagnosis.ended:,} ended, {diagnosis.cut:,} were cut."
    )
    if count == 1:
        sentence = f"There is one episode of {diagnosis.rows:,} transitions, so intervals rest on stretches of it."
    found = [Finding(level, "episodes", sentence)]
    if limit := diagnosis.time_limit:
        length, share = limit
        found.append(
            Finding(
                "with care",
                "time limit",
                f"{share:.0%} of the episodes end after exactly {length} steps, the longest there is. If that is a "
                "time limit, it must be recorded as truncated, not as terminated: values are wrong otherwise.",
            )
        )
    return found


def order_of_columns(diagnosis: Diagnosis) -> list[Finding]:
    """Return whether the next state of a row is the state of the next row."""
    if diagnosis.pairs < 20:
        return []
    forward, backward = diagnosis.next_is_next / diagnosis.pairs, diagnosis.next_is_last / diagnosis.pairs
    if backward > 0.9 and forward < 0.9:
        sentence = (
            f"In {backward:.0%} of the rows the state is the next state of the row after: the columns are swapped."
        )
        return [Finding("not", "columns", sentence)]
    if forward < 0.9:
        sentence = (
            f"The next state is the state of the row after in {forward:.0%} of the rows only: rows are missing, out of "
            "order, or already sampled."
        )
        return [Finding("with care", "columns", sentence)]
    return [Finding("fine", "columns", "The next state of a row is the state of the row after, as it should be.")]


def ratios(diagnosis: Diagnosis, sums: GroupSums) -> list[Finding]:
    """Return findings on the importance ratios: effective rows, the largest, and whether they average to 1."""
    if not diagnosis.with_ratios:
        return [Finding("fine", "ratios", "All ratios are 1: the value is that of the policy that made the data.")]
    total, square = sums.ratio.sum(), sums.ratio_square.sum()
    effective = total**2 / max(square, 1e-300)
    share = effective / diagnosis.rows
    few = effective < FEW_EFFECTIVE or share < LOW_SHARE
    level = "not" if effective < 10 else "with care" if few else "fine"
    found = [
        Finding(level, "effective rows", f"The ratios leave {effective:,.0f} effective rows, {share:.0%} of all."),
    ]
    heavy = diagnosis.largest_ratio**2 / max(square, 1e-300)
    level = "with care" if heavy > HEAVY and diagnosis.rows >= 100 else "fine"
    found.append(
        Finding(
            level,
            "largest ratio",
            f"The largest ratio is {diagnosis.largest_ratio:.3g}, in row {diagnosis.largest_at}; it has {heavy:.0%} of "
            "the weight.",
        )
    )
    return [*found, *mean_ratio(sums)]


def mean_ratio(sums: GroupSums) -> list[Finding]:
    """Return whether ρ averages to 1 over all rows and along each feature, as it does if propensities are right."""
    used = sums.rows > 0
    rows = sums.rows[used]
    mean, error = ratio_of_sums(sums.ratio[used], rows)
    if abs(mean - 1) > OFF and abs(mean - 1) > SURE * error:
        level = "not" if abs(mean - 1) > FAR_OFF else "with care"
        why = (
            "The behaviour never takes some actions of the target, or the propensities are not those of the policy "
            "that made the data."
            if mean < 1
            else "The propensities are not those of the policy that made the data, or the two columns are swapped."
        )
        return [Finding(level, "mean ratio", f"The ratios average to {mean:.3f} ± {error:.3f}, not to 1. {why}")]
    z, size = sums.ratio_z[used], np.sqrt(np.einsum("gii->i", sums.C) / sums.rows.sum())
    scores, offs = np.zeros(sums.m), np.zeros(sums.m)
    for j in range(sums.m):
        if size[j] > 0:
            off, doubt = ratio_of_sums(z[:, j], rows)
            offs[j], scores[j] = off / size[j], abs(off) / max(doubt, 1e-300)
    worst = int(np.argmax(np.where(np.abs(offs) > OFF, scores, 0.0)))
    if scores[worst] > SURE + np.log10(sums.m) and abs(offs[worst]) > OFF:
        level = "not" if abs(offs[worst]) > FAR_OFF else "with care"
        where = f"feature {worst}" if sums.small else "some features"
        sentence = (
            f"The ratios average to {mean:.3f}, but along {where} they are off by {offs[worst]:+.2f}: the propensities "
            "are wrong there, an action of the target is missing there, or the feature knows the action that follows."
        )
        return [Finding(level, "mean ratio", sentence)]
    return [Finding("fine", "mean ratio", f"The ratios average to {mean:.3f} ± {error:.3f}, as they should to 1.")]


def ratio_of_sums(sums: Array, rows: Array) -> tuple[float, float]:
    """Return Σ sums / Σ rows over groups, and its standard error."""
    mean = float(sums.sum() / rows.sum())
    rest = sums - mean * rows
    return mean, error_of_groups(rest, max(2, len(rows))) / float(rows.sum())


def features(diagnosis: Diagnosis) -> list[Finding]:
    """Return findings on constant and on duplicated features, and on those that know the future."""
    found = []
    if len(diagnosis.constant) > 1:
        shown = ", ".join(map(str, diagnosis.constant[:5]))
        found.append(Finding("fine", "constant features", f"Features {shown} never change: one constant is enough."))
    if diagnosis.twins:
        i, j = diagnosis.twins[0]
        more = f", and {len(diagnosis.twins) - 1} more pairs" if len(diagnosis.twins) > 1 else ""
        sentence = f"Features {i} and {j} are the same up to a factor{more}: values are unique, weights are not."
        found.append(Finding("fine", "duplicated features", sentence))
    for leak in diagnosis.leaks:
        sentence = (
            f"Feature {leak.feature} tells {leak.what} almost exactly ({leak.share:.0%} of what the other features "
            "leave open). If it was computed from what came later, leave it out."
        )
        found.append(Finding("with care", "leaked future", sentence))
    return found


def td_stability(stability: "Stability", chosen: "Candidate") -> Finding:
    """Return what the shadows say of TD."""
    shares = f"{stability.dead:.0%} of its shadows died out, {stability.grown:.0%} grew"
    if stability.verdict == "unstable":
        level = "not" if chosen.name == "td" else "fine"
        return Finding(level, "TD", f"TD diverges on these data: {shares}. Take a learner that is stable off-policy.")
    if stability.verdict == "unclear":
        return Finding("fine", "TD", f"The data are too short to tell whether TD is stable: {shares}.")
    return Finding("fine", "TD", f"TD is stable on these data: {shares}.")


assert GROUPS >= 100  # standard errors over groups are taken as normal
