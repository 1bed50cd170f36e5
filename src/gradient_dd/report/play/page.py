"""The live page: one HTML file, without a server or a library, whose rules run while you drag a slider."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any

import numpy as np

from gradient_dd import __version__
from gradient_dd.engine.trajectories import SAMPLINGS, Alias, alias_tables
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.report import as_json, read
from gradient_dd.report.figure import COLOURS, GREEK, MADE_FROM, STRONG, colours_of
from gradient_dd.report.play.steps import maker_of
from gradient_dd.report.play.translate import SUPPORT
from gradient_dd.studies.intervals import EXPLODED
from gradient_dd.tasks import TASKS, Task, baird, boyan_chain, collision, five_state_walk, random_walk, rooms

SCRIPTS = ("pool", "chart", "sentences", "choices", "stops", "bench", "start")
DASHES = ("7 4", "2 3", "9 3 2 3", "1 5", "12 5")  # of learners that share a colour
STEPS = (1000, 2000, 5000, 10_000, 20_000, 50_000)
FIRST_LEARNERS = ("td", "gtd2", "tdc", "gradient_dd")
MOST_OUTCOMES = 3000  # of a task on a page: about 150 KB
MOST_WEIGHTS = 200
DESCRIPTION = "Learners that run while you drag: where TD diverges, what Gradient-DD adds, and when it does not help."
MARKS = (
    f"✕\u00a0diverges: more than {EXPLODED:g} times the initial error in a run. "
    "▲\u00a0grows: ends above the initial error. ·\u00a0bounded. "
    "●\u00a0fast: bounded, and the mean error is below half of the initial error. More blue: a lower mean error."
)


def live_page(tasks: Sequence[Task] = (), rules: Mapping[str, Rule] | None = None, preview: str = "") -> str:
    """Return the page. The bench begins with the first of `tasks`, if any, and with a user's own `rules`.

    The keys of `rules` are the sources they were loaded from, FILE.py:NAME. `preview` is the address of the picture
    that is shown when someone shares the page.
    """
    own = dict(rules or {})
    if len({rule.name for rule in own.values()}) < len(own):
        raise bad_request("The names of your own rules", "differ", [rule.name for rule in own.values()])
    stops = {"baird": baird(), "walk": random_walk()}
    bench = (*stops.values(), random_walk(features="linear"), boyan_chain(), five_state_walk(), collision(), rooms())
    shown = {str(task): task for task in (*bench, *tasks)}
    names, all_rules = list(shown), [*LEARNERS.values(), *own.values()]
    data = {
        "tasks": [task_data(task) | {"title": str(task), "python": python_of(task)} for task in shown.values()],
        "learners": learner_facts(all_rules, {rule.name: place for place, rule in own.items()}),
        "stops": {stop: names.index(str(task)) for stop, task in stops.items()},
        "first": {
            "task": names.index(str((*tasks, stops["baird"])[0])),
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


def task_data(task: Task) -> dict[str, Any]:
    """Return the tables of a task as plain data; features are lists of (index, value), a row for each state."""
    if len(task.outcomes.state) > MOST_OUTCOMES or task.n_features > MOST_WEIGHTS:
        rule = f"have at most {MOST_OUTCOMES} outcomes and {MOST_WEIGHTS} features, to run on a page"
        raise bad_request(f"The task {task}", rule, Unquoted(f"{len(task.outcomes.state)} and {task.n_features}"))
    columns = task.transitions._asdict()
    del columns["ends"]  # a run on the page is counted in steps
    pi, mu = task.action_probabilities
    features = task.features.tolist()
    tables = {sampling: alias_tables(task, sampling)._asdict() for sampling in SAMPLINGS}
    return {
        "name": str(task),
        "count": len(task.outcomes.state),
        "digest": [int(task.digest[:8], 16), int(task.digest[8:], 16)],
        **{name: brief(column) for name, column in columns.items()},
        "pi": brief(pi),
        "mu": brief(mu),
        "active": brief(task.active.astype(int)),
        "visits": task.visits.tolist(),
        "true_values": task.true_values.tolist(),
        "initial_weights": task.initial_weights.tolist(),
        "features": [[(place, value) for place, value in enumerate(row) if value] for row in features],
        "alias": {  # the group that follows an outcome is the row of x'
            sampling: {
                name: brief(found[name]) if name == "keep" else found[name].ravel().tolist()
                for name in Alias._fields[:4]
            }
            for sampling, found in tables.items()
        },
    }


def brief(column: np.ndarray) -> Any:
    """Return a column as a list, or as one number where all its entries are equal."""
    plain = column.ravel().tolist()
    return plain[0] if len(set(plain)) == 1 else plain


def python_of(task: Task) -> str:
    """Return the Python expression that builds a task; for a task without a builder, a placeholder."""
    if task.name not in TASKS:
        return f"...  # your own task {task.name!r}"
    words = [f'"{task.name}"', *(f"{name}={value!r}" for name, value in task.parameters.items())]
    return f"gdd.tasks.build({', '.join(words)})"


def learner_facts(rules: Sequence[Rule], places: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts and the look of each learner; `places` are the sources of a user's own rules, by name."""
    colours, alike, facts = COLOURS | colours_of([*FIRST_LEARNERS, *places]), Counter[str](), {}
    for rule in rules:
        colour, dash, place = colours[rule.name], "", places.get(rule.name)
        if rule.name in MADE_FROM or place:
            dash = DASHES[alike[colour] % len(DASHES)]
            alike[colour] += 1
        facts[rule.name] = {
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
    return facts


def engine_script(rules: Iterable[Rule]) -> str:
    """Return the JavaScript that runs rules: their steps, and the engine around them."""
    return f"{rules_script(rules)}const EXPLODED = {EXPLODED!r};\n{read('report/play/engine.js')}"


def rules_script(rules: Iterable[Rule]) -> str:
    """Return the JavaScript that defines RULES: the forms of each rule, without and with a trace."""
    made = (f"{as_json(rule.name)}: [{', '.join(map(maker_of, rule.forms))}],\n" for rule in rules)
    return f"{SUPPORT}\nconst RULES = {{\n{''.join(made)}}};\n"
