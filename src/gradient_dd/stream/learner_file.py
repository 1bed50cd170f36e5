"""What all learners share: `save`, `copy`, a card in a notebook; and what the header of a saved learner says."""

from collections.abc import Mapping
from copy import deepcopy
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.cards import card
from gradient_dd.engine.schedules import Constant, Schedule, Taper, constant, tapered
from gradient_dd.errors import BadRequestError, bad_request, show, whole_number
from gradient_dd.files import DamagedFileError, FileKind, write_file
from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.stream.features import Features, Own, from_data


class Saved:
    """A learner that can be saved to one file, copied, and shown in a notebook."""

    file: ClassVar[FileKind]

    def _contents(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and the arrays of its file."""
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        """Return what its card says."""
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> None:
        """Write the complete state to one file (.npz, no pickle); an existing file is replaced in one step."""
        write_file(path, self.file, *self._contents())

    def copy(self) -> Self:
        """Return an independent copy, which continues with the same bits."""
        return deepcopy(self)

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._facts())


def put_back(own: Mapping[str, Array], saved: Mapping[str, Array]) -> None:
    """Copy the arrays of a file to those of a learner; raise unless names, shapes and types agree and all is finite."""
    forms = [{name: (one.shape, one.dtype) for name, one in arrays.items()} for arrays in (own, saved)]
    if forms[0] != forms[1]:
        raise DamagedFileError("other arrays")
    for name, array in saved.items():
        if not np.isfinite(array).all():
            raise DamagedFileError("numbers that are not finite")
        own[name][...] = array


def saved_size(header: Mapping[str, Any], weights: Array) -> int:
    """Return the number of features of a file; raise, before as much is allocated, unless `weights` are as many."""
    p = whole_number("'n_features'", header["n_features"])
    if len(weights) != p:
        raise DamagedFileError("another number of features")
    return p


def described_setting(setting: Setting) -> dict[str, Any]:
    """Return the description of a setting for a header: the name and parts of its rule, and the values."""
    parts = {part: fingerprint(value) for part, value in setting.rule.definition.items()}
    values = dict(setting.values)
    return {"learner": setting.rule.name, "definition": parts, "values": values, "rho_mode": setting.rho_mode}


def saved_setting(path: Any, header: Mapping[str, Any], given: Rule | None) -> Setting:
    """Return the setting that a header describes, of the rule given or else the registered one of its name.

    Raise, with the parts that differ, unless that rule is the one that was saved.
    """
    name, saved = header["learner"], header["definition"]
    if given is None and name not in LEARNERS:
        raise BadRequestError(
            f"{str(path)!r} was saved with a rule of your own, {show(name)}: give it again, learner=..."
        )
    if given is not None and given.name != name:
        raise bad_request(f"The learner of {str(path)!r}", f"be {name!r}, which it was saved with", given.name)
    setting = (given or LEARNERS[name]).setting(header["rho_mode"], **header["values"])
    now = described_setting(setting)["definition"]
    if differ := [part for part in {**saved, **now} if saved.get(part) != now.get(part)]:
        raise BadRequestError(
            f"{str(path)!r} was saved with another rule {name!r}: its {' and its '.join(differ)} "
            f"{'differs' if len(differ) == 1 else 'differ'}. Give the rule that it was saved with, learner=..."
        )
    return setting


def described_schedule(schedule: Schedule) -> dict[str, Any] | None:
    """Return the description of a schedule for a header; None for a user's own function."""
    if not isinstance(schedule.function, Constant | Taper):
        return None
    return {"n0": getattr(schedule.function, "n0", None), "per": schedule.per}


def saved_schedule(path: Any, saved: dict[str, Any] | None, given: Schedule | str | None) -> Schedule | str:
    """Return the schedule given, or the one that a header describes."""
    if given is not None:
        return given
    if saved is None:
        raise BadRequestError(f"{str(path)!r} was saved with a schedule of your own: give it again, schedule=...")
    return constant if saved["n0"] is None else tapered(saved["n0"], saved["per"])


def described_map(features: Features | None) -> dict[str, Any] | None:
    """Return the description of a feature map for a header; of a user's own function, only that there is one."""
    if features is None:
        return None
    return {"kind": Own.kind} if isinstance(features, Own) else features.as_data()


def saved_map(path: Any, saved: dict[str, Any] | None, given: Features | None) -> Features | None:
    """Return the feature map given, or the one that a header describes."""
    if given is None and saved is not None and saved["kind"] == Own.kind:
        raise BadRequestError(f"{str(path)!r} was saved with features of your own: give them again, features=...")
    return given if given is not None or saved is None else from_data(saved)
