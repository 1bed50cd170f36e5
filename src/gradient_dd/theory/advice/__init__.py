"""Advice: which learner and which parameters to take, from pilot runs on the task itself or on a log.

space     the settings that may be tried
pilot     runs them on a task, and says what runs that are too long to be tried would give
search    from many settings on few runs to few settings on many
advise    all of it, for a task
from_log  all of it, for a log
"""

from gradient_dd.theory.advice.advise import MEASURES, Advice, advise
from gradient_dd.theory.advice.from_log import advise_from_log

__all__ = ["MEASURES", "Advice", "advise", "advise_from_log"]
