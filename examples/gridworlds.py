"""CliffWalking and Taxi: what is learnt from transitions, beside the exact values of their tables.

The tables of Gymnasium give the truth: `from_gymnasium` obeys their done flags and leaves out states that are never
reached. The same environments are then played, and the values learnt from what happened. Taxi has 500 states: LSTD
solves for them all, where learners that begin at 0 are still far off after 100,000 steps.

python examples/gridworlds.py
"""

import gymnasium
import numpy as np

import gradient_dd as gdd


def careful(states, actions, seed):
    """Return a policy that prefers some actions over others in each state, but takes them all."""
    return np.random.default_rng(seed).dirichlet(np.full(actions, 3.0), size=states)


def main(steps=100_000, discount=0.9):
    """Print how far the learnt values are from the exact ones, and return the errors."""
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
