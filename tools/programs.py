"""List the programs of trials/ and benchmarks/ with what they do, and give them their parser and their tables.

python tools/programs.py        what `make help` prints
"""

import ast
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("trials", "benchmarks")


def programs() -> Iterator[tuple[str, str]]:
    """Yield the name of every program, e.g. "trials.advice", and the first line of its docstring."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).glob("*.py")):
            words = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
            assert words, f"{file} must say in its first line what it does."
            yield f"{folder}.{file.stem}", words.splitlines()[0]


def parser_of(words: str | None) -> ArgumentParser:
    """Return a parser of arguments whose `--help` prints a program's docstring, `words`, as it is written."""
    return ArgumentParser(description=words, formatter_class=RawDescriptionHelpFormatter)


def print_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows in aligned columns under a head."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip(), flush=True)


if __name__ == "__main__":
    listed = dict(programs())
    wide = max(map(len, listed))
    for name, words in listed.items():
        print(f"{name:{wide}}  {words}")
