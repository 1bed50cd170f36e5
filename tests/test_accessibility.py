"""Who cannot see the page well can use it: axe-core finds nothing, in light and in dark, and all text can be read."""

import json
import re
from importlib.resources import files
from importlib.util import find_spec

import pytest

from browser import browse, in_a_browser

pytestmark = [
    pytest.mark.xdist_group("reproduction"),
    in_a_browser,
    pytest.mark.skipif(
        find_spec("axe_core_python") is None, reason="no axe-core-python: accessibility was not checked"
    ),
]
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
    unsure = [node for rule in outcome["incomplete"] for node in rule["nodes"]]
    assert all(node.startswith(("<text", "<tspan")) for node in unsure), "axe cannot judge text of drawings only"
    assert outcome["ink"]
    assert all(contrast(ink, outcome["paper"]) >= READABLE for ink in outcome["ink"])
