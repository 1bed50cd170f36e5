"""Evaluation of a stream: batches of transitions in, an `Evaluation` out. Logs and environments come through here.

The first rows are kept. They give the scale of the step sizes, and a stream that is not longer is replayed several
times. From then on the stream is learnt as it passes, and nothing of it is kept but sums.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import Unquoted, bad_request, number, one_of, whole_number
from gradient_dd.evaluation.answer_findings import Answer
from gradient_dd.evaluation.choice import AUTO, Candidate, Solver, Spread, candidates_of, spread_of
from gradient_dd.evaluation.data_findings import Data
from gradient_dd.evaluation.diagnosis import Diagnosis
from gradient_dd.evaluation.episodes import Blocks, EpisodeSample
from gradient_dd.evaluation.findings import findings_of, verdict_of
from gradient_dd.evaluation.moments import MOST_GROUPED, GroupSums, sparse_rows
from gradient_dd.evaluation.network_map import with_members
from gradient_dd.evaluation.portfolio import MANY_FEATURES, Portfolio, settings_to_try
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.returns import ReturnCheck, overruled, return_checks, value_losses
from gradient_dd.evaluation.row_findings import RowEvidence
from gradient_dd.evaluation.row_signs import influences, row_signs
from gradient_dd.evaluation.support import reachable_values, support_of
from gradient_dd.evaluation.transitions import StateActions, Transitions, check_width, distinct, joined, rows_of
from gradient_dd.learners import PLAIN_MOVES, PLAIN_SIGNALS, Rule, find
from gradient_dd.stream.features import Features, Layers, Rows
from gradient_dd.stream.transitions import start_weights
from gradient_dd.studies.intervals import Bounds

KEPT = 20_000  # first rows that are kept
UPDATES = 200_000  # of a short stream, by replaying it
NARROW = 64  # numbers of a feature row; wider rows are replayed less often, for LSTD serves them
MOST_PASSES = 50  # unless the user asks for more
PASSES_THAT_END = 10_000  # that a user may ask for
NEAR_BEST = 1.25  # times the smallest held-out error: up to there LSTD or AutoLearner is taken
PIECE = 4096  # rows learnt at a time
POINTS = 100  # first states of episodes whose values are reported
NONE = np.empty((0, 0))
ORDERS = ("log", "shuffled")


class Evaluator:
    """Learns from batches as they come; `result` can be asked for at any time.

    n_features  how many features a row has
    learner     "auto", "lstd", a name in LEARNERS or a Rule; without `alpha` several step sizes are tried
    features    the map that made the feature rows, which `Evaluation.predict` then uses
    initial_w   (n_features,) or a number; default 0
    passes      how often a short stream is replayed; default until 200,000 updates are made
    order       "log", or "shuffled": rows of a replay in random order. Successive rows are then unrelated, so that
                Gradient-DD's w − w_prev is noise, and its κ term only slows it down
    confidence  of the intervals
    """

    saved = (
        *("unit", "portfolio", "blocks", "sums", "diagnosis", "sample", "kept", "rows", "ahead"),
        *("_points", "_again", "_next_look"),
    )

    def __init__(
        self,
        n_features: int,
        /,
        *,
        learner: str | Rule = "auto",
        features: Features | None = None,
        initial_w: Any = 0.0,
        passes: int | None = None,
        order: str = "log",
        confidence: float = 0.95,
        seed: int = 0,
        **parameters: Any,
    ) -> None:
        p = self.n_features = whole_number("'n_features'", n_features)
        self.features, self.learner, self.parameters = features, learner, parameters
        self.rule = None if isinstance(learner, str) and learner in ("auto", "lstd") else find(learner)
        if self.rule is not None:
            if self.rule.natural:
                raise bad_request("'learner'", "be one whose step takes linear time", self.rule.name)
            form = self.rule.setting(**parameters).rule  # raises where a parameter is wrong
            form.check_known("The evaluation of logs", PLAIN_SIGNALS, PLAIN_MOVES)
        elif parameters:
            raise bad_request("'learner'", f"be a learner where {sorted(parameters)[0]!r} is given", learner)
        self.initial_w = start_weights(initial_w, p)
        self.passes = None if passes is None else whole_number("'passes'", passes, at_most=PASSES_THAT_END)
        self.order = one_of("'order'", order, ORDERS)
        self.confidence = number("'confidence'", "be above 0 and below 1", confidence, low=1e-6, high=1 - 1e-6)
        self.seed = whole_number("'seed'", seed, at_least=0)
        self.blocks, self.sums, self.diagnosis = Blocks(), GroupSums(p), Diagnosis(p)
        self.sample = EpisodeSample()
        self.kept: list[tuple[Transitions, Integers]] = []
        self.rows = 0
        self.unit: float | None = None  # of the step sizes, once learning has begun
        self.portfolio: Portfolio | None = None
        self._points: list[Rows] = []
        self._again = Blocks()
        self.ahead: list[tuple[int, str]] = []  # rows, and the candidate that was ahead from there on
        self._next_look = 2 * KEPT

    def observe(self, batch: Transitions) -> None:
        """Learn from the next batch of the stream."""
        check_width(batch, self.n_features)
        before = self.blocks.episode
        if len(batch) and self.rows and batch.episode[0] < before:
            raise bad_request("The episode of a batch", f"be {before} or more, as before", int(batch.episode[0]))
        for begin in range(0, len(batch), PIECE):
            part = batch.part(slice(begin, begin + PIECE))
            begins, group = self.blocks.begins(part.episode), self.blocks.groups(part.episode)
            self.sums.add(part, group, begins)
            self.diagnosis.add(part, begins)
            self.sample.add(part, group)
            if missing := POINTS - sum(len(rows.values) for rows in self._points):
                self._points.append(rows_of(part.starts, np.flatnonzero(begins)[:missing]))
            self.rows += len(part)
            self._learn(part, group)
            if self.rows >= self._next_look:
                self._look()

    def _learn(self, part: Transitions, group: Integers) -> None:
        """Learn from a part of the stream, or keep it while there are few rows."""
        if self.portfolio is not None:
            self.portfolio.learn(part, group)
            return
        self.kept.append((part, group))
        if self.rows > KEPT:
            portfolio = self.begin(self._unit())
            for piece in self._pieces():
                portfolio.learn(*piece)
            self.kept = [self.first]
            self.diagnosis.examine(self.first[0])

    def learn_again(self, batch: Transitions, first: bool) -> None:
        """Learn from a batch of a further pass over the same stream; `first` says that the pass begins with it."""
        if self.portfolio is None:
            return  # the stream is kept whole, and replayed for the result
        if first:
            self._again = Blocks()
        for begin in range(0, len(batch), PIECE):
            part = batch.part(slice(begin, begin + PIECE))
            self.portfolio.learn(*self._ordered(part, self._again.groups(part.episode), self.portfolio.steps))

    def _look(self) -> None:
        """Note which candidate is ahead by now; the stream has twice the rows of the last look."""
        self._next_look = 2 * self.rows
        if self.rule is None and self.n_features < MANY_FEATURES and self.portfolio is not None:
            self._note(self._choose(self.portfolio, self.sums if self.sums.small else None)[1])

    def _note(self, chosen: Candidate) -> None:
        if not self.ahead or self.ahead[-1][1] != chosen.words:
            self.ahead.append((self.rows, chosen.words))

    def begin(self, unit: float) -> Portfolio:
        """Begin to learn the stream as it passes, with step sizes in this unit; return what learns."""
        self.unit, self.portfolio = unit, self._portfolio(unit)
        return self.portfolio

    def _unit(self) -> float:
        """Return the unit of the step sizes that suits the rows kept: 1 / mean |x|²."""
        total = sum(float((one.x.values**2).sum()) for one, _ in self.kept)
        if total == 0:
            raise bad_request("The features", "not all be zero", Unquoted(f"zeros in the first {self.rows} rows"))
        return 1.0 / (total / self.rows)

    def _portfolio(self, unit: float) -> Portfolio:
        settings = settings_to_try(unit, self.n_features, self.rule, self.parameters)
        with_auto = self.learner == "auto" and MOST_GROUPED < self.n_features < MANY_FEATURES
        return Portfolio(settings, self.initial_w, unit, self.seed, with_auto)

    def _replayed(self) -> tuple[Portfolio, int]:
        """Return what has learnt from a stream that was kept whole, and how often it was replayed."""
        portfolio = self._portfolio(self._unit())
        width = self.kept[0][0].x.values.shape[1]
        updates = UPDATES * NARROW // max(NARROW, width)
        passes = self.passes or int(np.clip(-(-updates // self.rows), 1, MOST_PASSES))
        pieces = self._pieces()
        for turn in range(passes):
            for piece in pieces:
                portfolio.learn(*self._ordered(*piece, turn))
        return portfolio, passes

    @property
    def first(self) -> tuple[Transitions, Integers]:
        """The first rows of the stream, and their groups."""
        return joined([one for one, _ in self.kept]), np.concatenate([group for _, group in self.kept])

    def _pieces(self) -> list[tuple[Transitions, Integers]]:
        """Return the rows kept, in pieces that do not depend on how they came."""
        whole, group = self.first
        cuts = [slice(begin, begin + PIECE) for begin in range(0, len(whole), PIECE)]
        return [(whole.part(cut), group[cut]) for cut in cuts]

    def _ordered(self, part: Transitions, group: Integers, turn: int) -> tuple[Transitions, Integers]:
        """Return a part of a replay in the order that was asked for."""
        if self.order == "log":
            return part, group
        order = np.random.default_rng([self.seed, turn, len(part)]).permutation(len(part))
        return part.part(order), group[order]

    def result(self) -> Evaluation:
        """Return what has been learnt so far."""
        if self.rows == 0:
            raise bad_request("A stream", "have at least one transition", Unquoted("none"))
        if self.portfolio is None:
            self.diagnosis.examine(self.first[0])
            portfolio, passes = self._replayed()
        else:
            portfolio, passes = self.portfolio, max(1, self.portfolio.steps // self.rows)
        found, chosen, by_returns = self._choose(portfolio, self._solver())
        if self.ahead:
            self._note(chosen)
        lstd = next((one for one in found if one.ridge == 0), None)
        moved = portfolio.autos[0].moved() if chosen.name == AUTO else portfolio.moved(chosen.setting)
        stability = portfolio.shadows.verdict()
        spread = spread_of(chosen, lstd, portfolio, moved, self.sums, self.confidence)
        if isinstance(self.features, Layers) and self.sums.small:
            spread = with_members(spread, self.sums, self.features)
        sample, group = self.sample.joined()
        rewards = Bounds(self.diagnosis.lowest, self.diagnosis.highest)
        reachable = reachable_values(rewards, self.diagnosis.discount, self.diagnosis.longest)
        evaluation = Evaluation(
            w=np.array(chosen.w, dtype=float),
            chosen=chosen.words,
            spread=spread,
            support=support_of(self.sums.squares, self.sums.C.sum(axis=0) if self.sums.small else NONE, reachable),
            points=distinct(self._points),
            start=self.sums.mean_start(),
            candidates=tuple(sorted(found, key=lambda one: one.error)),
            stability=stability,
            rows=self.rows,
            passes=passes,
            features=self.features,
            switches=tuple(self.ahead),
            checks=self._checks(sample, group, np.asarray(chosen.w, float), spread),
        )
        signs = row_signs(sample, None if lstd is None else self._influence(sample, lstd.w))
        found_in_rows = findings_of("rows", RowEvidence(signs, evaluation.scale))
        found_in_data = findings_of("data", Data(self.diagnosis, self.sums, stability, chosen.name))
        found_in_answer = findings_of("answer", Answer(evaluation, chosen, lstd, moved, by_returns))
        return replace(evaluation, verdict=verdict_of(found_in_data + found_in_rows + found_in_answer))

    def _checks(self, sample: Transitions, group: Integers, w: Array, spread: Spread) -> tuple[ReturnCheck, ...]:
        """Return the returns beside the values; those of the behaviour say nothing of action values."""
        return () if isinstance(sample, StateActions) else return_checks(sample, group, w, spread)

    def _influence(self, batch: Transitions, w: Array) -> Array | None:
        """Return how much each row pulls the value, times the rows, (n,); None where A is not summed."""
        if not self.sums.small:
            return None
        A = self.sums.A.sum(axis=0) / self.rows
        return influences(batch, w, np.linalg.lstsq(A.T, self.sums.mean_start(), rcond=1e-10)[0])

    def _solver(self) -> Solver | None:
        """Return what solves LSTD here: sums where A is small, the rows themselves where they were all kept."""
        if self.sums.small:
            return self.sums
        if self.n_features <= MOST_GROUPED and self.sample.whole:
            return sparse_rows(*self.sample.joined(), self.n_features)
        return None

    def _choose(self, portfolio: Portfolio, solver: Solver | None) -> tuple[list[Candidate], Candidate, bool]:
        """Return all candidates, and the one with the smallest held-out error among those that were asked for.

        LSTD with the smallest ridge, or `AutoLearner` where there are too many features for it, is taken where it is
        nearly as good: a learner that has not arrived yet may have a small error by chance.
        "auto" does not take TD where it diverges, however well it has done so far. The third is whether the returns
        of the log overruled the Bellman error.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            found = candidates_of(portfolio, self.sums, self.first, solver)
        if self.learner == "lstd":
            allowed = [one for one in found if one.name == "lstd"]
            if not allowed:
                raise bad_request("'learner'", "be 'auto' or linear in time for so many features", "lstd")
        elif self.rule is not None:
            allowed = [one for one in found if one.name == self.rule.name]
        else:
            td_diverges = portfolio.shadows.verdict().verdict == "unstable"
            allowed = [one for one in found if not (td_diverges and one.name == "td")]
        best = min(allowed, key=lambda one: one.error)
        exact = [one for one in allowed if one.name in ("lstd", AUTO) and one.error <= NEAR_BEST * best.error]
        best = exact[0] if exact else best  # as good as the best, and where the stream leads in the end
        if isinstance(self.first[0], StateActions):  # returns are those of the behaviour
            return found, best, False
        better = overruled(allowed, best, value_losses(allowed, *self.first, portfolio.weights))
        return found, better, better is not best


def evaluate_stream(batches: Iterable[Transitions], n_features: int, **options: Any) -> Evaluation:
    """Return the evaluation of a stream; options are those of `Evaluator`."""
    evaluator = Evaluator(n_features, **options)
    for batch in batches:
        evaluator.observe(batch)
    return evaluator.result()
