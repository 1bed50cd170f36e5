"""The rules of the live page are the rules: on the same transitions they have the reference engine's bits."""

import json
import math
from functools import cache
from inspect import unwrap
from itertools import product

import numpy as np
import pytest

from gradient_dd import reference, tasks
from gradient_dd.engine.trajectories import SAMPLINGS, OutcomeSampler
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.learners.rule import ALPHA, Rule
from gradient_dd.report.play.page import engine_script, rules_script, task_data
from gradient_dd.report.play.translate import SUPPORT, javascript_of, name_in_javascript
from tests.browser import run_javascript

SEED, RUN = 3, 2
TASKS = {
    "baird": tasks.baird(),
    "random_walk": tasks.random_walk(20, features="linear"),
    "collision": tasks.collision(),
    "rooms": tasks.rooms(),
    "random_mdp": tasks.random_mdp(),
}
FORMS = [(name, lam) for name, rule in LEARNERS.items() for lam in ((0.0, 0.6) if "lam" in rule.defaults else (None,))]


def values_of(name, lam):
    """Return parameters, none of them 0 or 1, so that a factor that is left out is seen."""
    rule = LEARNERS[name]
    values = {one: 0.7 * value if value else 0.3 for one, value in rule.defaults.items()} | {"alpha": 0.004}
    return values | ({} if lam is None else {"lam": lam})


def run_in_javascript(cases, steps, place):
    """Return w and η of each case, a task, a learner and λ, as JavaScript has them after so many steps."""
    settings = [[task, {"learner": name, "values": values_of(name, lam)}] for task, name, lam in cases]
    used = {name: task_data(TASKS[name]) for name in dict.fromkeys(case[0] for case in cases)}
    script = [
        engine_script(LEARNERS.values()),
        f"const data = {json.dumps(used)}, settings = {json.dumps(settings)}, steps = {steps}, ready = {{}};",
        "for (const [name, one] of Object.entries(data)) ready[name] = prepare(one);",
        "const column = name => trajectory(ready[name], SEED, RUN, 'trajectory', steps);",
        "const walked = Object.fromEntries(Object.keys(ready).map(name => [name, column(name)]));",
        "const outcome = settings.map(([name, setting]) => runOnce(ready[name], setting, walked[name], steps))",
        "  .map(found => [Array.from(found.w), Array.from(found.eta), found.errors[0]]);",
    ]
    return run_javascript("\n".join(script).replace("SEED, RUN", f"{SEED}, {RUN}"), place)


def check_bits(cases, steps, place):
    for (task, name, lam), (w, eta, error) in zip(cases, run_in_javascript(cases, steps, place), strict=True):
        found = reference.run(TASKS[task], name, steps=steps, every=steps, seed=SEED, run=RUN, **values_of(name, lam))
        assert np.array_equal(found.w, w), (task, name, lam)
        assert np.array_equal(found.eta, eta), (task, name, lam)
        assert error == pytest.approx(found.errors[0], rel=1e-12)
        assert not np.array_equal(found.w, TASKS[task].initial_weights), "the weights moved"


def test_every_form_of_every_learner_has_the_bits_of_the_reference_engine(tmp_path):
    check_bits([(task, *form) for task, form in product(("random_mdp", "collision"), FORMS)], 250, tmp_path)


def test_the_bits_are_the_same_after_10_000_steps(tmp_path):
    check_bits([("baird", "gradient_dd", 0.0), ("collision", "tdrc", 0.6), ("rooms", "etd", 0.6)], 10_000, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_every_form_of_every_learner_after_10_000_steps(task, tmp_path):
    check_bits([(task, *form) for form in FORMS], 10_000, tmp_path)


def test_trajectories_are_those_of_the_engine(tmp_path):
    cases = [(name, seed, run, kind) for name in TASKS for seed, run in ((0, 0), (2**40 + 7, 11)) for kind in SAMPLINGS]
    script = [
        engine_script([]),
        f"const data = {json.dumps({name: task_data(task) for name, task in TASKS.items()})};",
        f"const outcome = {json.dumps(cases)}.map(([name, seed, run, sampling]) =>",
        "  Array.from(trajectory(prepare(data[name]), seed, run, sampling, 300)));",
    ]
    for (name, seed, run, kind), column in zip(cases, run_javascript("\n".join(script), tmp_path), strict=True):
        assert OutcomeSampler(TASKS[name], seed, run, kind).take(300).tolist() == column


# The translation -----------------------------------------------------------------------------------------------------

LIMIT = 0.25


def smaller_and_larger(a, b):
    return min(a, b), max(a, b, 0.5)


def absolute_and_named(a, b):
    return abs(a) * LIMIT, -a + +b - 1e-7 * 3


def chosen(a, b):
    return (a if a > b else b), (1.0 if 0 < a <= b or not b >= a else -2.0)


def in_branches(a, b):
    """Return from inside a branch."""
    if a < b:
        return b, a
    if a == b:
        a = 7.0
    else:
        b = a
    return a, b


def swapped(a, b):
    a, b = b, a / 3
    b += a
    c: float = a * b
    return a - c, b


def words_of_javascript(var, function):
    let, λ, this = var * 2, function / 2, var
    return let + λ, this


FUNCTIONS = (smaller_and_larger, absolute_and_named, chosen, in_branches, swapped, words_of_javascript)
NUMBERS = (0.0, -0.0, 1.0, -1.5, 0.1, 1 / 3, 1e300, -1e-300, math.inf, -math.inf, math.nan)


def test_a_function_does_the_same_in_both_languages(tmp_path):
    lines = [SUPPORT, "const outcome = [], word = v => Object.is(v, -0) ? '-0' : String(v);"]
    lines += [
        f"const numbers = [{', '.join(repr(n) for n in NUMBERS)}];".replace("inf", "Infinity").replace("nan", "NaN")
    ]
    for function in FUNCTIONS:
        a, b = (name_in_javascript(name) for name in function.__code__.co_varnames[:2])
        lines += [f"for (const {a} of numbers) for (const {b} of numbers) {{ let one, two;"]
        lines += [*javascript_of(function, ("one", "two")), "outcome.push([one, two].map(word)); }"]
    found = run_javascript("\n".join(lines), tmp_path)
    expected = [function(a, b) for function in FUNCTIONS for a in NUMBERS for b in NUMBERS]
    for one, other in zip(expected, found, strict=True):
        ours = [float(text.replace("Infinity", "inf")) for text in other]
        assert np.array_equal(one, ours, equal_nan=True)
        assert [math.copysign(1, x) for x in one if x == 0] == [math.copysign(1, x) for x in ours if x == 0]


def power(a, b):
    return a**2, b


def root(a, b):
    return math.sqrt(a), b


def of_a_list(a, b):
    return max([a, b]), b


def looped(a, b):
    for _ in range(2):
        a += 1
    return a, b


def one_number(a, b):
    return a + b


def truth(a, b):
    return (a if b else 1.0), b


def unpacked(a, b):
    a, *b = a, b
    return a, b


def outside(a, b):
    return a * NUMBERS, b


def ends_openly(a, b):  # noqa: RET503
    if a > b:
        return a, b


@cache
def decorated(a, b):
    return a, b


unnamed = lambda a, b: (a, b)  # noqa: E731


@pytest.mark.parametrize(
    ("function", "line", "text"),
    [
        (power, 1, "a ** 2"),
        (root, 1, "math.sqrt(a)"),
        (of_a_list, 1, "[a, b]"),
        (looped, 1, "for _ in range(2):"),
        (one_number, 1, "return a + b"),
        (truth, 1, "b"),
        (unpacked, 1, "a, *b = (a, b)"),
        (outside, 1, "NUMBERS"),
        (ends_openly, 0, "def ends_openly(a, b):"),
        (decorated, 1, "@cache"),
        (unnamed, 0, "unnamed = lambda a, b: (a, b)"),
    ],
)
def test_what_cannot_be_translated_is_refused_with_its_line(function, line, text):
    with pytest.raises(BadRequestError) as refused:
        javascript_of(function, ("one", "two"))
    said = str(refused.value)
    first = unwrap(function).__code__.co_firstlineno
    assert said.startswith(f"Line {first + line} of test_play_rules.py must be ")
    assert said.endswith(f"Got {text}.")


def test_a_function_without_source_is_refused():
    made = {}
    exec("def step(alpha, delta):\n    return (alpha * delta,)", made)
    rule = Rule("typed", "typed", made["step"], ("w_x",), (ALPHA,), "A prompt.", __name__)
    with pytest.raises(BadRequestError, match="whose source can be read"):
        rules_script([rule])
