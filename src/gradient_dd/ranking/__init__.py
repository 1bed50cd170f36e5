"""The ranking of a rule among all learners; all are tuned in the same way and tested on the same transitions.

    standing = gdd.rank(RULE, grid={"clip": (0.1, 1.0, 10.0)})
    standing.sentence, standing.frame(), standing.report("page.html")

The package contains the results of all registered learners, so only the results of the new rule are computed.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import replace
from os import cpu_count

from gradient_dd.errors import bad_request, boolean, whole_number
from gradient_dd.learners import LEARNERS, Rule, find
from gradient_dd.progress import Bars
from gradient_dd.ranking.standing import Standing
from gradient_dd.ranking.standings import BUDGETS, Grid, make_entry, shipped, shipped_learners
from gradient_dd.ranking.suites import Problem, problems_of
from gradient_dd.studies.search import space_of

__all__ = ["Standing", "rank"]

RIVALS = ("td", "tdrc")
ADD_LAM = "To tune λ too, add LAM to its parameters and a trace, as in examples/clipped_td.py."
EVERY = 4  # `quick` uses every fourth problem


def rank(
    rule: Rule | str | None = None,
    grid: Grid | None = None,
    *,
    against: Sequence[str] = RIVALS,
    suite: str = "all",
    quick: bool = False,
    workers: int | None = None,
    progress: bool = True,
) -> Standing:
    """Return the standing of a rule or learner among all learners; without a rule, the standings of all learners.

    grid      values to try for the parameters of the rule, by name, instead of the declared values
    against   learners to compare the rule with, problem by problem
    suite     "classic", "random" or "all"
    quick     whether to make a quick estimate: a quarter of the problems, a small budget, only learners in `against`
    progress  whether to print the values to try and the progress to stderr

    The rule is tuned on the tuning runs of every problem and tested on the test runs. The number of `workers` (threads)
    does not change the results.

        >>> import gradient_dd as gdd
        >>> gdd.rank("td", suite="classic").own
        'td'
    """
    if isinstance(against, str) or not isinstance(against, Sequence) or not against:
        raise bad_request("'against'", "be a list of at least one learner", against)
    rivals, quick, progress = [find(one) for one in against], boolean("'quick'", quick), boolean("'progress'", progress)
    threads = whole_number("'workers'", cpu_count() or 1 if workers is None else workers)
    own = None if rule is None else find(rule)
    if own is not None and LEARNERS.get(own.name, own) != own:
        raise bad_request("The name of a rule", "not be the name of a registered learner", own.name)
    problems = problems_of(suite)[:: EVERY if quick else 1]
    known = {} if quick else {name: LEARNERS[name] for name in shipped_learners() if name in LEARNERS}
    new = {one.name: one for one in (*([own] if own else []), *rivals) if one.name not in known}
    if grid is not None and not isinstance(grid, Mapping):
        raise bad_request("'grid'", "map names of parameters to lists of values", grid)
    if grid and (own is None or own.name not in new):
        raise bad_request("'grid'", "be omitted without a rule of your own", dict(grid))
    work: list[tuple[Rule, Problem, Grid | None]] = []
    with Bars() if progress else nullcontext() as bars:
        for one in new.values():
            given = grid if one is own else None
            space = space_of(one, given, problems[0].tasks(0)[0], BUDGETS[quick])
            work += [(one, problem, given) for problem in problems]
            if bars:
                bars.say(f"Values to try for {space}")
        if bars and own and "lam" not in own.defaults and any("lam" in one.defaults for one in (known | new).values()):
            bars.say(f"{own.label} runs at λ = 0 only, but some rivals also tune λ. {ADD_LAM}")
        entries = shipped(known, problems)
        with ThreadPoolExecutor(threads) as pool:
            waiting = {pool.submit(make_entry, *item, quick): item for item in work}
            for place, done in enumerate(as_completed(waiting)):
                one, problem, _ = waiting[done]
                entries[one.name, problem.name] = done.result()
                if bars:
                    bars.show("Learners × problems done", place + 1, len(work))
    if grid and own:  # the rule gets these values, so that warnings can suggest values beyond them
        parameters = (replace(one, grid=tuple(grid.get(one.name, ())) or one.grid) for one in own.parameters)
        new[own.name] = replace(own, parameters=tuple(parameters))
    return Standing(entries, problems, known | new, own.name if own else None, tuple(one.name for one in rivals), quick)
