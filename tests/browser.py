"""Opening a page in Chromium without a window, and looking at what it makes of it."""

import json
import re
import shutil
import subprocess

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: the page was not opened")


def browse(page, place, *flags):
    """Return the document that Chromium makes of a page."""
    always = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    call = [
        BROWSER,
        *always,
        f"--user-data-dir={place / 'profile'}",
        *flags,
        "--virtual-time-budget=20000",
        "--dump-dom",
    ]
    done = subprocess.run([*call, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)
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
