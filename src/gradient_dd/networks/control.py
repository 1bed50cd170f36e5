"""NetworkControl: an agent that learns action values by the learning rules.

V(s) becomes Q(s, a) of the action taken; V(s') becomes the mean of Q(s', ·) under the target policy. `td` is Q-learning
with a greedy target policy and expected Sarsa with target="epsilon"; `tdrc` is QRC, `tdc` is QC, `gtd2` is GQ2. No rule
needs an importance ratio here.
"""

from dataclasses import replace
from functools import cache
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from gradient_dd.arrays import Array, check_memory, dimensions
from gradient_dd.errors import BadRequestError, bad_request, extra, number, one_of, whole_number
from gradient_dd.files import FileKind, open_saved
from gradient_dd.learners import Rule
from gradient_dd.networks.learner import NetworkLearner, saved_arguments
from gradient_dd.networks.network import Network, states
from gradient_dd.networks.step import Kind, NetworkSample, NetworkState, advance, as_read
from gradient_dd.stream.learner_file import Saved, put_back
from gradient_dd.stream.transitions import checked_columns, checked_numbers

with extra("neural"):
    import jax
    import jax.numpy as jnp


def policy(q: Any, epsilon: Any) -> Any:
    """Return ε-greedy probabilities in the shape of q (…, actions); tied best actions are equally likely."""
    best = q == q.max(axis=-1, keepdims=True)
    greedy = best / best.sum(axis=-1, keepdims=True)
    return (1 - epsilon) * greedy + epsilon / q.shape[-1]


def action_sample(kind: Kind, state: NetworkState, transitions: Any, epsilon: Any) -> NetworkSample:
    """Return (s, action, reward, discount, s_next) as a NetworkSample that weights next actions by the target policy.

    The ε-greedy target policy uses the bootstrapping weights: the target copy if there is one, else w.
    """
    s, action, reward, discount, s_next = transitions
    q = kind.network.values(state.target if kind.target else state.w, s_next)
    none, one = jnp.zeros_like(reward), jnp.ones_like(reward)
    there = jax.lax.stop_gradient(policy(q, epsilon))
    return NetworkSample(
        s, jax.nn.one_hot(action, q.shape[-1], dtype=s.dtype), reward, discount, s_next, there, one, none, none, none
    )


@cache
def action_update(kind: Kind) -> Any:
    """Return the compiled update from one batch of transitions with actions."""

    def run(values: Any, state: NetworkState, transitions: Any, epsilon: Any) -> Any:
        return as_read(*advance(kind, values, state, action_sample(kind, state, transitions, epsilon)))

    return jax.jit(run)


class Memory(NamedTuple):
    """The replay memory: observations (n, inputs), all other columns (n,)."""

    s: Array
    action: Any
    reward: Array
    discount: Array
    s_next: Array


class NetworkControl(Saved):
    """An agent that acts ε-greedily and learns action values by any rule without a trace.

    learner, network  as for NetworkLearner; the network gets one output for each action
    actions        the number of actions
    epsilon        the probability of a random action
    replay         the capacity of the replay memory; None: each update uses only the last transition
    batch          the number of transitions per update, drawn at random from the replay memory
    target         the target policy: "greedy" (Q-learning), or "epsilon", the agent's own policy (expected Sarsa)
    others         further arguments of NetworkLearner: alpha, optimiser, target_period, seed, kappa, ...

    >>> agent = NetworkControl("tdrc", Network(inputs=2, hidden=(8,)), actions=3, alpha=0.01, epsilon=0.1)
    >>> action = agent.act([0.5, 0.0])
    >>> agent.update([0.5, 0.0], action, reward=-1.0, discount=0.99, next_observation=[0.4, 0.1])
    """

    file = FileKind("network control", "a NetworkControl saved by gradient-dd", 3)

    def __init__(
        self,
        learner: str | Rule,
        network: Network,
        actions: int,
        *,
        epsilon: float = 0.1,
        replay: int | None = None,
        batch: int = 32,
        target: str = "greedy",
        **others: Any,
    ) -> None:
        if not isinstance(network, Network):
            raise bad_request("'network'", "be a Network", network)
        network = replace(network, outputs=whole_number("'actions'", actions, 2))
        self.learner = NetworkLearner(learner, network, **others)
        if self.learner.rule.traces:
            what = f"NetworkControl does not support {self.learner.rule.name} with a trace."
            raise BadRequestError(f"{what} Leave out 'lam'.")
        self.actions, inputs = actions, network.inputs
        self.epsilon = number("'epsilon'", "be in [0, 1]", epsilon, low=0.0, high=1.0)
        self.capacity = None if replay is None else whole_number("'replay'", replay)
        self.batch = whole_number("'batch'", batch)
        self.target = one_of("'target'", target, ("greedy", "epsilon"))
        n = self.capacity or 1
        check_memory(f"A replay of {n:,} transitions", 8 * n * (2 * inputs + 3), "Use a smaller 'replay'.")
        self.memory = Memory(np.zeros((n, inputs)), np.zeros(n, int), np.zeros(n), np.zeros(n), np.zeros((n, inputs)))
        self.forget()

    def forget(self) -> None:
        """Forget everything learnt and remembered."""
        self.learner.forget()
        self.seen, self.random = 0, np.random.default_rng([self.learner.seed, 2])

    def __repr__(self) -> str:
        return f"<NetworkControl {self.actions} actions, epsilon={self.epsilon:g}, {self.learner!r}>"

    def _facts(self) -> dict[str, Any]:
        facts = {"actions": self.actions, "epsilon": self.epsilon, "target": self.target}
        return {**facts, "remembers": f"{len(self.remembered.action):,} transitions", **self.learner._facts()}

    @property
    def remembered(self) -> Memory:
        """The transitions in the replay memory, as views."""
        return Memory(*(column[: self.seen] for column in self.memory))

    def predict(self, observation: Any) -> Array:
        """Return Q of every action, (actions,) for one observation, (n, actions) for several."""
        values, single = self.learner._values(observation)
        return values[0] if single else values

    def act(self, observation: Any) -> int:
        """Return an action for one observation: the best action, or a random one with probability ε."""
        q = self.predict(observation)
        if q.ndim != 1:
            raise bad_request("'observation'", "be one observation", q.shape)
        return int(self.random.choice(self.actions, p=np.asarray(policy(q, self.epsilon))))

    def update(
        self,
        observation: Any,
        action: int,
        reward: float,
        discount: float,
        next_observation: Any,
        *,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        """Remember one transition and make one update.

        The discount is 0 at the end of an episode; `terminated` sets it to 0. `truncated` has no effect without traces.
        """
        inputs = self.learner.network.inputs
        action = whole_number("'action'", action, at_least=0, at_most=self.actions - 1)
        reward, discount, *_ = checked_numbers(reward, discount, 1.0, terminated, truncated)
        (s,), _ = states("observation", observation, inputs)
        (s_next,), _ = states("next_observation", observation if discount == 0 else next_observation, inputs)
        for column, value in zip(self.memory, (s, action, reward, discount, s_next), strict=True):
            column[self.seen % len(column)] = value
        self.seen += 1
        columns = self.remembered
        if self.capacity is not None:
            places = self.random.integers(len(columns.action), size=self.batch)
            columns = Memory(*(column[places] for column in columns))
        asked = self.epsilon if self.target == "epsilon" else 0.0
        self.learner._learn(action_update, columns, asked)

    def update_many(
        self,
        observation: Any,
        action: Any,
        reward: Any,
        discount: Any,
        next_observation: Any,
        *,
        terminated: Any = False,
        truncated: Any = False,
    ) -> None:
        """Remember n transitions, one after the other, with an update after each; observations are (n, d)."""
        rows, _ = states("observation", observation, self.learner.network.inputs)
        n = len(rows)
        reward, discount, *_ = checked_columns(reward, discount, 1.0, terminated, truncated, n)
        after, _ = states("next_observation", next_observation, self.learner.network.inputs, used=discount != 0)
        actions = np.full(n, action).tolist() if dimensions(action) == 0 else list(action)
        for name, given in (("action", actions), ("next_observation", after)):
            if len(given) != n:
                raise bad_request(f"The length of {name!r}", f"be {n}", len(given))
        for one in actions:
            whole_number("'action'", one, at_least=0, at_most=self.actions - 1)
        for row in zip(rows, actions, reward.tolist(), discount.tolist(), after, strict=True):
            self.update(*row)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header, arrays = self.learner._contents()
        own = {"actions": self.actions, "epsilon": self.epsilon, "replay": self.capacity, "batch": self.batch}
        header |= {"agent": own | {"target": self.target}, "seen": self.seen}
        return header | {"random": self.random.bit_generator.state}, arrays | self.remembered._asdict()

    @classmethod
    def load(cls, path: str | PathLike[str], *, learner: Rule | None = None, optimiser: Any = None) -> Self:
        """Return the agent saved in a file; it continues as if it had never been saved.

        A rule or an optimiser of your own is not saved: pass it again.
        """
        with open_saved(path, cls.file) as (header, arrays):
            agent = cls(**saved_arguments(path, header, learner, optimiser), **header["agent"])
            agent.seen, agent.random.bit_generator.state = whole_number("'seen'", header["seen"], 0), header["random"]
            put_back(agent.remembered._asdict(), {name: arrays.pop(name) for name in Memory._fields})
            agent.learner._put_back(path, header, arrays)
            return agent
