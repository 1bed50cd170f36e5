"""`gradient-dd sweep` and what reads its results: studies and rules from files, and requests that are refused."""

import json
from pathlib import Path

import pytest

from gradient_dd.cli import options
from gradient_dd.studies import load_rule
from gradient_dd.studies.store import Store

ROOT = Path(__file__).parents[2]
WALK = ["--task", "random_walk:n_states=3", "--learner", "td", "--alpha", "0.1,0.2", "--episodes", "5", "--runs", "3"]


@pytest.mark.xdist_group("kernels of td")
def test_a_sweep_is_run_once_and_its_results_are_read(command, tmp_path):
    out = tmp_path / "walk.db"
    first = command("sweep", *WALK, "--out", out)
    assert first.code == 0, first.err
    assert first.out.startswith("Best setting of each learner, by the mean of the last 100 errors:\n")
    assert first.out.endswith(
        f"All 2 settings are in {out}. To export them: gradient-dd export --out {out} table.csv\n"
    )
    assert "sweep: " in first.err
    assert " updates in " in first.err
    again = command("sweep", *WALK, "--out", out, "--json")
    assert [row["runs"] for row in json.loads(again.out)] == [3, 3]
    assert " updates in " not in again.err
    facts = json.loads(command("status", "--out", out, "--json").out)
    assert (facts["units"], facts["damaged"]) == (3, 0)
    text = command("status", "--out", out).out
    assert "6 of 6" in text
    assert text.splitlines()[0].split() == ["study", "started", "length", "runs", "done"]
    assert text.splitlines()[-1].startswith(f"3 units, {facts['steps']:,} steps, {facts['worker_seconds']:.1f} seconds")
    assert command("verify", out).out.endswith("and their curves. No damage found.\n")
    assert command("verify", out, "--json").code == 0
    for more, rows in (([], 2), (["--per-run"], 6)):
        target = tmp_path / "table.csv"
        assert command("export", target, "--out", out, *more).out == f"Wrote {rows} rows to {target}.\n"


def test_a_study_file_and_a_rule_of_your_own_from_the_command_line(tmp_path, command):
    out = tmp_path / "a.db"
    study = tmp_path / "study.toml"
    example = (ROOT / "examples" / "study.toml").read_text().replace("episodes = 300", "episodes = 30")
    study.write_text(example + '\n[[learners]]\nlearner = "my_tdc_dd"\nalpha = [0.1]\n')
    rule = f"{ROOT / 'examples' / 'my_rule.py'}:TDC_DD"
    result = command("sweep", study, "--rule", rule, "--out", out)
    assert result.code == 0, result.err
    assert "my_tdc_dd" in result.out
    assert "95" in command("status", "--out", out).out
    for target, rows in (("t.csv", 19), ("t.parquet", 19)):
        assert command("export", tmp_path / target, "--out", out).out == f"Wrote {rows} rows to {tmp_path / target}.\n"
    assert command("export", tmp_path / "r.csv", "--per-run", "--out", out).out.startswith("Wrote 95 rows")
    assert load_rule(rule).name == "my_tdc_dd"


def test_a_dry_run_only_says_what_it_would_be(tmp_path, command):
    flags = ["--task", "baird", "--learner", "gtd2:T", "--alpha", "0.01", "--steps", "100", "--out", tmp_path / "a.db"]
    result = command("sweep", *flags, "--dry-run")
    assert result.code == 0
    assert "rho_mode T" in result.err
    assert not (tmp_path / "a.db").exists()


def test_flags_in_place_of_what_a_file_says_are_told(tmp_path, command):
    study = ROOT / "examples" / "study.toml"
    result = command("sweep", study, "--runs", "2", "--dry-run", "--out", tmp_path / "a.db")
    assert result.code == 0
    assert "Note: --runs 2 is used instead of 5 in study.toml.\n" in result.err


def test_results_are_found_where_they_are_left_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("results-quick", "results", "."):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "results.db").touch()
        assert options.found_file(None, None, None) == Path(place) / "results.db"
        if place != ".":
            assert options.found_folder(None, None, None) == Path(place)
    assert options.found_file(None, None, "results") == Path("results/results.db")
    assert options.found_folder(None, None, "results-quick") == Path("results-quick")
    assert options.written_file(None, None, "b.db") == Path("b.db")
    assert options.written_file(None, None, "results") == Path("results/results.db")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "A sweep must have a study file, or --task. Got neither."),
        (["--task", "baird"], "A sweep must have a study file, or --learner or --rule. Got neither."),
        (["--task", "baird", "--learner", "tdd", "--steps", "9"], "Unknown learner 'tdd'. Did you mean 'td'?"),
        (
            ["--task", "baird", "--learner", "td", "--steps", "9", "--kappa", "1"],
            "None of these learners has a parameter 'kappa'. They have alpha, lam.",
        ),
        (
            ["--task", "baird", "--learner", "td", "--alpha", "fast"],
            "The values of 'alpha' must be like 0.1,0.3 or 1e-3..1:13.",
        ),
        (["--task", "baird", "--learner", "td", "--set", "x"], "'--set' must be written NAME=VALUES. Got 'x'."),
        (["--task", "walk", "--learner", "td"], "Unknown task 'walk'. Did you mean 'random_walk'?"),
        (["--task", "baird", "--learner", "td"], "A sweep must have a length, --episodes N or --steps N. Got neither."),
        (["nowhere.toml"], "Cannot read 'nowhere.toml': No such file or directory."),
    ],
)
def test_a_bad_request_gets_one_sentence_and_exit_code_2(arguments, sentence, command):
    result = command("sweep", *arguments)
    assert result.code == 2
    assert sentence in result.err


def test_other_commands_refuse_what_they_cannot_do(tmp_path, command):
    missing = command("status", "--out", tmp_path / "none.db")
    assert missing.code == 1
    assert "does not exist." in missing.err
    with Store(tmp_path / "a.db", write=True):
        pass
    assert "must end in .csv or .parquet" in command("export", tmp_path / "t.xls", "--out", tmp_path / "a.db").err
    assert command("export", tmp_path / "no" / "t.csv", "--out", tmp_path / "a.db").code == 2
