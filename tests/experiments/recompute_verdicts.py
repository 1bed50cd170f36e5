"""Recompute every verdict of a reproduction from its exported files alone: claims.json and the tables.

    python -m tests.experiments.recompute_verdicts FOLDER

Nothing of `gradient_dd.experiments.verdicts` is used: selection, intervals, outcomes, fractions and words are
written here a second time, from what docs/evidence/paper.md says of them.
"""

import json
import sys
from functools import cache
from math import inf, isfinite, isnan, nan
from pathlib import Path

import numpy as np
import pandas as pd

from gradient_dd import tasks
from gradient_dd.experiments.paper.figures import FIGURES
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.studies.search import SearchStudy

PARAMETERS = ("alpha", "zeta", "kappa", "reg", "c")
TEXTS = {"task", "study", "reading", "learner", "schedule", "rho_mode", "sampling", "runs"}
SEARCHED = {name for name, study in STUDIES.items() if isinstance(study, SearchStudy)}
DRAWS = 10_000
OUTCOMES = ("holds", "open", "fails")


class Tables:
    """The CSV files of a folder, each read once."""

    def __init__(self, folder):
        self.folder, self.read = folder / "tables", {}

    def __getitem__(self, name):
        if name not in self.read:
            frame = pd.read_csv(self.folder / f"{name}.csv", dtype=str, keep_default_na=False)
            for column in set(frame.columns) - TEXTS:
                frame[column] = [float(cell) if cell else nan for cell in frame[column]]  # to the last digit
            self.read[name] = frame
        return self.read[name]

    def selection(self, study):
        """Return the table of all settings of a study."""
        return self[next((figure.name for figure in FIGURES.values() if figure.study == study), study)]


def number(value):
    return {"inf": inf, "-inf": -inf, "nan": nan}[value] if isinstance(value, str) else value


def close(a, b, relative=1e-6):
    return (isnan(a) and isnan(b)) or a == b or abs(a - b) <= relative * max(abs(a), abs(b))


def of_values(frame, values):
    """Return the rows with these values of the parameters."""
    for name in PARAMETERS:
        if name in values:
            frame = frame[frame[name] == values[name]]
    if "u" in values:
        frame = frame[(frame.alpha * frame.kappa).round(9) == values["u"]]
    return frame


@cache
def case_rows(tables, study, task, learner, rho_mode):
    """Return the rows of a learner on a case in the table of a study, with errors relative to random first weights."""
    frame = tables.selection(study)
    name, _, inside = task.rstrip(")").partition("(")
    given = dict(part.split("=") for part in inside.split(", "))
    size, *rest = given.values()
    frame = frame[(frame.task == name) & (frame["size"] == int(size)) & (frame.learner == learner)]
    frame = frame[frame.rho_mode == rho_mode].copy()
    rest = [f"{k}={v}" for k, v in list(given.items())[1:]]
    rest += ["iid"] * (STUDIES[study].sampling == "iid") + ["rho_mode=T"] * (rho_mode == "T")
    plain = frame.reading.str.replace(r"(?:, )?start_seed=\d+", "", regex=True).str.removeprefix(", ")
    frame = frame[plain.replace("", "default") == (", ".join(rest) or "default")]
    if frame.reading.str.contains("start_seed").any():
        seeds = frame.reading.str.extract(r"start_seed=(\d+)")[0].astype(int)
        ratios = given.get("ratios", "standard")
        first = {seed: first_error(int(size), ratios, seed) for seed in seeds.unique()}
        for measure in ("last100_mean", "mean_error_mean"):
            frame[measure] = frame[measure] / seeds.map(first)
        keys = [name for name in PARAMETERS if name in frame]
        groups = frame.assign(runs=frame.runs.astype(int)).groupby(keys, dropna=False, sort=False)
        frame = groups.agg({"last100_mean": "mean", "mean_error_mean": "mean", "runs": "sum"}).reset_index()
    return frame


def with_all_runs(frame):
    """Return the settings that a search evaluated on all of its tuning runs: the last ones."""
    runs = frame.runs.astype(int)
    return frame[runs == runs.max()]


@cache
def first_error(size, ratios, seed=None):
    task = tasks.baird(size, ratios, seed)
    return task.rmsve(task.initial_weights)


def check_selection(tables, comparison, learner):
    """Assert that a learner's setting is the best of those it had to choose from, and that edges are marked."""
    if "values" not in learner:
        return
    rows = case_rows(tables, learner["study"], comparison["task"], learner["learner"], learner["rho_mode"])
    rows = of_values(rows, learner["held"])
    if learner["study"] in SEARCHED:
        assert len(rows) >= learner["settings"], (len(rows), learner)  # those of the search for each measure
    else:
        assert len(rows) == learner["settings"], (len(rows), learner)
    goal = comparison["measure"] if comparison["tuned_for"] == "what is measured" else comparison["tuned_for"]
    last = with_all_runs(rows) if learner["study"] in SEARCHED else rows
    means = last[f"{goal}_mean"].fillna(inf)
    best = of_values(rows, learner["values"])[f"{goal}_mean"]
    assert len(best) == 1
    assert best.iloc[0] == means.min() or not isfinite(means.min())
    edges = {name for name in PARAMETERS if name in learner["values"] and is_edge(name, learner["values"][name], rows)}
    assert edges == {part.split()[1] for part in learner["edge"].split(", ") if part}
    assert ("alpha" in edges) == (f"{learner['label']}: " in comparison["edge"])


def is_edge(name, value, rows):
    """Return whether a value is the lowest or highest of several; c has none above 1."""
    return rows[name].nunique() > 1 and value in (rows[name].min(), rows[name].max()) and (name, value) != ("c", 1.0)


def fresh_errors(tables, comparison, learner):
    """Return the errors of a learner's setting run by run."""
    frame = tables[f"runs-{learner['study']}"]
    frame = frame[(frame.task == comparison["task"]) & (frame.runs == "fresh")]
    frame = frame[(frame.learner == learner["learner"]) & (frame.rho_mode == learner["rho_mode"])]
    frame = of_values(frame, learner["values"]).sort_values("unit")
    assert list(frame.unit) == list(range(len(frame)))
    assert len(frame)
    return frame[comparison["measure"]].to_numpy()


def pair(tables, comparison):
    """Return the errors of both learners on the same runs."""
    ours = fresh_errors(tables, comparison, comparison["ours"])
    assert close(ours.mean(), number(comparison["ours"]["mean"]))
    if comparison["rival"]["label"] == "the initial error":
        return ours, np.full(len(ours), float(comparison["rival"]["mean"]))
    theirs = fresh_errors(tables, comparison, comparison["rival"])
    runs = min(len(ours), len(theirs))
    assert close(theirs.mean(), number(comparison["rival"]["mean"]))
    return ours[:runs], theirs[:runs]


def interval_of(pairs, level):
    """Return the ratio of the first pair's means, over the second's, with its studentised bootstrap interval."""
    flat = np.concatenate([one for two in pairs for one in two])
    with np.errstate(all="ignore"):
        logs = [np.log(a.mean()) - np.log(b.mean()) for a, b in pairs]
        value = logs[0] - sum(logs[1:])
    if not np.isfinite(flat).all() or (flat <= 0).any():
        return np.exp(value), np.exp(value), np.exp(value)
    variance, drawn, drawn_variance = 0.0, 0.0, 0.0
    for place, (a, b) in enumerate(pairs):
        n = len(a)
        if n < 2:
            return np.exp(value), 0.0, inf
        counts = np.random.default_rng(place).multinomial(n, np.full(n, 1 / n), size=DRAWS)
        means = counts @ np.stack([a, b], 1) / n
        variance += np.var(a / a.mean() - b / b.mean()) / (n - 1)
        left, right = a[None, :] / means[:, :1], b[None, :] / means[:, 1:]
        drawn_variance = drawn_variance + ((left - right) ** 2 * counts).sum(1) / n / (n - 1)
        drawn = drawn + (1 if place == 0 else -1) * np.log(means[:, 0] / means[:, 1])
    gaps = drawn - value
    gaps[np.abs(gaps) < 1e-13] = 0
    errors = np.sqrt(drawn_variance)
    with np.errstate(all="ignore"):
        scores = np.where((errors > 0) | (gaps != 0), gaps / errors, 0.0)
    scores = np.sort(scores)
    both = np.sort(np.abs(scores))
    take = lambda ordered, share: ordered[int(np.ceil(share * (DRAWS - 1) - 1e-9))]  # noqa: E731
    tail = (1 - level) / 2
    below = max(take(both, level), take(scores, 1 - tail))
    above = max(take(both, level), -take(scores, tail))
    spread = np.sqrt(variance)
    return np.exp(value), np.exp(value - below * spread), np.exp(value + above * spread)


def good_step_sizes(tables, comparison, learner):
    frame = tables[f"runs-{comparison['study']}"]
    frame = frame[(frame.task == comparison["task"]) & (frame.runs == "selection")]
    frame = of_values(frame[frame.learner == learner["learner"]], learner["held"])
    wide = frame.pivot_table(index="alpha", columns="unit", values="last100", dropna=False).to_numpy()
    wide = wide[np.isfinite(wide).all(axis=1)]
    runs = wide.shape[1]
    counts = np.random.default_rng(0).multinomial(runs, np.full(runs, 1 / runs), size=DRAWS // 10)
    count = lambda means: (means <= 2 * means.min()).sum()  # noqa: E731
    return count(wide.mean(axis=1)), np.array([count(wide @ one / runs) for one in counts])


def recompute_interval(tables, comparison):
    """Return estimate, low and high of a comparison, from the tables."""
    kind, level = comparison["kind"], comparison["level"]
    if kind == "exact":
        return tuple(number(comparison[name]) for name in ("estimate", "low", "high"))
    if kind == "time":
        frame = tables["times"]
        frame = frame[(frame.study == comparison["study"]) & (frame.task == comparison["task"])]
        ours, theirs = (
            frame[frame.learner == comparison[one]["learner"]].nanoseconds.to_numpy() for one in ("ours", "rival")
        )
        return interval_of([(ours, theirs)], level)
    if kind == "count":
        ours, theirs = (good_step_sizes(tables, comparison, comparison[one]) for one in ("ours", "rival"))
        low, high = np.quantile(ours[1] - theirs[1], [(1 - level) / 2, (1 + level) / 2])
        return ours[0] - theirs[0], low, high
    for part in filter(None, (comparison, comparison["before"])):
        part = part | {"tuned_for": comparison["tuned_for"]}
        check_selection(tables, part, part["ours"])
        check_selection(tables, part, part["rival"])
    if kind == "growth":
        here, before = pair(tables, comparison), pair(tables, comparison["before"])
        return interval_of([here[::-1], before[::-1]], level)
    return interval_of([pair(tables, comparison)], level)


def outcome(low, high, side, bound):
    if side == "above":
        low, high, bound = -high, -low, -bound
    return "holds" if high < bound else "fails" if low > bound else "open"


def word(comparisons, needed):
    held = sum(one["holds"] for one in comparisons)
    if not comparisons:
        return "not judged"
    if held >= (needed or len(comparisons)):
        return "holds"
    if held and needed is None:
        return "partly holds"
    return "undecided" if {one["outcome"] for one in comparisons} == {"open"} else "does not hold"


def over_all(verdict, tuning):
    """Return the word for all judgements; where so many comparisons are needed, each judgement needs them."""
    words = [one["verdict"] for one in verdict["judgements"] if one["tuning"] == tuning]
    if verdict["needed"] is not None and "holds" in words:
        return "holds" if set(words) == {"holds"} else "partly holds"
    return word(pooled(verdict, tuning), verdict["needed"])


def check_counts(judged, comparisons):
    """Assert that what held, is open and was refuted is counted as such, and that nothing is left out."""
    counts = [sum(one["outcome"] == outcome for one in comparisons) for outcome in OUTCOMES]
    assert [judged["held"], judged["open"], judged["refuted"]] == counts
    assert sum(counts) == len(comparisons)


def recompute(folder):
    """Assert that every verdict follows from the tables; return how many verdicts and comparisons there were."""
    tables, verdicts = Tables(folder), json.loads((folder / "claims.json").read_text())
    compared = 0
    for verdict in verdicts:
        for judgement in verdict["judgements"]:
            comparisons = judgement["comparisons"]
            for one in comparisons:
                where = verdict["claim"], one["tuning"], one["reading"], one["task"], one["measure"]
                assert close(one["level"], 1 - 0.05 / len(comparisons)), where
                found = recompute_interval(tables, one)
                stated = tuple(number(one[name]) for name in ("estimate", "low", "high"))
                assert all(map(close, found, stated)), (where, found, stated)
                assert outcome(*found[1:], one["side"], one["bound"]) == one["outcome"], where
                assert one["holds"] == (one["outcome"] == "holds"), where
                compared += 1
            check_counts(judgement, comparisons)
            assert judgement["verdict"] == word(comparisons, verdict["needed"])
        first = verdict["judgements"][0]["tuning"] if verdict["judgements"] else ""  # the way of tuning that decides
        assert verdict["verdict"] == over_all(verdict, first), verdict["claim"]
        check_counts(verdict, pooled(verdict, first))
        for name, tuning in (("alike", "tuned alike"), ("fully", "tuned fully")):
            told = [one["outcome"] for one in pooled(verdict, tuning)]
            counts = " / ".join(str(told.count(one)) for one in OUTCOMES)
            assert verdict[name] == (f"{over_all(verdict, tuning)} ({counts})" if told else "")
    return len(verdicts), compared


def pooled(verdict, tuning):
    return [
        one for judgement in verdict["judgements"] if judgement["tuning"] == tuning for one in judgement["comparisons"]
    ]


if __name__ == "__main__":
    verdicts, comparisons = recompute(Path(sys.argv[1]))
    print(f"{verdicts} verdicts, {comparisons} comparisons: all follow from the tables")
