"""Questions: thousands of general value functions learnt side by side from one stream."""

from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np

from gradient_dd.arrays import Array, check_memory, dimensions, numbers
from gradient_dd.engine.horizon import LONGEST
from gradient_dd.engine.questions import QuestionData, QuestionMemory, check_rule
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, one_of, whole_number
from gradient_dd.files import DamagedFileError, FileKind, open_saved
from gradient_dd.learners import Rule, find
from gradient_dd.stream.features import Features, checked_map, mapped
from gradient_dd.stream.learner_file import Saved, described_map, described_setting, put_back, saved_arguments
from gradient_dd.stream.question import AskedQuestions, Batch, Question, batch_of, described_question, saved_questions
from gradient_dd.stream.question_quality import StreamEvidence, frame_of
from gradient_dd.stream.transitions import (
    GivenRows,
    check_each,
    checked_features,
    checked_next_rows,
    checked_predictions,
    checked_rows,
    column,
    flags,
    start_weights,
)

PIECE = 2**22  # cumulants expanded at a time


class Questions(Saved):
    """Many questions about one stream, each learnt as by a separate `Learner`.

    In double precision the weights equal the weights of that learner bit for bit, unless numbers below 2.2e-308 occur.

    questions   `Question` objects with different names
    n_features  length of the feature vectors; not needed with `features`
    features    the map from observations to features; `update_many` and `predict` then also take observations alone
    learner     a name in `LEARNERS`, or a Rule of your own, whose moves are along x, x' and a trace
    initial_w   (n_features,) or a number; default 0
    precision   "float64", or "float32" for half the memory and nearly twice the speed
    parameters  parameters of the rule: alpha, lam, zeta, ...

    >>> both = Question("soon", 1.0, 0.5), Question("late", 1.0, 0.9)
    >>> horde = Questions(both, n_features=1, learner="td", alpha=0.5)
    >>> horde.update_many([[1.0]] * 100, x_next=[[1.0]] * 100)
    >>> horde.predict([1.0]).round(1)
    array([2. , 9.9])
    """

    file = FileKind("questions", "questions saved by gradient-dd", 3)

    def __init__(
        self,
        questions: Sequence[Question],
        n_features: int | None = None,
        *,
        features: Features | None = None,
        learner: str | Rule = "tdrc",
        initial_w: Any = 0.0,
        precision: str = "float64",
        rho_mode: str = "R",
        **parameters: Any,
    ) -> None:
        self.questions = checked_questions(questions)
        if n_features is None and isinstance(features, Features):
            n_features = features.n_features
        p = self.n_features = whole_number("'n_features'", n_features)
        self.features = checked_map(features, p)
        self.setting = find(learner).setting(rho_mode=rho_mode, **parameters)
        check_rule(self.setting.rule)
        self.precision = one_of("'precision'", precision, ("float64", "float32"))
        self._initial_w = start_weights(initial_w, p)
        self.asked = AskedQuestions(self.questions)
        parts = 3 if self.setting.rule.has_eta else 2
        size = np.dtype(precision).itemsize * p * len(self.questions) * parts
        check_memory(f"{len(self.questions)} questions about {p} features", size, "Use fewer questions or features.")
        self.forget()

    def forget(self) -> None:
        """Forget everything learnt."""
        self._evidence = StreamEvidence(self.asked, self.n_features)
        settings, dtype = [self.setting] * len(self.questions), np.dtype(self.precision).type
        self._memory = QuestionMemory(settings, self.asked.group, self.asked.view, self._initial_w, dtype)

    def __repr__(self) -> str:
        what = f"{len(self.questions)} by {self.setting.rule.name}, {self.n_features} features"
        return f"<Questions {what}, {self.updates} updates>"

    def _facts(self) -> dict[str, Any]:
        facts = {"setting": self.setting, "questions": len(self.questions), "features": self.n_features}
        return {**facts, "updates": self.updates, "diverged": ", ".join(self.diverged) or None}

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def names(self) -> list[str]:
        """The names of the questions, in the order of all arrays."""
        return [question.name for question in self.questions]

    @property
    def updates(self) -> int:
        """The number of transitions learnt from."""
        return self._evidence.steps

    @property
    def w(self) -> Array:
        """A copy of the weights, (questions, p)."""
        return self._memory.w

    @property
    def eta(self) -> Array:
        """A copy of the secondary weights, (questions, p)."""
        return self._memory.eta

    @property
    def diverged(self) -> dict[str, int]:
        """The update, counted from 1, at which each diverged question stopped, by the name of the question."""
        at = self._memory.stopped[self._memory.slot]
        return {name: int(step) + 1 for name, step in zip(self.names, at, strict=True) if step >= 0}

    def predict(self, x: Any = None, *, observation: Any = None, observations: Any = None) -> Array:
        """Return one value for each question, (questions,), or (n, questions) for n rows.

        x is a feature vector, or rows of features in any form that `update_many` takes. With a feature map, give
        `observation` or `observations` (n, …) instead.
        """
        x = mapped(self.features, "observations", observations, observation) if x is None else x
        single = dimensions(x[-1] if isinstance(x, tuple) else x) != 2
        if single:
            where, values = checked_features("x", x, self.n_features)
            x = values[None] if isinstance(where, slice) else (where[None], values[None])
        given = checked_rows("x", x, self.n_features).with_begins()
        values = checked_predictions("x", self._memory.predict(given))
        return values[0] if single else values

    def update(
        self,
        x: Any = None,
        action: Any = None,
        x_next: Any = None,
        behaviour_probability: float | None = None,
        *,
        observation: Any = None,
        next_observation: Any = None,
        terminated: bool = False,
        truncated: bool = False,
        columns: Mapping[str, float] | None = None,
    ) -> None:
        """Learn from one transition; each argument is one row of the corresponding argument of `update_many`."""
        given = {"x": x, "actions": action, "x_next": x_next, "behaviour_probability": behaviour_probability}
        given |= {"observations": observation, "next_observations": next_observation}
        rows: dict[str, Any] = {}
        for name, one in given.items():
            if isinstance(one, tuple):
                where, values = checked_features("A row", one, self.n_features)
                rows[name] = where[None], values[None]
            elif one is not None:
                rows[name] = np.asarray(one)[None]
        rows["columns"] = {name: [value] for name, value in (columns or {}).items()}
        self.update_many(**rows, terminated=terminated, truncated=truncated)

    def update_many(
        self,
        x: Any = None,
        actions: Any = None,
        x_next: Any = None,
        behaviour_probability: Any = None,
        *,
        observations: Any = None,
        next_observations: Any = None,
        terminated: Any = False,
        truncated: Any = False,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        """Learn from n transitions, one after the other, in all questions.

        x, x_next               dense (n, p), pairs (indices, values) of shape (n, k) each, or SciPy rows; optional
                                with a feature map, which makes them from the observations
        actions                 (n,) the actions taken, for questions whose target or cumulant uses them
        behaviour_probability   (n,) the probability of each action taken under the behaviour policy; not needed if
                                all questions are about that policy
        observations, next_observations, columns
                                inputs of cumulants, discounts, targets and interests
        terminated              (n,) where the episode ended: the discount of every question is 0 there
        truncated               (n,) where the episode was cut: the next transition begins with empty traces

        A question that would diverge stops, keeps its last weights, and does not affect the others. An invalid argument
        changes nothing.
        """
        p = self.n_features
        here = checked_rows("x", mapped(self.features, "observations", observations) if x is None else x, p)
        batch = batch_of(here.n, observations, actions, next_observations, columns)
        data = self._columns(batch, behaviour_probability, terminated, truncated)
        if x_next is None and next_observations is not None and self.features is not None:
            x_next = mapped(self.features, "next_observations", next_observations)
        there = checked_next_rows(x_next, here, data.discount, p)
        self._learn(here, there, data)

    def _columns(self, batch: Batch, behaviour: Any, terminated: Any, truncated: Any) -> QuestionData:
        """Return the data of the questions for a batch; rewards are (n, signals)."""
        n, asked, rule = len(batch), self.asked, self.setting.rule
        wants, asks = asked.needs_behaviour, bool(rule.trace_arguments & {"pi_before", "mu_before"})
        if behaviour is None:
            if wants is not None or asks:
                who = f"question {wants.name!r}, which has a target" if wants is not None else rule.name
                raise BadRequestError(f"'behaviour_probability' must be given for {who}. Got None.")
            mu = np.ones(n)
        else:
            mu = column("behaviour_probability", behaviour, n)
            numbers("'behaviour_probability'", mu)
            check_each("behaviour_probability", ~((mu > 0) & (mu <= 1)), mu, "be above 0 and at most 1")
        pi = asked.probabilities(batch, mu)
        with np.errstate(over="ignore"):
            rho = pi / mu[:, None]
        check_each("behaviour_probability", ~np.isfinite(rho), rho, "not be so small that a ratio overflows")
        ends = flags("terminated", terminated, n)
        discount = np.where(ends[:, None], 0.0, asked.discounts(batch))
        pi, mu = (one if asks else one[:0] for one in (pi, np.broadcast_to(mu[:, None], pi.shape)))
        cut = flags("truncated", truncated, n)
        return QuestionData(asked.cumulants(batch), discount, rho, asked.interests(batch), pi, mu, np.ones(n), cut)

    def _learn(self, here: GivenRows, there: GivenRows, data: QuestionData) -> None:
        """Learn from rows in pieces that need little memory."""
        x, x_next = here.with_begins(), there.with_begins()
        most = max(1, PIECE // len(self.questions))
        for begin in range(0, here.n, most):
            part = slice(begin, min(begin + most, here.n))
            piece = QuestionData._make(column[part] for column in data)
            piece = piece._replace(reward=piece.reward[:, self.asked.signal])
            rows = piece_of(x, part), piece_of(x_next, part)
            self._memory.advance(*rows, piece)
            self._evidence.add(rows[0], piece)

    def summary(self, by: str = "rupee") -> Any:
        """Return the quality of each answer, without true values: a frame with a row for each question, the best first.

        rupee           an estimate of the root of the projected Bellman error, from a running mean of δz
        effective_rows  the effective sample size under the question's own policy: (Σρ)² / Σρ²
        rows            the number of transitions seen
        returns         the number of complete returns
        return_error    the root of the mean squared difference of predictions and returns; NaN without returns
        explained       the share of the variance of the returns that the predictions explain; NaN without variance
        diverged        the update at which the question stopped, 0 if it did not stop

        `by` is the column to sort by. Questions that stopped come last.
        """
        return frame_of(self.names, self._evidence, self._memory, self.diverged, by)

    def _arrays(self) -> dict[str, Array]:
        """Return the arrays of the file."""
        arrays = {name: getattr(owner, name) for owner in (self._memory, self._evidence) for name in owner.saved}
        return arrays | {"initial_w": self._initial_w}

    def _contents(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header = described_setting(self.setting) | {
            "n_features": self.n_features,
            "precision": self.precision,
            "features": described_map(self.features),
            "questions": [described_question(one) for one in self.questions],
            "group": self.asked.group.tolist(),
            "steps": self._evidence.steps,
            "widest": self._evidence.widest,
            "dense": self._memory.dense,
        }
        return header, self._arrays()

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        questions: Sequence[Question] | None = None,
        learner: Rule | None = None,
        features: Features | None = None,
    ) -> Self:
        """Return the questions saved in a file; they continue as if they had never been saved.

        Functions and arrays are not saved: pass questions that contain functions or arrays again, and also a rule or a
        feature function of your own.
        """
        with open_saved(path, cls.file) as (header, arrays):
            asked = saved_questions(path, header["questions"], questions)
            arguments = saved_arguments(path, header, arrays["initial_w"], learner, features)
            horde = cls(asked, **arguments, precision=header["precision"])
            memory, evidence = horde._memory, horde._evidence
            if horde.asked.group.tolist() != header["group"]:
                rule = "share discounts, targets and interests as the saved questions do"
                raise bad_request(f"The questions of {str(path)!r}", rule, horde.asked.group.tolist())
            put_back(horde._arrays(), arrays)
            check_places(memory, horde.n_features)
            memory.steps = evidence.steps = whole_number("'steps'", header["steps"], 0, LONGEST)
            memory.dense = bool(header["dense"])
            evidence.widest = whole_number("'widest'", header["widest"], 1, LONGEST)
            return horde


def checked_questions(questions: Any) -> tuple[Question, ...]:
    """Return a tuple of one or more questions with different names, or raise."""
    try:
        given = tuple(questions)
    except TypeError:
        given = ()
    if not given or not all(isinstance(one, Question) for one in given):
        raise bad_request("'questions'", "be one Question or more", questions)
    name, count = Counter(one.name for one in given).most_common(1)[0]
    if count > 1:
        raise bad_request("The names of questions", "differ", Unquoted(f"{name!r} twice"))
    return given


def check_places(memory: QuestionMemory, p: int) -> None:
    """Raise unless places in a file are ordered places of p features, because compiled code writes to them."""
    for lists, counts in ((memory.listed, memory.listed_count), (memory.last_places, memory.last_count)):
        for places, count in zip(lists, counts, strict=True):
            used = places[:count]
            if not 0 <= count <= p or not (np.diff(used, prepend=-1, append=p) > 0).all():
                raise DamagedFileError("places of other features")


def piece_of(rows: Any, part: slice) -> Any:
    """Return the feature rows in a slice."""
    begin = rows.begin[part.start : part.stop + 1]
    cut = slice(int(begin[0]), int(begin[-1]))
    indices = rows.indices[cut] if rows.indices.size else rows.indices
    return rows._replace(begin=begin - begin[0], indices=indices, values=rows.values[cut])
