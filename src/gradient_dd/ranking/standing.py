"""Standings: ranks, ratios and significant differences, from the test errors of learners on problems.

A bootstrap resample draws problems with replacement, and test runs within each problem. All learners use the same
resampled runs. Learners with the same mean error share a rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.cards import card, table
from gradient_dd.errors import one_of
from gradient_dd.learners import Parameter, Rule
from gradient_dd.ranking.standings import BUDGETS, TEST_RUNS, VERSION, Entry
from gradient_dd.ranking.suites import MEASURES, TEST, Problem
from gradient_dd.studies.intervals import TAILS, Interval, ratio_interval, resample_counts
from gradient_dd.studies.study import ENGINE_VERSION

DRAWS = 2_000  # bootstrap resamples for the mean ranks
RATIO_DRAWS = 1_000  # bootstrap resamples for each ratio to a rival
GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ζ": "zeta", "κ": "kappa", "λ": "lambda", "ρ": "rho"}
LATEX = {letter: rf"$\{name}$" for letter, name in GREEK.items()} | {letter: rf"\{letter}" for letter in "&%$#_{}"}
LATEX |= {"–": "--", "\\": r"\textbackslash{}"}


class MeanRank(NamedTuple):
    """The mean rank of a learner over problems, its interval, and the share of resamples in which it is lowest."""

    mean: float
    low: float
    high: float
    first: float


@dataclass(frozen=True, eq=False)
class Standing:
    """A ranking of learners on problems.

    entries   the results by learner and problem; `rules` has the learners by name
    own       the marked learner, or None
    rivals    the learners with which every learner is compared
    quick     whether this is a quick estimate, without the shipped standings
    """

    entries: Mapping[tuple[str, str], Entry]
    problems: Sequence[Problem]
    rules: Mapping[str, Rule]
    own: str | None
    rivals: tuple[str, ...]
    quick: bool = False

    def __repr__(self) -> str:
        return f"<Standing of {len(self.rules)} learners: {self.sentence}>"

    @property
    def runs(self) -> int:
        """The number of test runs of each problem."""
        return TEST_RUNS[self.quick]

    @cached_property
    def errors(self) -> Array:
        """The mean errors of the test runs, (learners, problems, runs)."""
        return np.array(
            [[self.entries[name, one.name].errors[0] for one in self.problems] for name in self.rules], float
        )

    @cached_property
    def means(self) -> dict[str, Array]:
        """The mean error of each learner on each problem, (problems,)."""
        return dict(zip(self.rules, self.errors.mean(axis=2), strict=True))

    @cached_property
    def best(self) -> Array:
        """The smallest mean error on each problem, (problems,)."""
        return np.min(list(self.means.values()), axis=0)

    @cached_property
    def ranks(self) -> dict[str, MeanRank]:
        """The mean rank of each learner, lowest first."""
        rng, errors = np.random.default_rng(0), self.errors
        exact = ranks_of(errors.mean(axis=2).T)
        weights = [resample_counts(rng, self.runs, DRAWS) / self.runs for _ in self.problems]
        drawn = np.stack([ranks_of(one @ errors[:, at].T) for at, one in enumerate(weights)])
        problems = resample_counts(rng, len(self.problems), DRAWS) / len(self.problems)
        again = np.einsum("dp,pdl->dl", problems, drawn)
        low, high = np.quantile(again, TAILS, axis=0)
        first = (again == again.min(axis=1, keepdims=True)).mean(axis=0)
        found = zip(exact.mean(axis=0), low, high, first, strict=True)
        ranked = {name: MeanRank(*map(float, one)) for name, one in zip(self.rules, found, strict=True)}
        return dict(sorted(ranked.items(), key=lambda pair: pair[1].mean))

    def ratio(self, learner: str, rival: str, problem: Problem) -> Interval:
        """Return the paired ratio of the mean errors of two learners on a problem, with its 95 % interval."""
        pair = [self.entries[name, problem.name].errors[0].astype(float) for name in (learner, rival)]
        return ratio_interval((pair[0], pair[1]), draws=RATIO_DRAWS)

    def counts(self, learner: str, rival: str) -> tuple[int, int]:
        """Return the numbers of problems on which a learner is significantly better and worse than a rival."""
        found = [self.ratio(learner, rival, one) for one in self.problems]
        return sum(one.high < 1 for one in found), sum(one.low > 1 for one in found)

    def geometric_ratio(self, learner: str, rival: str | None) -> float:
        """Return the geometric mean over problems of the ratio to a rival; None is the best learner of each problem."""
        return float(np.exp(np.log(self.means[learner] / (self.best if rival is None else self.means[rival])).mean()))

    def diverged(self, learner: str) -> float:
        """Return the share of settings of the coarse grids that diverged."""
        ours = [self.entries[learner, one.name] for one in self.problems]
        return sum(one.diverged for one in ours) / sum(one.coarse for one in ours)

    def place(self, learner: str) -> int:
        """Return the place of a learner; learners with the same mean rank share a place."""
        return 1 + sum(one.mean < self.ranks[learner].mean for one in self.ranks.values())

    @property
    def sentence(self) -> str:
        """The standing of the rule, or of the best learner, as text."""
        name = self.own or next(iter(self.ranks))
        one, label = self.ranks[name], self.rules[name].label
        text = (
            f"{label} ranks {ordinal(self.place(name))} of {len(self.rules)} on {len(self.problems)} problems "
            f"(mean rank {one.mean:.1f}, 95 % interval {one.low:.1f} to {one.high:.1f})."
        )
        for rival in (one for one in self.rivals if one != name):
            (better, worse), label = self.counts(name, rival), self.rules[rival].label
            count = f"{better} of {len(self.problems)} problems"
            text += f" It is significantly better than {label} on {count} and worse on {worse}."
        return f"Quick estimate, not for a claim: {text}" if self.quick else text

    def frame(self) -> Any:
        """Return the table as a pandas DataFrame, best learner first."""
        rows = []
        for name, one in self.ranks.items():
            row: dict[str, Any] = {"place": self.place(name), "learner": name, "label": self.rules[name].label}
            row |= {"mean_rank": one.mean, "rank_low": one.low, "rank_high": one.high, "first": one.first}
            row |= {"ratio_to_td": self.geometric_ratio(name, "td")} if "td" in self.rules else {}
            row["ratio_to_best"] = self.geometric_ratio(name, None)
            for rival in self.rivals:
                better, worse = self.counts(name, rival)
                row |= {f"better_than_{rival}": better, f"worse_than_{rival}": worse}
            rows.append(row | {"diverged_settings": self.diverged(name)})
        return import_module("pandas").DataFrame(rows)

    def problem_frame(self) -> Any:
        """Return a pandas DataFrame with the setting, errors and rank of each learner on each problem."""
        ranks = ranks_of(self.errors.mean(axis=2).T)
        rows = []
        for at, problem in enumerate(self.problems):
            for place, name in enumerate(self.rules):
                entry = self.entries[name, problem.name]
                values = " ".join(f"{key}={value:.6g}" for key, value in entry.setting.items())
                row = {"problem": problem.name, "suite": problem.suite, "learner": name, "setting": values}
                for measure, errors in zip(MEASURES, entry.errors.astype(float), strict=True):
                    row |= {f"{measure}_mean": errors.mean(), f"{measure}_sem": errors.std(ddof=1) / self.runs**0.5}
                rows.append(row | {"rank": int(ranks[at, place]), "edges": " ".join(entry.edges)})
        return import_module("pandas").DataFrame(rows)

    @property
    def head(self) -> list[str]:
        """The names of the columns of the printed table."""
        ratios = [f"ratio to {words}" for words in ("TD", "the best")[0 if "td" in self.rules else 1 :]]
        rivals = [f"better / worse than {self.rules[one].label}" for one in self.rivals]
        return ["place", "learner", "mean rank [95 % interval]", *ratios, *rivals, "diverged settings"]

    @cached_property
    def rows(self) -> dict[str, list[str]]:
        """The cells of the printed table, by learner."""
        found = {}
        for row in self.frame().to_dict("records"):
            name, rank = row["learner"], f"{row['mean_rank']:.1f} [{row['rank_low']:.1f}, {row['rank_high']:.1f}]"
            ratios = [f"{row[one]:.2f}" for one in ("ratio_to_td", "ratio_to_best") if one in row]
            counts = [f"{row[f'better_than_{one}']} / {row[f'worse_than_{one}']}" for one in self.rivals]
            counts = ["–" if one == name else count for one, count in zip(self.rivals, counts, strict=True)]
            diverged = f"{100 * row['diverged_settings']:.0f} %"
            found[name] = [str(row["place"]), row["label"], rank, *ratios, *counts, diverged]
        return found

    def to_latex(self) -> str:
        """Return the table in LaTeX, with the row of the rule in bold."""
        rows = [
            [rf"\textbf{{{latex(cell)}}}" if name == self.own else latex(cell) for cell in row]
            for name, row in self.rows.items()
        ]
        head, *body = (" & ".join(row) + r" \\" for row in (map(latex, self.head), *rows))
        begin = r"\begin{tabular}{rl" + "r" * (len(self.head) - 2) + "}"
        return "\n".join([begin, r"\hline", head + r" \hline", *body, r"\hline", r"\end{tabular}"])

    @property
    def setup(self) -> str:
        """A paragraph for a paper that describes the experimental setup."""
        from gradient_dd import __version__

        budget, suites = BUDGETS[self.quick], " and ".join(dict.fromkeys(one.suite for one in self.problems))
        finals = ", ".join(f"{count} on {runs}" for count, runs in budget.finals)
        return " ".join(
            f"""{len(self.rules)} learners were compared on {len(self.problems)} problems (suites {suites}) with
            constant step sizes. On each problem every learner was tuned with the same budget of {budget.lane_runs:,}
            runs: {budget.coarse} settings of a coarse grid over all its parameters and {budget.refined} neighbours of
            the best settings, each on {budget.runs} tuning runs, then the best settings on more ({finals} tuning
            runs). Settings were selected by the mean error over the run, at most ten times the initial error. The
            selected setting was tested on {self.runs} other runs. All learners saw the same transitions. Mean ranks
            have 95 % bootstrap intervals over problems and runs. A difference on a problem is significant if the 95 %
            interval of the paired ratio excludes 1, without adjustment for the number of problems. gradient-dd
            {__version__}, engine {ENGINE_VERSION}, standings {VERSION}, seed 0; tuning runs from 0, test runs from
            {TEST:,}.""".split()
        )

    @property
    def warnings(self) -> list[str]:
        """Caveats to read before making a claim, as sentences."""
        found = []
        if self.quick:
            found.append(
                "Quick estimate: few problems, a small budget, few test runs, and only the chosen rivals, computed in "
                "the same way. Omit quick to rank against all learners."
            )
        if self.own is None:
            return found
        for parameter in self.rules[self.own].parameters:
            found += self._edge_warnings(parameter)
        one = self.ranks[self.own]
        if one.high - one.low > len(self.rules) / 2:
            found.append("The interval of the mean rank spans more than half of all places, too wide for a claim.")
        return found

    def _edge_warnings(self, parameter: Parameter) -> list[str]:
        """Return a sentence for each end of the search at which the best value of a parameter of the rule lies."""
        name, found = parameter.name, []
        entries = {one: self.entries[str(self.own), one.name] for one in self.problems}
        best = {one.title: entry.setting[name] for one, entry in entries.items() if name in entry.edges}
        tried = sorted(parameter.grid if isinstance(parameter.grid, tuple) else {*best.values()})
        for end, is_low in (("lowest", True), ("highest", False)):
            at_end = {title: value for title, value in best.items() if (value <= tried[0]) == is_low}
            if at_end:
                count = f"{len(at_end)} problem{'s' if len(at_end) > 1 else ''}"
                beyond = min(at_end.values()) / 10 if is_low else 10 * max(at_end.values())
                if beyond > parameter.high:
                    beyond = (max(at_end.values()) + parameter.high) / 2
                values = ",".join(f"{value:.4g}" for value in ([beyond, *tried] if is_low else [*tried, beyond]))
                found.append(
                    f"The best {name} is the {end} value tried on {count} ({'; '.join(at_end)}). "
                    f"Try --grid {name}={values}."
                )
        return found

    def plot(self, which: str = "heat") -> Any:
        """Return a picture that notebooks display; `.save(path)` writes its SVG. `which` is one of PICTURES."""
        page = import_module("gradient_dd.report.ranking_page")
        return page.picture(one_of("'which'", which, page.PICTURES), self)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write an HTML report, with tables (.csv, .tex) and pictures (.svg) in its folder; return its path."""
        return Path(import_module("gradient_dd.report.ranking_page").write_report(self, path))

    def table_html(self) -> str:
        """Return the table in HTML, with the row of the rule in bold."""
        return table(self.head, self.rows, self.own)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p><b>Note.</b> {escape(one)}</p>" for one in self.warnings)
        return card(self.sentence, {}, self.table_html() + notes)


def ranks_of(means: Array) -> Array:
    """Return the rank of each mean within its row, 1 for the lowest mean; means: (rows, learners)."""
    ranks: Array = 1.0 + (means[:, None, :] < means[:, :, None]).sum(axis=2)
    return ranks


def latex(text: str) -> str:
    """Return text escaped for LaTeX."""
    return "".join(LATEX.get(letter, letter) for letter in text).replace(r" \%", r"\,\%")


def ordinal(number: int) -> str:
    """Return a number as an ordinal: 1st, 2nd, 3rd, 4th."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ends.get(number % 10, 'th')}"
