"""The study that a results file holds, made again from what the file says of it."""

import json
import re
from pathlib import Path
from typing import Any

from gradient_dd.errors import Words, must
from gradient_dd.learners import Rule
from gradient_dd.studies import study_from
from gradient_dd.studies.results import Results
from gradient_dd.studies.store import Store
from gradient_dd.studies.stored_tasks import parsed_value

CONDITIONS = ("schedule", "episodes", "steps", "every", "sampling", "seed")
FACTS = ("learner", "rho_mode", "values", *CONDITIONS)


def stored_results(path: Path, rules: dict[str, Rule]) -> Results:
    """Return the results of the study that was started last in a file: all settings stored under its conditions.

    `rules` are the user's own, by name. Runs that not every setting has are left out.
    """
    with Store(path) as store:
        started = store.rows("SELECT name, text FROM study ORDER BY id DESC LIMIT 1")
        if not started:
            raise must(f"{str(path)!r}", "hold results", Words("none"), "Run gradient-dd sweep.")
        ((name, text),) = started
        tasks = [parsed_task(line) for line in re.findall(r"^  task +(.+)$", text, re.MULTILINE)]
        columns = ", ".join(f'"{fact}"' for fact in FACTS)
        rows = store.rows(
            f"SELECT {columns}, count(run) FROM setting JOIN result ON setting = id GROUP BY id ORDER BY id"
        )
    last = rows[-1][3:-1] if rows else ()
    ours = [row for row in rows if row[3:-1] == last]
    if not ours:
        raise must(f"{str(path)!r}", "hold results", Words("none yet"), "Run gradient-dd sweep again; it resumes.")
    conditions = {fact: value for fact, value in zip(CONDITIONS, last, strict=True) if value is not None}
    learners = {repr(row[:3]): learner_table(*row[:3]) for row in ours}
    data = conditions | {"name": name, "tasks": tasks, "learners": list(learners.values())}
    return Results(study_from(data | {"runs": min(row[-1] for row in ours)}, rules), path)


def learner_table(learner: str, rho_mode: str, values: str) -> dict[str, Any]:
    """Return a learner with one value for each of its parameters, as a study file has it."""
    return {"learner": learner, "rho_mode": rho_mode, **json.loads(values)}


def parsed_task(text: str) -> dict[str, Any]:
    """Return the table of a task from its text, e.g. "random_walk(n_states=20, features=linear)"."""
    name, _, inside = text.rstrip(")").partition("(")
    parts = [part.partition("=") for part in inside.split(", ") if part]
    return {"name": name} | {key: parsed_value(value) for key, _, value in parts}
