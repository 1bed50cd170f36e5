"""The cells of the trial: learners tuned on some seeds and tested on others, for each problem and optimiser.

A cell is one problem with one type of sampling (`stream`: the last transition; `replay`: batches from all previous
ones) and one optimiser. Its learners share streams, initial weights and batches. The measure of a run is its mean error
over the second half; the setting with the smallest mean over the tuning seeds is tested on the other seeds.
"""

import json
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.networks.network import Network
from gradient_dd.studies.intervals import select
from trials.networks.control_lanes import ControlPlan, run_control
from trials.networks.environments import find_environment
from trials.networks.lanes import Lane, Streams, run_lanes
from trials.networks.problems import SEED, problems

HIDDEN, BATCH, EVERY = (32,), 16, 125
OPTIMISERS = ("sgd", "adam", "adam_without_momentum")
WAYS = (*(("stream", optimiser) for optimiser in OPTIMISERS), ("replay", "sgd"), ("replay", "adam"))
ALPHAS = {
    "sgd": (0.001, 0.004, 0.016, 0.064, 0.256),
    "adam": (0.0003, 0.001, 0.003, 0.01, 0.03),
    "adam_without_momentum": (0.0003, 0.001, 0.003, 0.01, 0.03),
}
KAPPAS, PERIODS, SHARE = (1.0, 4.0), (1, 10, 100), 0.5
PLAIN = {"TD": "td", "GTD2": "gtd2", "TDC": "tdc", "TDRC": "tdrc"}
WITH_DD = {"GTD2": "gradient_dd", "TDC": "tdc_dd", "TDRC": "tdrc_dd"}  # by learner without the term
WITH_C = {"GTD2": "gtd2_to_td", "TDC": "tdc_to_td"}
RULES = [LEARNERS[name] for name in (*PLAIN.values(), *WITH_DD.values(), *WITH_C.values())]
CONTROL_ALPHAS = (0.0003, 0.001, 0.003, 0.01)
CONTROL = {"Q": "td", "QC": "tdc", "QRC": "tdrc", "GQ2": "gtd2", "QC-DD": "tdc_dd", "QRC-DD": "tdrc_dd"} | {
    "GQ2-DD": "gradient_dd", "QC with c = ½": "tdc_to_td", "Q with a target copy": "td",
}  # fmt: skip
WORLDS = {"mountain-car": 0.0, "mountain-car-pessimistic": -100.0, "acrobot": 0.0, "cart-pole": 0.0}  # first values
TARGET_PERIOD = 100


class Size(NamedTuple):
    """The size of a trial: tuning and test seeds, updates of a prediction, and steps of an agent."""

    tuned: int = 2
    shown: int = 30
    updates: int = 1500
    steps: int = 4000


class TrialSetting(NamedTuple):
    """One setting of a learner."""

    setting: Setting
    period: int = 1
    target_period: int | None = None

    def facts(self) -> dict[str, Any]:
        """Return the entries that describe the setting in a table."""
        values = {name: value for name, value in self.setting.values.items() if name in ("alpha", "kappa")}
        return {"rule": self.setting.rule.name, **values, "period": self.period}

    def lane(self, seed: int, stream: int) -> Lane:
        """Return the lane of one seed."""
        return Lane(self.setting, seed, stream, self.period, self.target_period)


def dd_name(base: str, period: int) -> str:
    """Return the name of a learner with the DD term."""
    return f"{'Gradient' if base == 'GTD2' else base}-DD, T = {period}"


def c_name(base: str) -> str:
    """Return the name of a learner with half of its correction term."""
    return f"{base}, c = ½"


def candidates(optimiser: str) -> dict[str, list[TrialSetting]]:
    """Return the settings of every prediction learner: step sizes, and κ for learners with a DD term."""
    alphas = ALPHAS[optimiser]
    made = {label: [TrialSetting(LEARNERS[name].setting(alpha=a)) for a in alphas] for label, name in PLAIN.items()}
    for base, name in WITH_C.items():
        made[c_name(base)] = [TrialSetting(LEARNERS[name].setting(alpha=a, c=SHARE)) for a in alphas]
    for (base, name), period in product(WITH_DD.items(), PERIODS):
        settings = [LEARNERS[name].setting(alpha=a, kappa=kappa) for kappa in KAPPAS for a in alphas]
        made[dd_name(base, period)] = [TrialSetting(setting, period) for setting in settings]
    return made


Runner = Callable[[list[Lane]], tuple[Array, Array]]  # from lanes to the measure of each lane, and further results


def tune_and_show(learners: dict[str, list[TrialSetting]], run: Runner, size: Size) -> dict[str, Any]:
    """Return, for every learner, the setting best on the tuning seeds, and its measures on the test seeds."""
    everyone = [(label, one) for label, several in learners.items() for one in several]
    lanes = [one.lane(seed, seed) for _, one in everyone for seed in range(size.tuned)]
    means = run(lanes)[0].reshape(len(everyone), size.tuned)
    found, chosen = {}, []
    for label, several in learners.items():
        places = [place for place, (name, _) in enumerate(everyone) if name == label]
        best = select(means[places])
        found[label] = several[best].facts() | {"settings": len(several), "edge": at_edge(several, best)}
        chosen.append(several[best])
    seeds = range(size.tuned, size.tuned + size.shown)
    shown, beside = run([one.lane(seed, seed) for one in chosen for seed in seeds])
    for place, facts in enumerate(found.values()):
        rows = slice(place * size.shown, (place + 1) * size.shown)
        facts |= {"errors": shown[rows].tolist(), "beside": beside[rows].tolist()}
    return found


def at_edge(several: list[TrialSetting], best: int) -> bool:
    """Return whether the selected step size is the smallest or the largest of its grid."""
    alphas = [one.setting.values["alpha"] for one in several]
    return several[best].setting.values["alpha"] in (min(alphas), max(alphas))


@cache
def drawn_streams(problem: str, size: Size) -> Streams:
    """Return the streams of all seeds of a problem."""
    return problems()[problem].streams(size.updates, range(size.tuned + size.shown))


@cache
def drawn_batches(size: Size) -> Any:
    """Return the rows of every replayed batch, (updates, seeds, BATCH), drawn from all earlier rows."""
    rng = np.random.default_rng(SEED)
    share = rng.random((size.updates, size.tuned + size.shown, BATCH))
    return (share * (1 + np.arange(size.updates))[:, None, None]).astype(np.int32)


def second_half(errors: Array) -> Array:
    """Return the mean over the second half of curves (lanes, points); inf where a lane diverged."""
    return errors[:, errors.shape[1] // 2 :].mean(axis=1)


def prediction_cell(problem: str, sampling: str, optimiser: str, size: Size) -> dict[str, Any]:
    """Return every learner of one cell, tuned and tested."""
    one = problems()[problem]
    network, streams, measure = Network(one.inputs, HIDDEN), drawn_streams(problem, size), one.measure()
    batches = drawn_batches(size) if sampling == "replay" else None
    how: dict[str, Any] = {"batches": batches, "every": min(EVERY, size.updates // 2), "optimiser": optimiser}

    def run(lanes: list[Lane]) -> tuple[Array, Array]:
        errors = run_lanes(network, lanes, streams, measure, rules=RULES, **how).errors
        return second_half(errors), errors[:, 0]

    return tune_and_show(candidates(optimiser), run, size)


def control_cell(world: str, size: Size) -> dict[str, Any]:
    """Return every agent on one environment, tuned and tested; costs are means over the second half of the steps.

    The cost is steps per episode if short episodes are good, and episodes per 1,000 steps if long ones are. The number
    of terminated episodes is also returned.
    """
    environment = find_environment(world.removesuffix("-pessimistic").replace("-", "_"))
    every = max(1, size.steps // 16)
    plan = ControlPlan(every * 16, every, first_value=WORLDS[world])
    network = Network(environment.inputs, HIDDEN)
    plain = {
        label: [TrialSetting(LEARNERS[name].setting(alpha=alpha)) for alpha in CONTROL_ALPHAS]
        for label, name in CONTROL.items()
        if "target" not in label
    }
    copied = [TrialSetting(LEARNERS["td"].setting(alpha=alpha), 1, TARGET_PERIOD) for alpha in CONTROL_ALPHAS]

    def run_with(rules: list[Rule]) -> Runner:
        def run(lanes: list[Lane]) -> tuple[Array, Array]:
            found = run_control(network, lanes, environment, plan, rules=rules)
            ended, cut = (many[:, -1] - many[:, 7] for many in (found.ended, found.cut))
            half = plan.steps / 2
            cost = half / np.maximum(ended, 1) if environment.better == "shorter" else 1000 * (ended + 0.5) / half
            return np.where(found.alive[:, -1], cost, np.inf), ended - cut

        return run

    rules = [LEARNERS[name] for name in dict.fromkeys(CONTROL.values())]
    found = tune_and_show(plain, run_with(rules), size)
    found |= tune_and_show({"Q with a target copy": copied}, run_with([LEARNERS["td"]]), size)
    return found


def kept(file: Path, size: Size, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the content of a file if it was made at this size; otherwise compute and write it."""
    if file.is_file():
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if known["size"] == list(size):
            found: dict[str, Any] = known["found"]
            return found
    made = make()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"size": list(size), "found": made}) + "\n", encoding="utf-8")
    print(file.stem, flush=True)
    return made
