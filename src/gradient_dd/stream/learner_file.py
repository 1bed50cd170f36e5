"""The file of a saved learner: an .npz of plain arrays with a JSON header, versioned, no pickle."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.schedules import Constant, Schedule, Taper, constant, tapered
from gradient_dd.errors import BadRequestError, GradientDDError, Words, file_path, must, number, show, whole_number
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.npz import DamagedError, read_arrays
from gradient_dd.stream.features import Features, Own, from_data
from gradient_dd.stream.trace_state import array_shapes

DAMAGE = OSError, AttributeError, KeyError, RecursionError, TypeError, ValueError  # what reading a damaged file raises
FORMAT = "gradient-dd learner"
VERSION = 2  # of a learner with traces; files of others have stayed at 1


class Counts(NamedTuple):
    """How far a learner is: updates and episodes so far, and the common scale of its η."""

    updates: int
    episodes: int
    scale: float


@dataclass(frozen=True)
class SavedLearner:
    """What a file holds."""

    setting: Setting
    n_features: int
    schedule: Schedule
    counts: Counts
    state: dict[str, Array]
    features: Features | None


def write_learner(
    path: Any,
    setting: Setting,
    n_features: int,
    schedule: Schedule,
    counts: Counts,
    state: dict[str, Array],
    features: Features | None,
) -> None:
    """Write the file of a learner."""
    header = {
        "format": FORMAT,
        "version": VERSION if setting.rule.traces else 1,
        "learner": setting.rule.name,
        "values": dict(setting.values),
        "rho_mode": setting.rho_mode,
        "n_features": n_features,
        "schedule": describe(schedule),
        "counts": counts._asdict(),
        "features": described_map(features),
    }
    write_arrays(path, header, state)


def write_arrays(path: Any, header: dict[str, Any], state: dict[str, Array]) -> None:
    """Write a header and arrays beside their place, then move them there in one step."""
    target = file_path("The file of a learner", path)
    part = target.with_name(target.name + ".part")
    try:
        with part.open("wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **state)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise must(f"{str(path)!r}", "be a file that can be written", Words(error.strerror or "an error")) from None


def read_learner(path: Any, rule: Rule | None, schedule: Schedule | None, features: Features | None) -> SavedLearner:
    """Return what a file holds, all of it checked, or say in one sentence why it cannot be read."""
    place = file_path("The file of a learner", path)
    try:
        state = read_arrays(place)
        header = json.loads(str(state.pop("header")))
        if header["format"] != FORMAT:
            raise DamagedError("another format")
        if header["version"] > VERSION:
            raise must(
                f"{str(path)!r}",
                f"be of version {VERSION} or older",
                header["version"],
                "A newer gradient-dd wrote it: please update.",
            )
        setting = saved_rule(path, header["learner"], rule).setting(header["rho_mode"], **header["values"])
        return SavedLearner(
            setting=setting,
            n_features=whole_number("'n_features'", header["n_features"]),
            schedule=saved_schedule(path, header["schedule"], schedule),
            counts=checked_counts(header["counts"]),
            state=checked_state(state, header["n_features"], setting.rule),
            features=saved_map(path, header.get("features"), features),
        )
    except GradientDDError:
        raise
    except DAMAGE as error:
        raise unreadable(path, "a learner saved by gradient-dd", error) from None


def unreadable(path: Any, wanted: str, error: Exception) -> BadRequestError:
    """Return the error for a file that cannot be read, or that is not what was wanted."""
    if isinstance(error, OSError):
        return must(f"{str(path)!r}", "be a file that can be read", Words(error.strerror or "a damaged one"))
    return must(f"{str(path)!r}", f"be {wanted}", Words("another file, or a damaged one"))


def checked_counts(counts: dict[str, Any]) -> Counts:
    """Return the counts of a header, or raise."""
    return Counts(
        updates=whole_number("'updates'", counts["updates"], at_least=0),
        episodes=whole_number("'episodes'", counts["episodes"], at_least=0),
        scale=number("'scale'", "be a number that is not zero", counts["scale"] or nan),
    )


def checked_state(state: dict[str, Any], p: int, rule: Rule) -> dict[str, Array]:
    """Return the arrays of a learner if they are the ones it needs, of the right shapes, all finite floats."""
    shapes: dict[str, tuple[int, ...]] = {"w": (p,), "initial_w": (p,), "eta": (p,), "change": (p,)}
    shapes |= array_shapes(rule, p) | ({"metric": (p, p)} if rule.natural else {})
    if {name: array.shape for name, array in state.items()} != shapes:
        raise DamagedError("other arrays")
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in state.values()):
        raise DamagedError("arrays that are not finite numbers")
    return state


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


def checked_map(features: Any, p: int) -> Features | None:
    """Return a feature map that gives p features, or None, or raise; one of the user's own may not know p yet."""
    if features is not None and not isinstance(features, Features):
        raise must("'features'", "be a feature map, e.g. TileCoder(...) or Own(function)", features)
    if features is not None and features.n_features not in (0, p):
        raise must("'n_features'", f"be {features.n_features}, as 'features' has", p)
    return features


def described_map(features: Features | None) -> dict[str, Any] | None:
    """Return what a header says of a feature map; of a function of the user's own, only that there is one."""
    if features is None:
        return None
    return {"kind": Own.kind} if isinstance(features, Own) else features.as_data()


def saved_map(path: Any, saved: dict[str, Any] | None, given: Features | None) -> Features | None:
    """Return the feature map given, or the one a header describes."""
    if given is None and saved is not None and saved["kind"] == Own.kind:
        raise BadRequestError(f"{str(path)!r} was saved with features of your own: give them again, features=...")
    return given if given is not None or saved is None else from_data(saved)


def saved_rule(path: Any, name: str, given: Rule | None) -> Rule:
    """Return the rule given, if it is the one that was saved, or the registered one of that name."""
    if given is None and name not in LEARNERS:
        raise BadRequestError(
            f"{str(path)!r} was saved with a rule of your own, {show(name)}: give it again, learner=..."
        )
    if given is not None and given.name != name:
        raise must(f"The learner of {str(path)!r}", f"be {name!r}, which it was saved with", given.name)
    return given or LEARNERS[name]
