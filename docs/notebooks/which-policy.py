# %% [markdown]
# # Which policy should I ship?
#
# A shop shows one of three banners at each page view. A program has chosen the banners at random and logged the
# results. Two other policies could replace this program. How much is each policy worth, and can you trust the numbers?
#
# The log is simulated, so you can compare the answer with the truth at the end.

# %% [markdown]
# ## 1. A log
#
# The interest of a visitor determines the probabilities of buying and of leaving. Each banner changes the interest. A
# row of the log is one page view.

# %%
import numpy as np
import pandas as pd

import gradient_dd as gdd

PULL = np.array([-0.1, 0.0, 0.15])  # how each banner changes the interest


def visit(policy, rng):
    """Return the page views of one visit: interest, banner, bought, left, probability of the banner."""
    interest, left, rows = rng.uniform(0.2, 0.8), False, []
    while not left:
        chances = policy(np.array([[interest]]))[0]
        banner = rng.choice(3, p=chances)
        left = rng.random() < 0.25 - 0.15 * interest
        rows.append((interest, banner, float(rng.random() < 0.3 * interest), left, chances[banner]))
        interest = np.clip(interest + PULL[banner] + 0.05 * rng.normal(), 0.0, 1.0)
    return rows


def logging_policy(observations):
    return np.tile([0.5, 0.3, 0.2], (len(observations), 1))


rng = np.random.default_rng(0)
rows = [(number, *row) for number in range(2_000) for row in visit(logging_policy, rng)]
log = pd.DataFrame(rows, columns=["episode", "interest", "action", "reward", "terminated", "propensity"])
log.head()

# %% [markdown]
# ## 2. The candidates
#
# A policy is a function of observations that returns the probability of each action.


# %%
def more_of_the_third(observations):
    """Show the third banner most of the time."""
    return np.tile([0.1, 0.3, 0.6], (len(observations), 1))


def first_for_the_keen(observations):
    """Show the first banner to interested visitors, the second to others."""
    keen = np.where(observations[:, 0] > 0.5, 0.8, 0.1)
    return np.column_stack([keen, 0.9 - keen, np.full(len(keen), 0.1)])


targets = {
    "today": None,  # the logging policy
    "more of the third": more_of_the_third,
    "first for the keen": first_for_the_keen,
}

# %% [markdown]
# ## 3. The comparison
#
# `compare` finds columns with usual names, so you name only `interest`. With a discount of 0.9, a purchase one page
# later is worth 90 %.

# %%
columns = {"observation": ["interest"]}
found = gdd.compare(log, targets, discount=0.9, columns=columns)
print(*found.stated, sep="\n")

# %%
found

# %%
found.plot()

# %% [markdown]
# The dotted line is the value of the logging policy. `found.report("page.html")` writes a page with all estimates and
# findings.
#
# ## 4. A corrupted column
#
# Estimates are only as good as the log. Suppose that a new version of the logging program writes the probability of
# the *most likely* banner instead of the one that it showed:

# %%
corrupted = gdd.compare(log.assign(propensity=0.5), targets, discount=0.9, columns=columns)
corrupted.frame()[["name", "value", "low", "high", "verdict"]].round(3)

# %%
print(corrupted.sentence)

# %% [markdown]
# The numbers look as plausible as before. The verdict *not* warns you not to use them, and the sentence names the
# check that failed: importance ratios have a mean of 1 if the propensities are correct.
#
# ## 5. The truth
#
# Because this shop is a simulation, you can run every policy:

# %%
truth = {}
for name, policy in targets.items():
    visits = [visit(policy or logging_policy, rng) for _ in range(5_000)]
    truth[name] = np.mean([sum(row[2] * 0.9**step for step, row in enumerate(one)) for one in visits])

shown = found.frame()[["name", "value", "low", "high", "verdict"]]
shown.assign(truth=shown["name"].map(truth)).round(3)

# %% [markdown]
# All intervals contain the truth.
#
# ## Where next
#
# - [When to trust a value](../explanation/when-to-trust.md) explains the estimates and every check.
# - [Log format](../reference/log-format.md) lists what a log may contain; propensities are optional.
# - [From a CSV file to a decision](../tutorials/csv-to-decision.md) does the same on the command line.
