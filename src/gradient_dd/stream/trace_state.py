"""The traces of a `Learner`: sparse if its features are sparse."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.reference import START, Before, Memory, trace_numbers
from gradient_dd.engine.single import DENSE, HALF, SingleMemory
from gradient_dd.learners import Rule
from gradient_dd.stream.transitions import FeatureVector, dense_vector

SMALLEST = 2.0**-53  # of the largest entry: a sparse trace drops smaller entries, which are below rounding


class TraceState(NamedTuple):
    """Traces, their numbers, and the previous transition. A step makes a new state, so an error keeps the old state."""

    vectors: dict[str, FeatureVector]
    memory: dict[str, Memory]
    before: Before = START

    def advanced(self, rule: Rule, signals: Mapping[str, float], x: FeatureVector, now: Before, p: int) -> "TraceState":
        """Return the traces after one more x of p features; `now` is the transition that x begins."""
        vectors, memory = {}, {}
        for trace in rule.traces:
            old = self.vectors[trace.name]
            x_trace = product(x, old) if "x_trace" in trace.arguments else 0.0
            decay, gain, numbers = trace_numbers(trace, signals, self.before, self.memory[trace.name], x_trace)
            vectors[trace.name], memory[trace.name] = combined(decay, old, gain, x, p), numbers
        return TraceState(vectors, memory, now if now.discount else START)

    def arrays(self, p: int) -> dict[str, Array]:
        """Return the traces as plain arrays for a file; a learner without traces has none."""
        state = {"before": np.array(self.before)} if self.vectors else {}
        for name, vector in self.vectors.items():
            state[f"trace_{name}"] = dense_vector(vector, p).values
            state[f"memory_{name}"] = np.array(self.memory[name])
        return state


def traces_of(memory: SingleMemory) -> TraceState:
    """Return the current traces."""
    half, dense, arrays = memory.counts[HALF], memory.counts[DENSE], memory.traces
    vectors, numbers = {}, {}
    for k, trace in enumerate(memory.rule.traces):
        count = arrays.lengths[half, k]
        listed = FeatureVector(arrays.places[half, k, :count], arrays.values[half, k, :count])
        vectors[trace.name] = dense_vector(listed, len(memory.parts)) if dense else listed
        numbers[trace.name] = tuple(arrays.numbers[half, k, : len(trace.memory)].tolist())
    return TraceState(vectors, numbers, Before(*arrays.before.tolist()))


def put_traces(memory: SingleMemory, traces: TraceState) -> None:
    """Store these traces as the current ones."""
    half, arrays = 1 - memory.counts[HALF], memory.traces
    for k, (name, (where, values)) in enumerate(traces.vectors.items()):
        dense = isinstance(where, slice)
        memory.counts[DENSE] |= dense
        places = np.flatnonzero(values) if dense else where
        arrays.lengths[half, k] = count = len(places)
        arrays.places[half, k, :count], arrays.values[half, k, :count] = places, values[places] if dense else values
        arrays.numbers[half, k, : len(traces.memory[name])] = traces.memory[name]
    arrays.before[:] = traces.before
    memory.counts[HALF] = half


def saved_traces(rule: Rule, state: Mapping[str, Array]) -> TraceState:
    """Return the traces from the arrays of a file."""
    vectors, memory = {}, {}
    for trace in rule.traces:
        values = state[f"trace_{trace.name}"]
        where = np.flatnonzero(values)
        vectors[trace.name] = FeatureVector(where, values[where])
        memory[trace.name] = tuple(map(float, state[f"memory_{trace.name}"]))
    return TraceState(vectors, memory, Before(*map(float, state["before"])))


def combined(decay: float, z: FeatureVector, gain: float, x: FeatureVector, p: int) -> FeatureVector:
    """Return decay z + gain x of p features; a sparse sum drops entries below SMALLEST times the largest."""
    if isinstance(x.where, slice) or isinstance(z.where, slice):
        sums = dense_vector(FeatureVector(z.where, decay * z.values), p)
        sums.values[x.where] += gain * x.values
        return sums
    where, which = np.unique(np.concatenate([z.where, x.where]), return_inverse=True)
    values = np.zeros(len(where))
    values[which[: len(z.values)]] = decay * z.values
    values[which[len(z.values) :]] += gain * x.values
    large = np.abs(values) > SMALLEST * np.abs(values).max(initial=0.0)
    large |= ~np.isfinite(values)  # divergence must not be hidden
    return FeatureVector(where[large], values[large])


def total(products: Array) -> float:
    """Return a sum from left to right, as in the compiled loops; NumPy sums in pairs."""
    return float(np.add.accumulate(products)[-1]) if products.size else 0.0


def product(x: FeatureVector, z: FeatureVector) -> float:
    """Return x·z, summed from left to right."""
    if isinstance(x.where, slice):
        return total(x.values[z.where] * z.values) if x.values.size else 0.0
    if isinstance(z.where, slice):
        return total(z.values[x.where] * x.values) if z.values.size else 0.0
    _, here, there = np.intersect1d(x.where, z.where, assume_unique=True, return_indices=True)
    return total(x.values[here] * z.values[there])
