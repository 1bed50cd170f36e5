"""NetworkLearner: a network that learns by any rule, from transitions or from batches, and can be saved."""

from collections.abc import Callable
from copy import copy
from dataclasses import asdict
from os import PathLike
from typing import Any, Self

import numpy as np

from gradient_dd.arrays import Array, check_memory, dimensions, numbers
from gradient_dd.errors import BadRequestError, DivergedError, bad_request, boolean, extra, number, whole_number
from gradient_dd.files import FileKind, open_saved
from gradient_dd.fingerprint import fingerprint, made_of
from gradient_dd.learners import Rule, Setting, find
from gradient_dd.networks.network import Network, predictions, states
from gradient_dd.networks.step import (
    Kind,
    NetworkState,
    check_rule,
    find_optimiser,
    first_state,
    keep_programs,
    many_updates,
    one_update,
)
from gradient_dd.stream.learner_file import Saved, described_setting, put_back, saved_setting
from gradient_dd.stream.transitions import check_each, checked_columns, checked_probability_columns

with extra("neural"):
    import jax
    import jax.numpy as jnp

ARRAYS = 16  # maximum number of arrays of rows × widths in an update: 8.5 GB for 10⁶ rows of 4-64-64-1
FEW = 256  # rows up to which memory is not checked: the check would take as long as all checks of the numbers
CHUNK = 64  # updates in one compiled scan


class NetworkLearner(Saved):
    """A learner on a network that learns from transitions or batches.

    learner       a name in `LEARNERS`, or a Rule of your own
    network       the shape of the value function
    alpha         step size of w; omit it with an Optax transformation of your own, which includes the step size
    optimiser     "sgd", "adam", "adam_without_momentum" (β₁ = 0), or an Optax transformation
    second_alpha  step size of η; default zeta × alpha
    initial_w, initial_eta   flat initial weights; by default w is drawn from `seed`, and h is 0 everywhere
    rho_mode      "R" or "T": the place of the importance ratio in the GTD2 family
    period        the DD term pulls towards the values of a copy of w, which is replaced every `period` updates by w of
                  the previous update; 1 is Gradient-DD
    target_period bootstrap from a copy of w that is replaced every `target_period` updates; None: from w itself
    pull          pull w itself towards the copy of `target_period`, by alpha × pull (DQN Pro)
    correction    add the Hessian term ψ (Maei 2009), for the GTD2 and TDC families; requires second="tangent"
    parameters    parameters of the rule: zeta, kappa, reg, lam, ...

    >>> agent = NetworkLearner("gradient_dd", Network(inputs=1, hidden=()), alpha=0.5)
    >>> agent.update([1.0], reward=1.0, discount=0.0, next_observation=None)
    1.0
    >>> agent.eta
    array([0.5, 0.5])
    """

    file = FileKind("network learner", "a network learner saved by gradient-dd", 4)

    def __init__(
        self,
        learner: str | Rule,
        network: Network,
        *,
        alpha: float | None = None,
        optimiser: Any = "sgd",
        second_alpha: float | None = None,
        initial_w: Any = None,
        initial_eta: Any = None,
        seed: int = 0,
        rho_mode: str = "R",
        period: int = 1,
        target_period: int | None = None,
        pull: float = 0.0,
        correction: bool = False,
        **parameters: Any,
    ) -> None:
        if not isinstance(network, Network):
            raise bad_request("'network'", "be a Network", network)
        self.network, self.seed = network, whole_number("'seed'", seed, at_least=0)
        chosen = find_optimiser(optimiser)
        if chosen.own and alpha is not None:
            raise bad_request("'alpha'", "be omitted, because your optimiser includes the step size", alpha)
        if not chosen.own and alpha is None:
            raise bad_request("'alpha'", "be given", alpha)
        self.setting = find(learner).setting(rho_mode, alpha=1.0 if chosen.own else alpha, **parameters)
        check_rule(self.rule, network, boolean("'correction'", correction))
        has_target = target_period is not None
        self.kind = Kind(self.rule, network, self.setting.rho_mode, chosen, correction, has_target)
        self.arguments: dict[str, Any] = {  # from which `load` makes the same learner
            "alpha": None if chosen.own else self.setting.values["alpha"],
            "second_alpha": second_step(self.setting, chosen.own, second_alpha, parameters),
            "seed": self.seed,
            "period": whole_number("'period'", period),
            "target_period": whole_number("'target_period'", target_period) if has_target else None,
            "pull": number("'pull'", "be a number that is zero or more", pull, low=0.0),
            "correction": correction,
            **{name: self.setting.values[name] for name in parameters},
        }
        if self.arguments["period"] > 1 and "kappa" not in self.rule.defaults:
            raise bad_request(f"'period' for {self.rule.name}", "be 1, because the rule has no DD term", period)
        if pull and not has_target:
            raise bad_request("'target_period'", "be given with 'pull', which pulls w to that copy", target_period)
        first = {"initial_w": network.first_w(self.seed), "initial_eta": network.first_eta(self.seed)}
        for name, given in (("initial_w", initial_w), ("initial_eta", initial_eta)):
            if given is not None:
                weights = numbers(f"{name!r}", given, float(np.finfo(network.precision).max))
                if weights.shape != first[name].shape:
                    raise bad_request(f"The shape of {name!r}", f"be {first[name].shape}", weights.shape)
                first[name] = weights.copy()
        plain, second = chosen.transformation is None, self.arguments["second_alpha"]
        constants = update_numbers(self.setting, plain, second, self.arguments["pull"])
        with network.working():
            keep_programs()
            self.values = {name: network.array(value) for name, value in constants.items()}
            self.values |= {name: jnp.int32(self.arguments[name] or 1) for name in ("period", "target_period")}
            self._first = tuple(map(network.array, first.values()))
        self.forget()

    def forget(self) -> None:
        """Forget everything learnt."""
        with self.network.working():
            self.state: NetworkState = first_state(self.kind, *self._first)

    def __repr__(self) -> str:
        return f"<NetworkLearner {self.setting}, network {self.network.shape}, {self.updates} updates>"

    def _facts(self) -> dict[str, Any]:
        facts = {"setting": self.setting, "network": self.network.shape, "second": self.network.second}
        return {**facts, "optimiser": self.kind.optimiser.name, "updates": self.updates}

    @property
    def rule(self) -> Rule:
        """The rule of the learner."""
        return self.setting.rule

    @property
    def updates(self) -> int:
        """The number of updates."""
        return int(self.state.updates)

    @property
    def w(self) -> Array:
        """All weights of the value function as one vector: of each layer W (inputs × outputs, row by row), then b."""
        return np.asarray(self.state.w).astype(float)

    @property
    def eta(self) -> Array:
        """All secondary weights as one vector; zeros for a rule without η."""
        return np.asarray(self.state.eta).astype(float)

    def predict(self, observation: Any) -> Any:
        """Return V: a number for one observation (d,), (n,) for observations (n, d)."""
        values, single = self._values(observation)
        return float(values[0, 0]) if single else values[:, 0]

    def _values(self, observation: Any) -> tuple[Array, bool]:
        """Return the outputs (n, outputs) for observations, and whether one observation was given."""
        rows, single = states("observation", observation, self.network.inputs)
        with self.network.working():
            values = predictions(self.network)(self.state.w, self.network.array(rows))
        return np.asarray(values).astype(float), single

    def update(
        self,
        observation: Any,
        reward: Any,
        discount: Any,
        next_observation: Any,
        rho: Any = 1.0,
        pi: Any = None,
        mu: Any = None,
        *,
        terminated: Any = False,
        truncated: Any = False,
    ) -> Any:
        """Make one update from one transition (d,), or from a batch (B, d), and return the TD error or errors (B,).

        `discount` is 0 at the end of an episode; next_observation is then ignored and may be None. `terminated` sets
        the discount to 0. The update after a `truncated` transition begins with an empty trace.
        A batch moves w and η by the mean over its transitions. An invalid argument, or a step that would diverge
        (DivergedError), changes nothing. A rule with a trace learns from one transition at a time.
        """
        single = dimensions(observation) == 1
        rows = self._rows(observation, reward, discount, next_observation, rho, pi, mu, terminated, truncated)
        if self.rule.traces and not single:
            rule = "be a single observation, because its trace follows one stream"
            raise bad_request(f"'observation' for {self.rule.name}", rule, np.shape(observation))
        if len(rows) > FEW:
            size = len(rows) * sum(self.network.widths) * ARRAYS * rows.itemsize
            check_memory(f"An update of {len(rows)} rows", size, "Use smaller batches.")
        errors = self._learn(one_update, rows)
        return float(errors[0]) if single else errors

    def _learn(self, program: Callable[[Kind], Any], *given: Any) -> Array:
        """Make one update from checked arrays with a compiled program; return the TD errors."""
        with self.network.working():
            state, read = program(self.kind)(self.values, self.state, *given)
        answer = np.asarray(read, float)
        if not answer[-1]:
            raise self._diverged()
        self.state = state
        return answer[:-1]

    def update_many(
        self,
        observation: Any,
        reward: Any,
        discount: Any,
        next_observation: Any,
        rho: Any = 1.0,
        pi: Any = None,
        mu: Any = None,
        *,
        terminated: Any = False,
        truncated: Any = False,
    ) -> Array:
        """Make an update from each of n transitions (n, d), one after the other; return their TD errors (n,).

        The result equals `update` for each transition, up to rounding. If a step would diverge, the transitions
        before it have been learnt, and DivergedError names the update.
        """
        rows = self._rows(observation, reward, discount, next_observation, rho, pi, mu, terminated, truncated)
        return self._run(rows, np.arange(len(rows))[:, None])[:, 0]

    def replay(self, buffer: Any, updates: int, batch: int = 32) -> Array:
        """Make updates from batches drawn from a buffer with replacement; return the TD errors (updates, batch).

        `buffer` holds (observation, reward, discount, next_observation) of n transitions, and optionally rho. The
        batches depend on `seed` and on the number of earlier updates.
        """
        if not isinstance(buffer, list | tuple) or len(buffer) not in (4, 5):
            rule = "be (observation, reward, discount, next_observation), optionally with rho"
            raise bad_request("'buffer'", rule, buffer)
        if self.rule.traces:
            raise bad_request(f"The rule {self.rule.name!r} for a replay", "have no trace", self.rule.name)
        updates, batch = whole_number("'updates'", updates), whole_number("'batch'", batch)
        rows = self._rows(*buffer)
        drawn = np.random.default_rng([self.seed, self.updates]).integers(len(rows), size=(updates, batch))
        return self._run(rows, drawn)

    def _run(self, rows: Any, places: Any) -> Array:
        """Make one update for each row of indices in `places`; return the TD errors in the shape of `places`."""
        n, errors = len(rows), np.empty(places.shape)
        more = max(CHUNK, 1 << (n - 1).bit_length()) - n  # few shapes, so that few programs are compiled
        with self.network.working():
            data = self.network.array(np.pad(rows, [(0, more), (0, 0)]))
            for done in range(0, len(places), CHUNK):
                part = places[done : done + CHUNK]
                indices = np.zeros((CHUNK, places.shape[1]), np.int32)
                indices[: len(part)] = part
                call = self.values, self.state, data, indices, np.arange(CHUNK) < len(part)
                self.state, delta, sound = many_updates(self.kind)(*call)
                if not sound:
                    raise self._diverged()
                errors[done : done + CHUNK] = np.asarray(delta)[: len(part)]
        return errors

    def _rows(
        self,
        observation: Any,
        reward: Any,
        discount: Any,
        next_observation: Any,
        rho: Any = 1.0,
        pi: Any = None,
        mu: Any = None,
        terminated: Any = False,
        truncated: Any = False,
    ) -> Any:
        """Return checked transitions, one per row, as `sample_of` reads them; s_next is 0 where an episode ends."""
        if self.network.outputs != 1:
            raise bad_request("'outputs' of the network of a NetworkLearner", "be 1", self.network.outputs)
        here, _ = states("observation", observation, self.network.inputs)
        n = len(here)
        reward, discount, rho, cut = checked_columns(reward, discount, rho, terminated, truncated, n)
        given = checked_probability_columns(self.rule, rho, pi, mu)
        if next_observation is None:
            check_each("discount", discount != 0, discount, "be 0 where 'next_observation' is None")
            there = np.zeros_like(here)
        else:
            there, _ = states("next_observation", next_observation, self.network.inputs, used=discount != 0)
            if there.shape != here.shape:
                raise bad_request("'next_observation'", f"have the shape of 'observation', {here.shape}", there.shape)
        pi, mu = (0.0 if column is None else column for column in given)
        d, rows = self.network.inputs, np.empty((n, 2 * self.network.inputs + 6), self.network.precision)
        with np.errstate(over="ignore"):
            rows[:, :d], rows[:, d : 2 * d] = here, there
            for place, column in enumerate((reward, discount, rho, pi, mu, cut)):
                rows[:, 2 * d + place] = column
        return rows

    def _diverged(self) -> DivergedError:
        what = f"{self.setting} diverged on a network at update {self.updates + 1}."
        return DivergedError(f"{what} The last finite weights are kept. Try a smaller alpha.")

    def _contents(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header = described_setting(self.setting) | {
            "network": asdict(self.network),
            "optimiser": self.kind.optimiser.name,
            "transformation": fingerprint(made_of(self.kind.optimiser.transformation)),
            "arguments": self.arguments,
        }
        parts = jax.tree.leaves((self._first, self.state))
        return header, {f"state_{place}": np.array(part) for place, part in enumerate(parts)}

    def copy(self) -> Self:
        """Return an independent copy, which makes bitwise the same updates."""
        return copy(self)  # updates replace the state and change no array

    @classmethod
    def load(cls, path: str | PathLike[str], *, learner: Rule | None = None, optimiser: Any = None) -> Self:
        """Return the learner saved in a file; it continues as if it had never been saved.

        A rule or an optimiser of your own is not saved: pass it again.
        """
        with open_saved(path, cls.file) as (header, arrays):
            agent = cls(**saved_arguments(path, header, learner, optimiser))
            agent._put_back(path, header, arrays)
            return agent

    def _put_back(self, path: Any, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Restore the state in a file; raise unless the optimiser and the arrays are the saved ones."""
        if header["transformation"] != fingerprint(made_of(self.kind.optimiser.transformation)):
            what = f"{str(path)!r} was saved with another optimiser: its steps or its numbers differ"
            raise BadRequestError(f"{what}. Pass the original one as optimiser=...")
        _, state = self._contents()
        put_back(state, arrays)
        with self.network.working():
            leaves = [jnp.asarray(one) for one in state.values()]
            self._first, self.state = jax.tree.unflatten(jax.tree.structure((self._first, self.state)), leaves)


def saved_arguments(path: Any, header: dict[str, Any], learner: Rule | None, optimiser: Any) -> dict[str, Any]:
    """Return the arguments of a saved learner; `learner` and `optimiser` are the user's own, or None."""
    own = header["optimiser"] == "own"
    if own and optimiser is None:
        raise BadRequestError(f"{str(path)!r} was saved with an optimiser of your own. Pass it again as optimiser=...")
    setting = saved_setting(path, header, learner)
    return header["arguments"] | {
        "learner": setting.rule,
        "network": Network(**header["network"]),
        "optimiser": optimiser if own else header["optimiser"],
        "rho_mode": setting.rho_mode,
    }


def second_step(setting: Setting, own: bool, second_alpha: Any, parameters: dict[str, Any]) -> float | None:
    """Return the given step size of η, or None for zeta × alpha."""
    decays = "eta_eta" in setting.rule.moves
    if second_alpha is None:
        if own and decays:
            raise bad_request("'second_alpha'", "be given, because the decay of η uses it", None)
        return None
    if "zeta" in parameters or not setting.rule.has_eta:
        raise bad_request("'second_alpha'", "be omitted if 'zeta' is given or the rule has no η", second_alpha)
    return number("'second_alpha'", "be a number that is zero or more", second_alpha, low=0.0)


def update_numbers(setting: Setting, plain: bool, second_alpha: float | None, pull: float) -> dict[str, float]:
    """Return the numbers that a compiled update reads.

    With a `plain` optimiser the rule applies the step sizes; with any other optimiser it gets alpha = beta = 1.
    """
    step = setting.values["alpha"]
    second = setting.values.get("zeta", 0.0) * step if second_alpha is None else second_alpha
    rule = {"alpha": step, "beta": second} if plain else {"alpha": 1.0, "beta": 1.0}
    return {**setting.values, **rule, "step": step, "second_step": second, "pull": pull}
