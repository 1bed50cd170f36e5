"""The shipped standings, and rules that are ranked among them on a few problems."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import gradient_dd as gdd
from gradient_dd.cli.commands import cli
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Parameter
from gradient_dd.learners.rule import ALPHA
from gradient_dd.ranking import standings
from gradient_dd.ranking.standing import ordinal
from gradient_dd.ranking.standings import FILE, make_entry, read_standings, same, shipped, shipped_learners, verify
from gradient_dd.ranking.suites import SUITES, problems_of

BY_NAME = {one.name: one for one in SUITES["all"]}
FEW = tuple(BY_NAME[name] for name in ("walk-5-tabular", "on-policy-1", "unstable-1"))
CLIPPED_FILE = f"{Path(__file__).parents[2] / 'examples' / 'clipped_td.py'}:CLIPPED_TD"
CHECKED = [  # the first has the kernel of the one-hot walk, the second that of dense rows and two weight vectors
    ("td", "walk-5-tabular"),
    ("gradient_dd", "on-policy-1"),
    pytest.param("tdrc", "unstable-1", marks=pytest.mark.slow),
    pytest.param("abtd", "large-1", marks=pytest.mark.slow),
]
TWIN = replace(LEARNERS["td"], name="td_again", label="TD again")


def wrong_step(alpha, rho, delta):
    return (-alpha * rho * delta,)


def diverging_step(alpha, rho, delta):
    return (alpha * 1e9 * rho * delta,)


WRONG = replace(LEARNERS["td"].plain, name="wrong", label="TD with a wrong sign", step=wrong_step)
DIVERGING = replace(WRONG, name="diverging", label="diverging", step=diverging_step)
CLIPPED = replace(WRONG, name="clipped", parameters=(ALPHA, Parameter("clip", "bound of δ", 1.0)))


@pytest.fixture
def few_problems(monkeypatch):
    monkeypatch.setitem(SUITES, "all", FEW)


def test_the_file_is_small_and_has_every_learner_on_every_problem():
    assert FILE.stat().st_size <= 400_000
    assert str(standings.VERSION) in FILE.name
    assert set(shipped_learners()) <= set(LEARNERS)
    assert {"td", "tdrc", "gradient_dd"} <= set(shipped_learners())
    assert set(read_standings()) == {(name, one.name) for name in shipped_learners() for one in SUITES["all"]}


def test_the_shipped_entries_are_of_these_rules_problems_search_and_engine():
    assert shipped(shipped_learners(), problems_of("all")) == read_standings()


@pytest.mark.parametrize(("learner", "problem"), CHECKED)
def test_the_shipped_numbers_come_out_again_bit_for_bit(learner, problem):
    assert same(read_standings()[learner, problem], make_entry(LEARNERS[learner], BY_NAME[problem]))


def test_a_changed_definition_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("gradient_dd.ranking.standings.ENGINE_VERSION", -1)
    with pytest.raises(BadRequestError, match="no entry for this td on this walk-5-tabular"):
        shipped(["td"], FEW)


def test_verify_names_the_problems_that_differ(monkeypatch):
    assert verify("td", FEW[:1]) == []
    wrong = read_standings()["td", FEW[0].name]._replace(setting={"alpha": 0.5})
    monkeypatch.setattr(standings, "make_entry", lambda rule, problem: wrong)
    assert verify("td", FEW[:1]) == [FEW[0].name]


def test_td_under_another_name_ties_with_td_bit_for_bit(few_problems):
    standing = gdd.rank(TWIN)
    assert all(same(standing.entries["td", one.name], standing.entries["td_again", one.name]) for one in FEW)
    assert standing.ranks["td"] == standing.ranks["td_again"]
    assert standing.place("td") == standing.place("td_again")
    assert standing.counts("td_again", "td") == (0, 0)


@pytest.mark.parametrize("rule", [WRONG, pytest.param(DIVERGING, marks=pytest.mark.slow)])
def test_a_rule_that_goes_the_wrong_way_or_diverges_ranks_last(rule, few_problems):
    standing = gdd.rank(rule)
    count = len(shipped_learners()) + 1
    assert standing.place(rule.name) == count
    assert standing.sentence.startswith(f"{rule.label} ranks {ordinal(count)} of {count} on 3 problems")


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(few_problems):
    first, second = (gdd.rank(WRONG, workers=workers, quick=True) for workers in (1, 3))
    assert all(same(one, second.entries[key]) for key, one in first.entries.items())


def test_a_first_look_has_only_the_rivals(few_problems):
    standing = gdd.rank(TWIN, against=["td"], quick=True)
    assert set(standing.rules) == {"td_again", "td"}
    assert standing.place("td") == standing.place("td_again") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"rule": CLIPPED}, "The parameter 'clip' of clipped has no values to try"),
        ({"rule": "td", "grid": {"alpha": (0.1, 1.0)}}, "'grid' must be omitted without a rule of your own"),
        ({"rule": replace(WRONG, name="td")}, "The name of a rule must not be the name of a registered learner"),
        ({"against": ["tdx"]}, "Unknown learner 'tdx'"),
        ({"against": []}, "'against' must be a list of at least one learner"),
        ({"against": "td"}, "'against' must be a list of at least one learner. Got 'td'"),
        ({"against": 3}, "'against' must be a list"),
        ({"quick": "no"}, "'quick' must be true or false"),
        ({"workers": 0}, "'workers' must be a whole number, 1 or more"),
        ({"grid": [1.0]}, "'grid' must map names of parameters to lists of values"),
        ({"suite": "both"}, "'suite' must be"),
    ],
)
def test_bad_requests_are_refused_before_anything_runs(words, message):
    with pytest.raises(BadRequestError, match=message):
        gdd.rank(**words)


def test_the_command_prints_the_standings_of_all_learners(few_problems):
    answer = CliRunner().invoke(cli, ["rank", "--against", "td"])
    assert answer.exit_code == 0
    assert all(LEARNERS[name].label in answer.output for name in shipped_learners())


def test_a_rule_with_a_trace_and_a_parameter_is_ranked_from_its_file(few_problems, tmp_path):
    words = ["rank", CLIPPED_FILE, "--quick", "--against", "td"]
    assert "The parameter 'clip' of clipped_td has no values to try" in str(CliRunner().invoke(cli, words).exception)
    page = tmp_path / "page.html"
    answer = CliRunner().invoke(cli, [*words, "--grid", "clip=0.1,10", "--report", str(page)])
    assert answer.exit_code == 0
    assert "Values to try for clipped_td: alpha 0.0002441 … 1 (16 values), lam 0 0.5 0.9, clip 0.1 10" in answer.stderr
    assert "Quick estimate, not for a claim: clipped TD ranks" in answer.stdout
    assert "runs at λ = 0 only" not in answer.stderr
    assert "clipped TD" in page.read_text(encoding="utf-8")


def test_the_command_refuses_a_grid_that_is_no_list():
    answer = CliRunner().invoke(cli, ["rank", "td", "--grid", "alpha"])
    assert answer.exit_code != 0
    assert "'--grid' must be written NAME=VALUES" in str(answer.exception)
