"""Errors planted in rules, and the contract that catches one."""

import ast
import runpy
from dataclasses import replace
from inspect import getsource
from pathlib import Path

from gradient_dd.learners import LEARNERS
from gradient_dd.testing import CONTRACTS

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_rule.py"
RULES = LEARNERS | {"my_tdc_dd": runpy.run_path(str(EXAMPLE), run_name="my_rule")["TDC_DD"]}
UNCOMPILED = CONTRACTS[:-2]  # the last two compile, and test_learners has them for every learner
STATES, AVERAGE = "moves_as_it_states", "moves_on_average_as_it_states"
SIZES, END, REST = "keeps_to_its_step_sizes", "never_looks_past_the_end", "rests_at_the_fixed_point"
ON, OFF, USES = "is_stable_on_policy", "is_stable_off_policy", "uses_all_it_declares"


def planted(rule, right, wrong):
    """Return the rule with an error in its step. Arguments that the wrong step does not need are not asked for."""
    source = getsource(rule.step)
    assert source.count(right) == 1
    tree = ast.parse(source.replace(right, wrong))
    (function,) = tree.body
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    function.args.args = [argument for argument in function.args.args if argument.arg in used]
    names = {}
    exec(compile(tree, "planted", "exec"), names)
    return replace(rule, name="planted", step=names[function.name])


def catcher(rule):
    """Return the name of the first contract that a rule breaks, or None."""
    for contract in UNCOMPILED:
        try:
            contract(rule)
        except AssertionError:
            return contract.__name__
    return None
