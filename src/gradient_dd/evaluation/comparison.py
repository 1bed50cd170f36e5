"""`gdd.compare`: recommends which of several policies to deploy, from one log of another policy.

The influences of two policies are paired by episode and give the intervals of three estimates of their difference:

    Δq = q − q'      Δd = d − d'      Δ = blend of Δq and Δd, as for a value      ±  f · standard error of Σ (ψ − ψ')

The reported interval is the union of the three, extended by the differences that other features give, because every
choice of features adds bias. A policy is better if the interval of the blend and the differences that other
features give are above 0.
f makes the intervals of all differences to the baseline simultaneous: f is the quantile of the largest ratio of
|Σ ξ (ψ − ψ')| to its standard error, for random ξ (multiplier bootstrap).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.cards import card
from gradient_dd.evaluation.data_findings import ratio_facts
from gradient_dd.evaluation.findings import Verdict, findings_of, verdict_of
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.passes import values_of
from gradient_dd.evaluation.policy_findings import policy_findings, sampled_choices
from gradient_dd.evaluation.result import Support
from gradient_dd.evaluation.row_findings import row_evidence
from gradient_dd.evaluation.value import PolicyValue, blend, error_of
from gradient_dd.studies.intervals import Bounds, student_factor

DRAWS, MOST_UNITS = 2000, 400  # multiplier bootstrap: number of draws, and largest number of units
CLOSE = 0.01  # relative to the range of the values of all policies: smaller differences are not ranked


class Judged(NamedTuple):
    """A policy with its value, its verdict, and the states and actions with data."""

    found: PolicyValue
    verdict: Verdict
    support: Support

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.found.policy.name

    @property
    def usable(self) -> bool:
        """Whether the verdict allows using the value."""
        return self.verdict.word != "not"


class Gap(NamedTuple):
    """The difference between the values of two policies, with its interval.

    sure    the interval of the blend alone, the most precise estimate
    reach   half-width due to chance, which more episodes reduce;  hidden  largest reduction that other features give
    """

    apart: float
    low: float
    high: float
    sure: Bounds
    reach: float
    hidden: float


@dataclass(frozen=True, eq=False)
class PolicyQuestion:
    """The policies for one signal and one discount; the first policy is the baseline, the logging policy.

    bounds  smallest and largest possible value;  episodes  number of episodes in the log
    """

    reward: str
    discount: float | None
    judged: list[Judged]
    bounds: Bounds
    episodes: int
    confidence: float

    @property
    def baseline(self) -> Judged:
        """The logging policy."""
        return self.judged[0]

    @property
    def usable(self) -> list[Judged]:
        """The usable policies, largest value first."""
        return sorted((one for one in self.judged if one.usable), key=lambda one: -one.found.value)

    @cached_property
    def factor(self) -> float:
        """Half-width of the simultaneous intervals of all differences to the baseline, in standard errors."""
        base, pulls = self.baseline.found.psi[:, 2], []
        for one in self.judged[1:]:
            pull = one.found.psi[:, 2] - base
            if len(pull) > MOST_UNITS:
                pull = np.bincount(np.arange(len(pull)) % MOST_UNITS, pull).astype(float)
            if one.usable and (error := error_of(pull)) > 0:
                pulls.append(pull / error)
        single = student_factor(self.confidence, len(base) - 1)
        if len(pulls) < 2:
            return single
        xi = np.random.default_rng(17).standard_normal((DRAWS, len(pulls[0])))
        largest = np.abs(xi @ np.column_stack(pulls)).max(axis=1)
        normal = student_factor(self.confidence, 1e6)
        return max(single, float(np.quantile(largest, self.confidence)) * single / normal)

    def gap(self, first: Judged, second: Judged) -> Gap:
        """Return the difference between the values of two policies, first minus second, with its interval."""
        one, two = first.found, second.found
        if one is two:
            return Gap(0.0, 0.0, 0.0, Bounds(0.0, 0.0), 0.0, 0.0)
        apart = one.value - two.value
        values = [each.found.value for each in self.judged if each.usable or each is self.baseline]
        others = [0.0, *(one.by_map[key] - two.by_map[key] - apart for key in one.by_map if key in two.by_map)]
        margin = CLOSE * (max(values) - min(values))
        psi = one.psi[:, :2] - two.psi[:, :2]
        pairs = ((one.q, two.q), (one.d, two.d))
        q, d = (float(np.clip(x.value, *self.bounds) - np.clip(y.value, *self.bounds)) for x, y in pairs)
        share, _ = blend(q, d, psi.T @ psi * len(psi) / max(1, len(psi) - 1))
        centres = np.array([q, d, share * q + (1 - share) * d])
        reach = self.factor * np.array([error_of(column) for column in (*psi.T, psi @ (share, 1 - share))])
        least, most = min(self.bounds.low - two.high, apart), max(self.bounds.high - two.low, apart)
        lows, highs, less, more = centres - reach, centres + reach, min(others), max(others)
        low, high = min(apart, *lows) + less - margin, max(apart, *highs) + more + margin
        ends = low, high, min(lows[2], apart + less - margin), max(highs[2], apart + more + margin)
        low, high, worst, best = (float(np.clip(one, least, most)) for one in ends)
        return Gap(apart, low, high, Bounds(worst, best), float(reach[2]), margin - less)

    def is_near(self, one: Judged, other: Judged) -> bool:
        """Return whether two policies are not significantly different."""
        gap = self.gap(one, other)
        return gap.low <= 0 <= gap.high

    @cached_property
    def followed(self) -> Judged:
        """The policy to deploy: the best policy whose blend is significantly above the baseline, else the baseline."""
        sure = (one for one in self.usable if self.gap(one, self.baseline).sure.low > 0)
        return next(sure, self.baseline)

    def records(self) -> list[dict[str, Any]]:
        """Return a record per policy, the baseline first."""
        found = []
        for one in self.judged:
            value, gap = one.found, self.gap(one, self.baseline)
            record = {"name": one.name, "value": value.value, "low": value.low, "high": value.high}
            record |= {"difference": gap.apart, "difference_low": gap.low, "difference_high": gap.high}
            record |= {"verdict": one.verdict.word, "effective_rows": value.effective, "why": one.verdict.reasons[:1]}
            found.append(record | {"reward": self.reward, "discount": self.discount})
        return found

    @property
    def sentence(self) -> str:
        """The recommendation, and which policies look better but cannot be trusted."""
        base, followed = self.baseline, self.followed
        others = [one for one in self.usable if one is not base]
        stay = f"Stay with {base.name!r}:"
        if not others:
            limits = (one.reason for each in self.judged[1:] for one in each.verdict.findings if one.level != "fine")
            why = next(limits, "no policy was given.")
            return f"{stay} the value of no other policy can be trusted, because: {why}"
        refused = [one for one in self.judged[1:] if not one.usable and one.found.value > followed.found.value]
        larger = f" The larger value of {names_of(refused)} cannot be trusted." if refused else ""
        gain = self.gap(others[0] if followed is base else followed, base)
        low, high, size = gain.low, gain.high, f"{abs(gain.apart):.4g} {'more' if gain.apart >= 0 else 'less'}"
        if followed is base and high < 0:
            return f"{stay} every other policy is significantly worse.{larger}"
        if followed is base:
            words = f"{others[0].name!r} is worth {size} (interval: {low:.4g} to {high:.4g})"
            more = self.more_episodes(gain) if others[0].verdict.word == "trust" else ""
            return f"{stay} no policy is significantly better. {words}.{more}{larger}"
        gravest = followed.verdict.findings[0]
        care = "" if gravest.level == "fine" else f" Its value needs care: {gravest.reason}"
        near = [one for one in self.judged[1:] if one.usable and one is not followed and self.is_near(followed, one)]
        rest = f" Not significantly different from it: {names_of(near)}." if near else ""
        unsure = ""
        if low <= 0:
            unsure = f" The returns alone do not show this yet (interval: {low:.4g} to {high:.4g})."
            low, high = gain.sure
        words = f"it is worth {followed.found.value:.4g}, {size} than {base.name!r} (from {low:.4g} to {high:.4g})"
        return f"Deploy {followed.name!r}: {words}.{unsure}{rest}{care}{larger}"

    def more_episodes(self, gap: Gap) -> str:
        """Return a sentence on the number of episodes that would show this difference; empty if large or unknown."""
        if gap.apart <= max(gap.hidden, 0.0):
            return ""
        times = (gap.reach / (gap.apart - gap.hidden)) ** 2
        if not 1.1 < times <= 20:
            return ""
        count = (times - 1) * self.episodes
        unit = 10 ** max(0, int(np.log10(max(1.0, count))) - 1)  # two significant digits
        rounded = int(np.ceil(count / unit)) * unit
        return f" A difference of this size would take about {rounded:,} more episodes to show."


def answered(data: LogData, confidence: float, names: Sequence[Any]) -> list[PolicyQuestion]:
    """Return the values and verdicts of all policies of a log, the logging policy first, for every signal."""
    rows, known = data.rows, dict[Any, Support]()
    gamma = None if data.reader.columns.discount is not None else data.reader.discount
    facts = findings_of("data", data)
    on_rows = [findings_of("rows", one) for one in row_evidence(data)]
    found = [
        PolicyQuestion(str(name), gamma, [], rows.bounds(k), rows.episodes, confidence) for k, name in enumerate(names)
    ]
    rows.progress.plan(2 * rows.n * len(data.policies))
    base: list[PolicyValue] = []
    for policy, values in zip(data.policies, values_of(data, data.policies, confidence), strict=True):
        base = base or values
        sampled, common = sampled_choices(data, policy), facts
        if not (policy.logging or sampled.ratio is None or data.behaviour is not None):
            common = [*facts, *findings_of("ratios", ratio_facts(data, sampled.ratio))]
        for k, (question, value) in enumerate(zip(found, values, strict=True)):
            key = value.map.name, policy.by_ratio, k
            if key not in known:
                known[key] = Support(data, value, question.bounds)
            own = policy_findings(data, value, base[k], known[key], sampled)
            question.judged.append(Judged(value, verdict_of([*common, *on_rows[k], *own]), known[key]))
    return found


def names_of(several: Sequence[Judged]) -> str:
    """Return the names of policies as text: at most five names, and the number of other policies."""
    words = [repr(one.name) for one in several]
    if len(words) > 5:
        words = [*words[:5], f"{len(words) - 5} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


@dataclass(frozen=True, eq=False)
class PolicyComparison:
    """The result of comparing policies on one log.

    questions  one per discount and signal, in the order given
    stated     the columns used;  seconds  total time;  log  name of the log
    """

    questions: Sequence[PolicyQuestion]
    confidence: float
    rows: int
    stated: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    log: str = "the log"

    def __repr__(self) -> str:
        return f"<PolicyComparison of {len(self.questions[0].judged)} policies, {self.rows:,} rows: {self.sentence}>"

    def _repr_html_(self) -> str:
        hidden = ["effective_rows", "why", *(["reward", "discount"] if len(self.questions) == 1 else [])]
        shown = self.frame().drop(columns=hidden)
        return card(self.sentence, {}, str(shown.to_html(index=False, border=0, float_format="{:.4g}".format)))

    @property
    def table(self) -> list[dict[str, Any]]:
        """A record per policy and question, the baseline first: value, difference to the baseline, and verdict."""
        return [record for question in self.questions for record in question.records()]

    def frame(self) -> Any:
        """Return the table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.table)

    @property
    def best(self) -> str | None:
        """The name of the best policy for the first question; None if no value can be trusted."""
        return next((one.name for one in self.questions[0].usable), None)

    @property
    def ties(self) -> list[str]:
        """The names of the best policy for the first question and of all not significantly different policies."""
        first = self.questions[0]
        return [one.name for one in first.usable if one is first.usable[0] or first.is_near(first.usable[0], one)]

    @property
    def deploy(self) -> str:
        """The policy to deploy for the first question: the best significantly better policy, else the baseline."""
        return self.questions[0].followed.name

    @property
    def sentence(self) -> str:
        """The recommendation, one sentence per question."""
        if len(self.questions) == 1:
            return self.questions[0].sentence
        return " ".join(f"{asked_words(one)}: {one.sentence}" for one in self.questions)

    def facts(self) -> dict[str, Any]:
        """Return everything as plain data."""
        names = ("sentence", "best", "ties", "deploy", "confidence", "rows", "table")
        named = {name: getattr(self, name) for name in names}
        return named | {"stated": list(self.stated), "seconds": dict(self.seconds)}

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the HTML report of the comparison, and return its path."""
        return Path(import_module("gradient_dd.report.evaluation_pages").write_page(self, path))

    def plot(self, ax: Any = None) -> Any:
        """Draw the policies for the first question with their intervals; return the matplotlib axes, `ax` if given."""
        return import_module("gradient_dd.report.plots").plot_comparison(self, ax)


def asked_words(question: PolicyQuestion) -> str:
    """Return the reward and discount of a question as text."""
    discount = "" if question.discount is None else f" at discount {question.discount:g}"
    return f"By {question.reward!r}{discount}"
