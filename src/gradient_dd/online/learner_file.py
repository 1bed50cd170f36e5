"""The file of a saved learner: an .npz of plain arrays with a JSON header, versioned, no pickle."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.schedules import Constant, Schedule, Taper, constant, tapered
from gradient_dd.errors import BadRequestError, GradientDDError, Words, must
from gradient_dd.learners import LEARNERS, Rule, Setting

FORMAT = "gradient-dd learner"
VERSION = 1


@dataclass(frozen=True)
class SavedLearner:
    """What a file says."""

    rule: Rule
    values: dict[str, float]
    rho_mode: str
    n_features: int
    schedule: Schedule
    counts: dict[str, Any]
    state: dict[str, Array]


def write_learner(
    path: Any,
    setting: Setting,
    n_features: int,
    schedule: Schedule,
    counts: dict[str, Any],
    state: dict[str, Array],
) -> None:
    """Write the file beside its place, then move it there in one step."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "learner": setting.rule.name,
        "values": dict(setting.values),
        "rho_mode": setting.rho_mode,
        "n_features": n_features,
        "schedule": describe(schedule),
        "counts": counts,
    }
    target = Path(path)
    part = target.with_name(target.name + ".part")
    try:
        with part.open("wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **state)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise must(f"{str(path)!r}", "be a file that can be written", Words(error.strerror or "an error")) from None


def read_learner(path: Any, rule: Rule | None, schedule: Schedule | None) -> SavedLearner:
    """Read the file, or say in one sentence why it cannot be read."""
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            if header["format"] == FORMAT and header["version"] > VERSION:
                raise must(
                    f"{str(path)!r}",
                    f"be of version {VERSION} or older",
                    header["version"],
                    "A newer gradient-dd wrote it: please update.",
                )
            p = header["n_features"]
            shapes = {"w": (p,), "initial_w": (p,), "eta": (p,), "change": (p,), "metric": (p, p)}
            state = {name: file[name] for name in file.files if name != "header"}
            whole = {"w", "initial_w", "eta", "change"} <= set(state)
            if header["format"] != FORMAT or not whole or any(state[n].shape != shapes[n] for n in state):
                raise ValueError
            saved = SavedLearner(
                rule=saved_rule(path, header["learner"], rule),
                values=header["values"],
                rho_mode=header["rho_mode"],
                n_features=p,
                schedule=saved_schedule(path, header["schedule"], schedule),
                counts={name: header["counts"][name] for name in ("updates", "episodes", "scale")},
                state=state,
            )
    except GradientDDError:
        raise
    except OSError as error:
        raise must(f"{str(path)!r}", "be a file that can be read", Words(error.strerror or "a damaged one")) from None
    except (AttributeError, KeyError, TypeError, ValueError, BadZipFile, EOFError):
        got = Words("another file, or a damaged one")
        raise must(f"{str(path)!r}", "be a learner saved by gradient-dd", got) from None
    return saved


def describe(schedule: Schedule) -> dict[str, Any] | None:
    """Return what a header says of a schedule; None for a function of the user's own."""
    if not isinstance(schedule.function, Constant | Taper):
        return None
    return {"n0": getattr(schedule.function, "n0", None), "per": schedule.per}


def saved_schedule(path: Any, saved: dict[str, Any] | None, given: Schedule | None) -> Schedule:
    """Return the schedule given, or the one a header describes."""
    if given is not None:
        return given
    if saved is None:
        raise BadRequestError(f"{str(path)!r} was saved with a schedule of your own: give it again, schedule=...")
    return constant if saved["n0"] is None else tapered(saved["n0"], saved["per"])


def saved_rule(path: Any, name: str, given: Rule | None) -> Rule:
    """Return the rule given, if it is the one that was saved, or the registered one of that name."""
    if given is None and name not in LEARNERS:
        raise BadRequestError(f"{str(path)!r} was saved with a rule of your own, {name!r}: give it again, learner=...")
    if given is not None and given.name != name:
        raise must(f"The learner of {str(path)!r}", f"be {name!r}, which it was saved with", given.name)
    return given or LEARNERS[name]
