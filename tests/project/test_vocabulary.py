"""The package and its documentation use the terms of the field."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TERMS = {
    "anew": "again",
    "effective rows": "effective sample size",
    "first weights": "initial weights",
    "fresh runs": "test runs",
    "otherwise than": "differently from",
    "shown runs": "test runs",
    "spoilt": "corrupted",
    "tell apart": "distinguish",
    "told apart": "significantly different",
    "the policy that made the log": "the logging policy",
    "what was taken for what": "columns used",
}
LATER = ("src/gradient_dd/experiments/", "src/gradient_dd/report/")  # not yet revised
FILES = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]


@pytest.mark.parametrize("term", TERMS)
def test_text_uses_the_terms_of_the_field(term):
    pattern = re.compile(rf"\b{term}\b".replace(" ", r"\s+"), re.IGNORECASE)
    revised = [file for file in FILES if not str(file.relative_to(ROOT)).startswith(LATER)]
    found = [str(file.relative_to(ROOT)) for file in revised if pattern.search(file.read_text(encoding="utf-8"))]
    assert not found, f"write {TERMS[term]!r}, not {term!r}"
