"""The file of a saved learner: an .npz of plain arrays with a JSON header, versioned, no pickle."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gradient_dd.errors import BadRequestError, Words, must
from gradient_dd.exact import Array
from gradient_dd.learners import Rule, Setting, find
from gradient_dd.schedules import Constant, Schedule, Taper, constant, tapered

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
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **state)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_learner(path: Any, rule: Rule | None, schedule: Schedule | None) -> SavedLearner:
    """Read the file, or say in one sentence why it cannot be read."""
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            state = {name: file[name] for name in file.files if name != "header"}
        if header["format"] != FORMAT:
            raise KeyError
    except FileNotFoundError:
        raise must(f"{str(path)!r}", "exist", Words("no such file")) from None
    except (KeyError, ValueError, BadZipFile, EOFError, OSError):
        raise must(
            f"{str(path)!r}", "be a learner saved by gradient-dd", Words("another file, or a damaged one")
        ) from None
    if header["version"] > VERSION:
        rule_text = f"be of version {VERSION} or older"
        raise must(f"{str(path)!r}", rule_text, header["version"], "A newer gradient-dd wrote it: please update.")
    if schedule is None and header["schedule"] is None:
        raise BadRequestError(f"{str(path)!r} was saved with a schedule of your own: give it again, schedule=...")
    return SavedLearner(
        rule=find(header["learner"]) if rule is None else rule,
        values=header["values"],
        rho_mode=header["rho_mode"],
        n_features=header["n_features"],
        schedule=schedule or saved_schedule(header["schedule"]),
        counts=header["counts"],
        state=state,
    )


def describe(schedule: Schedule) -> dict[str, Any] | None:
    """Return what a header says of a schedule; None for a function of the user's own."""
    if not isinstance(schedule.function, Constant | Taper):
        return None
    return {"n0": getattr(schedule.function, "n0", None), "per": schedule.per}


def saved_schedule(saved: dict[str, Any]) -> Schedule:
    """Return the schedule a header describes."""
    return constant if saved["n0"] is None else tapered(saved["n0"], saved["per"])
