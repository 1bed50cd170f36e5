"""The pictures of the docs show what the present code computes, and every picture that a page shows is there."""

import json
import re

import pytest

from tools.pictures import IMAGES, PICTURES, RECORD
from tools.programs import ROOT


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_not_stale(name):
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    assert (IMAGES / f"{name}.png").is_file()
    again = f"gradient-dd reproduce walk boyan Baird; python -m tools.pictures results {name}"
    _, fingerprint_now = PICTURES[name]
    assert recorded[name] == fingerprint_now(), f"docs/images/{name}.png is stale. Make it again: {again}"


def test_every_picture_is_shown_and_every_shown_picture_is_there():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+)\.png", page.read_text(encoding="utf-8"))}
    assert {file.stem for file in IMAGES.glob("*.png")} == shown
