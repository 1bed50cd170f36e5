"""Gymnasium environments of all named tasks, built from their tables.

    import gymnasium, gradient_dd
    env = gymnasium.make("gradient_dd/BoyanChain-v0", n_features=20)
    observation, info = env.reset(seed=0)
    action = env.unwrapped.sample_action()                  # from the behaviour policy

An observation is the number of a state, and an action is an action of the table. `info` contains the features of the
state, the continuation discount into it and the importance ratio of the action, as `Learner.update` takes them.
"""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request, extra
from gradient_dd.tasks import Task, build

with extra("environments"):
    import gymnasium


class TableEnv(gymnasium.Env[np.int64, np.int64]):
    """A Gymnasium environment of `task`; `behaviour` and `target` are its policies, (states, actions)."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  (Gymnasium's own form)

    def __init__(self, task: Task, render_mode: str | None = None) -> None:
        self.task = task
        self.behaviour, self.target = task.behaviour, task.target
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(len(task.start))
        self.action_space = gymnasium.spaces.Discrete(task.n_actions)
        self._state = int(np.argmax(task.start))
        self._ended = True
        outcome = task.outcomes
        self._code = outcome.state * task.n_actions + outcome.action  # ascending, because the outcomes are sorted

    def sample_action(self, policy: Array | None = None) -> np.int64:
        """Draw an action for the current state from a policy, by default the behaviour policy."""
        probabilities = (self.behaviour if policy is None else policy)[self._state]
        return np.int64(self.np_random.choice(self.task.n_actions, p=probabilities))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Start an episode in a state drawn from the start distribution; return (state, info)."""
        super().reset(seed=seed)
        self._state = int(self.np_random.choice(len(self.task.start), p=self.task.start))
        self._ended = False
        return np.int64(self._state), self._info(1.0)

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take an action; return (next state, reward, terminated, truncated = False, info)."""
        if self._ended:
            rule = "be started by reset() before a step"
            raise bad_request("An episode", rule, Unquoted("an episode that has ended"))
        if not self.action_space.contains(action):
            raise bad_request("'action'", f"be a whole number from 0 to {self.task.n_actions - 1}", action)
        outcome, code = self.task.outcomes, self._state * self.task.n_actions + int(action)
        first, last = np.searchsorted(self._code, [code, code + 1])
        probability = outcome.probability[first:last]
        chosen = first + self.np_random.choice(last - first, p=probability / probability.sum())
        rho = float(self.task.rho[self._state, int(action)])
        self._state = int(outcome.next_state[chosen])
        self._ended = bool(self.task.terminal[self._state])
        return np.int64(self._state), float(self.task.rewards[chosen]), self._ended, False, self._info(rho)

    def render(self) -> str | None:
        """Return the current state as text if render_mode is "ansi"."""
        return f"{self.task}: state {self._state}" if self.render_mode == "ansi" else None

    def _info(self, rho: float) -> dict[str, Any]:
        rows = self.task.feature_rows
        ours = slice(rows.indptr[self._state], rows.indptr[self._state + 1])
        return {
            "features": np.bincount(rows.indices[ours], rows.data[ours], minlength=self.task.n_features),
            "discount": float(self.task.discount[self._state]),
            "rho": rho,
        }


def make(task: str, *, render_mode: str | None = None, **parameters: Any) -> TableEnv:
    """Return the environment of a named task with these parameters."""
    return TableEnv(build(task, **parameters), render_mode)
