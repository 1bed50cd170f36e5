"""CliffWalking and Taxi: learned values against the exact values of their tables.

Gymnasium's tables give the true values; `from_gymnasium` respects their done flags and omits unreachable states. The
program then runs the same environments and learns values from the transitions. Taxi has 500 states: LSTD solves for all
of them, while learners that begin at 0 still have large errors after 100,000 steps.

python examples/gridworlds.py
"""

import gymnasium
import numpy as np

import gradient_dd as gdd


def careful(states, actions, seed):
    """Return a policy that prefers some actions in each state, but takes them all."""
    return np.random.default_rng(seed).dirichlet(np.full(actions, 3.0), size=states)


def main(steps=100_000, discount=0.9):
    """Print the errors of the learned values, and return them."""
    errors = {}
    for name in ("CliffWalking-v1", "Taxi-v4"):
        env = gymnasium.make(name)
        target = careful(env.observation_space.n, env.action_space.n, seed=1)
        uniform = np.full(target.shape, 1 / env.action_space.n)
        task = gdd.tasks.from_gymnasium(env, behaviour=uniform, target=target, discount=discount)
        low, high = task.true_values.min(), task.true_values.max()
        print(f"\n{name}: {task.n_states} states, values from {low:.1f} to {high:.1f}")
        for note in task.notes:
            print("  " + note)
        found = gdd.evaluate(env, target=target, behaviour=uniform, discount=discount, steps=steps)
        wrong = found.predict(task.states) - task.true_values
        error = np.sqrt(task.visits @ wrong**2)
        spread = np.sqrt(task.visits @ (task.true_values - task.visits @ task.true_values) ** 2)
        print(f"  {found.chosen}; to be trusted: {found.verdict.word}")
        print(f"  error {error:.3f}, where the values themselves spread by {spread:.3f}")
        errors[name] = error / spread
    return errors


if __name__ == "__main__":
    main()
