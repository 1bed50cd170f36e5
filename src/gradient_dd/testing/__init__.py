"""The contracts every learner keeps. Run them on a rule of your own:

    from gradient_dd.testing import check_learner
    check_learner(MY_RULE)

A contract is a function of a rule. It raises AssertionError with what it saw where the rule breaks it. It returns None,
or a sentence about what it could not see. The project's own tests run the same contracts over `LEARNERS`, so a learner
is covered by being listed.
"""

from gradient_dd.learners import Rule, find
from gradient_dd.testing.mean_contracts import (
    Contract,
    expected_move,
    is_stable_off_policy,
    is_stable_on_policy,
    modes,
    moves_as_it_states,
    moves_on_average_as_it_states,
    rests_at_the_fixed_point,
    stated_move,
)
from gradient_dd.testing.step_contracts import (
    assert_alike,
    is_a_pure_function,
    joins_its_forms,
    keeps_to_its_step_sizes,
    never_looks_past_the_end,
    runs_alike_in_both_engines,
    stands_still_with_step_size_zero,
    treats_sparse_as_dense,
    uses_all_it_declares,
)

__all__ = ["CONTRACTS", "assert_alike", "check_learner", "expected_move", "modes", "stated_move"]

# Those that need no compiled kernel come first: a wrong rule is found within a second.
CONTRACTS: tuple[Contract, ...] = (
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


def check_learner(rule: str | Rule) -> list[str]:
    """Run every contract on a rule, or on the learner of a name; return a sentence for each that does not apply.

    AssertionError says what the rule breaks, and how. A rule that states its mean update, `expected`, is checked term
    by term. Without it a wrong sign or a missing ratio is found only where it moves the fixed point or makes the mean
    unstable, and the returned list says so. A rule that is not affine in its weights, such as Huber's, has no mean
    update; it says affine=False, and the list says which contracts do not apply.
    """
    return [note for contract in CONTRACTS if (note := contract(find(rule)))]
