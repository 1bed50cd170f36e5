"""The file of a saved ShadowLearner: an .npz of plain arrays with a JSON header, versioned, no pickle."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine import ladder
from gradient_dd.engine.schedules import Schedule
from gradient_dd.errors import GradientDDError, file_path, must, number, whole_number
from gradient_dd.npz import DamagedError, read_arrays
from gradient_dd.stream.learner_file import DAMAGE, describe, saved_schedule, unreadable, write_arrays
from gradient_dd.stream.shadow_copies import ARRAYS, NUMBERS, ShadowCopies

if TYPE_CHECKING:
    from gradient_dd.stream.shadows import ShadowLearner

FORMAT = "gradient-dd shadow learner"
VERSION = 2  # 1 had no growth shadows and no shares


def write_shadow_learner(path: Any, agent: "ShadowLearner") -> None:
    """Write the file beside its place, then move it there in one step."""
    arrays, numbers = agent._copies.kept()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "n_features": agent.n_features,
        "alpha": agent.alpha,
        "schedule": describe(agent.schedule),
        "updates": agent.updates,
        "episodes": agent.episodes,
        "random": agent._random.bit_generator.state,
        "signs": agent._signs.state,
        "numbers": numbers,
    }
    write_arrays(path, header, arrays)


def read_shadow_learner(path: Any, schedule: Schedule | None) -> tuple[dict[str, Any], dict[str, Array], Schedule]:
    """Return the header, the arrays and the schedule of a file, all checked, or say in one sentence why not."""
    place = file_path("The file of a learner", path)
    try:
        arrays = read_arrays(place)
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != FORMAT:
            raise DamagedError("another format")
        if header["version"] != VERSION:
            rule, hint = f"be of version {VERSION}", "Another gradient-dd wrote it: please learn again."
            raise must(f"{str(path)!r}", rule, header["version"], hint)
        return (
            checked_header(header),
            checked_arrays(arrays, header),
            saved_schedule(path, header["schedule"], schedule),
        )
    except GradientDDError:
        raise
    except DAMAGE as error:
        raise unreadable(path, "a ShadowLearner saved by gradient-dd", error) from None


def checked_header(header: dict[str, Any]) -> dict[str, Any]:
    """Return a header whose numbers are such as a learner has, or raise."""
    for name, least in (("n_features", 1), ("updates", 0), ("episodes", 0)):
        whole_number(f"{name!r}", header[name], at_least=least)
    if header["alpha"] is not None:
        number("'alpha'", "be a positive number", header["alpha"], low=0.0, positive=True)
    numbers = header["numbers"]
    for name in set(NUMBERS) - {"norms"}:
        whole_number(f"{name!r}", numbers[name], at_least=0)
    number("'norms'", "be zero or more", numbers["norms"], low=0.0)
    rungs = ladder.WIDE.rungs if header["alpha"] is None else ladder.NARROW.rungs
    if set(numbers) != set(NUMBERS) or numbers["chosen"] >= len(rungs) or numbers["steps"] >= ladder.BLOCK:
        raise DamagedError("other numbers")
    for name, kind in (("random", np.random.PCG64), ("signs", np.random.PCG64DXSM)):
        kind().state = header[name]  # raises if it is no state
    return header


def checked_arrays(arrays: dict[str, Array], header: dict[str, Any]) -> dict[str, Array]:
    """Return the arrays of a learner if they are the ones it needs, of the right shapes; levels may be infinite."""
    kept = ladder.WIDE if header["alpha"] is None else ladder.NARROW
    p = header["n_features"]
    blank, _ = ShadowCopies(kept, np.zeros(p), np.zeros((p, ladder.STARTS))).kept()
    if {name: array.shape for name, array in arrays.items()} != {name: blank[name].shape for name in ARRAYS}:
        raise DamagedError("other arrays")
    if not all(array.dtype == np.float64 for array in arrays.values()):
        raise DamagedError("arrays that are not numbers")
    return arrays
