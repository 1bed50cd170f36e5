"""The pages of the site that are made from the code while it is built; `mkdocs.yml` names this file as a hook.

A learner, a task or a command is on its page because it is registered. Nothing here is committed.
"""

import re
from inspect import cleandoc, signature
from pathlib import Path
from sys import modules as loaded
from types import ModuleType

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import gradient_dd
from gradient_dd.cli.commands import cli
from gradient_dd.evaluation import FINDINGS
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.report.play.page import live_page
from gradient_dd.tasks import TASKS

ROOT = Path(__file__).parent.parent
LOG = get_plugin_logger("reference")
FROM_ELSEWHERE = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]+)"')

PYTHON = {  # the page of Python names by section; the classes and functions of the package itself come first
    "Features": ("stream.features",),
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

FINDINGS_BY_TITLE = {"The log": ("data", "ratios", "rows"), "The value": ("policy", "states", "learner")}
CLAIMS_BY_TITLE = {"paper": "Claims of the paper", "time": "A claim on time", "ours": "Claims of this project"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    pages = {
        "reference/learners.md": learners_page(),
        "reference/tasks.md": tasks_page(),
        "reference/command-line.md": commands_page(),
        "reference/python.md": python_page(),
        "reference/findings.md": findings_page(),
        "reference/claims.md": claims_page(),
        "contributing.md": page_of_the_root("CONTRIBUTING.md"),
        "changelog.md": page_of_the_root("CHANGELOG.md"),
        "live.html": live_page(preview="images/play.png"),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Return a page that can be used with keys alone. Warn, which fails the build, if it loads from another site."""
    for address in FROM_ELSEWHERE.findall(output):
        LOG.warning("%s loads %s", page.file.src_uri, address)
    named = output.replace('data-md-component="search" role="dialog"', 'data-md-component="search" role="search"')
    return named.replace("<pre><span></span><code>", '<pre><span></span><code tabindex="0">')


def page_of_the_root(name: str) -> str:
    """Return a page from outside docs/; its links to docs/ become links within the site."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def learners_page() -> str:
    """Return a section for each registered learner."""
    summary = table(("learner", "what it is"), [(f"[`{n}`](#{n})", rule.summary) for n, rule in LEARNERS.items()])
    head = "# Learners\n\nGenerated from the registry `LEARNERS`. `gradient-dd show NAME` prints the same."
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
    """Return what a rule declares, in words: its cost, its fixed point, its stability and its options."""
    at_rest = "the TD fixed point, A w = b" if rule.td_fixed_point else "another point than the TD fixed point"
    at_rest += ", with the A and b of its trace" if rule.td_fixed_point and has_trace(rule) else ""
    twice = ". It uses a sample twice, so its mean update is stated to first order in α"
    stable = (
        "its mean update over independent draws, on every task with regular A and C, for small α, other parameters "
    )
    stable += "fixed" + (", and ζ large enough" if "zeta" in rule.defaults else "")
    options = [f"`{parameter.name}`" for parameter in rule.parameters if parameter.name != "alpha"]
    options += ["`rho_mode`, the placement of ρ"] if rule.has_rho_mode else []
    return {
        "Cost of an update": cost(rule),
        "Fixed point": f"{at_rest}{twice if rule.uses_sample_twice else ''}.",
        "Stable": f"{stable if rule.stable_off_policy else 'not on every task; nothing is promised off-policy'}.",
        "Options": f"{', '.join(options) or 'none but `alpha`'}.",
    }


def cost(rule: Rule) -> str:
    """Return how the work of an update grows, from what a rule moves."""
    vectors = "w and η" if rule.has_eta else "w"
    if rule.natural:
        return f"p², p being the number of weights: it keeps the inverse of a p × p matrix beside {vectors}."
    if "w_change" in rule.moves:
        return "the number of weights that have moved, because a part of the last change of w is repeated."
    words = f"the non-zeros of x and x', in {vectors}"
    if has_trace(rule):
        words += "; with λ > 0 also those of the trace" if rule.along_trace else ", and those of its trace"
    return f"{words}."


def has_trace(rule: Rule) -> bool:
    """Return whether one of its forms has a trace."""
    return any(form.traces for form in rule.forms)


def tasks_page() -> str:
    """Return a section for each registered task: its docstring, its parameters, its file."""
    parts = ["# Tasks\n\nGenerated from the registry `TASKS`. `gradient-dd show NAME` prints the exact answers of one."]
    for name, builder in TASKS.items():
        summary, _, rest = cleandoc(loaded[builder.__module__].__doc__ or "").partition("\n")
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


def findings_page() -> str:
    """Return the registry of findings as two tables."""
    parts = [
        "# Findings",
        "Generated from the registry `gradient_dd.evaluation.FINDINGS`. *At worst* is the gravest level that a finding "
        "can have. [When to trust a value](../explanation/when-to-trust.md) explains how they make a verdict.",
    ]
    for title, subjects in FINDINGS_BY_TITLE.items():
        checks = [one for subject in subjects for one in FINDINGS.values() if one.subject == subject]
        rows = [(one.about, one.gravest, one.meaning, one.remedy) for one in checks]
        parts += [f"## {title}", table(("finding", "at worst", "what it means", "what to do"), rows)]
    return "\n\n".join(parts)


def claims_page() -> str:
    """Return every figure with its study, and every claim with its criterion."""
    figures = [(f"`{name}`", one.title, one.study) for name, one in FIGURES.items()]
    drawings = [(f"`{name}`", one.title) for name, one in DRAWINGS.items()]
    parts = [
        "# Figures and claims",
        "Generated from the code. [The paper, claim by claim](../evidence/paper.md) has the verdicts.",
        "## Figures\n\n`gradient-dd reproduce NAME` makes one. Names are LaTeX labels of the paper.",
        table(("figure", "shows", "study"), figures),
        "## Drawings\n\n`gradient-dd plot NAME` makes one from exact theory, in seconds.",
        table(("drawing", "shows"), drawings),
    ]
    for source, title in CLAIMS_BY_TITLE.items():
        rows = [
            (f"`{one.name}`", one.where, one.statement, one.ask.criterion, ", ".join(one.studies) or "theory")
            for one in CLAIMS
            if one.source == source
        ]
        parts += [f"## {title}", table(("claim", "section", "statement", "criterion", "study"), rows)]
    return "\n\n".join(parts)


def commands_page() -> str:
    """Return a section for each command, with the text of its --help."""
    parts = ["# Command line\n\nThe output of `gradient-dd --help` and of `--help` after each command."]
    top = click.Context(cli, info_name="gradient-dd")
    parts.append(f"```text\n{cli.get_help(top)}\n```")
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=name, parent=top, max_content_width=100)
        parts += [f"## {name}", f"```text\n{command.get_help(context)}\n```"]
    return "\n\n".join(parts)


def sentences(module: ModuleType) -> str:
    """Return the first line of a module's docstring, without a last sentence that introduces what follows."""
    line = (module.__doc__ or "").splitlines()[0]
    return line if line.endswith(".") else line[: line.rindex(". ") + 1]


def python_page() -> str:
    """Return the public names; mkdocstrings fills in the docstrings."""
    head = "# Python\n\nGenerated from the docstrings. `import gradient_dd as gdd` has the names of the first section."
    public = {name: getattr(gradient_dd, name) for name in gradient_dd.__all__}
    registries = {"LEARNERS": "The registered [learners](learners.md).", "TASKS": "The registered [tasks](tasks.md)."}
    modules = {name: sentences(one) for name, one in public.items() if isinstance(one, ModuleType)}
    others = [(f"`{name}`", what) for name, what in {**registries, **modules}.items()]
    parts = [head, "## The package", table(("module or registry", "what it is"), others)]
    parts += [f"::: {one.__module__}.{one.__qualname__}" for one in public.values() if callable(one)]
    for section, names in PYTHON.items():
        parts += [f"## {section}", *(f"::: gradient_dd.{name}" for name in names)]
    return "\n\n".join(parts)
