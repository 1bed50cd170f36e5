"""The tables of a reproduction: every number of a figure or a verdict, as CSV and JSON.

NAME.csv          of a figure: one row per setting of its study, nothing dropped. All means are of the runs that
settings are selected on
STUDY.csv         the same of a study that no figure shows
fresh-STUDY.csv   the same columns for the selected settings on fresh runs, which verdicts rest on
runs-STUDY.csv    what verdicts rest on run by run: `runs` says whether they are fresh; `unit` counts them, or random
first weights, whose errors are relative to the first one
times.csv         nanoseconds of an update in each run
claims.json       every verdict with its judgements and comparisons
"""

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradient_dd.experiments.paper.claims import Evidence, Verdict, as_data
from gradient_dd.report.figure import Figure

if TYPE_CHECKING:
    import pandas as pd

PARAMETERS = ("alpha", "zeta", "kappa", "reg")
MEASURES = ("last100", "area", "early")


def write_tables(figures: list[Figure], evidence: dict[str, Evidence], folder: Path) -> None:
    """Write all tables."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: one.results.frame().to_csv(index=False) for name, one in evidence.items()}
    shown = {figure.study for figure in figures}
    named = {figure.name: texts[figure.study] for figure in figures}
    named |= {name: text for name, text in texts.items() if name not in shown}
    for name, one in evidence.items():
        if one.fresh:
            named[f"fresh-{name}"] = fresh_frame(one).to_csv(index=False)
        if one.used:
            named[f"runs-{name}"] = runs_frame(one).to_csv(index=False)
    times = [row for name, one in evidence.items() for row in time_rows(name, one)]
    if times:
        named["times"] = "\n".join(["study,task,learner,unit,nanoseconds", *times]) + "\n"
    for name, text in named.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")


def fresh_frame(evidence: Evidence) -> "pd.DataFrame":
    """Return one row for each case and selected setting, on fresh runs."""
    import pandas as pd

    return pd.concat([results.frame() for results in evidence.fresh.values()], ignore_index=True)


def runs_frame(evidence: Evidence) -> "pd.DataFrame":
    """Return one row for each setting and run that a verdict rests on."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for used in evidence.used.values():
        setting = used.setting
        common: dict[str, Any] = {
            "task": used.case,
            "runs": "fresh" if used.fresh else "selection",
            "learner": setting.rule.name,
        }
        common |= {name: setting.values.get(name) for name in PARAMETERS} | {"rho_mode": setting.rho_mode}
        length = len(next(iter(used.errors.values())))
        for unit in range(length):
            measured = {name: used.errors[name][unit] for name in MEASURES if name in used.errors}
            rows.append(common | {"unit": unit} | measured)
    columns = ["task", "runs", "learner", *PARAMETERS, "rho_mode", "unit", *MEASURES]
    return pd.DataFrame(rows, columns=columns)


def time_rows(name: str, evidence: Evidence) -> list[str]:
    """Return a line for each learner and run whose time was taken."""
    return [
        f'{name},"{case}",{learner},{unit},{value!r}'
        for (case, learner), values in evidence.times.items()
        for unit, value in enumerate(values.tolist())
    ]


def write_claims(verdicts: list[Verdict], target: Path) -> None:
    """Write the verdicts as JSON; a number that JSON does not have is written as a text, such as "inf"."""
    text = json.dumps(plain(as_data(verdicts)), ensure_ascii=False, indent=1, allow_nan=False)
    target.write_text(text + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Return the same data with texts in place of numbers that are infinite or undefined."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
