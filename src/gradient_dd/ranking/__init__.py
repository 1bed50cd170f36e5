"""Rank: where does a rule stand among all learners, tuned alike and tested on the same transitions?

    standing = gdd.rank(RULE, grid={"clip": (0.1, 1.0, 10.0)})
    standing.sentence, standing.frame(), standing.report("page.html")

The results of the registered learners are shipped; only the new rule is computed.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

from gradient_dd.errors import bad_request
from gradient_dd.learners import LEARNERS, Rule, find
from gradient_dd.ranking.entry import Entry, budget_of, make_entry
from gradient_dd.ranking.standing import Standing
from gradient_dd.ranking.standings import shipped
from gradient_dd.ranking.suites import Problem, problems_of
from gradient_dd.studies.search import space_of

__all__ = ["Standing", "rank"]

RIVALS = ("td", "tdrc")
EVERY = 4  # of the problems, one in so many is used with `quick`


def rank(
    rule: Rule | str | None = None,
    grid: Mapping[str, Sequence[float]] | None = None,
    *,
    against: Sequence[str] = RIVALS,
    suite: str = "all",
    quick: bool = False,
    workers: int | None = None,
    on_progress: Callable[[str], None] = lambda text: None,
) -> Standing:
    """Return where a rule stands; without a rule, or with the name of a learner, the standings of all learners.

    grid      values to try of its parameters, by name, in place of those that the parameters declare
    against   learners that it is compared with problem by problem
    suite     "classic", "random" or "all"
    quick     a first look: a quarter of the problems, a small budget, and only these rivals, computed in the same way

    The rule is tuned on the tuning runs of every problem and tested on the test runs. The same numbers come out
    whatever the number of `workers` (threads) is.

        >>> import gradient_dd as gdd
        >>> gdd.rank("td", suite="classic").own
        'td'
    """
    rivals = [find(one).name for one in against]
    if not rivals:
        raise bad_request("'against'", "name at least one learner", against)
    problems = problems_of(suite)[:: EVERY if quick else 1]
    own = None if rule is None else find(rule)
    is_new = own is not None and LEARNERS.get(own.name) != own
    if is_new and own is not None and own.name in LEARNERS:
        raise bad_request("The name of a rule", "not be that of a registered learner", own.name)
    if grid and not is_new:
        raise bad_request("'grid'", "be left out without a rule of your own", dict(grid))
    new = [own] if own is not None and (is_new or quick) else []
    new += [LEARNERS[name] for name in rivals if own is None or name != own.name] if quick else []
    for one in new:  # all that can be refused is refused before anything runs
        space = space_of(one, grid if one is own else None, problems[0].tasks(0)[0], budget_of(quick))
        on_progress(f"Values to try of {space}")
    work = [(one, problem, grid if one is own else None) for one in new for problem in problems]
    entries = {} if quick else shipped(LEARNERS, problems)
    entries |= computed(work, quick, workers or cpu_count() or 1, on_progress)
    rules = {one.name: one for one in (*new, *(() if quick else LEARNERS.values()))}
    return Standing(entries, problems, rules, own.name if own else None, tuple(rivals), quick)


def computed(
    work: list[tuple[Rule, Problem, Mapping[str, Sequence[float]] | None]],
    quick: bool,
    workers: int,
    on_progress: Callable[[str], None],
) -> dict[tuple[str, str], Entry]:
    """Return the entries of rules on problems, made by several threads."""

    def one_entry(item: tuple[Rule, Problem, Mapping[str, Sequence[float]] | None]) -> Entry:
        entry = make_entry(*item, quick)
        on_progress(f"{item[0].name} on {item[1].title}")
        return entry

    with ThreadPoolExecutor(workers) as pool:
        made = list(pool.map(one_entry, work))
    return {(rule.name, problem.name): one for (rule, problem, _), one in zip(work, made, strict=True)}
