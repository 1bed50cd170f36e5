"""How a log is read: the flags that `gradient-dd evaluate` and `gradient-dd analyse --log` share."""

from collections.abc import Callable
from typing import Any

import click

from gradient_dd.errors import must, unknown

OPTIONS = (
    click.option("--discount", type=float, help="γ, unless the log has a column of discounts."),
    click.option("--target", metavar="FILE.py:NAME", help="A function (observations, actions) -> probabilities."),
    click.option("--features", help="'raw', 'standard', 'tiles', 'fourier', 'radial', 'polynomial' or FILE.py:NAME."),
    click.option("--column", "columns", multiple=True, metavar="ROLE=NAME[,NAME...]", help="Say which column is what."),
    click.option("--skip-bad-rows", is_flag=True, help="Leave out rows with missing or impossible numbers."),
)
FLAGS = {
    "discount": "--discount",
    "target": "--target",
    "features": "--features",
    "columns": "--column",
    "skip_bad_rows": "--skip-bad-rows",
}


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags that say how a log is read to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def take_log_options(flags: dict[str, Any]) -> dict[str, Any]:
    """Remove what says how a log is read from flags, and return it as `LogReader` takes it."""
    given = {name: flags.pop(name) for name in FLAGS}
    return given | {
        "target": None if given["target"] is None else loaded("'--target'", given["target"]),
        "features": loaded("'--features'", given["features"])
        if ":" in (given["features"] or "")
        else given["features"],
        "columns": columns_by_role(given["columns"]),
    }


def refuse_log_options(flags: dict[str, Any]) -> None:
    """Raise if a flag that says how a log is read is given where there is no log."""
    for name, flag in FLAGS.items():
        if not (flags[name] is None or flags[name] is False or flags[name] == ()):
            raise must(f"{flag!r}", "be left out without a log", flags[name])


def loaded(what: str, place: str) -> Any:
    """Return what a file of the user's own calls by a name."""
    from gradient_dd.studies.files import load_place

    file, name, module = load_place(what, place)
    if not hasattr(module, name):
        raise unknown(f"name in {file!r}", name, [one for one in vars(module) if not one.startswith("_")])
    return getattr(module, name)


def columns_by_role(texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the columns by role of words like "reward=r" and "observation=a,b"."""
    found = {}
    for text in texts:
        role, equals, names = text.partition("=")
        if not (role and equals and names) or role in found:
            raise must("'--column'", "be written ROLE=NAME or ROLE=NAME,NAME, once for each role", text)
        found[role] = names.split(",")
    return found
