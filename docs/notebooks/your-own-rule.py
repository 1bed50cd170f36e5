# %% [markdown]
# # Your own update rule
#
# You have an idea for an update rule. This notebook writes it as a function of a few numbers, checks it, compares it
# with learners of the package, and ranks it among all of them on 45 problems.

# %% [markdown]
# ## 1. Write it
#
# Every learner of this family moves its weights along a few directions: the features x of the state, the features x'
# of the next state, or a trace. A rule asks for scalars by name and returns the coefficients of these moves. The
# example is TDC with the penalty of Gradient-DD.

# %%
from dataclasses import replace

import gradient_dd as gdd
from gradient_dd.learners.rule import ALPHA, ZETA


def step(alpha, beta, kappa, rho, discount, delta, x_eta, x_change):
    """My TDC-DD: TDC with a penalty on the change in values since the last step.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α (ρ (δ x − γ (x·η) x') − κ (x·(w − w_prev)) x)
    """
    w_x = alpha * (rho * delta - kappa * x_change)  # of w along x
    w_next = -alpha * rho * discount * x_eta  # of w along x'
    eta_x = beta * (rho * delta - x_eta)  # of η along x
    return w_x, w_next, eta_x


def expected(alpha, beta, kappa, A, b, B, C, w, eta, change):
    """Return the mean updates of w and η, which `check_learner` compares with the step."""
    return alpha * (b - A @ w - B @ eta - kappa * (C @ change)), beta * (b - A @ w - C @ eta)


RULE = gdd.Rule(
    name="my_tdc_dd",
    label="my TDC-DD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, gdd.Parameter("kappa", "weight of the penalty", default=1.0, grid=(1.0, 8.0))),
    reference="This notebook.",
    module=__name__,
)
RULE

# %% [markdown]
# ## 2. Check it
#
# `check_learner` runs the tests that every learner of the package passes. For example, the step must agree with
# `expected`, the mean update must vanish at the TD fixed point, and the compiled rule must give the same numbers as the
# interpreted rule. It raises an error if a test fails, and returns a sentence for each test that it could not run:

# %%
gdd.testing.check_learner(RULE)

# %% [markdown]
# It detects a wrong sign:


# %%
def wrong_step(alpha, beta, kappa, rho, discount, delta, x_eta, x_change):
    w_x = alpha * (rho * delta + kappa * x_change)  # + instead of −
    return w_x, -alpha * rho * discount * x_eta, beta * (rho * delta - x_eta)


try:
    gdd.testing.check_learner(replace(RULE, step=wrong_step))
except AssertionError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# ## 3. Sweep it
#
# The engine compiles the rule and runs all settings on the same transitions.

# %%
alphas = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
study = gdd.Study(
    "mine",
    tasks=[gdd.task("random_walk", n_states=20)],
    grids=[
        gdd.grid("td", alpha=alphas),
        gdd.grid("tdc", alpha=alphas),
        gdd.grid(RULE, alpha=alphas, kappa=4.0),
    ],
    episodes=300,
    runs=10,
)
results = gdd.run(study, out="mine.db")
results.plot("step_sizes", measure="mean_error")

# %%
results.plot("curves", measure="mean_error")

# %%
results.best_frame("mean_error")

# %% [markdown]
# ## 4. Rank it
#
# A single task is weak evidence. `rank` tunes the rule on 45 problems with the same budget as every learner of the
# package, and tests the selected settings on other runs. The results of the other learners ship with the package, so
# `rank` runs only the new rule. It tries the values in the `grid` of each parameter, here 1 and 8 for κ.

# %%
standing = gdd.rank(RULE, against=["tdc", "td"])
standing

# %% [markdown]
# `plot` draws the error of every learner on every problem, relative to the best learner there:

# %%
standing.plot("heat")

# %% [markdown]
# The second picture compares the rule with one rival, problem by problem, on the same test runs:

# %%
standing.plot("ratios")

# %% [markdown]
# For a publication, use `standing.to_latex()`, `standing.problem_frame()` and this paragraph on the setup:

# %%
print(standing.setup)

# %% [markdown]
# `standing.report("my-rule.html")` writes all of this as one page.
#
# ## Where next
#
# - [Standings](../evidence/standings.md) explains the protocol and the limits of the ranks.
# - [Add a learner](../how-to/add-a-learner.md) lists all signals, and explains how to add a rule to the package.
