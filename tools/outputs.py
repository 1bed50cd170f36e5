"""Write the output that the pages show again: `python -m tools.outputs [PAGE ...]`. test_docs.py compares it.

Two forms show output: a console block, below each `$ gradient-dd …` (`| head -N` and `| tail -N` keep some of the
lines), and a text block directly below a Python block. They run in a folder with a copy of examples/. Messages on
stderr are not shown.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from itertools import zip_longest
from math import isclose
from pathlib import Path

from click.testing import CliRunner

from gradient_dd.cli.commands import cli
from tools.programs import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
HERE = os.environ | {"PYTHONPATH": str(ROOT / "src")}  # this source, also where another one is installed
MARK = "\x1e"
NUMBER = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+")  # whole numbers are compared as text
CLOSE = 0.002  # relative; another BLAS or processor rounds the sums of an evaluation differently
MEASURED = re.compile(r"\d[\d.,e+-]* ?(?:s|ms|µs|min|kB|MB|GB|seconds|minutes|core-seconds)\b|\d{4}-\d\d-\d\dT[\d:+]+")


def blocks(text: str, *languages: str) -> list[str]:
    """Return the blocks of a page in these languages."""
    return [block for language, block in BLOCK.findall(text) if language in languages]


def commands(block: str, language: str) -> Iterator[list[str]]:
    """Yield the words of the commands in a block; `\\` joins two lines."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] if language == "console" else [block]
    for part in parts:
        lines = part.replace("\\\n", " ").splitlines()
        for line in lines[:1] if language == "console" else lines:
            if words := shlex.split(line, comments=True):
                yield words


def printed(words: list[str]) -> str:
    """Return what a command prints. It runs in this process, which takes less time than starting another one."""
    (program, *arguments), (end, number) = words, ("tail", "-0")
    if "|" in words:
        program, *arguments = words[: words.index("|")]
        end, number = words[-2:]
    assert (program, end) in (("gradient-dd", "head"), ("gradient-dd", "tail")), words
    run = CliRunner().invoke(cli, arguments)
    assert run.exit_code == 0, f"{words}\n{run.output}"
    lines = [f"{line.rstrip()}\n" for line in run.stdout.splitlines()]
    return "".join(lines[: -int(number)] if end == "head" else lines[int(number) :])


def with_console_output(text: str) -> str:
    """Return a page with what its console blocks print now."""

    def again(match: re.Match[str]) -> str:
        if match[1] != "console":
            return match[0]
        parts = re.findall(r"^\$ (?:.*\\\n)*.*\n", match[2], re.MULTILINE)
        shown = (part + printed(next(commands(part, "console"))) for part in parts)
        return f"```console\n{''.join(shown)}```"

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        shutil.copytree(ROOT / "examples", "examples")
        return BLOCK.sub(again, text)


def with_python_output(text: str) -> str:
    """Return a page with what its Python blocks print now. All blocks of a page are one program."""
    program = f"\nprint({MARK!r})\n".join(blocks(text, "python"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", f"{folder}/examples")
        command = [sys.executable, "-W", "error", "-c", program]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=HERE)
    assert done.returncode == 0, done.stderr
    outputs = iter(done.stdout.split(f"{MARK}\n"))

    def again(match: re.Match[str]) -> str:
        output = "".join(f"{line.rstrip()}\n" for line in next(outputs).splitlines())
        block = f"```python\n{match[1]}```"
        return f"{block}\n\n```text\n{output}```" if output else block

    return PYTHON.sub(again, text)


def blurred(text: str) -> str:
    """Return a text in which measured times and sizes, and dates, are all the same."""
    return MEASURED.sub("#", text)


def differences(shown: str, now: str) -> list[str]:
    """Return the lines that differ, as a reader sees them: not in a measured time, nor in a number's last digit."""
    lines = [blurred(text).splitlines() for text in (shown, now)]
    pairs = zip_longest(*lines, fillvalue="")
    return [f"{one}\nnow: {other}" for one, other in pairs if not alike(one, other)]


def alike(one: str, other: str) -> bool:
    """Return whether two lines differ at most in decimals, and there by one unit of the last place or a little more."""
    if NUMBER.split(one) != NUMBER.split(other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(isclose(float(a), float(b), rel_tol=CLOSE, abs_tol=1.01 * unit(a)) for a, b in pairs)


def unit(number: str) -> float:
    """Return one unit of the last place of a printed number."""
    digits, _, power = number.partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def main(*names: str) -> None:
    """Write the outputs of all pages, or of those named, again."""
    for page in [Path(name) for name in names] or PAGES:
        text = page.read_text(encoding="utf-8")
        again = with_python_output(with_console_output(text))
        if differences(text, again):
            page.write_text(again, encoding="utf-8")
            print(f"{page} has new outputs")


if __name__ == "__main__":
    main(*sys.argv[1:])
