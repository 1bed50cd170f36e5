"""Who cannot see the page well can use it: axe-core finds nothing, in light and in dark, and all text can be read."""

import json
import re
from importlib.resources import files
from importlib.util import find_spec
from itertools import pairwise

import pytest

from gradient_dd.report.figure import BLACK, BLUE, GREEN, ORANGE, PURPLE, RAMP, RED, SKY, YELLOW
from tests.browser import browse, in_a_browser

pytestmark = [
    pytest.mark.xdist_group("reproduction"),
    in_a_browser,
    pytest.mark.skipif(
        find_spec("axe_core_python") is None, reason="no axe-core-python: accessibility was not checked"
    ),
]
MISSING = "no axe-core-python here: accessibility was not checked"
COLOURS = (BLACK, SKY, ORANGE, GREEN, RED, PURPLE, BLUE, YELLOW)
SEEN = 3.0  # contrast of a line and its background
READABLE = 4.5  # contrast of text and its background
RUN = """<script>addEventListener("load", () => {
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  const ink = [...document.querySelectorAll("svg text")].map(one => getComputedStyle(one).fill);
  const paper = getComputedStyle(document.body).backgroundColor;
  setTimeout(() => axe.run().then(found => {
    const told = rules => rules.map(rule => ({ id: rule.id, nodes: rule.nodes.map(one => one.html) }));
    const outcome = { violations: told(found.violations), incomplete: told(found.incomplete),
      passes: found.passes.map(rule => rule.id), ink: [...new Set(ink)], paper: paper };
    const node = document.createElement("script");
    node.type = "application/json"; node.id = "axe-outcome";
    node.textContent = JSON.stringify(outcome).replace(/</g, "\\\\u003c");
    document.body.appendChild(node);
  }), 300);
});</script>"""


def luminance(colour):
    """Return the relative luminance of "rgb(r, g, b)", as WCAG has it."""
    shares = [int(one) / 255 for one in re.findall(r"\d+", colour)[:3]]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in shares]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def rgb(colour):
    return f"rgb({int(colour[1:3], 16)}, {int(colour[3:5], 16)}, {int(colour[5:7], 16)})"


@pytest.mark.parametrize("paper", ["#ffffff", "#16181c"])
@pytest.mark.parametrize("colour", [*COLOURS, *RAMP])
def test_lines_can_be_seen_on_light_and_dark_paper(colour, paper):
    assert contrast(rgb(colour), rgb(paper)) >= SEEN


def test_a_ramp_is_one_in_grey_too():
    shades = [luminance(rgb(colour)) for colour in RAMP]
    assert shades == sorted(shades)
    assert min(b - a for a, b in pairwise(shades)) > 0.03


@in_a_browser
@pytest.mark.skipif(find_spec("axe_core_python") is None, reason=MISSING)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_all_text_can_be_read(made, tmp_path, scheme):
    page = made[1].page.read_text(encoding="utf-8")
    if scheme == "dark":
        page = page.replace("@media (prefers-color-scheme: dark)", "@media all")
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8").replace("</script", "<\\/script")
    (tmp_path / "axe.html").write_text(
        page[: page.rindex("</body>")] + f"<script>{axe}</script>{RUN}</body></html>", encoding="utf-8"
    )
    found = re.search(r'id="axe-outcome">(.*?)</script>', browse(tmp_path / "axe.html", tmp_path), re.DOTALL)
    outcome = json.loads(found[1])
    assert outcome["violations"] == []
    assert {"color-contrast", "image-alt", "label", "region"} & set(outcome["passes"]), "axe looked at something"
    assert {rule["id"] for rule in outcome["incomplete"]} <= {"color-contrast"}
    unsure = {node.partition(">")[0].split()[0] for rule in outcome["incomplete"] for node in rule["nodes"]}
    assert unsure <= {"<text", "<span"}, "axe cannot judge the text of drawings and the markers of legends"
    assert outcome["ink"]
    assert all(contrast(ink, outcome["paper"]) >= READABLE for ink in outcome["ink"])
