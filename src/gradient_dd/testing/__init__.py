"""The contracts that every learner satisfies. Run them on your own rule:

    from gradient_dd.testing import check_learner
    check_learner(MY_RULE)

A contract is a function of a rule. It raises AssertionError with the evidence if the rule violates the contract;
otherwise it returns None, or a sentence about the parts that it could not check. The project's tests run the same
contracts on every learner in `LEARNERS`.
"""

from gradient_dd.learners import Rule, find
from gradient_dd.testing import mean_contracts as mean
from gradient_dd.testing import step_contracts as step
from gradient_dd.testing.mean_contracts import Contract, expected_move, modes, stated_move
from gradient_dd.testing.step_contracts import assert_alike

__all__ = ["CONTRACTS", "assert_alike", "check_learner", "expected_move", "modes", "stated_move"]

# Contracts without compiled kernels come first, because they find a wrong rule within a second.
CONTRACTS: tuple[Contract, ...] = (
    step.is_a_pure_function,
    mean.moves_as_it_states,
    mean.moves_on_average_as_it_states,
    step.uses_all_it_declares,
    step.keeps_to_its_step_sizes,
    step.never_looks_past_the_end,
    mean.rests_at_the_fixed_point,
    mean.is_stable_on_policy,
    mean.is_stable_off_policy,
    step.stands_still_with_step_size_zero,
    step.joins_its_forms,
    step.runs_alike_in_both_engines,  # before other compiled code: its error names the line that Numba cannot compile
    step.treats_sparse_as_dense,
)


def check_learner(rule: str | Rule) -> list[str]:
    """Run every contract on a rule or named learner; return a sentence for each contract that does not apply.

    The AssertionError names the violated contract, with the evidence. A rule with a mean update, `expected`, is checked
    term by term. Without `expected`, the contracts detect a wrong sign or a missing ratio only if the error moves the
    fixed point or makes the mean unstable, and the returned list says so. A rule that is not affine in the weights,
    such as a Huber rule, has no mean update; declare affine=False, and the list names the contracts that do not apply.
    """
    return [note for contract in CONTRACTS if (note := contract(find(rule)))]
