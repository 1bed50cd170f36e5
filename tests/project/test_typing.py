"""The public surface: `mypy --strict` passes on a user's script with every name; an old name warns."""

import subprocess
import sys
from pathlib import Path

import pytest

import gradient_dd as gdd

ROOT = Path(__file__).parents[2]
SCRIPT = """
from pathlib import Path

import numpy as np

import gradient_dd as gdd
from gradient_dd.exact import mspbe
from gradient_dd.features import TileCoder
from gradient_dd.schedules import tapered

task: gdd.tasks.Task = gdd.tasks.random_walk(n_states=20)
built = gdd.TASKS["boyan_chain"](n_features=20)
error: float = task.rmsve(task.initial_weights) + mspbe(np.zeros(20), *task.moments)


def step(delta: float, alpha: float) -> tuple[float, ...]:
    return (alpha * delta,)


alpha = gdd.Parameter("alpha", "step size of w", default=0.1, positive=True)
rule: gdd.Rule = gdd.Rule("mine", "mine", step, ("w_x",), (alpha,), "none", __name__)
gdd.register(rule)
setting: gdd.Setting = gdd.LEARNERS["td"].setting(alpha=0.1)
notes: list[str] = gdd.testing.check_learner(rule)
trace = gdd.reference.run(task, "td", episodes=5, alpha=0.1)
final: float = float(trace.errors[-1])

agent = gdd.Learner("gradient_dd", n_features=8, alpha=0.05, kappa=1.0)
x, x_next = np.zeros(8), np.ones(8)
agent.update(x, 1.0, 0.9, x_next, rho=1.0)
values = agent.predict(np.zeros((3, 8)))
total: float = float(values.sum())
agent.save("agent.npz")
again: gdd.Learner = gdd.Learner.load(Path("agent.npz"))
auto = gdd.AutoLearner(n_features=8)
auto.update(x, 1.0, 0.9, x_next)

question = gdd.Question("bump", cumulant="reward", discount=0.9)
horde = gdd.Questions([question], n_features=8, learner="tdrc", alpha=0.01)
net = gdd.Network(inputs=4, hidden=(64, 64))
deep = gdd.NetworkLearner("gradient_dd", net, alpha=0.05)
control = gdd.NetworkControl("tdrc", gdd.Network(inputs=4, outputs=2), actions=2, alpha=0.05)
coder = TileCoder([0.0], [1.0], tilings=4, tiles=4)
again_coder = gdd.features.TileCoder

study = gdd.Study(
    "mine",
    tasks=["random_walk", gdd.task("baird"), task],
    grids=[gdd.grid("td", alpha=(0.1, 0.3)), gdd.grid(rule, alpha=[0.1])],
    schedule="tapered(1000)",
    episodes=100,
    runs=2,
)
other: gdd.Study = gdd.studies.read_study("study.toml")
results: gdd.Results = gdd.run(study, out="results.db")
settings, errors = results.errors(str(task))
best = results.best_frame()
rows: int = len(results.frame())
taper = tapered(1000)
same = gdd.schedules.tapered(1000)
A = gdd.exact.inverse(task.moments.A)

try:
    found = gdd.evaluate_log("log.csv", discount=0.9)
    value: float | None = found.start_value
    compared = gdd.compare("log.csv", targets={"today": None}, discount=0.99)
    sentence: str = compared.sentence
    played = gdd.evaluate(None, target=np.ones((2, 2)), discount=0.9)
    log = gdd.collect(None, np.ones((2, 2)), steps=10)
    standing = gdd.rank(rule, quick=True)
    words: str = standing.sentence
except gdd.BadRequestError as bad:
    print(bad)
except (gdd.DivergedError, gdd.GradientDDError) as worse:
    print(worse)
"""


def errors_in(script: Path) -> list[str]:
    """Return the errors that mypy finds in a script; the cache makes the second call quick."""
    words = ["--strict", "--follow-imports=silent", "--cache-dir", str(ROOT / ".mypy_cache" / "user"), "--no-pretty"]
    call = [sys.executable, "-m", "mypy", *words, str(script)]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=script.parent)
    return [line for line in done.stdout.splitlines() if "error:" in line] + done.stderr.splitlines()


def test_the_script_uses_every_public_name():
    assert [name for name in gdd.__all__ if f"gdd.{name}" not in SCRIPT] == []


def test_a_script_with_every_public_name_is_typed(tmp_path):
    pytest.importorskip("mypy")
    script, wrong = tmp_path / "script.py", ("agent.weights", "study.runs = 3", "text: str = results.frame")
    script.write_text(SCRIPT + "\n".join(wrong))
    first = len(SCRIPT.splitlines()) + 1
    found = [int(line.split(":")[1]) for line in errors_in(script)]
    assert found == list(range(first, first + len(wrong))), "only the last lines are wrong, and all of them"
