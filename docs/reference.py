"""The pages of the site that are made from the code while it is built; `mkdocs.yml` names this file as a hook.

A learner, a task or a command is on its page because it is registered. Nothing here is committed.
"""

import re
from inspect import cleandoc, signature
from pathlib import Path
from sys import modules

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import gradient_dd
from gradient_dd.cli.commands import cli
from gradient_dd.evaluation import FINDINGS
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.report.play.page import live_page
from gradient_dd.tasks import TASKS

ROOT = Path(__file__).parent.parent
LOG = get_plugin_logger("reference")
FROM_ELSEWHERE = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]+)"')

PYTHON = {  # what the page of Python names shows, by section; the package's own classes and functions come first
    "Tasks": ("tasks.task.Task", "tasks.from_tables.from_tables", "tasks.build", "tasks.exact"),
    "Engines": (
        *("engine.reference.run", "engine.reference.ReferenceResults", "engine.lanes.run_lanes"),
        *("engine.horizon.LaneResults", "engine.horizon.Horizon", "engine.schedules"),
    ),
    "Studies and results": (
        *("studies.files", "studies.intervals"),
        *("studies.results.summary_frame", "studies.results.run_frame", "studies.results.write_frame"),
    ),
    "Contracts": ("testing.check_learner",),
    "Theory": ("theory",),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    pages = {
        "reference/learners.md": learners_page(),
        "reference/tasks.md": tasks_page(),
        "reference/command-line.md": commands_page(),
        "reference/python.md": python_page(),
        "contributing.md": page_of_the_root("CONTRIBUTING.md"),
        "changelog.md": page_of_the_root("CHANGELOG.md"),
        "live.html": live_page(preview="images/play.png"),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    """Warn, which is an error, where a page would load something from elsewhere: the site works offline."""
    for address in FROM_ELSEWHERE.findall(output):
        LOG.warning("%s loads %s", page.file.src_uri, address)


def page_of_the_root(name: str) -> str:
    """Return a page that stands beside docs/, its links to docs/ made links within the site."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def learners_page() -> str:
    """Return a section for each registered learner."""
    summary = table(("learner", "what it is"), [(f"[`{n}`](#{n})", rule.summary) for n, rule in LEARNERS.items()])
    head = "# Learners\n\nMade from the registry, `LEARNERS`. `gradient-dd show NAME` prints the same."
    return "\n\n".join([head, summary, *(learner_section(rule) for rule in LEARNERS.values())])


def learner_section(rule: Rule) -> str:
    """Return a learner's label, equation, parameters, promises, reference and file."""
    rows = [(f"`{p.name}`", p.meaning, p.legal, f"{p.default:g}") for p in rule.parameters]
    prose = [line for line in rule.doc.splitlines()[1:] if not line.startswith("    ")]
    return "\n\n".join(
        [
            f"## {rule.label} {{ #{rule.name} }}",
            rule.summary,
            f"```text\n{rule.equation}\n```",
            "\n".join(prose).strip(),
            table(("parameter", "meaning", "range", "default"), rows),
            "\n".join(f"- *{what}:* {words}" for what, words in promises(rule).items()),
            f"*Reference:* {rule.reference}",
            f"*File:* `src/{rule.module.replace('.', '/')}.py`",
        ]
    )


def promises(rule: Rule) -> dict[str, str]:
    """Return what a rule declares, in words: its cost, where it rests, whether it is stable, and its options."""
    at_rest = "the TD fixed point, A w = b" if rule.td_fixed_point else "a point of its own"
    at_rest += ", with the A and b of its trace" if rule.td_fixed_point and has_trace(rule) else ""
    twice = ". It uses a sample twice, so its mean update is stated to first order in α"
    stable = "on every task, on-policy or not, if α is small enough and ζ, where it has one, large enough"
    options = [f"`{parameter.name}`" for parameter in rule.parameters if parameter.name != "alpha"]
    options += ["`rho_mode`, the placement of ρ"] if rule.has_rho_mode else []
    return {
        "Cost of an update": cost(rule),
        "Rests at": f"{at_rest}{twice if rule.uses_sample_twice else ''}.",
        "Stable": f"{stable if rule.stable_off_policy else 'not on every task: nothing is promised off-policy'}.",
        "Options": f"{', '.join(options) or 'none but `alpha`'}.",
    }


def cost(rule: Rule) -> str:
    """Return how the work of an update grows, from what a rule moves."""
    vectors = "w and η" if rule.has_eta else "w"
    if rule.natural:
        return f"p², p being the number of weights: it keeps the inverse of a p × p matrix beside {vectors}."
    if "w_change" in rule.moves:
        return "the number of weights that have moved: the last change of w is made again, in part."
    words = f"the non-zeros of x and x', in {vectors}"
    if has_trace(rule):
        words += "; with λ > 0 also those of the trace" if rule.along_trace else ", and those of its trace"
    return f"{words}."


def has_trace(rule: Rule) -> bool:
    """Return whether one of its forms has a trace."""
    return any(form.traces for form in rule.forms)


def tasks_page() -> str:
    """Return a section for each registered task: its docstring, its parameters, its file."""
    parts = ["# Tasks\n\nMade from the registry, `TASKS`. `gradient-dd show NAME` prints the exact answers of one."]
    for name, builder in TASKS.items():
        summary, _, rest = cleandoc(modules[builder.__module__].__doc__ or "").partition("\n")
        rows = [(f"`{p.name}`", f"`{p.default!r}`") for p in signature(builder).parameters.values()]
        parts += [
            f"## `{name}` {{ #{name} }}",
            summary,
            f"```text\n{rest.strip()}\n```",
            table(("parameter", "default"), rows),
            cleandoc(builder.__doc__ or ""),
            f"*File:* `src/{builder.__module__.replace('.', '/')}.py`",
        ]
    return "\n\n".join(parts)


def findings_table(*subjects: str) -> str:
    """Return the table of the findings on these subjects, which stands in choosing.md; a test holds the two equal."""
    checks = [one for subject in subjects for one in FINDINGS.values() if one.subject == subject]
    rows = [(one.about, one.gravest, one.meaning, one.remedy) for one in checks]
    return table(("finding", "at worst", "what it means", "what to do"), rows)


def commands_page() -> str:
    """Return a section for each command, with the text of its --help."""
    parts = ["# Command line\n\nWhat `gradient-dd --help`, and `--help` after each command, print."]
    top = click.Context(cli, info_name="gradient-dd")
    parts.append(f"```text\n{cli.get_help(top)}\n```")
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=name, parent=top, max_content_width=100)
        parts += [f"## {name}", f"```text\n{command.get_help(context)}\n```"]
    return "\n\n".join(parts)


def python_page() -> str:
    """Return the names that a Python program may call, for mkdocstrings to fill in from the docstrings."""
    parts = ["# Python", "Made from the docstrings. `import gradient_dd as gdd` has the names of the first part."]
    public = [getattr(gradient_dd, name) for name in gradient_dd.__all__]
    parts += ["## The package", *(f"::: {one.__module__}.{one.__qualname__}" for one in public if callable(one))]
    for section, names in PYTHON.items():
        parts += [f"## {section}", *(f"::: gradient_dd.{name}" for name in names)]
    return "\n\n".join(parts)
