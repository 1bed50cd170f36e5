"""The package and its documentation use the terms of the field, in everything that a person reads."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

from tools.programs import ROOT, programs

TERMS = {  # what not to write, as a regular expression with a blank for any white space, and what to write
    r"(?:tell|tells|told|telling) (?:\w+ ){0,4}apart": "distinguish; not significantly different",
    r"spoilt": "corrupted",
    r"healthy": "valid",
    r"kinds? of": "type of",
    r"bursts?|explodes?|exploded(?!  )": "diverges",
    r"rests? at|com(?:es?|ing) to rest": "converges to",
    r"features? (?:can |cannot )?carr(?:y|ies)|carr(?:y|ies) the values": "features can represent the values",
    r"first (?:weights|errors?)": "initial weights, initial error",
    r"effective rows": "effective sample size",
    r"(?:policy|one) that made (?:the|a) (?:log|data)": "logging policy",
    r"(?:shown|fresh) runs": "test runs",
    r"doubts?": "uncertainty",
    r"(?:a|each|this|both|two|other|another|every|our) readings?|readings? of (?:the paper|it)": "variant",
    r"(?:other|wrong|upper|lower|from|own) rooms?": "package",
    r"errors? (?:at the end|over all episodes)": "final error, mean error",
    r"holds? in part": "partly holds",
    r"what was taken for what": "columns used",
    r"anew": "again",
    r"but for": "except",
    r"(?:[,;] |^)all the same(?=[,;.])": "still",
    r"otherwise than": "differently from",
}
FILES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")),
    *ROOT.glob("docs/**/*.md"),
    *(file for ending in ("py", "js", "html") for file in ROOT.glob(f"src/**/*.{ending}")),
    *(file for folder in ("docs", "examples", "tools") for file in ROOT.glob(f"{folder}/**/*.py")),
]
ALLOWED = {"the first error", "first error"}  # a label in claims.json, which the pages show as "initial error"
IN_SCRIPTS = re.compile(r"//.*|/\*.*?\*/|`[^`]*`|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)


def texts_of_python(source: str) -> list[str]:
    """Return the strings and comments of a program."""
    found = [one.value for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Constant)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return [one for one in found if isinstance(one, str)] + ["\n".join(comments)]


@cache
def prose(file: Path) -> str:
    """Return what a person reads in a file: no names in code. Strings of one word are names."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return re.sub(r"`[^`\n]+`", "`…`", source)
    if file.suffix == ".html":
        return source
    texts = texts_of_python(source) if file.suffix == ".py" else IN_SCRIPTS.findall(source)
    return "\n\n".join(text for text in texts if re.search(r"\s", text) and text not in ALLOWED)


def found(file: Path, term: str) -> list[str]:
    """Return the places of a term in a file, with what stands around it."""
    pattern = re.compile(rf"\b(?:{term})\b".replace(" ", r"\s+"), re.IGNORECASE)
    text = prose(file)
    return [
        f"{file.relative_to(ROOT)}: {' '.join(text[max(0, one.start() - 40) : one.end() + 30].split())}"
        for one in pattern.finditer(text)
        if not one[0].isupper()  # the name of a constant
    ]


@pytest.mark.parametrize("term", TERMS)
def test_text_uses_the_terms_of_the_field(term):
    assert [place for file in FILES for place in found(file, term)] == [], f"write {TERMS[term]!r}"


def test_the_programs_that_make_help_lists_use_them_too():
    listed = "\n".join(words for _, words in programs())
    used = [term for term in TERMS if re.search(rf"\b(?:{term})\b".replace(" ", r"\s+"), listed, re.IGNORECASE)]
    assert used == []
