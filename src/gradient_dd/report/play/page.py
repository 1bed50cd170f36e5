"""The live page: one HTML file, without a server or a library, on which the rules run while you drag."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any

from gradient_dd import __version__
from gradient_dd.errors import bad_request
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.report import as_json, read
from gradient_dd.report.figure import COLOURS, GREEK, MADE_FROM, STRONG, colours_of
from gradient_dd.report.play.tables import rules_script, task_data
from gradient_dd.studies.intervals import EXPLODED
from gradient_dd.tasks import TASKS, Task, build

SCRIPTS = ("pool", "chart", "sentences", "choices", "stops", "bench", "start")
DASHES = ("7 4", "2 3", "9 3 2 3", "1 5", "12 5")  # of learners that share a colour, one after the other
STEPS = (1000, 2000, 5000, 10_000, 20_000, 50_000)
NamedTask = tuple[str, dict[str, Any]]
BAIRD: NamedTask = ("baird", {})
WALK: NamedTask = ("random_walk", {})
BENCH: tuple[NamedTask, ...] = (
    BAIRD,
    WALK,
    ("random_walk", {"features": "linear"}),
    ("boyan_chain", {}),
    ("five_state_walk", {}),
    ("collision", {}),
    ("rooms", {}),
)
FIRST_LEARNERS = ("td", "gtd2", "tdc", "gradient_dd")
DESCRIPTION = "Learners that run while you drag: where TD diverges, what Gradient-DD adds, and when it does not help."
MARKS = (
    f"✕\u00a0diverges: more than {EXPLODED:g} times the initial error in a run. "
    "▲\u00a0grows: ends above the initial error. ·\u00a0bounded. "
    "●\u00a0fast: bounded, and the mean error is below half of the initial error. More blue: a lower mean error."
)


def live_page(tasks: Sequence[Task] = (), rules: Mapping[str, Rule] | None = None, preview: str = "") -> str:
    """Return the page. The bench begins with the first of `tasks`, if any, and with `rules`, a user's own.

    `rules` are named by the place they were read from, FILE.py:NAME. `preview` is the address of a picture that is
    shown where someone shares the page.
    """
    own = dict(rules or {})
    if len({rule.name for rule in own.values()}) < len(own):
        raise bad_request("The names of your own rules", "differ", [rule.name for rule in own.values()])
    shown = {str(task): task for task in (*(build(name, **parameters) for name, parameters in BENCH), *tasks)}
    names = list(shown)
    all_rules = [*LEARNERS.values(), *own.values()]
    places = {rule.name: place for place, rule in own.items()}
    data = {
        "tasks": [task_data(task) | {"title": str(task), "python": python_of(task)} for task in shown.values()],
        "learners": learner_facts(all_rules, places),
        "stops": {"baird": BENCH.index(BAIRD), "walk": BENCH.index(WALK)},
        "first": {
            "task": names.index(str(tasks[0])) if tasks else BENCH.index(BAIRD),
            "learners": [*FIRST_LEARNERS, *(rule.name for rule in own.values())],
        },
    }
    return Template(read("report/play/page.html")).substitute(
        description=DESCRIPTION,
        preview=f'<meta property="og:image" content="{preview}">' if preview else "",
        style="".join(read(f"report/{name}.css") for name in ("common", "style", "play/style")),
        steps="".join(f'<option value="{steps}">{steps:,}</option>' for steps in STEPS),
        marks=MARKS,
        version=__version__,
        data=as_json(data),
        engine=engine_script(all_rules),
        script="\n".join(read(f"report/play/{name}.js") for name in SCRIPTS),
    )


def engine_script(rules: Iterable[Rule]) -> str:
    """Return the JavaScript that runs rules: their steps, and the engine around them."""
    return f"{rules_script(rules)}const EXPLODED = {EXPLODED!r};\n{read('report/play/engine.js')}"


def python_of(task: Task) -> str:
    """Return the Python that makes a task; a gap to fill for one that has no builder."""
    if task.name not in TASKS:
        return f"...  # your own task {task.name!r}"
    words = [f'"{task.name}"', *(f"{name}={value!r}" for name, value in task.parameters.items())]
    return f"gdd.tasks.build({', '.join(words)})"


def learner_facts(rules: Sequence[Rule], places: Mapping[str, str]) -> dict[str, Any]:
    """Return what the page shows of each learner, and how it is drawn; `places` says where a user's own was read."""
    colours = COLOURS | colours_of([*FIRST_LEARNERS, *places])
    alike = Counter[str]()
    facts = {}
    for rule in rules:
        colour, dash = colours[rule.name], ""
        if rule.name in MADE_FROM or rule.name in places:
            dash = DASHES[alike[colour] % len(DASHES)]
            alike[colour] += 1
        facts[rule.name] = rule_facts(rule, colour, dash, places.get(rule.name))
    return facts


def rule_facts(rule: Rule, colour: str, dash: str, place: str | None) -> dict[str, Any]:
    """Return what the page shows of a learner."""
    return {
        "label": rule.label,
        "colour": colour,
        "dash": dash,
        "strong": colour == STRONG,
        "equation": rule.equation,
        "traced": bool(rule.traces),
        "hasRhoMode": rule.has_rho_mode,
        "load": f"load_rule({json.dumps(place)})" if place else None,
        "parameters": [
            {
                "name": one.name,
                "symbol": GREEK.get(one.name, one.name),
                "meaning": one.meaning,
                "default": one.default,
                "positive": one.positive,
                "high": one.high if one.high < float("inf") else None,
            }
            for one in rule.parameters
        ],
    }
