"""Studies: experiments described as data."""

from gradient_dd.studies.files import load_rule, read_study, study_data, study_from
from gradient_dd.studies.study import Grid, Study, TaskSpec, grid, task

__all__ = [
    "Grid",
    "Study",
    "TaskSpec",
    "grid",
    "load_rule",
    "read_study",
    "study_data",
    "study_from",
    "task",
]
