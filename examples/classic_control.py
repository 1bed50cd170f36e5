"""Mountain Car and CartPole: the default evaluation, and learners on tile coding, against Monte Carlo returns.

The log comes from one policy, and the values of another policy are estimated. All learners learn from the same
transitions. The true values are mean returns of the target policy from a few states.

python examples/classic_control.py
"""

import gymnasium
import numpy as np

import gradient_dd as gdd
from gradient_dd import features


def swing(certain):
    """Return a policy for Mountain Car that pushes in the direction of motion with this probability."""

    def policy(observations):
        forward = 2 * (observations[:, 1] >= 0)  # action 0 pushes left, 2 right, 1 not at all
        rest = (1 - certain) / 2
        return np.where(np.arange(3) == forward[:, None], certain, rest)

    return policy


def balance(certain):
    """Return a policy for CartPole that moves the cart in the direction in which the pole falls."""

    def policy(observations):
        right = observations[:, 2] + 0.3 * observations[:, 3] > 0
        return np.where(np.arange(2) == right[:, None], certain, 1 - certain)

    return policy


PASSES = 5
WORLDS = {
    # name: target, behaviour, discount, features
    "MountainCar-v0": (
        swing(0.9),
        swing(0.6),
        0.99,
        features.TileCoder([-1.2, -0.07], [0.6, 0.07], tiles=8, tilings=8, outside="clip"),
    ),
    "CartPole-v1": (
        balance(0.9),
        balance(0.7),
        0.95,
        features.TileCoder([-2.4, -2.5, -0.21, -2.5], [2.4, 2.5, 0.21, 2.5], tiles=4, tilings=8, outside="clip"),
    ),
}


def states_to_judge(env, policy, count, rng):
    """Return every tenth state on trajectories of the policy."""
    found, steps = [], 0
    observation, _ = env.reset(seed=int(rng.integers(2**31)))
    while len(found) < count:
        observation, _, ended, cut, _ = env.step(rng.choice(env.action_space.n, p=policy(observation[None])[0]))
        steps += 1
        if ended or cut:
            observation, _ = env.reset()
        elif steps % 10 == 0:
            found.append(np.array(env.unwrapped.state))
    return np.array(found)


def played(name, policy, discount, states, times, rng):
    """Return the mean discounted return of a policy from each state, by simulation without a time limit."""
    env = gymnasium.make(name).unwrapped
    returns = np.zeros((len(states), times))
    env.reset(seed=int(rng.integers(2**31)))
    for i, j in np.ndindex(returns.shape):
        observation, weight = states[i], 1.0
        env.reset()
        env.state = tuple(states[i])
        while weight > 1e-3:
            action = rng.choice(env.action_space.n, p=policy(np.asarray(observation)[None])[0])
            observation, reward, ended, _, _ = env.step(action)
            returns[i, j] += weight * reward
            weight *= discount
            if ended:
                break
    return returns.mean(axis=1)


def rmse(values, truth):
    """Return the root mean square error of values."""
    return np.sqrt(np.mean((values - truth) ** 2))


def main(steps=100_000, states=30, times=100):
    """Print the error of every learner on both problems, and return the tables."""
    tables = {}
    for name, (target, behaviour, discount, coder) in WORLDS.items():
        rng = np.random.default_rng(0)
        at = states_to_judge(gymnasium.make(name), behaviour, states, rng)
        truth = played(name, target, discount, at, times, rng)
        env = gymnasium.make_vec(name, 8)
        log = gdd.collect(env, behaviour, steps)
        found = gdd.evaluate_log(log, target=target, discount=discount)
        errors = {"initial weights": np.sqrt(np.mean(truth**2)), "least squares": rmse(found.predict(at), truth)}
        seen, after = (
            np.column_stack([log[f"{side}_{i}"] for i in range(at.shape[1])]) for side in ("obs", "next_obs")
        )
        rho = target(seen)[np.arange(len(seen)), log["action"]] / log["propensity"]
        into = np.where(log["terminated"], 0.0, discount)
        for learner in ("td", "tdrc", "gradient_dd", "gtd2"):
            agent = gdd.Learner(learner, n_features=coder.n_features, alpha=0.2 / coder.bound)
            for _ in range(PASSES):
                agent.update_many(tuple(coder.rows(seen)), log["reward"], into, tuple(coder.rows(after)), rho)
            errors[learner] = rmse(agent.predict(tuple(coder.rows(at))), truth)
        print(f"\n{name}: {steps:,} steps. True values have mean {truth.mean():.2f} and spread {truth.std():.2f}.")
        print(f"least squares: {found.start_value:.4g}, {found.verdict.word}")
        for words, error in errors.items():
            print(f"  {words:20} error {error:8.3f}")
        tables[name] = {"spread": truth.std(), "mean": truth.mean(), "errors": errors}
    return tables


if __name__ == "__main__":
    main()
