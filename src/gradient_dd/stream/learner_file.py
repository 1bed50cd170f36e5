"""What the file of a saved learner holds, how it is checked, and what the caller must give again."""

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.schedules import Constant, Schedule, Taper, constant, tapered
from gradient_dd.errors import BadRequestError, bad_request, number, show, whole_number
from gradient_dd.files import DamagedFileError, FileKind, open_saved, write_file
from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.stream.features import Features, Own, from_data
from gradient_dd.stream.trace_state import no_traces

LEARNER_FILE = FileKind("learner", "a learner saved by gradient-dd", 4)
COUNTS = ("updates", "episodes", "scale")


@dataclass(frozen=True)
class SavedLearner:
    """Everything that a learner needs to go on as if it had never been saved.

    counts  updates and episodes so far, and the common scale of η;  arrays  weights, traces and metric
    """

    setting: Setting
    n_features: int
    schedule: Schedule
    features: Features | None
    counts: tuple[int, int, float]
    arrays: dict[str, Array]

    def write(self, path: Any) -> None:
        """Write the file of the learner."""
        header = {
            "learner": self.setting.rule.name,
            "definition": described_rule(self.setting.rule),
            "values": dict(self.setting.values),
            "rho_mode": self.setting.rho_mode,
            "n_features": self.n_features,
            "schedule": described_schedule(self.schedule),
            "counts": dict(zip(COUNTS, self.counts, strict=True)),
            "features": described_map(self.features),
        }
        write_file(path, LEARNER_FILE, header, self.arrays)


def read_learner(path: Any, rule: Rule | None, schedule: Schedule | None, features: Features | None) -> SavedLearner:
    """Return what a file holds, all of it checked. The caller gives again what is not in it: functions of his own."""
    with open_saved(path, LEARNER_FILE) as (header, arrays):
        setting = saved_rule(path, header["learner"], rule).setting(header["rho_mode"], **header["values"])
        check_same_rule(path, header["definition"], setting.rule)
        updates, episodes, scale = (header["counts"][name] for name in COUNTS)
        return SavedLearner(
            setting=setting,
            n_features=whole_number("'n_features'", header["n_features"]),
            schedule=saved_schedule(path, header["schedule"], schedule),
            features=saved_map(path, header["features"], features),
            counts=(
                whole_number("'updates'", updates, at_least=0),
                whole_number("'episodes'", episodes, at_least=0),
                number("'scale'", "be a number that is not zero", scale or nan),
            ),
            arrays=checked_arrays(arrays, header["n_features"], setting.rule),
        )


def checked_arrays(arrays: dict[str, Any], p: int, rule: Rule) -> dict[str, Array]:
    """Return the arrays of a learner if they have the names and shapes that its rule needs, all finite floats."""
    if arrays["w"].shape != (p,):  # before as many features are looked at
        raise DamagedFileError("another number of features")
    traces = {name: array.shape for name, array in no_traces(rule).arrays(p).items()}
    shapes = (
        dict.fromkeys(("w", "initial_w", "eta", "change"), (p,)) | traces | ({"metric": (p, p)} if rule.natural else {})
    )
    if {name: array.shape for name, array in arrays.items()} != shapes:
        raise DamagedFileError("other arrays")
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
        raise DamagedFileError("arrays that are not finite numbers")
    return arrays


def described_schedule(schedule: Schedule) -> dict[str, Any] | None:
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
        raise bad_request(f"The learner of {str(path)!r}", f"be {name!r}, which it was saved with", given.name)
    return given or LEARNERS[name]


def described_rule(rule: Rule) -> dict[str, str]:
    """Return the fingerprint of each part of a rule, for a header."""
    return {part: fingerprint(value) for part, value in rule.definition.items()}


def check_same_rule(path: Any, saved: dict[str, str], rule: Rule) -> None:
    """Raise, with the parts that differ, unless a rule is the one that a file was saved with."""
    now = described_rule(rule)
    if differ := [part for part in {**saved, **now} if saved.get(part) != now.get(part)]:
        raise BadRequestError(
            f"{str(path)!r} was saved with another rule {rule.name!r}: its {' and its '.join(differ)} "
            f"{'differs' if len(differ) == 1 else 'differ'}. Give the rule that it was saved with, learner=..."
        )
