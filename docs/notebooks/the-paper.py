# %% [markdown]
# # The paper in 15 minutes
#
# *Gradient Descent Temporal Difference-difference Learning* (Zhu & Murray, 2022,
# [arXiv:2209.04624](https://arxiv.org/abs/2209.04624)) proposes **Gradient-DD**, a learner for value prediction.
# This notebook writes its update in NumPy, compares it with TD and GTD2 on a random walk, and shows that its gain
# depends on the order of the data.
#
# A transition has the features x of a state, a reward r, a discount γ and the features x' of the next state. The
# predicted value is x·w. Gradient-DD keeps a second weight vector η, as GTD2 does, and adds a penalty on the change in
# values since the last step:
#
#     δ = r + γ x'·w − x·w
#     η ← η + β (δ − x·η) x
#     w ← w + α ((x·η) (x − γ x') − κ (x·(w − w_prev)) x)
#
# With κ = 0 this is GTD2.

# %% [markdown]
# ## 1. The update in NumPy
#
# The task is the paper's random walk: 20 states in a row, a step left or right with probability ½, reward 1 at the
# right end. Every state has a feature of its own, so the weights are the values.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gradient_dd as gdd

walk = gdd.tasks.random_walk(n_states=20)


def walk_transitions(episodes, rng):
    """Yield (x, reward, discount, x_next) of walks from the centre."""
    one_hot = np.eye(22)[:, 1:21]  # states 0 and 21 are terminal: no features
    for _ in range(episodes):
        state = 11
        while 0 < state < 21:
            after = state + rng.choice([-1, 1])
            reward, discount = float(after == 21), float(0 < after < 21)
            yield one_hot[state], reward, discount, one_hot[after]
            state = after


def gradient_dd(transitions, w, alpha, beta, kappa):
    """Return the weights of Gradient-DD after some transitions."""
    eta, w_prev = np.zeros_like(w), w
    for x, reward, discount, x_next in transitions:
        delta = reward + discount * x_next @ w - x @ w
        gradient = (x @ eta) * (x - discount * x_next)
        penalty = kappa * (x @ (w - w_prev)) * x
        eta = eta + beta * (delta - x @ eta) * x
        w, w_prev = w + alpha * (gradient - penalty), w
    return w


transitions = list(walk_transitions(200, np.random.default_rng(0)))
w = gradient_dd(transitions, np.full(20, 0.5), alpha=0.2, beta=0.2, kappa=4.0)
before, after = walk.rmsve(np.full(20, 0.5)), walk.rmsve(w)
print(f"{len(transitions):,} transitions. Error before {before:.3f}, after {after:.3f}")

# %% [markdown]
# ## 2. The same with the package
#
# `Learner` takes one transition at a time, or all of them at once. Every learner of the package has this interface.

# %%
agent = gdd.Learner("gradient_dd", n_features=20, initial_w=np.full(20, 0.5), alpha=0.2, kappa=4.0)
x, reward, discount, x_next = map(np.array, zip(*transitions, strict=True))
agent.update_many(x, reward, discount, x_next)
print(f"largest difference to the weights above: {abs(agent.w - w).max():.1e}")

# %% [markdown]
# ## 3. A sweep of the step size
#
# A fair comparison tries many step sizes and repeats each of them. A `Study` describes the comparison; `run` computes
# it and stores the results in a file. All learners see the same transitions. `tapered(1000)` is the paper's step-size
# schedule.

# %%
alphas = np.geomspace(0.01, 1.0, 15)
study = gdd.Study(
    "walk",
    tasks=[gdd.task("random_walk", n_states=20)],
    grids=[gdd.grid(name, alpha=alphas) for name in ("td", "gtd2", "tdc", "gradient_dd")],
    schedule="tapered(1000)",
    episodes=1000,
    runs=20,
)
results = gdd.run(study, out="walk.db")
results.best_frame()

# %%
results.plot("step_sizes", measure="mean_error")

# %%
results.plot("curves", measure="mean_error")

# %% [markdown]
# Gradient-DD learns much faster than GTD2, whose gradient it follows, and initially faster than TD. TD has the lower
# final error.
#
# ## 4. Where the gain comes from: the order of the data
#
# A GTD2 step also moves the value of the *next* state, by −αγ (x·η), regardless of the error there. Along a
# trajectory the next state is the current state of the following step, so the penalty undoes a fraction κα of this
# move (for one-hot features). If the transitions arrive in random order, it has no such effect.

# %%
grids = [
    gdd.grid("td", alpha=0.2),
    gdd.grid("gtd2", alpha=0.2),
    gdd.grid("gradient_dd", alpha=0.2, kappa=(1.0, 2.0, 5.0)),
]
errors = {}
for order in ("trajectory", "iid"):
    study = gdd.Study(order, ["random_walk"], grids, steps=20_000, every=200, runs=20, sampling=order)
    frame = gdd.run(study, out="walk.db").frame()
    errors[order] = frame.set_index(["learner", "kappa"])["mean_error_mean"]

table = pd.DataFrame({"in order": errors["trajectory"], "shuffled": errors["iid"]})
table.round(3)

# %% [markdown]
# With ordered data, Gradient-DD approaches TD as κ increases, and is as fast as TD at κα = 1. With shuffled data, no
# κ helps. The theorem of the paper assumes shuffled data, but all of its experiments have ordered data.

# %% [markdown]
# ## 5. Baird's counterexample from two starts
#
# The paper reports that Gradient-DD reaches an error of zero on Baird's counterexample, where TD diverges. With 20
# states the slowest component of the error hardly decays, so the final error depends on its share in the initial
# weights. Compare the paper's initial weights with random ones:

# %%
starts = {"initial weights of the paper": {}, "random initial weights": {"start_seed": 11}}
study = gdd.Study(
    "baird",
    tasks=[gdd.task("baird", n_states=20, **start) for start in starts.values()],
    grids=[gdd.grid("gradient_dd", alpha=np.geomspace(0.0005, 0.006, 20), kappa=4.0)],
    steps=200_000,
    every=100,
    runs=3,
)
results = gdd.run(study, out="baird.db")
figure, ax = plt.subplots(figsize=(5.2, 3.6))
for label, task in zip(starts, results.tasks, strict=True):
    settings, last = results.errors(task)
    initial = results.tasks[task].rmsve(results.tasks[task].initial_weights)
    alphas = [one.values["alpha"] for one in settings]
    ax.plot(alphas, last.mean(axis=1) / initial, "o-", label=label)
ax.set(xscale="log", yscale="log", xlabel="step size α", ylabel="final error / initial error")
ax.set_xticks([0.0005, 0.001, 0.002, 0.005], ["0.0005", "0.001", "0.002", "0.005"])
ax.minorticks_off()
ax.legend(frameon=False)

# %% [markdown]
# The error seems to vanish only with the paper's initial weights, and only near one step size.
#
# ## Where next
#
# - [What Gradient-DD does](../explanation/what-gradient-dd-does.md) explains the effect and when to use the method.
# - `gradient-dd reproduce` repeats all experiments at the paper's scale; [the paper, claim by
#   claim](../evidence/paper.md) has the verdicts.
# - [Your own update rule](your-own-rule.ipynb) is the next notebook.
