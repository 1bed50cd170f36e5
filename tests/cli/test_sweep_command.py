"""`gradient-dd sweep`: studies and rules from files, a dry run, and requests that are refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from gradient_dd.studies import load_rule
from gradient_dd.studies.store import Store

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).parent / "gradient-dd")


def call(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_a_study_file_and_a_rule_of_your_own_from_the_command_line(tmp_path):
    out = tmp_path / "a.db"
    study = tmp_path / "study.toml"
    example = (ROOT / "examples" / "study.toml").read_text().replace("episodes = 300", "episodes = 30")
    study.write_text(example + '\n[[learners]]\nlearner = "my_tdc_dd"\nalpha = [0.1]\n')
    rule = f"{ROOT / 'examples' / 'my_rule.py'}:TDC_DD"
    result = call("sweep", study, "--rule", rule, "--out", out)
    assert result.returncode == 0, result.stderr
    assert "my_tdc_dd" in result.stdout
    assert "65" in call("status", "--out", out).stdout
    for target, rows in (("t.csv", 13), ("t.parquet", 13)):
        assert call("export", tmp_path / target, "--out", out).stdout == f"{rows} rows in {tmp_path / target}\n"
    assert call("export", tmp_path / "r.csv", "--per-run", "--out", out).stdout.startswith("65 rows")
    assert load_rule(rule).name == "my_tdc_dd"


def test_a_dry_run_only_says_what_it_would_be(tmp_path):
    flags = ["--task", "baird", "--learner", "gtd2:T", "--alpha", "0.01", "--steps", "100", "--out", tmp_path / "a.db"]
    result = call("sweep", *flags, "--dry-run")
    assert result.returncode == 0
    assert "rho_mode T" in result.stderr
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "A sweep must have a study file, or --task. Got neither."),
        (["--task", "baird"], "A sweep must have a study file, or --learner or --rule. Got neither."),
        (["--task", "baird", "--learner", "tdd", "--steps", "9"], "Unknown learner 'tdd'. Did you mean 'td'?"),
        (
            ["--task", "baird", "--learner", "td", "--steps", "9", "--kappa", "1"],
            "Unknown parameter of these learners: 'kappa'.",
        ),
        (
            ["--task", "baird", "--learner", "td", "--alpha", "fast"],
            "The values of 'alpha' must be like 0.1,0.3 or 1e-3..1:13.",
        ),
        (["--task", "baird", "--learner", "td", "--set", "x"], "'--set' must be written NAME=VALUES. Got 'x'."),
        (["--task", "baird", "--learner", "td"], "A run must have either 'episodes' or 'steps'."),
        (["nowhere.toml"], "'nowhere.toml' must be a file that can be read."),
    ],
)
def test_a_bad_request_gets_one_sentence_and_exit_code_2(arguments, sentence):
    result = call("sweep", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_other_commands_refuse_what_they_cannot_do(tmp_path):
    missing = call("status", "--out", tmp_path / "none.db")
    assert missing.returncode == 1
    assert "must be a results file. Got no such file." in missing.stderr
    with Store(tmp_path / "a.db", write=True):
        pass
    assert "must end in .csv or .parquet" in call("export", tmp_path / "t.xls", "--out", tmp_path / "a.db").stderr
    nowhere = call("export", tmp_path / "no" / "t.csv", "--out", tmp_path / "a.db")
    assert nowhere.returncode == 2
    assert "Traceback" not in nowhere.stderr
