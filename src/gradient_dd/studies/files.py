"""Studies from TOML files and rules from Python files. An example of a study file:

name = "mine"
episodes = 2000
runs = 10
schedule = "tapered(1000)"

[[tasks]]
name = "random_walk"
n_states = 20

[[learners]]
learner = "gradient_dd"
alpha = [0.1, 0.3]
kappa = [1, 2]
"""

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

from gradient_dd.errors import BadRequestError, Unquoted, bad_request, file_path, text, unknown
from gradient_dd.files import check_regular
from gradient_dd.fingerprint import digest
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.studies.study import Study, grid, task

KEYS = ("name", "episodes", "steps", "every", "runs", "first_run", "seed", "sampling", "schedule", "tasks", "learners")


def read_study(path: str | Path, rules: dict[str, Rule] | None = None) -> Study:
    """Return the study in a TOML file; `rules` are additional learners that the file may name."""
    return study_from(study_data(path), rules)


def study_data(path: str | Path) -> dict[str, Any]:
    """Return the contents of a study file as plain data; a study without a name gets the file's name."""
    path = file_path("A study file", path)
    check_regular(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRequestError(f"Cannot read {str(path)!r}: {error.strerror or error}.") from None
    except ValueError as error:  # not TOML, not text, or a number with too many digits
        raise bad_request(f"{str(path)!r}", "be a TOML file", Unquoted(str(error))) from None
    except RecursionError:
        raise bad_request(f"{str(path)!r}", "be a TOML file", Unquoted("brackets nested too deeply")) from None
    return data | {"name": data.get("name", path.stem)}


def study_from(data: dict[str, Any], rules: dict[str, Rule] | None = None) -> Study:
    """Return the study described by plain data."""
    for key in data:
        if key not in KEYS:
            raise unknown("entry of a study:", key, KEYS)
    for key in ("tasks", "learners"):
        if not isinstance(data.get(key), list) or not all(isinstance(one, dict) for one in data[key]):
            raise bad_request(f"{key!r} of a study", f"be tables, [[{key}]]", data.get(key))
    rules, grids = rules or {}, []
    for kind, key in (("task", "name"), ("learner", "learner")):
        for one in data[f"{kind}s"]:
            if key not in one:
                raise bad_request(f"A {kind} of a study", f"have {key!r}", one)
    for one in data["learners"]:
        name = text("'learner' of a study", one["learner"])
        if name not in rules and name not in LEARNERS:
            raise unknown("learner", name, [*LEARNERS, *rules])
        grids.append(grid(**one | {"learner": rules.get(name, name)}))
    return Study(
        tasks=tuple(task(**one) for one in data["tasks"]),
        grids=tuple(grids),
        **{key: value for key, value in data.items() if key not in ("tasks", "learners")},
    )


def load_rule(place: str) -> Rule:
    """Return the rule at a place such as "my_rule.py:MY_RULE"."""
    file, name, module = load_place("A rule", place)
    rule = getattr(module, name, None)
    if not isinstance(rule, Rule):
        found = [key for key, value in vars(module).items() if isinstance(value, Rule)]
        hint = f"The file has {', '.join(found)}." if found else ""
        raise bad_request(f"{name!r} of {file!r}", "be a Rule", rule, hint)
    if rule.name in LEARNERS:
        raise bad_request(f"The name of the rule {name!r}", "not be the name of a registered learner", rule.name)
    return rule


def load_place(what: str, place: str) -> tuple[str, str, ModuleType]:
    """Run the file of "FILE.py:NAME", and return the file, the name and the module."""
    file, colon, name = text(what, place).rpartition(":")
    path = Path(file)
    if not colon or path.suffix != ".py":
        raise bad_request(what, "be given as FILE.py:NAME", place)
    if not path.is_file():
        raise BadRequestError(f"Cannot read {file!r}: No such file or directory.")
    own_name = f"rule_file_{path.stem}_{digest(str(path.resolve()))[:8]}"  # unique among modules
    spec = importlib.util.spec_from_file_location(own_name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[own_name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except (Exception, SystemExit) as error:
        del sys.modules[own_name]
        raise bad_request(f"{file!r}", "run without errors", Unquoted(f"{type(error).__name__}: {error}")) from None
    return file, name, module
