"""NetworkControl: the same rules on action values.

V(s) becomes Q(s, a) of the action taken, and V(s') the mean of Q(s', ·) under the target policy. So `td` is Q-learning
with a greedy target policy and expected Sarsa with target="epsilon"; `tdrc` is QRC, `tdc` is QC, `gtd2` is GQ2. An
ordinary rule needs no importance ratio here.
"""

from functools import cache
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError, bad_request, extra, number, one_of, whole_number
from gradient_dd.learners import Rule
from gradient_dd.networks.compiled import predictions
from gradient_dd.networks.learner import NetworkLearner
from gradient_dd.networks.network import Network, states
from gradient_dd.networks.step import Kind, NetworkSample, NetworkState

with extra("neural"):
    import jax
    import jax.numpy as jnp

TARGETS = ("greedy", "epsilon")


def policy(q: Any, epsilon: Any) -> Any:
    """Return the ε-greedy probabilities of actions, in the shape of q (…, actions); equal best ones share."""
    best = q == q.max(axis=-1, keepdims=True)
    greedy = best / best.sum(axis=-1, keepdims=True)
    return (1 - epsilon) * greedy + epsilon / q.shape[-1]


def action_sample(kind: Kind, state: NetworkState, transitions: Any, epsilon: Any) -> NetworkSample:
    """Return (s, action, reward, discount, s_next) as a NetworkSample, the next state under the ε-greedy target policy.

    The target policy follows the weights that bootstrap: those of the target copy where there is one.
    """
    s, action, reward, discount, s_next = transitions
    q = kind.network.values(state.target if kind.target else state.w, s_next)
    none, one = jnp.zeros_like(reward), jnp.ones_like(reward)
    there = jax.lax.stop_gradient(policy(q, epsilon))
    return NetworkSample(
        s, jax.nn.one_hot(action, q.shape[-1], dtype=s.dtype), reward, discount, s_next, there, one, none, none, none
    )


@cache
def compiled_sample(kind: Kind) -> Any:
    """Return the compiled `action_sample`."""
    return jax.jit(lambda *arguments: action_sample(kind, *arguments))


class NetworkControl:
    """An agent that acts ε-greedily and learns action values by any rule without a trace.

    learner, network  as for NetworkLearner; the network gets an output for each action
    actions        how many actions there are
    epsilon        how often it acts at random
    replay         how many transitions it remembers; None: it learns from the last one alone
    batch          transitions of an update, drawn from those it remembers
    target         the policy it asks about: "greedy" (Q-learning), or "epsilon", its own (expected Sarsa)
    others         those of NetworkLearner: alpha, optimiser, target_period, seed, kappa, ...

    >>> agent = NetworkControl("tdrc", Network(inputs=2, hidden=(8,)), actions=3, alpha=0.01, epsilon=0.1)
    >>> action = agent.act([0.5, 0.0])
    >>> agent.update([0.5, 0.0], action, reward=-1.0, discount=0.99, next_observation=[0.4, 0.1])
    """

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
        self.learner = NetworkLearner(learner, network.with_outputs(whole_number("'actions'", actions, 2)), **others)
        if self.learner.rule.traces:
            raise BadRequestError(
                f"NetworkControl cannot follow {self.learner.rule.name} with a trace. Leave out 'lam'."
            )
        self.actions = actions
        self.epsilon = number("'epsilon'", "be in [0, 1]", epsilon, low=0.0, high=1.0)
        self.capacity = None if replay is None else whole_number("'replay'", replay)
        self.batch = whole_number("'batch'", batch)
        self.asked = self.epsilon if one_of("'target'", target, TARGETS) == "epsilon" else 0.0
        self.random = np.random.default_rng([self.learner.seed, 2])
        self.remembered: list[tuple[Any, ...]] = []
        self.seen = 0

    def predict(self, observation: Any) -> Array:
        """Return Q of every action, (actions,) for one observation, (n, actions) for several."""
        rows, single = states("observation", observation, self.learner.network.inputs)
        with self.learner.network.working():
            array = self.learner.network.array(rows)
            values = np.asarray(predictions(self.learner.network)(self.learner.state.w, array)).astype(float)
        return values[0] if single else values

    def act(self, observation: Any) -> int:
        """Return the action for one observation: the best, or with probability ε any."""
        q = self.predict(observation)
        if q.ndim != 1:
            raise bad_request("'observation'", "be one observation", q.shape)
        return int(self.random.choice(self.actions, p=np.asarray(policy(q, self.epsilon))))

    def update(self, observation: Any, action: int, reward: float, discount: float, next_observation: Any) -> None:
        """Take in one transition and make one update; discount is 0 where the episode ended."""
        inputs = self.learner.network.inputs
        action = whole_number("'action'", action, at_least=0, at_most=self.actions - 1)
        reward = number("'reward'", "be a finite number", reward)
        discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        (s,), _ = states("observation", observation, inputs)
        (s_next,), _ = states("next_observation", observation if discount == 0 else next_observation, inputs)
        row = s, action, reward, discount, s_next
        rows = [row]
        if self.capacity is not None:
            if len(self.remembered) < self.capacity:
                self.remembered.append(row)
            else:
                self.remembered[self.seen % self.capacity] = row
            rows = [self.remembered[place] for place in self.random.integers(len(self.remembered), size=self.batch)]
        self.seen += 1
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        network = self.learner.network
        with network.working():
            arrays = [network.array(column) for column in columns]
            arrays[1] = jnp.asarray(columns[1], jnp.int32)
            self.learner.learn(compiled_sample(self.learner.kind)(self.learner.state, tuple(arrays), self.asked))
