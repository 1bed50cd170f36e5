"""The rule that every input is held to, and the limits of time and memory."""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import numpy as np

from gradient_dd.errors import GradientDDError, show
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import TASKS

SECONDS = 20.0  # of the processor that one input may take
WAITING = 6  # times as long by the clock, on a machine that does other work too
MEMORY = "2e8"  # bytes that one table or matrix may take, GRADIENT_DD_MEMORY
PACKAGE = "gradient_dd"
TIMERS = {signal.ITIMER_REAL: signal.SIGALRM, signal.ITIMER_PROF: signal.SIGPROF}


def nothing() -> Any:
    """Return a state that never changes."""


def accept(result: Any) -> str:
    """Return no complaint."""
    return ""


@dataclass(frozen=True)
class Case:
    """One input: in words, what to call, what a refusal must leave as it was, and what is wrong with a result."""

    words: str
    call: Callable[[], Any]
    state: Callable[[], Any] = nothing
    complaint: Callable[[Any], str] = accept


Attack = Callable[[Random, Path], Case]


def not_finite(*arrays: Any) -> str:
    """Return a complaint if a result is not finite."""
    return "" if all(np.isfinite(one).all() for one in arrays) else "returned numbers that are not finite"


@dataclass(frozen=True)
class Finding:
    """An input that broke the rule; `kind` says how, and equal kinds are one defect. `detail` is what was said."""

    attack: str
    number: int
    kind: str
    words: str
    detail: str = ""


class HangError(BaseException):
    """The time limit of an input has passed; not an Exception, so that nothing swallows it."""


def on_alarm(number: int, frame: FrameType | None) -> None:
    """Stop the input."""
    raise HangError


def generator(seed: int, attack: str, number: int) -> Random:
    """Return the generator of one input: the same input for the same seed, attack and number."""
    return Random(f"{seed}/{attack}/{number}")


def world() -> Any:
    """Return what no input may change, refused or not."""
    return (
        *(tuple(LEARNERS), tuple(TASKS), tuple(np.geterr().items()), Path.cwd(), sys.getswitchinterval()),
        *(np.random.get_state()[1].tobytes(), sorted(os.environ.items())),  # noqa: NPY002  (the global one is watched)
    )


def judge(attack: str, number: int, case: Case) -> tuple[str, Finding | None]:
    """Run an input; return "refused", "done" or "broken", and what it broke."""
    before, outside = case.state(), world()
    outcome, kind, detail = run(case)
    if not kind and world() != outside:
        kind = "changed the world: a registry, NumPy's settings, the folder, the environment"
    if not kind and outcome == "refused" and case.state() != before:
        kind = "was refused, but changed something"
    return ("broken", Finding(attack, number, kind, case.words, detail)) if kind else (outcome, None)


def run(case: Case) -> tuple[str, str, str]:
    """Return how the call of an input ended, how it broke the rule if it did, and what was said."""
    left: list[str] = []  # what was raised where nobody could catch it
    output = StringIO()
    sys.unraisablehook = lambda one: left.append(repr(one.exc_value))
    for timer, alarm in TIMERS.items():
        signal.signal(alarm, on_alarm)
        signal.setitimer(timer, SECONDS * (WAITING if timer == signal.ITIMER_REAL else 1))
    outcome, kind, detail = "done", "", ""
    try:
        with warnings.catch_warnings(), redirect_stdout(output), redirect_stderr(output):
            warnings.simplefilter("ignore")
            kind = case.complaint(case.call())
    except HangError:
        kind = f"took more than {SECONDS:g} s"
    except GradientDDError as error:
        outcome, detail = "refused", str(error)
        kind = "" if detail and detail.isprintable() else "said more or less than one line"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        kind, detail = escape(error), f"{error}"
    finally:
        for timer in TIMERS:
            signal.setitimer(timer, 0)
        sys.unraisablehook = sys.__unraisablehook__
    if left or "Traceback" in output.getvalue():
        kind, detail = "printed a traceback", " ".join(left)
    return outcome, kind, repr(detail[:200])


def escape(error: BaseException) -> str:
    """Return a foreign error and the line of the package it came through."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if f"/{PACKAGE}/" in frame.filename]
    place = f"{lines[-1].filename.rpartition(f'/{PACKAGE}/')[2]}:{lines[-1].lineno}" if lines else "outside"
    return f"{type(error).__name__} at {place}"


def described(words: dict[str, Any]) -> str:
    """Return keywords as text."""
    return ", ".join(f"{name}={show(value)}" for name, value in words.items())
