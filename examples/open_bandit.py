"""Real logs of a fashion shop: estimate the clicks of one policy from the log of another policy.

Two policies chose the items of the shop ZOZOTOWN during the same days: one at random, one by Thompson sampling. Each
has its own log, so the estimate from one log can be compared with the actual clicks of the other policy. The logs are
part of the Open Bandit Dataset (Saito et al., 2021), which comes with the Python package `obp` (Apache License 2.0).
The state is one of three positions on the page, the action an item.

    pip download --no-deps obp            downloads the data: one file, obp-….whl, which need not be installed
    python examples/open_bandit.py [obp-….whl]
"""

import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

import gradient_dd as gdd

CAMPAIGNS, POLICIES = ("men", "women", "all"), {"random": "uniform", "bts": "Thompson sampling"}
ABSENT = "The Open Bandit data are absent. Download them with `pip download --no-deps obp`, and run this again here."


def folder_of_data(given=None):
    """Return the folder with the data: in a wheel, an unpacked folder, or an installed `obp`; None if it is absent."""
    wheels = [Path(given)] if given else sorted(Path().glob("obp-*.whl"))
    if wheels and wheels[-1].is_file():
        return zipfile.Path(wheels[-1]) / "obp" / "dataset" / "obd"
    installed = find_spec("obp")  # finds it without loading it
    places = [Path(given)] if given else list(installed.submodule_search_locations) if installed else []
    return next((Path(one) / "dataset" / "obd" for one in places if (Path(one) / "dataset" / "obd").is_dir()), None)


def log_of(folder, policy, campaign):
    """Return the log of a policy as a data frame with names that `compare` recognises."""
    with (folder / policy / campaign / f"{campaign}.csv").open() as file:
        rows = pd.read_csv(file, usecols=["item_id", "position", "click", "propensity_score"])
    names = {"item_id": "action", "position": "obs", "click": "reward", "propensity_score": "propensity"}
    return rows.rename(columns=names)


def shares_of(log):
    """Return the logging policy. It ignores the user, so it consists of the shares of items by position."""
    shares = np.zeros((4, log["action"].max() + 1))
    np.add.at(shares, (log["obs"], log["action"]), 1.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    return lambda positions: shares[np.asarray(positions)[:, 0].astype(int)]


def main(words=()):
    """Print each estimate with its interval, and the clicks of the policy in its own log; return them."""
    folder = folder_of_data(*words)
    if folder is None:
        print(ABSENT)
        return []
    found = []
    print("clicks per 1,000 items shown; 10,000 rows in each log")
    for campaign in CAMPAIGNS:
        logs = {policy: log_of(folder, policy, campaign) for policy in POLICIES}
        for acted, target in (("random", "bts"), ("bts", "random")):
            one = gdd.compare(logs[acted], {target: shares_of(logs[target])}, discount=0.0).table[1]
            value, low, high = (1000 * one[name] for name in ("value", "low", "high"))
            clicks = logs[target]["reward"]
            earned, error = 1000 * clicks.mean(), 1000 * clicks.std() / np.sqrt(len(clicks))
            print(
                f"{campaign:6}{POLICIES[target]:18}from the other log: {value:4.1f} [{low:.1f}, {high:.1f}]"
                f"   in its own: {earned:.1f} ± {error:.1f}   verdict: {one['verdict']}"
            )
            found.append((value, (low, high), earned, error, one["verdict"]))
    inside = sum(low <= earned <= high for _, (low, high), earned, _, _ in found)
    print(f"{inside} of {len(found)} intervals contain what the policy earned in its own log")
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
