"""The methods that all learners share (`save`, `copy` and a card in notebooks) and the headers of their files."""

from collections.abc import Mapping
from copy import deepcopy
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.cards import card
from gradient_dd.errors import BadRequestError, bad_request, show, whole_number
from gradient_dd.files import DamagedFileError, FileKind, write_file
from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.stream.features import Features, Own, from_data


class Saved:
    """A learner that can be saved to one file, copied, and shown in a notebook."""

    file: ClassVar[FileKind]

    def _contents(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and the arrays of the file."""
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        """Return the facts that the card shows."""
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> None:
        """Write the complete state to one file (.npz, no pickle); an existing file is replaced in one step."""
        write_file(path, self.file, *self._contents())

    def copy(self) -> Self:
        """Return an independent copy, which makes bitwise the same updates."""
        return deepcopy(self)

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._facts())


def put_back(own: Mapping[str, Array], saved: Mapping[str, Array]) -> None:
    """Copy the arrays of a file to a learner; raise unless names, shapes and types agree and all numbers are finite."""
    forms = [{name: (one.shape, one.dtype) for name, one in arrays.items()} for arrays in (own, saved)]
    if forms[0] != forms[1]:
        raise DamagedFileError("other arrays")
    for name, array in saved.items():
        if not np.isfinite(array).all():
            raise DamagedFileError("numbers that are not finite")
        own[name][...] = array


def saved_size(header: Mapping[str, Any], weights: Array) -> int:
    """Return the number of features in a file; raise, before any allocation, if `weights` has another length."""
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
    """Return the setting that a header describes, for the given rule or else for the registered rule of that name.

    Raise an error that names the differing parts unless this rule is the saved rule.
    """
    name, saved = header["learner"], header["definition"]
    if given is None and name not in LEARNERS:
        what = f"{str(path)!r} was saved with a rule of your own, {show(name)}"
        raise BadRequestError(f"{what}. Pass it again as learner=...")
    if given is not None and given.name != name:
        raise bad_request(f"The learner of {str(path)!r}", f"be {name!r}, the saved rule", given.name)
    setting = (given or LEARNERS[name]).setting(header["rho_mode"], **header["values"])
    now = described_setting(setting)["definition"]
    if differ := [part for part in {**saved, **now} if saved.get(part) != now.get(part)]:
        parts = f"its {' and its '.join(differ)} {'differs' if len(differ) == 1 else 'differ'}"
        what = f"{str(path)!r} was saved with another rule {name!r}: {parts}"
        raise BadRequestError(f"{what}. Pass the original rule as learner=...")
    return setting


def described_map(features: Features | None) -> dict[str, Any] | None:
    """Return the description of a feature map for a header; for a user's function, only its kind."""
    if features is None:
        return None
    return {"kind": Own.kind} if isinstance(features, Own) else features.as_data()


def saved_map(path: Any, saved: dict[str, Any] | None, given: Features | None) -> Features | None:
    """Return the given feature map, or the map that a header describes."""
    if given is None and saved is not None and saved["kind"] == Own.kind:
        raise BadRequestError(f"{str(path)!r} was saved with features of your own. Pass them again as features=...")
    return given if given is not None or saved is None else from_data(saved)


def saved_arguments(
    path: Any, header: Mapping[str, Any], weights: Array, learner: Rule | None, features: Features | None
) -> dict[str, Any]:
    """Return the arguments of a saved learner; `learner` and `features` are the user's own, or None."""
    setting = saved_setting(path, header, learner)
    return {
        "learner": setting.rule,
        "n_features": saved_size(header, weights),
        "features": saved_map(path, header["features"], features),
        "rho_mode": setting.rho_mode,
        **setting.values,
    }
