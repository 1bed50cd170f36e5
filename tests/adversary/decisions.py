"""Attacks on what answers with a decision or a page: `compare`, `rank` and `play`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import gradient_dd as gdd
from gradient_dd import LEARNERS, ranking, tasks
from gradient_dd.errors import show
from gradient_dd.report.play.page import live_page
from tests.adversary.command_line import call as run_command
from tests.adversary.command_line import task_words
from tests.adversary.logs import ODD_COLUMNS, ROWS, in_form, odd_file, sound_log
from tests.adversary.odd import TEXTS, anything, array, changed, scalar
from tests.adversary.rule import Attack, Case, described

POLICIES = "def half(seen):\n    return [[0.5, 0.5]] * len(seen)\n"


class Started(gdd.GradientDDError):
    """The arguments were taken, and the work, which is long, would begin."""


def logged(rng: Random) -> dict[str, Any]:
    """Return the columns of a sound log with actions and their probabilities."""
    columns = sound_log(rng)
    columns["action"] = np.arange(ROWS) % 2
    columns["behaviour_probability"] = np.full(ROWS, 0.5)
    columns["pi_half_0"] = columns["pi_half_1"] = np.full(ROWS, 0.5)
    columns.pop("rho", None)
    return columns


def odd_policy(rng: Random) -> Any:
    """Return an odd target policy, or a function that returns something odd."""
    answer = rng.choice([anything(rng, (ROWS, 2)), np.full((ROWS, 2), 0.7), np.full((ROWS, 3), 1 / 3), np.ones(ROWS)])
    return rng.choice([answer, lambda *seen: answer, lambda: 1, lambda seen: answer[:1], "pi_half_", "x0", "pi_"])


def sound_decisions(found: Any) -> str:
    """Return a complaint if a trusted value is not finite or lies outside its interval."""
    for row in found.table:
        numbers = [row["value"], row["low"], row["high"]]
        if row["verdict"] == "trust" and not (np.isfinite(numbers).all() and row["low"] <= row["value"] <= row["high"]):
            return f"trusts {row['value']} in [{row['low']}, {row['high']}]"
    return "" if found.sentence.isprintable() else "has a sentence of several lines"


def attack_compare(rng: Random, folder: Path) -> Case:
    """Odd policies, odd arguments, or an odd column of a log."""
    half = lambda seen: np.full((len(seen), 2), 0.5)  # noqa: E731
    good = {"discount": 0.9, "reward": None, "features": None, "columns": None, "skip_bad_rows": False}
    good |= {"targets": {"today": None, "half": half}, "confidence": 0.95, "seed": 0}
    words, columns = changed(rng, good), logged(rng)
    if rng.random() < 0.5:
        name: Any = rng.choice(["half", "", "x" * 300, "today", "a\nb", 3, None, "\x1b[31m"])
        words["targets"] = {"today": None, name: odd_policy(rng)}
    if rng.random() < 0.3:
        name = rng.choice(list(columns))
        columns[name] = ODD_COLUMNS[rng.choice(list(ODD_COLUMNS))](rng)
    if rng.random() < 0.2:
        words["discount"] = rng.choice([[0.5, 0.9], [0.9, scalar(rng)], [], (0.9, 0.9), "0.9"])
    if rng.random() < 0.2:
        words["reward"] = rng.choice(["reward", ["reward", "x0"], ["reward", "reward"], [scalar(rng)], "none", []])

    def call() -> Any:
        found = gdd.compare(columns, **words)
        return found, found.frame(), found.facts(), found.deploy, found.best, found.ties

    return Case(f"compare({described(words)})", call, complaint=lambda result: sound_decisions(result[0]))


@cache
def evaluated() -> Any:
    """Return an evaluation of a small log."""
    columns = logged(Random(0))
    return gdd.evaluate_log(columns, target=lambda seen: np.full((len(seen), 2), 0.5), discount=0.9, progress=False)


def attack_values_of_states(rng: Random, folder: Path) -> Case:
    """Odd observations and actions for the values that an evaluation gives."""
    found, n = evaluated(), rng.choice([1, 3])
    seen = rng.choice([anything(rng, (n, evaluated().dimensions)), np.zeros((n, found.dimensions))])
    action = rng.choice([anything(rng, (n,)), 0, scalar(rng)])
    if rng.random() < 0.5:
        return Case(f"Evaluation.predict({show(seen)})", lambda: found.predict(seen))
    return Case(f"Evaluation.q({show(seen)}, {show(action)})", lambda: found.q(seen, action))


def attack_compare_command(rng: Random, folder: Path) -> Case:
    """`gradient-dd compare` with an odd file, or odd words about a policy."""
    words, file = odd_file(rng, folder) if rng.random() < 0.5 else ("a log", in_form("csv", logged(rng), folder))
    policies = folder / "policies.py"
    policies.write_text(POLICIES, encoding="utf-8")
    targets = [f"{policies}:half", f"{policies}:none", f"{policies}:", "half", "x0", "pi_half_", f"{file}:f", *TEXTS]
    call = ["compare", str(file), "--target", rng.choice(targets), "--discount", rng.choice(["0.9", "0.9", "nan", "2"])]
    flags = {
        "--target": targets,
        "--reward": ["reward", "x0", *TEXTS],
        "--features": ["tiles", "raw", "none", ":"],
        "--column": ["reward=x0", "=x", "observation=x0,none", *TEXTS],
        "--confidence": ["0", "1", "nan", "0.5"],
        "--report": [str(folder), str(folder / "page.html"), "/dev/null/x", ""],
    }
    for flag in rng.sample(list(flags), k=rng.randrange(3)):
        call += [flag, rng.choice(flags[flag])]
    call = [word.replace("\0", "0") for word in call]
    text = " ".join(show(word.replace(str(folder), "FOLDER")) for word in call)
    return Case(f"gradient-dd {text} of {words}", lambda: run_command(call))


def attack_rank(rng: Random, folder: Path) -> Case:
    """Odd arguments of `rank`; the work itself, which takes a minute, is stopped where it would begin."""
    own = LEARNERS[rng.choice(["td", "tdrc", "gradient_dd"])]
    good = {"rule": own.name, "against": ("td", "tdrc"), "suite": "all", "quick": False, "workers": 1, "grid": None}
    words = changed(rng, good)
    if rng.random() < 0.3:
        words["grid"] = {rng.choice(["alpha", "reg", "x", 3]): rng.choice([(0.1, 1.0), anything(rng), [], 0.1])}
    if rng.random() < 0.2:
        words["against"] = rng.choice(["td", ["td", "td"], ["none"], [scalar(rng)], list(LEARNERS)])

    def stop(*given: Any) -> Any:
        raise Started("The work begins.")

    def call() -> Any:
        entry, ranking.make_entry = ranking.make_entry, stop
        try:
            standing = gdd.rank(**words)
            return standing.sentence, standing.frame()
        finally:
            ranking.make_entry = entry

    return Case(f"rank({described(words)})", call)


def attack_rank_command(rng: Random, folder: Path) -> Case:
    """`gradient-dd rank` with odd words, all of which must be refused before the work begins."""
    flags = {
        "--grid": ["alpha=", "=1", "x=1", "alpha=a", "alpha=nan", *TEXTS],
        "--against": ["none", ",", "td,none", *TEXTS],
        "--suite": ["none", "", *TEXTS],
        "--verify": ["none", *(one for one in TEXTS if one not in LEARNERS)],  # a learner's takes minutes
        "--workers": ["0", "-1", "a", "1e3"],
    }
    flag = rng.choice(list(flags))
    call = ["rank", *rng.choice([[], ["td"], ["none"], [f"{folder}/none.py:R"], [":"]]), flag, rng.choice(flags[flag])]
    call = [word.replace("\0", "0") for word in call]
    text = " ".join(show(word.replace(str(folder), "FOLDER")) for word in call)
    return Case(f"gradient-dd {text}", lambda: run_command(call))


def attack_play(rng: Random, folder: Path) -> Case:
    """An odd rule for the live page."""
    td = LEARNERS["td"]
    steps: list[Callable[..., Any]] = [
        td.step,
        lambda alpha, rho, delta: (alpha * rho * delta,),
        lambda alpha, rho, delta: (alpha if delta > rho else -alpha,),
        lambda *given: given,
        lambda alpha: alpha,
        lambda alpha, delta: ({alpha: delta},),
    ]
    step, label, preview = rng.choice(steps), rng.choice(["Odd", "</script>", "a\nb"]), rng.choice(TEXTS)

    def call() -> str:
        rule = gdd.Rule("odd", label, step, ("w_x",), td.parameters, "-", "x")
        return live_page([tasks.random_walk(3)], {"odd": rule}, preview)

    shown = lambda page: "" if page.startswith("<!doctype html>") else "is no page"  # noqa: E731
    return Case(f"live_page of the rule {label!r} with the preview {show(preview)}", call, complaint=shown)


def attack_play_command(rng: Random, folder: Path) -> Case:
    """`gradient-dd play` with odd words."""
    (folder / "rule.py").write_text(rng.choice(["R = 1", "1/0", POLICIES, ""]), encoding="utf-8")
    rules = [f"{folder}/rule.py:R", f"{folder}/rule.py:half", f"{folder}/none.py:R", ":", *TEXTS]
    outs = [str(folder / "a.html"), str(folder), f"{folder}/rule.py/a.html", "/dev/null/x", "/dev/null", "x" * 300, ""]
    call = ["play", "--out", rng.choice(outs)]
    call += rng.choice([[], ["--task", task_words(rng)], ["--rule", rng.choice(rules)]])
    call = [word.replace("\0", "0") for word in call]
    text = " ".join(show(word.replace(str(folder), "FOLDER")) for word in call)
    return Case(f"gradient-dd {text}", lambda: run_command(call))


def attack_report_of_odd_names(rng: Random, folder: Path) -> Case:
    """A page about policies whose names, columns and actions are hostile texts: no script, no foreign element."""
    columns, hostile = logged(rng), rng.choice(["<script>alert(1)</script>", '"><img src=x onerror=a>', "{{ 7*7 }}"])
    columns["action"] = np.array([hostile, "b"] * (ROWS // 2))
    columns[hostile] = array(rng, (ROWS,)) if rng.random() < 0.3 else np.linspace(0, 1, ROWS)
    half = lambda seen: np.full((len(seen), 2), 0.5)  # noqa: E731

    def call() -> str:
        found = gdd.compare(columns, targets={"today": None, hostile: half}, discount=0.9)
        found.report(folder / "page.html")
        return (folder / "page.html").read_text(encoding="utf-8")

    def complaint(page: str) -> str:
        raw = "<script>alert" in page or "<img src=x" in page or ">49<" in page
        return "wrote a hostile text into the page as it is" if raw else ""

    return Case(f"compare(...).report() with the name {hostile!r}", call, complaint=complaint)


ATTACKS: dict[str, Attack] = {
    name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")
}
