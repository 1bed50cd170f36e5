"""Conversion of command-line arguments to studies, tasks and numbers."""

from pathlib import Path
from typing import Any

from gradient_dd.cli.options import RUNS
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, unknown
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.studies import Study, study_data, study_from
from gradient_dd.studies.study import MOST_SETTINGS
from gradient_dd.tasks import TASKS

CONDITIONS = ("episodes", "steps", "every", "runs", "seed", "sampling", "schedule")  # also keys of a study file
PARAMETERS = ("alpha", "zeta", "kappa")  # parameters with a flag of their own
GRID_FLAGS = {"tasks": "--task", "learners": "--learner", "others": "--set"} | {one: f"--{one}" for one in PARAMETERS}


def study_from_flags(flags: dict[str, Any], rules: dict[str, Rule]) -> Study:
    """Return the study that the flags of `sweep` describe; a learner gets the values of the parameters that it has."""
    known, names = {**LEARNERS, **rules}, [*flags["learners"], *rules]
    for flag, given in (("--task", flags["tasks"]), ("--learner or --rule", names)):
        if not given:
            hint = "See gradient-dd sweep --help."
            raise bad_request("A sweep", f"have a study file, or {flag}", Unquoted("neither"), hint)
    values = {name: values_of(name, flags[name]) for name in PARAMETERS if flags[name]}
    values |= values_by_name("'--set'", flags["others"])
    tables, used = [], set[str]()
    for text in names:
        name, _, mode = text.partition(":")
        if name not in known:
            raise unknown("learner", name, known)
        ours = {parameter: chosen for parameter, chosen in values.items() if parameter in known[name].defaults}
        used |= set(known[name].defaults)
        tables.append({"learner": name, **({"rho_mode": mode} if mode else {}), **ours})
    for name in values:
        if name not in used:
            raise BadRequestError(
                f"None of these learners has a parameter {name!r}. They have {', '.join(sorted(used))}."
            )
    given = {name: flags[name] for name in CONDITIONS if flags[name] is not None}
    tasks = [task_table(text) for text in flags["tasks"]]
    for task in tasks:
        if task["name"] not in TASKS:
            raise unknown("task", task["name"], TASKS)
    if not {"episodes", "steps"} & set(given):
        raise bad_request("A sweep", "have a length, --episodes N or --steps N", Unquoted("neither"))
    return study_from({"runs": RUNS} | given | {"name": "sweep", "tasks": tasks, "learners": tables}, rules)


def study_from_file(path: str, flags: dict[str, Any], rules: dict[str, Rule]) -> tuple[Study, list[str]]:
    """Return the study in a file, as changed by the flags, and a sentence for each change."""
    for name, flag in GRID_FLAGS.items():
        if flags[name]:
            got = flags[name] if isinstance(flags[name], str) else " ".join(flags[name])
            raise bad_request(repr(flag), "be omitted if a study file is given", got, "Change the file instead.")
    data = study_data(path)
    file, changes = Path(path).name, []
    for name in CONDITIONS:
        if flags[name] is not None and flags[name] != data.get(name):
            before = f"{data[name]}" if name in data else "the default"
            changes.append(f"--{name} {flags[name]} is used instead of {before} in {file}.")
            data[name] = flags[name]
    for name, others in (("episodes", ("steps", "every")), ("steps", ("episodes",))):
        for other in others:
            if flags[name] is not None and flags[other] is None and other in data:
                changes.append(f"{other} = {data.pop(other)} in {file} is ignored, because --{name} is given.")
    study = study_from(data, rules)
    for name in rules:
        if not any(table["learner"] == name for table in data["learners"]):
            raise bad_request("A rule given with a study file", "be one of the learners in the file", name)
    return study, changes


def task_table(text: str) -> dict[str, Any]:
    """Return a text such as "random_walk:n_states=40,features=linear" as the dictionary of a task."""
    name, _, parameters = text.partition(":")
    return {"name": name} | dict(assignment(part) for part in parameters.split(",") if part)


def assignment(text: str) -> tuple[str, Any]:
    """Return the name and the value in "name=value"; numbers and booleans are converted."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise bad_request("A parameter", "be written NAME=VALUE", text)
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, {"true": True, "false": False}.get(value.lower(), value)


def values_by_name(flag: str, texts: tuple[str, ...]) -> dict[str, list[float]]:
    """Return the values in arguments such as "clip=0.1,1", by parameter name."""
    found = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise bad_request(flag, "be written NAME=VALUES", text)
        found[name] = values_of(name, values)
    return found


def values_of(name: str, text: str) -> list[float]:
    """Return the numbers in "0.1,0.3" or in "1e-3..1:13", which means 13 logarithmically spaced numbers."""
    numbers: list[float] = []
    wrong = bad_request(f"The values of {name!r}", "be like 0.1,0.3 or 1e-3..1:13", text)
    for part in text.split(","):
        low, dots, rest = part.partition("..")
        high, _, count = rest.partition(":")
        try:
            first, last, steps = float(low), float(high or low), int(count) if dots else 1
        except ValueError:
            raise wrong from None
        if dots and not (0 < first < last and steps >= 2):
            raise wrong
        if steps > MOST_SETTINGS:
            got = Unquoted(f"{steps:,} values")
            raise bad_request(f"The values of {name!r}", f"be at most {MOST_SETTINGS:,} numbers", got)
        numbers += [first * (last / first) ** (i / (steps - 1)) for i in range(steps)] if dots else [first]
    return numbers
