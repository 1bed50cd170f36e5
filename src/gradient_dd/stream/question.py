"""Questions: general value functions, each with a signal, a horizon, a target policy, and states of interest.

A question names the sources of its numbers; its functions are called with a `Batch`. `AskedQuestions` finds the parts
that several questions share, so that each part is computed once. Tasks are questions too: tasks with the same dynamics,
such as the eight Rooms tasks, are questions about one stream.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from inspect import signature
from types import MappingProxyType
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers, as_floats
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, foreign, text
from gradient_dd.fingerprint import fingerprint, made_of
from gradient_dd.stream.policies import of_actions, of_table
from gradient_dd.tasks import Task

ROLES = ("cumulant", "discount", "target", "interest")


@dataclass(frozen=True, eq=False)
class Question:
    """A general value function. Each part is a number, an array (n,), the name of a column, or a function of the batch.

    name      the name in summaries and errors
    cumulant  the signal of a transition whose discounted sum is predicted
    discount  the discount into the next state, in [0, 1]; 0 where the question ends
    target    the target policy: the probability of each action taken, (n,), or of all actions, (n, actions); or a table
              (states, actions) if observations are state numbers. None: the behaviour policy
    interest  whether the question is asked in the current state, 0 or 1. None: in every state. The question ignores
              transitions from other states

    A function of one argument is called with a `Batch`, a function of two with observations and actions, a function of
    three also with next observations. Questions with the *same* function, or with equal arrays or numbers, share the
    results, and questions with the same discount, target and interest share a trace.

    >>> Question("bump", cumulant="bump", discount=0.9)
    Question('bump', cumulant='bump', discount=0.9)
    """

    name: str
    cumulant: Any
    discount: Any
    target: Any = None
    interest: Any = None

    def __post_init__(self) -> None:
        if not text("The name of a question", self.name):
            raise bad_request("The name of a question", "not be empty", self.name)
        for role in ROLES:
            value, what = getattr(self, role), f"The {role} of question {self.name!r}"
            if isinstance(value, str) or callable(value) or (value is None and role in ("target", "interest")):
                continue
            if value is None:
                raise bad_request(what, "be given", Unquoted("None"))
            shape = as_floats(what, value).shape
            if len(shape) > (2 if role == "target" else 1):
                rule = "be a number, an array (n,), the name of a column, or a function"
                raise bad_request(what, rule, Unquoted(f"an array {shape}"))

    def __repr__(self) -> str:
        given = [f"{role}={getattr(self, role)!r}" for role in ROLES if getattr(self, role) is not None]
        return f"Question({self.name!r}, {', '.join(given)})"


class Batch(np.ndarray):
    """The observations of n transitions, as an array with further attributes.

    actions            (n,) or None
    next_observations  an array like the observations, or None
    columns            numbers by name; `batch["name"]` returns a column
    """

    actions: Any = None
    next_observations: Any = None
    columns: Mapping[str, Any] = MappingProxyType({})

    @property
    def observations(self) -> Any:
        """The observations, as a plain array."""
        return self.view(np.ndarray)

    def __getitem__(self, key: Any) -> Any:
        return self.columns[key] if isinstance(key, str) else self.observations[key]


def batch_of(
    n: int, observations: Any, actions: Any, next_observations: Any, columns: Mapping[str, Any] | None
) -> Batch:
    """Return n transitions as questions read them, or raise if an argument does not have n rows."""
    if not isinstance(columns, Mapping | None) or not all(isinstance(name, str) for name in columns or ()):
        raise bad_request("'columns'", "map names to arrays", columns)
    seen = rows_of("'observations'", observations, n)
    batch = (np.empty((n, 0)) if seen is None else seen).view(Batch)
    batch.actions = rows_of("'actions'", actions, n)
    batch.next_observations = rows_of("'next_observations'", next_observations, n)
    batch.columns = {name: rows_of(f"The column {name!r}", one, n) for name, one in (columns or {}).items()}
    return batch


def rows_of(what: str, value: Any, n: int) -> Any:
    """Return a value with n rows as an array; None stays None."""
    try:
        array = None if value is None else np.asarray(value)
    except (TypeError, ValueError):
        raise bad_request(what, "be an array", value) from None
    if array is not None and (array.ndim == 0 or len(array) != n):
        raise bad_request(what, f"have {n} rows, as 'x' has", Unquoted(f"an array {array.shape}"))
    return array


def same(value: Any) -> Any:
    """Return a key that is equal for equal parts of questions."""
    if value is None or isinstance(value, str):
        return value
    if callable(value):
        return ("function", id(value))
    array = as_floats("A number", value)
    return float(array) if array.ndim == 0 else (array.shape, sha256(array.tobytes()).hexdigest())


def distinct(places: Iterable[int], keys: Sequence[Any]) -> tuple[list[int], Integers]:
    """Return the first place of every distinct key, and the number of each place's key."""
    first: dict[Any, int] = {}
    for place, key in zip(places, keys, strict=True):
        first.setdefault(key, place)
    number = {key: k for k, key in enumerate(first)}
    return list(first.values()), np.array([number[key] for key in keys])


class AskedQuestions:
    """Several questions and the parts that they share.

    signal  (questions,) the number of each question's cumulant among the distinct cumulants
    group   (questions,) the number of its (discount, target, interest);  view  (groups,) the number of that interest
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        every = range(len(self.questions))
        self.signals, self.signal = distinct(every, [same(one.cumulant) for one in self.questions])
        keys = [tuple(same(getattr(one, role)) for role in ROLES[1:]) for one in self.questions]
        self.groups, self.group = distinct(every, keys)
        discounts, targets, interests = zip(*(keys[place] for place in self.groups), strict=True)
        self.horizons, self.horizon = distinct(self.groups, discounts)
        self.policies, self.policy = distinct(self.groups, targets)
        self.views, self.view = distinct(self.groups, interests)

    def _parts(self, role: str, places: Iterable[int]) -> Iterator[tuple[Any, str]]:
        """Yield one part of each question at some places, with the part's name in errors."""
        for question in (self.questions[place] for place in places):
            yield getattr(question, role), f"The {role} of question {question.name!r}"

    def cumulants(self, batch: Batch) -> Array:
        """Return the distinct cumulants, (n, signals)."""
        return np.column_stack([column(batch, *part) for part in self._parts("cumulant", self.signals)])

    def discounts(self, batch: Batch) -> Array:
        """Return the discount of each group, (n, groups)."""
        parts = self._parts("discount", self.horizons)
        return np.column_stack([column(batch, *part, "be in [0, 1]") for part in parts])[:, self.horizon]

    def interests(self, batch: Batch) -> Any:
        """Return whether each view is asked in each row, (n, views) booleans."""
        parts = [(1.0 if value is None else value, what) for value, what in self._parts("interest", self.views)]
        return np.column_stack([column(batch, *part, "be 0 or 1") == 1 for part in parts])

    @property
    def needs_behaviour(self) -> Question | None:
        """The first question with a target policy, or None."""
        return next((one for one in self.questions if one.target is not None), None)

    def probabilities(self, batch: Batch, behaviour: Array) -> Array:
        """Return the target's probability of each action taken, (n, groups); `behaviour` if there is no target."""
        parts = self._parts("target", self.policies)
        found = [behaviour if value is None else taken(batch, value, what) for value, what in parts]
        return np.column_stack(found)[:, self.policy]


def column(batch: Batch, value: Any, what: str, rule: str = "") -> Array:
    """Return a part of a question as numbers (n,), or raise; with a `rule`, numbers from 0 to 1, or 0 and 1."""
    n = len(batch)
    if isinstance(value, str):
        if value not in batch.columns:
            known = ", ".join(batch.columns) or "none"
            raise bad_request(f"{what}, {value!r},", f"be a column of 'columns' ({known})", value)
        value = batch.columns[value]
    elif callable(value):
        value = called(value, batch, what)
    array = np.asarray(as_floats(what, value))
    array = array[:, 0] if array.shape == (n, 1) else array
    if array.shape not in ((), (n,)):
        raise bad_request(what, f"give one number for each of {n} rows", Unquoted(f"an array {array.shape}"))
    if not np.isfinite(array).all():
        raise bad_request(what, "be finite", float(array[~np.isfinite(array)].flat[0]))
    values = np.broadcast_to(array, n)
    wrong = (values != 0) & (values != 1) if rule == "be 0 or 1" else (values < 0) | (values > 1)
    if rule and wrong.any():
        raise bad_request(f"{what} in row {int(np.argmax(wrong))}", rule, float(values[wrong][0]))
    return values


def called(function: Callable[..., Any], batch: Batch, what: str) -> Any:
    """Return the result of a user's function; an error in the function becomes one sentence."""
    try:
        wanted = signature(function).parameters.values()
        places = sum(one.default is one.empty and one.kind in (0, 1) for one in wanted)
    except (TypeError, ValueError):  # some built-in functions have no signature
        places = 1
    arguments = (batch,) if places < 2 else (batch.observations, batch.actions, batch.next_observations)[:places]
    with foreign(what, "run on a batch"):
        return np.asarray(function(*arguments))


def taken(batch: Batch, target: Any, what: str) -> Array:
    """Return a target's probability of each action taken, (n,)."""
    found = called(target, batch, what) if callable(target) else target
    if not callable(target) and np.ndim(target) == 2:
        found = of_table(target, batch.observations)
    if np.ndim(found) == 2 and np.shape(found)[1] > 1:
        if batch.actions is None:
            raise BadRequestError(f"{what} gives probabilities of all actions. Pass the actions taken as actions=...")
        each = as_floats(what, found)
        found = of_actions(each, batch.actions) if len(each) == len(batch) else each
    return column(batch, found, what, "be a probability")


def described_question(question: Question) -> dict[str, Any]:
    """Return the description of a question for a header, with a fingerprint of each function and array."""
    parts: dict[str, Any] = {"name": question.name}
    for role in ROLES:
        value = parts[role] = getattr(question, role)
        if callable(value) or (value is not None and np.ndim(value) > 0):
            parts[role] = {"given": fingerprint(made_of(value))}
        elif value is not None and not isinstance(value, str):
            parts[role] = float(value)
    return parts


def saved_questions(path: Any, saved: list[dict[str, Any]], given: Any) -> Any:
    """Return the given questions if they equal the saved ones; if none are given, return the saved questions."""
    if given is None:
        for one in saved:
            if any(isinstance(one[role], dict) for role in ROLES):
                what = f"{str(path)!r} was saved with a function or an array in question {one['name']!r}"
                raise BadRequestError(f"{what}. Pass the questions again as questions=...")
        return [Question(**one) for one in saved]
    names = [one["name"] for one in saved]
    if [getattr(one, "name", None) for one in given] != names:
        raise bad_request(f"The questions of {str(path)!r}", "have the saved names in the saved order", names)
    for question, one in zip(given, saved, strict=True):
        now = described_question(question)
        if differ := " and another ".join(role for role in ROLES if now[role] != one[role]):
            what = f"{str(path)!r} was saved with another {differ} of question {question.name!r}"
            raise BadRequestError(f"{what}. Pass the original questions as questions=...")
    return given


def question_of(task: Task) -> Question:
    """Return a task as a question whose observations are the numbers of states."""
    if task.ratios is not None:
        raise bad_request(f"The ratios of {task}", "be the ratios of its policies", Unquoted("others"))
    outcome, n, actions = task.outcomes, len(task.start), task.n_actions

    def place(state: Any, action: Any, after: Any) -> Any:
        return (np.asarray(state, np.int64) * actions + action) * n + after

    places = place(outcome.state, outcome.action, outcome.next_state)
    order = np.argsort(places, kind="stable")
    found, signal = places[order], task.rewards[order]
    return Question(
        str(task),
        cumulant=lambda state, action, after: signal[np.searchsorted(found, place(state, action, after))],
        discount=lambda batch: task.discount[batch.next_observations],
        target=lambda state, action: task.target[state, action],
        interest=None if task.interest is None else lambda batch: np.asarray(task.interest)[batch.observations] > 0,
    )


def questions_of(tasks: Sequence[Task]) -> list[Question]:
    """Return several tasks as questions about one stream; they must have the same dynamics and features."""
    for task in tasks:
        if task.digest != tasks[0].digest or (task.feature_rows != tasks[0].feature_rows).nnz:
            got = Unquoted(f"{tasks[0]} and {task}")
            raise bad_request("Tasks of one stream", "have the same dynamics and features", got)
    return [question_of(task) for task in tasks]


def transitions_of(task: Task, steps: int, seed: int = 0, run: int = 0) -> dict[str, Any]:
    """Return the first steps of a trajectory as the arguments of `Questions.update_many`."""
    outcomes = OutcomeSampler(task, seed, run).take(steps)
    outcome = task.outcomes
    state, action, after = outcome.state[outcomes], outcome.action[outcomes], outcome.next_state[outcomes]
    return {
        "x": task.feature_rows[state],
        "actions": action,
        "x_next": task.feature_rows[after],
        "behaviour_probability": task.behaviour[state, action],
        "observations": state,
        "next_observations": after,
    }
