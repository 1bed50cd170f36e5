"""Opening a page in Chromium without a window, and looking at what it makes of it."""

import json
import re
import shutil
import subprocess

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: the page was not opened")

WATCH = """<script>window.seen = []; window.onerror = function (m) { seen.push(m); };
var said = console.error; console.error = function () { seen.push([].join.call(arguments, " ")); };</script>"""
TRY = """<script>
window.addEventListener("load", function () {
  var twin = document.querySelector("details.twin"), at = function (name) { return twin.querySelector("." + name); };
  var drawn = [];
  function look() {
    var lines = [...twin.querySelectorAll(".plot .line")].map(g => ({
      name: g.dataset.label, points: [...g.querySelectorAll("circle title")].map(t => t.textContent),
      gone: [...g.querySelectorAll(".gone title")].map(t => t.textContent),
      heights: [...g.querySelectorAll("circle")].map(c => Number(c.getAttribute("cy"))) }));
    var strip = twin.querySelector(".strip + text");
    drawn.push({ lines: lines, hash: location.hash, strip: strip ? strip.textContent : "" });
  }
  function choose(name, value) { at(name).value = value; at(name).dispatchEvent(new Event("change")); look(); }
  STEPS
});</script>"""
DONE = """setTimeout(function () {
  var node = document.createElement("script"); node.type = "application/json"; node.id = "outcome";
  node.textContent = JSON.stringify({ seen: seen, drawn: drawn, open: twin.open, hidden: twin.hidden,
    requests: performance.getEntriesByType("resource").map(function (e) { return e.name; }) });
  document.body.appendChild(node);
}, 200);"""


def browse(page, place, *flags, steps=None, address=""):
    """Return the document that Chromium makes of a page, after some steps of a script."""
    shown = page.read_text(encoding="utf-8")
    if steps is not None:
        shown = shown.replace("<head>", "<head>" + WATCH, 1)
        shown = shown[: shown.rindex("</body>")] + TRY.replace("STEPS", steps + DONE) + "</body></html>"
    copy = place / "watched.html"
    copy.write_text(shown, encoding="utf-8")
    always = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    call = [
        BROWSER,
        *always,
        f"--user-data-dir={place / 'profile'}",
        *flags,
        "--virtual-time-budget=20000",
        "--dump-dom",
    ]
    done = subprocess.run([*call, copy.as_uri() + address], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout


def outcome_of(document):
    found = re.search(r'id="outcome">(.*?)</script>', document, re.DOTALL)
    assert found, document[-500:]
    return json.loads(found[1])


def run_javascript(script, place):
    """Return the data that a script leaves in `outcome`: run by Node where there is one, else by Chromium."""
    if node := shutil.which("node"):
        file = place / "script.js"
        file.write_text(script + "\nconsole.log(JSON.stringify(outcome));", encoding="utf-8")
        return json.loads(subprocess.run([node, file], capture_output=True, text=True, timeout=600, check=True).stdout)
    if BROWSER is None:
        pytest.skip("neither Node nor Chromium on this machine: the JavaScript was not run")
    page = place / "script.html"
    left = 'document.getElementById("outcome").textContent = JSON.stringify(outcome);'
    holder = '<script type="application/json" id="outcome"></script>'
    page.write_text(f"<body>{holder}<script>{script}\n{left}</script></body>", encoding="utf-8")
    return outcome_of(browse(page, place))
