"""The live page in Chromium, opened from a file: what it says is what it runs, for eyes and keys and screen readers."""

import json
import re
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec

import numpy as np
import pytest
from click.testing import CliRunner

from gradient_dd import reference, tasks
from gradient_dd.cli.commands import cli
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.learners.rule import ALPHA, Rule
from gradient_dd.report.figure import COLOURS
from gradient_dd.report.play.page import live_page
from gradient_dd.studies import load_rule
from tests.browser import in_a_browser
from tools.chromium import Chromium

pytestmark = pytest.mark.xdist_group("live page")
OWN = "examples/my_rule.py:TDC_DD"
FINDING = "document.getElementById('{}-finding').textContent"


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page with a rule and a task of a user's own."""
    file = tmp_path_factory.mktemp("play") / "play.html"
    call = ["play", "--rule", OWN, "--task", "random_walk:n_states=9", "--out", str(file)]
    done = CliRunner().invoke(cli, call)
    assert done.exit_code == 0, done.output
    assert re.fullmatch(rf"Wrote {re.escape(str(file))} \(\d+ kB\)\. Open it in a browser\.\n", done.stdout)
    return file


@pytest.fixture(scope="module")
def browser(page):
    with Chromium() as one:
        one.open(page, "#runs=2&steps=1000")
        yield one
        assert one.seen == [], "the page reported no error"


def test_the_page_is_one_file(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r'\b(?:src|href)="(?!data:|#)', text)
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert len(text.encode()) < 250_000


def test_every_learner_is_on_it_in_the_colours_of_the_report(page):
    data = data_of(page.read_text(encoding="utf-8"))
    assert set(data["learners"]) == {*LEARNERS, "my_tdc_dd"}
    assert {name: data["learners"][name]["colour"] for name in COLOURS} == COLOURS
    looks = [(one["colour"], one["dash"]) for one in data["learners"].values()]
    assert len(set(looks)) == len(looks), "no two lines look the same"
    assert data["tasks"][data["first"]["task"]]["title"] == "random_walk(n_states=9)"
    assert data["first"]["learners"][-1] == "my_tdc_dd"


def test_a_label_cannot_end_the_script():
    odd = Rule("</script><b>", "</script><i>", step_of_td, ("w_x",), (ALPHA,), "Nobody.", __name__)
    text = live_page(rules={"odd.py:ODD": odd})
    assert text.count("</script>") == live_page().count("</script>")
    assert data_of(text)["learners"]["</script><b>"]["label"] == "</script><i>"


def step_of_td(alpha, rho, delta):
    return (alpha * rho * delta,)


def test_what_is_too_large_or_cannot_be_translated_is_refused(tmp_path):
    with pytest.raises(BadRequestError, match="at most 3000 outcomes"):
        live_page([tasks.dann_mdp()])
    (tmp_path / "squares.py").write_text(
        "from gradient_dd.learners.rule import ALPHA, Rule\n\n\n"
        "def step(alpha, delta):\n    return (alpha * delta**3,)\n\n\n"
        'MINE = Rule("mine", "mine", step, ("w_x",), (ALPHA,), "Me.", __name__, affine=False)\n'
    )
    done = CliRunner().invoke(
        cli, ["play", "--rule", f"{tmp_path / 'squares.py'}:MINE", "--out", str(tmp_path / "p.html")]
    )
    assert done.exit_code != 0
    assert not (tmp_path / "p.html").exists()
    assert "Line 5 of squares.py must be made of + - * / alone (a power as products)" in str(done.exception)
    with pytest.raises(BadRequestError, match="The names of your own rules must differ"):
        live_page(rules={"a.py:A": load_rule(OWN), "b.py:A": load_rule(OWN)})


@in_a_browser
@pytest.mark.parametrize("name", ["td", "gradient_dd", "etd", "natural_tdc", "my_tdc_dd"])
def test_the_weights_on_the_page_are_those_of_the_reference_engine(browser, name):
    column = "trajectory(pool.tasks[0], 5, 1, 'trajectory', 1000)"
    w = browser.run(f"Array.from(runOnce(pool.tasks[0], settingOf('{name}', {{ alpha: 0.003 }}), {column}, 50).w)")
    rule = load_rule(OWN) if name == "my_tdc_dd" else name
    assert w == reference.run(tasks.baird(), rule, steps=1000, every=50, seed=5, run=1, alpha=0.003).w.tolist()


@in_a_browser
def test_the_three_stops_say_what_the_engine_finds(browser):
    """The sentence of the walk carries the numbers of the reference engine; here for fewer and shorter runs."""

    def mean_error(name, **values):
        how = {"steps": 4000, "every": 20, "alpha": 0.2} | values
        return float(np.mean([reference.run(tasks.random_walk(), name, run=run, **how).errors for run in range(2)]))

    browser.run("plans = walk.plan; walk.plan = () => ({ ...plans(), runs: 2, steps: 4000 }); again('walk')()")
    browser.wait()
    said = browser.run(FINDING.format("walk"))
    browser.run("walk.plan = plans; again('walk')()")
    browser.wait()
    td, gtd2, dd = mean_error("td"), mean_error("gtd2"), mean_error("gradient_dd", kappa=2)
    assert f"gone {round(100 * (gtd2 - dd) / (gtd2 - td))}\u00a0% of the way" in said
    assert f"mean error {dd:.3g}, where GTD2 has {gtd2:.3g} and TD {td:.3g}" in said
    assert "TD diverges at step 900; GTD2 and Gradient-DD stay bounded" in browser.run(FINDING.format("baird"))
    assert "ends above its initial error at all 13" in browser.run(
        "document.getElementById('baird-map-finding').textContent"
    )
    assert browser.run(FINDING.format("shuffle")).endswith("The gain has vanished.")


def drag(browser, key, notch):
    browser.run(
        f"""(() => {{ const one = document.querySelector('input[data-key="{key}"]'); one.value = {notch};
        one.dispatchEvent(new Event("input")); }})()"""
    )
    browser.wait()


@in_a_browser
def test_sentences_follow_what_is_dragged(browser):
    drag(browser, "walk.kappa", 0)
    assert browser.run(FINDING.format("walk")) == "With κ = 0, Gradient-DD is GTD2: the two curves coincide."
    drag(browser, "walk.kappa", 52)
    assert "Gradient-DD diverges at step" in browser.run(FINDING.format("walk"))
    assert browser.run("document.getElementById('walk-gauge').hidden")
    drag(browser, "baird.alpha", 60)
    assert "TD, GTD2 and Gradient-DD diverge at step" in browser.run(FINDING.format("baird"))
    drag(browser, "baird.alpha", 0)
    assert "TD grows to an error of 18.9; GTD2 and Gradient-DD stay bounded" in browser.run(FINDING.format("baird"))
    browser.run("choose('walk.kappa', 1); again('walk')(); choose('walk.kappa', 13)")  # while κ = 1 is at work
    browser.wait()
    assert browser.run(FINDING.format("walk")).startswith("With κ = 1, Gradient-DD has gone")
    drag(browser, "shuffle.kappa", 0)
    assert "the same as GTD2's with the steps in order" in browser.run(FINDING.format("shuffle"))
    browser.run("document.querySelector('nav a').click()")
    words = browser.run("location.hash")
    assert "walk.kappa=13" in words
    assert "baird.alpha=0.0001" in words


@in_a_browser
def test_the_address_keeps_what_is_chosen_and_bad_ones_do_no_harm(page):
    with Chromium() as one:
        one.open(page, "#task=1&learners=td,my_tdc_dd&my_tdc_dd.kappa=3&runs=3&steps=2000&td.alpha=0.05")
        assert one.run("state['my_tdc_dd.kappa']") == 3
        assert one.run("bench.lines.map(line => line.label)") == ["TD", "my TDC-DD"]
        assert "In 2,000 steps" in one.run(FINDING.format("bench"))
        one.open(
            page,
            "#task=99&learners=nobody&td.alpha=-1&walk.alpha=-3&baird.alpha=0&walk.kappa=1e999&runs=1e9&steps=0.5&seed=x&kappa=<script>",
        )
        assert "In 200 steps" in one.run(FINDING.format("bench"))
        assert one.run(FINDING.format("walk")).startswith("With κ = 2, Gradient-DD has gone")
        assert one.seen == []


@in_a_browser
@pytest.mark.parametrize(
    "worker", ["{ throw new Error('no'); }", "{ this.postMessage = () => {}; setTimeout(() => this.onerror()); }"]
)
def test_the_page_does_the_work_itself_where_no_worker_starts(page, worker):
    with Chromium() as one:
        one.call("Page.addScriptToEvaluateOnNewDocument", source=f"window.Worker = function () {worker}")
        one.open(page, "#runs=1&steps=1000&learners=td")
        assert one.run("pool.workers.length") == 0
        assert "In 1,000 steps TD stays bounded" in one.run(FINDING.format("bench"))
        assert one.seen == []


@in_a_browser
def test_the_python_that_is_copied_makes_the_same_run(page, browser, tmp_path):
    browser.run("choose('learners', 'td,gradient_dd,my_tdc_dd'); choose('gradient_dd.rho_mode', 'T'); refreshBench()")
    browser.wait()
    program = browser.run("pythonOf(bench.plan())")
    shown = browser.run("bench.lines.map(line => line.found.meanError)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    mean_errors = [float(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()]
    assert mean_errors == pytest.approx(shown, rel=1e-9)
    assert "rho_mode" in program


@in_a_browser
def test_a_rule_with_a_trace_is_left_out_of_shuffled_data_and_named(browser):
    browser.run("choose('learners', 'td,etd'); choose('sampling', 'iid'); refreshBench()")
    browser.wait()
    assert "ETD left out: a trace needs steps in order." in browser.run(FINDING.format("bench"))
    browser.run("choose('learners', 'etd'); refreshBench()")
    assert browser.run(FINDING.format("bench")).startswith("ETD cannot learn from shuffled steps")
    browser.run("choose('sampling', 'trajectory'); choose('learners', 'td,gradient_dd'); refreshBench()")
    browser.wait()


@in_a_browser
def test_the_page_can_be_used_with_keys_alone(browser):
    browser.run("document.querySelector('#baird-map button[tabindex=\"0\"]').focus()")
    before = browser.run("state['baird.alpha']")
    for key in ("ArrowUp", "ArrowRight", "ArrowRight", "Enter"):
        browser.press(key)
    browser.wait()
    assert browser.run("state['baird.alpha']") != before
    assert browser.run("document.activeElement.closest('#baird-map') !== null"), "the focus stays where it was"
    browser.run("document.querySelector('input[data-key=\"walk.kappa\"]').focus()")
    at = browser.run("state['walk.kappa']")
    browser.press("ArrowLeft")
    browser.wait()
    assert browser.run("state['walk.kappa']") == at - 0.25


@in_a_browser
@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="no axe-core-python: accessibility was not checked")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_and_the_page_fits(page, width, scheme):
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    with Chromium(width, 844, scheme, motion="reduce") as one:
        one.open(page, "#runs=1&steps=1000")
        one.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        one.run("document.querySelector('.actions button').click()")
        one.run(axe + "; true")
        facts = "{ bad: f.violations.map(v => [v.id, v.nodes.map(n => n.html)]), good: f.passes.length }"
        found = one.run(f"axe.run().then(f => ({facts}))")
        assert found["bad"] == []
        assert found["good"] > 20
        assert one.run("document.documentElement.scrollWidth") == width
        assert one.run("document.getElementById('bench-play').hidden"), (
            "nothing moves by itself where that is not wanted"
        )
