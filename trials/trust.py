"""Measure how reliable verdicts are: trusted logs with the truth outside the interval, and false alarms.

    python -m trials.trust                     all types, 20 seeds each
    python -m trials.trust --only drift        types whose names contain this word

The limits of the checks were chosen on seeds below 2,000. The seeds from 7,000 on were fixed before the evaluation was
run on them.
"""

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from gradient_dd.errors import GradientDDError
from gradient_dd.evaluation import evaluate_log
from tools.programs import parser_of, print_table
from trials.corrupted_logs import CORRUPTED
from trials.odd_logs import VALID

FIRST_SEED = 7000


class Outcome(NamedTuple):
    """The verdict on a log, whether the interval contains the truth, and the reasons against trust."""

    verdict: str
    holds: bool
    why: tuple[str, ...]


def outcome(kind: str, seed: int) -> Outcome:
    """Return the verdict on one log; a refused log is not trusted."""
    log, options, truth = (VALID | CORRUPTED)[kind](seed)
    try:
        found = evaluate_log(log, seed=seed, **options)
    except GradientDDError as error:
        return Outcome("refused", False, (str(error)[:80],))
    low, high = found.start_interval
    why = tuple(f"{one.about} ({one.level})" for one in found.verdict.findings if one.level != "fine")
    return Outcome(found.verdict.word, bool(low <= truth <= high), why)


def counts_of(outcomes: list[Outcome]) -> tuple[str, ...]:
    """Return a line of the table: verdicts, truths outside and trusted, and the most frequent reasons."""
    words = Counter(one.verdict for one in outcomes)
    wrong = sum(one.verdict == "trust" and not one.holds for one in outcomes)
    held = sum(one.holds for one in outcomes)
    reasons = Counter(reason for one in outcomes for reason in one.why).most_common(4)
    shown = [str(words[word]) for word in ("trust", "with care", "not", "refused")]
    return *shown, str(held), str(wrong), "; ".join(f"{reason} {count}" for reason, count in reasons)


def main(words: list[str] | None = None) -> None:
    """Print the counts of every type, and the shares over all of them."""
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="logs of each type")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--only", default="", help="types whose names contain this text")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    chosen = parser.parse_args(words)
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    found: dict[str, list[Outcome]] = {}
    with ProcessPoolExecutor(chosen.workers) as pool:
        rows: list[tuple[str, ...]] = []
        for kind in (*VALID, *CORRUPTED):
            if chosen.only in kind:
                found[kind] = list(pool.map(partial(outcome, kind), seeds))
                rows.append((kind, *counts_of(found[kind])))
                print(*rows[-1], sep="  ", flush=True)
    print_table(("type", "trust", "care", "not", "refused", "truth inside", "wrong, trusted", "why"), rows)
    print_shares(found)


def print_shares(found: dict[str, list[Outcome]]) -> None:
    """Print the three shares over all types."""
    corrupted: list[Any] = [one for kind, several in found.items() if kind in CORRUPTED for one in several]
    valid = [one for kind, several in found.items() if kind in VALID for one in several]
    if corrupted:
        wrong = sum(one.verdict == "trust" and not one.holds for one in corrupted)
        print(f"corrupted, truth outside, but trusted: {wrong} of {len(corrupted)}, {wrong / len(corrupted):.1%}")
    if valid:
        for word, some in (("not", ("not", "refused")), ("with care", ("with care",))):
            count = sum(one.verdict in some for one in valid)
            print(f"valid, {word!r}: {count} of {len(valid)}, {count / len(valid):.1%}")


if __name__ == "__main__":
    main()
