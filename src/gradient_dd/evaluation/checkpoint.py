"""The file from which a stopped evaluation goes on.

It holds the evaluator as Python pickles it. Only classes of this package and of NumPy are made when it is read, so that
a file of somebody else cannot run code; it is still meant for the machine and the version that wrote it.
"""

import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradient_dd.errors import Words, file_path, must

FORMAT = "gradient-dd evaluation 2"
ALLOWED = ("gradient_dd.", "numpy.", "numpy")
PLAIN = {"builtins": {"set", "frozenset", "slice", "complex", "bytearray"}, "collections": {"OrderedDict", "deque"}}


class PlainUnpickler(pickle.Unpickler):
    """Makes objects of this package and of NumPy, and no others."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or a function that may be used."""
        if module.startswith(ALLOWED) or name in PLAIN.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


def write_checkpoint(path: Path, request: dict[str, Any], state: Any) -> None:
    """Write the file beside its place, then move it there in one step."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            pickle.dump({"format": FORMAT, "request": request, "state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise must(f"{str(path)!r}", "be a file that can be written", Words(error.strerror or "an error")) from None


def read_checkpoint(given: Any, request: dict[str, Any]) -> Any | None:
    """Return the state that a file holds for this request; None where there is no file."""
    path = file_path("'checkpoint'", given)
    if not path.exists():
        return None
    try:
        with path.open("rb") as file:
            held = PlainUnpickler(file).load()
        saved = held["request"] if held["format"] == FORMAT else None
    except OSError as error:
        raise must(f"{str(path)!r}", "be a file that can be read", Words(error.strerror or "an error")) from None
    except Exception:  # a damaged pickle may raise anything
        saved = None
    if saved is None:
        got = Words("another file, or a damaged one")
        raise must(f"{str(path)!r}", "be a checkpoint of an evaluation", got, "Remove it to begin anew.")
    for name, value in request.items():
        if saved.get(name) != value:
            hint = "Remove the file to begin anew."
            raise must(f"{name!r}", f"be {saved.get(name)!r}, as in the checkpoint {str(path)!r}", value, hint)
    return held["state"]
