"""Contracts hold for both forms of a learner, without and with a trace."""

from collections.abc import Callable
from functools import wraps

from gradient_dd.learners import Rule

Contract = Callable[[Rule], str | None]


def for_each_form(contract: Contract) -> Contract:
    """Return the contract for a learner: it is run on each of its forms, and returns their notes as one."""

    @wraps(contract)
    def run(rule: Rule) -> str | None:
        notes = [note for form in rule.forms if (note := contract(form))]
        return " ".join(dict.fromkeys(notes)) or None

    return run
