"""Drawings inside a page: the same drawing, and nothing but a drawing."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure

from gradient_dd.errors import BadRequestError
from gradient_dd.report.canvas import styled, svg_text
from gradient_dd.report.svg import DEEPEST, SVG, inline_svg

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    """A drawing with all that ours have: lines, markers, text, a clip, a hatch, an image, half transparent."""
    file = tmp_path_factory.mktemp("svg") / "drawing.svg"
    with styled():
        canvas = Figure()
        left, right = canvas.subplots(1, 2)
        left.errorbar([1, 2, 3], [1, 3, 2], yerr=0.1, fmt="o--", label="κ < 1 & 'two'", alpha=0.5)
        left.fill_between([1, 2, 3], [0, 1, 0], hatch="//")
        left.legend()
        right.pcolormesh(np.arange(12.0).reshape(3, 4), rasterized=True)
        file.write_text(svg_text(canvas), encoding="utf-8")
    return file


def as_facts(element, prefix):
    """Return an element as plain data, ids without their prefix, metadata left out."""
    facts = {key: re.sub(rf"(^|#){prefix}-", r"\1", value) for key, value in element.items()}
    if "style" in facts:  # black and white follow the page
        facts["style"] = facts["style"].replace("currentColor", "#000000").replace("var(--paper, #fff)", "#ffffff")
    inside = [as_facts(one, prefix) for one in element if one.tag != f"{SVG}metadata"]
    return element.tag, facts, (element.text or "").strip(), inside


def test_the_drawing_is_the_same(drawing):
    text = drawing.read_text(encoding="utf-8")
    page = inline_svg(drawing, "fig").replace("<svg", HEAD[:-1], 1)
    assert as_facts(ET.fromstring(page), "fig") == as_facts(ET.fromstring(text[text.index("<svg") :]), "none")


def test_black_and_white_follow_the_page(drawing):
    assert "#000000" in drawing.read_text(encoding="utf-8")
    page = inline_svg(drawing, "fig")
    assert "#000000" not in page
    assert "currentColor" in page


def test_ids_of_two_drawings_do_not_clash(drawing):
    one, two = (set(re.findall(r'id="([^"]+)"', inline_svg(drawing, name))) for name in ("one", "two"))
    assert len(one) == len(two) > 10
    assert not one & two
    links = re.findall(r'xlink:href="#([^"]+)"|url\(#([^)]+)\)', inline_svg(drawing, "one"))
    assert {link or url for link, url in links} <= one


@pytest.mark.parametrize(
    ("inside", "got"),
    [
        ("<script>alert(1)</script>", "an element 'script'"),
        ("<foreignObject><body/></foreignObject>", "an element 'foreignObject'"),
        ('<g onload="alert(1)"/>', "an attribute onload='alert(1)'"),
        ('<g onload="x"/>', "an attribute onload='x'"),
        ('<g style="fill: url(http://x.y/z)"/>', "an attribute style="),
        ('<g style="fill: expression(alert(1))"/>', "an attribute style="),
        ('<g style="\\75 rl(x)"/>', "an attribute style="),
        ("<style>@import 'x';</style>", "a style sheet"),
        ('<use xlink:href="javascript:alert(1)"/>', "a link 'javascript:alert(1)'"),
        ('<image xlink:href="data:image/svg+xml;base64,PHN2Zz4="/>', "a link 'data:image/svg+xml"),
        ('<a xlink:href="#x"/>', "an element 'a'"),
        ('<g xlink:href="#x"/>', "a link '#x'"),
        ('<set attributeName="href" to="javascript:x"/>', "an element 'set'"),
        ('<h:script xmlns:h="http://www.w3.org/1999/xhtml">1</h:script>', "an element '{http://www.w3.org/1999/xhtml}"),
        ("<g>" * DEEPEST + "</g>" * DEEPEST, "an element 'g'"),
        ("<g>", "invalid SVG"),
        ("&e;", "invalid SVG"),
    ],
)
def test_what_matplotlib_does_not_write_is_refused(inside, got, tmp_path):
    file = tmp_path / "bad.svg"
    file.write_text(f"{HEAD}{inside}</svg>", encoding="utf-8")
    with pytest.raises(BadRequestError) as caught:
        inline_svg(file, "bad")
    assert f"must be as gradient-dd drew it. Got {got}" in str(caught.value)
    assert str(caught.value).endswith("Delete it to have it drawn again.")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"hello", b"<svg", b"<svg><![CDATA[<script>]]>"])
def test_what_is_no_svg_is_refused(content, tmp_path):
    file = tmp_path / "bad.svg"
    file.write_bytes(content)
    with pytest.raises(BadRequestError, match="invalid SVG"):
        inline_svg(file, "bad")


def test_what_an_html_parser_would_read_otherwise_does_not_reach_the_page(tmp_path):
    """`<!-->` ends a comment for a browser, not for an XML parser: comments and CDATA are written again or left out."""
    file = tmp_path / "odd.svg"
    file.write_text(
        f"{HEAD}<!--><script>alert(1)</script>--><text><![CDATA[</svg><script>]]></text></svg>", encoding="utf-8"
    )
    page = inline_svg(file, "odd")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
