"""Options and output formats that commands share.

`--out` names the results: a file, or a folder that contains a results file. Commands print text in columns, or JSON.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable
from math import isfinite
from pathlib import Path
from typing import Any

import click

from gradient_dd.errors import Unquoted, bad_request, file_path, unknown

FILE = "results.db"
RUNS = 10  # default number of runs of a sweep
OURS = (FILE, "report.html", "figures")  # every folder that a command has written contains one of these files
FOLDERS = ("results", "results-quick")  # default folders of `reproduce`

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
worker_count = click.option("--workers", type=int, help="Number of threads; default: one per core.")
dask_address = click.option("--dask", metavar="ADDRESS", help="A Dask cluster, e.g. tcp://host:8786, or 'local'.")


def found_file(context: click.Context, parameter: click.Parameter, value: str | None) -> Path:
    """Return the results file to read: `value`, the file in the folder `value`, or the first default that exists."""
    if value is not None:
        return file_at(value)
    places = [Path(FILE), *(Path(folder) / FILE for folder in FOLDERS)]
    return next((place for place in places if place.is_file()), places[0])


def file_at(value: str) -> Path:
    """Return the results file for a path: the path itself, or results.db in the folder if the path is a folder."""
    if not value:
        raise bad_request("The results file", "have a name", value)
    return Path(value) / FILE if os.path.isdir(value) else Path(value)  # noqa: PTH112  (Path.is_dir raises for long names)


def folder_at(value: str) -> Path:
    """Return the folder for a path, existing or not; raise if the folder contains other files."""
    if not value or (os.path.exists(value) and not os.path.isdir(value)):  # noqa: PTH110, PTH112  (Path raises for long names)
        raise bad_request("'--out'", "be a folder", Unquoted("a file") if value else value)
    return checked_folder("'--out'", Path(value))


def checked_folder(name: str, folder: Path) -> Path:
    """Return a folder that may be written: new, empty, or with earlier results; raise for any other folder."""
    try:
        held = [file.name for file in folder.iterdir() if not file.name.startswith(".")]
    except OSError:  # the folder does not exist, or writing will report the problem
        return folder
    if held and not set(OURS) & set(held):
        raise bad_request(
            name, "be a new folder, an empty folder or a folder of earlier results", str(folder), "Name another folder."
        )
    return folder


def found_folder(context: click.Context, parameter: click.Parameter, value: str | None) -> Path:
    """Return the folder of results to read: `value`, or the first default that exists."""
    if value is not None:
        return folder_at(value)
    return next((Path(folder) for folder in FOLDERS if (Path(folder) / FILE).is_file()), Path(FOLDERS[0]))


results_file = click.option(
    "--out",
    callback=found_file,
    type=click.Path(),
    help=f"The results file or its folder; default: {FILE}, or the results of `reproduce`.",
)
results_folder = click.option(
    "--out",
    callback=found_folder,
    type=click.Path(),
    help=f"The folder of results; default: {' or '.join(FOLDERS)}.",
)


own_rules = click.option(
    "--rule", "rules", multiple=True, metavar="FILE.py:NAME", help="A rule of your own, used as a learner."
)


def written_file(context: click.Context, parameter: click.Parameter, value: Any) -> Path:
    """Return the results file to write: `value`, or the file in the folder `value`."""
    file = file_at(value)
    if file != Path(value):
        checked_folder("'--out'", file.parent)
    return file


new_results_file = click.option(
    "--out",
    callback=written_file,
    default=FILE,
    show_default=True,
    type=click.Path(),
    help="The results file or its folder; a second call resumes.",
)


def page_path(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    """Return the path of the page to write, checked before work that may take minutes."""
    if value is None:
        return None
    page = file_path("'--report'", value)
    if not page.absolute().parent.is_dir() or (page.exists() and not page.is_file()):
        raise bad_request("'--report'", "be a file in an existing folder", value)
    return page


report_page = click.option(
    "--report",
    callback=page_path,
    type=click.Path(),
    metavar="PAGE.html",
    help="Also write an HTML report.",
)


def columns_by_role(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the columns by role, from arguments such as "reward=r" and "observation=a,b"."""
    found = {}
    for text in texts:
        role, equals, names = text.partition("=")
        if not (role and equals and names) or role in found:
            raise bad_request("'--column'", "be written ROLE=NAME or ROLE=NAME,NAME, once for each role", text)
        found[role] = names.split(",")
    return found


LOG_OPTIONS = (
    click.option(
        "--features",
        callback=lambda context, parameter, value: loaded("'--features'", value) if value and ":" in value else value,
        help="'table', 'raw', 'standard', 'quadratic', 'tiles', 'fourier', 'radial', 'polynomial', 'network' "
        "or FILE.py:NAME.",
    ),
    click.option(
        "--column",
        "columns",
        callback=columns_by_role,
        multiple=True,
        metavar="ROLE=NAME[,NAME...]",
        help="Assign columns to a role; 'gradient-dd evaluate --help' lists the roles.",
    ),
    click.option("--skip-bad-rows", is_flag=True, help="Omit rows with missing or invalid numbers."),
    click.option(
        "--confidence", type=float, default=0.95, show_default=True, help="Confidence level of the intervals."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed for dividing episodes into groups."),
    report_page,
    dask_address,
    as_json,
)


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for reading and judging a log to a command."""
    for option in reversed(LOG_OPTIONS):
        command = option(command)
    return command


def loaded(what: str, place: str) -> Any:
    """Run the Python file of a place "FILE.py:NAME", and return the object NAME in it."""
    from gradient_dd.studies.files import load_place

    file, name, module = load_place(what, place)
    if not hasattr(module, name):
        raise unknown(f"name in {file!r}", name, [one for one in vars(module) if not one.startswith("_")])
    return getattr(module, name)


def table(rows: Iterable[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Return rows in aligned columns under a header."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(text)


def with_interval(*numbers: float | None) -> str:
    """Return a value with its interval as text; None becomes a dash."""
    return "{} [{}, {}]".format(*("-" if one is None else f"{one:.4g}" for one in numbers))


def value_head(confidence: float, what: str = "value") -> str:
    """Return the name of a column of values with their intervals."""
    return f"{what} [{100 * confidence:g} % interval]"


def text_of(lines: Iterable[str | tuple[Iterable[tuple[str, ...]], tuple[str, ...]]]) -> str:
    """Return lines as one text; a pair (rows, header) becomes a table."""
    return "\n".join(line if isinstance(line, str) else table(*line) for line in lines)


def json_text(value: Any) -> str:
    """Return data as JSON; infinite and undefined numbers become null.

    Non-ASCII letters are escaped only if the output cannot show them.
    """
    plain = (getattr(sys.stdout, "encoding", None) or "").lower() not in ("utf-8", "utf8")
    return json.dumps(finite(value), ensure_ascii=plain, indent=2)


def finite(value: Any) -> Any:
    """Return the same data with None for every infinite or undefined number."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value
