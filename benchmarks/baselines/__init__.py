"""The baselines of the engine: the C program `baseline.c`, compiled on the spot, and a plain NumPy loop."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gradient_dd.engine.horizon import Segments
from gradient_dd.engine.kernels.state import MOST_LANES
from gradient_dd.engine.lanes import Block
from gradient_dd.engine.single import aligned
from gradient_dd.tasks import Task

LEARNERS_IN_C = ("td", "gtd2", "tdc", "tdrc", "gradient_dd")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-std=gnu11", "-shared", "-fPIC", "-w")

INPUT = (
    "column segments:i end factor point last step episode rows x x_next u narrow reward rho rho_x discount "
    "terms:i term_rows term_values targets rest:d n_rows:i"
)
LANES = "w eta alpha0 zeta alpha beta own change scale shrink inverse_shrink inverse now total last_sum curve diverged"


def structure(fields: str) -> type[ctypes.Structure]:
    """Return a C structure from "name" (a pointer), "name:i" (an integer) and "name:d" (a double)."""
    kinds = {"i": ctypes.c_int64, "d": ctypes.c_double, "": ctypes.c_void_p}
    names = [field.partition(":") for field in fields.split()]
    return type("Record", (ctypes.Structure,), {"_fields_": [(name, kinds[kind]) for name, _, kind in names]})


@cache
def library(lanes: int, one_hot: bool, width: int = 0, fused_multiply_add: bool = True) -> ctypes.CDLL | None:
    """Return the baseline compiled for blocks of a number of lanes, or None without a suitable C compiler.

    `width` is the number of rows of the table for each outcome; by default 2 for one-hot features, 3 for others.
    """
    switches = [f"-DB={lanes}", f"-DONE_HOT={int(one_hot)}", f"-DWIDTH={width or (2 if one_hot else 3)}"]
    switches += [] if fused_multiply_add else ["-ffp-contract=off"]
    return compiled(Path(__file__).with_name("baseline.c"), *switches)


def compiled(source: Path, *switches: str) -> ctypes.CDLL | None:
    """Return a C file as a library, or None without a suitable C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    with TemporaryDirectory(prefix="gradient-dd-") as folder:
        target = Path(folder) / "baseline.so"
        call = [compiler, *FLAGS, *switches, str(source), "-lm", "-o", str(target)]
        if subprocess.run(call, capture_output=True, check=False).returncode != 0:
            return None
        return ctypes.CDLL(str(target))


def c_call(code: ctypes.CDLL, block: Block, column: np.ndarray, segments: Segments) -> Callable[[], Any]:
    """Return a call that advances the arrays of a block by the C kernel of its rule, without a metric."""
    table, error, lanes, errors = block.table, block.error, block.lanes, block.errors
    B = len(errors.now)
    rows = dict(zip(("alpha0", "zeta"), lanes.start.reshape(2, B), strict=True))
    names = ("alpha", "beta", "change", "shrink", "inverse_shrink", "scale", "inverse", "own")
    rows |= {name: aligned((B,)) for name in names}
    rows["scale"][:] = rows["inverse"][:] = 1.0
    rows["own"][:] = lanes.fields.reshape(-1, MOST_LANES)[2, :B]
    given = (
        table._asdict()
        | segments._asdict()
        | {"column": column, "segments": len(segments.end), "terms": len(error.targets), "n_rows": lanes.w.size // B}
        | {"term_rows": error.rows, "term_values": error.values, "targets": error.targets, "rest": error.rest}
    )
    state = rows | errors._asdict() | {"w": lanes.w, "eta": lanes.eta, "last_sum": errors.last}
    records = filled(INPUT, given), filled(LANES, state)
    function = getattr(code, f"run_{block.settings[0].rule.name.removeprefix('natural_')}")
    function.argtypes = [ctypes.c_void_p] * 2

    def call() -> Any:
        kept = given, state  # alive as long as the call is
        return function(*map(ctypes.addressof, records)), kept

    return call


def filled(fields: str, values: dict[str, Any]) -> ctypes.Structure:
    """Return a structure with numbers, and pointers to arrays."""
    record = structure(fields)()
    for name, _ in record._fields_:  # type: ignore[misc]
        value = values[name]
        setattr(record, name, value.ctypes.data if isinstance(value, np.ndarray) else value)
    return record


def plain_call(task: Task, name: str, column: np.ndarray, alpha: float) -> Callable[[], np.ndarray]:
    """Return a call that runs one setting over a column of outcomes, one step at a time; zeta, kappa and reg are 1."""
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = (array[column] for array in task.transitions)

    def call() -> np.ndarray:
        w, eta = task.initial_weights.copy(), np.zeros(task.n_features)
        w_prev = w.copy()
        for t in range(len(column)):
            x, x_next = X[row[t]], X[next_row[t]]
            g, p = discount[t], rho[t]
            delta = reward[t] + g * np.dot(x_next, w) - np.dot(x, w)
            if name == "td":
                w += alpha * p * delta * x
                continue
            x_eta = np.dot(x, eta)
            if name == "gtd2":
                w += alpha * p * x_eta * (x - g * x_next)
            elif name == "gradient_dd":
                change = np.dot(x, w - w_prev)
                w_prev = w.copy()
                w += alpha * (p * x_eta * (x - g * x_next) - change * x)
            else:
                w += alpha * p * (delta * x - g * x_eta * x_next)
            eta += alpha * (p * delta - x_eta) * x - (alpha * eta if name == "tdrc" else 0.0)
        return w

    return call
