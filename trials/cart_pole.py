"""Train `NetworkControl` on CartPole for 20,000 steps, and print returns of the greedy policy for five seeds.

    python -m trials.cart_pole [--seeds N] [--steps N]

The settings are the same as in docs/how-to/networks.md.
"""

from collections.abc import Sequence

import gymnasium
import numpy as np

import gradient_dd as gdd
from tools.programs import parser_of

EPISODES = 20  # of the greedy policy


def trained(seed: int, steps: int) -> gdd.NetworkControl:
    """Return a learner after a number of steps of Q-learning."""
    environment, network = gymnasium.make("CartPole-v1"), gdd.Network(4, hidden=(64,))
    settings = {"alpha": 0.001, "optimiser": "adam", "epsilon": 0.1, "replay": 20_000, "batch": 32}
    agent = gdd.NetworkControl("td", network, actions=2, target_period=200, seed=seed, **settings)
    observation, _ = environment.reset(seed=seed)
    for _ in range(steps):
        action = agent.act(observation)
        after, reward, terminated, truncated, _ = environment.step(action)
        discount = 0.99 * (not terminated)
        agent.update(observation, action, reward, discount=discount, next_observation=after, truncated=truncated)
        observation = environment.reset()[0] if terminated or truncated else after
    return agent


def greedy_return(agent: gdd.NetworkControl) -> float:
    """Return the mean return of the greedy policy."""
    environment, returns = gymnasium.make("CartPole-v1"), []
    for seed in range(EPISODES):
        (observation, _), total, ended = environment.reset(seed=seed), 0.0, False
        while not ended:
            observation, reward, terminated, truncated, _ = environment.step(int(np.argmax(agent.predict(observation))))
            total, ended = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the mean return for each seed."""
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20_000)
    asked = parser.parse_args(arguments)
    returns = [greedy_return(trained(seed, asked.steps)) for seed in range(asked.seeds)]
    print(f"mean return {np.mean(returns):.0f}, by seed {', '.join(f'{one:.0f}' for one in returns)}")


if __name__ == "__main__":
    main()
