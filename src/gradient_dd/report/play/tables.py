"""Tasks and rules as the live page has them: the table of a task as JSON, the rules as JavaScript with their facts."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradient_dd.engine.trajectories import SAMPLINGS, Alias, alias_tables
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Rule
from gradient_dd.report import as_json
from gradient_dd.report.play.steps import maker_of
from gradient_dd.report.play.translate import SUPPORT
from gradient_dd.tasks import Task

MOST_OUTCOMES = 3000  # of a task on a page: about 150 KB
MOST_WEIGHTS = 200


def task_data(task: Task) -> dict[str, Any]:
    """Return all that the page needs of a task; features are lists of (index, value), a row for each state."""
    if len(task.outcomes.state) > MOST_OUTCOMES or task.n_features > MOST_WEIGHTS:
        rule = f"have at most {MOST_OUTCOMES} outcomes and {MOST_WEIGHTS} features, to run on a page"
        raise bad_request(f"The task {task}", rule, Unquoted(f"{len(task.outcomes.state)} and {task.n_features}"))
    columns = task.transitions._asdict()
    del columns["ends"]  # a run on the page is counted in steps
    pi, mu = task.action_probabilities
    X = task.row_features
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
        "features": [sparse_row(X[place].toarray()[0]) for place in range(task.n_states)],
        "alias": {sampling: alias_data(task, sampling) for sampling in SAMPLINGS},
    }


def brief(column: np.ndarray) -> Any:
    """Return a column as a list, or as one number where all of it is the same."""
    plain = column.ravel().tolist()
    return plain[0] if len(set(plain)) == 1 else plain


def sparse_row(dense: np.ndarray) -> list[tuple[int, float]]:
    """Return the places and the values that are not 0, in order."""
    return [(int(place), float(dense[place])) for place in np.flatnonzero(dense)]


def alias_data(task: Task, sampling: str) -> dict[str, Any]:
    """Return the alias tables; which group comes after an outcome follows from the task."""
    tables = alias_tables(task, sampling)
    return {
        name: brief(getattr(tables, name)) if name == "keep" else getattr(tables, name).ravel().tolist()
        for name in Alias._fields[:4]
    }


def rules_script(rules: Iterable[Rule]) -> str:
    """Return the JavaScript that defines RULES: of each rule its forms, without and with a trace."""
    made = (f"{as_json(rule.name)}: [{', '.join(map(maker_of, rule.forms))}],\n" for rule in rules)
    return f"{SUPPORT}\nconst RULES = {{\n{''.join(made)}}};\n"
