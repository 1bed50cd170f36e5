"""The contracts every learner keeps. Run them on a rule of your own:

    from gradient_dd.testing import check_learner
    check_learner(MY_RULE)

A contract is a function of a rule. It raises AssertionError with what it saw where the rule breaks it. It returns None,
or a sentence about what it could not see. The project's own tests run the same contracts over `LEARNERS`, so a learner
is covered by being listed.
"""

from collections.abc import Callable

from gradient_dd.learners import Rule
from gradient_dd.testing.agreement import (
    assert_alike,
    joins_its_forms,
    runs_alike_in_both_engines,
    treats_sparse_as_dense,
)
from gradient_dd.testing.mean_contracts import (
    is_stable_off_policy,
    is_stable_on_policy,
    moves_as_it_states,
    moves_on_average_as_it_states,
    rests_at_the_fixed_point,
)
from gradient_dd.testing.mean_update import expected_move, modes, stated_move
from gradient_dd.testing.step_contracts import (
    is_a_pure_function,
    keeps_to_its_step_sizes,
    never_looks_past_the_end,
    stands_still_with_step_size_zero,
    uses_all_it_declares,
)

__all__ = ["CONTRACTS", "assert_alike", "check_learner", "expected_move", "modes", "stated_move"]

# Those that need no compiled kernel come first: a wrong rule is found within a second.
CONTRACTS: tuple[Callable[[Rule], str | None], ...] = (
    is_a_pure_function,
    moves_as_it_states,
    moves_on_average_as_it_states,
    uses_all_it_declares,
    keeps_to_its_step_sizes,
    never_looks_past_the_end,
    rests_at_the_fixed_point,
    is_stable_on_policy,
    is_stable_off_policy,
    stands_still_with_step_size_zero,
    joins_its_forms,
    treats_sparse_as_dense,
    runs_alike_in_both_engines,
)


def check_learner(rule: Rule) -> list[str]:
    """Run every contract on a rule, and return what they could not see, a sentence each.

    AssertionError says what the rule breaks, and how. A rule that states its mean update, `expected`, is checked term
    by term. Without it a wrong sign or a missing ratio is found only where it moves the fixed point or makes the mean
    unstable, and the returned list says so.
    """
    return [note for contract in CONTRACTS if (note := contract(rule))]
