"""Sentences from comparisons, by the same rules for all claims.

1. The comparisons of a claim under one way of tuning are split by outcome: yes, no, undecided ("no clear difference"
   if the limit is 1).
2. Each part gives its place by the fewest factors (task, rival, size, measure, variant): "at m = 40". If the place
   takes more than 78 characters, the part counts its comparisons: "in 17 of 24 comparisons".
3. Each part gives its numbers: "a", "a and b", or "a to b". The first part names the quantity. If an interval spans
   more than a factor of 10, the end of the intervals replaces the estimates, and undecided parts give no number.
4. An answer to a question is one word, chosen by a rule, and a sentence about all claims of the question, task by task.
"""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from gradient_dd.report.figure import SYMBOLS, TASK_NAMES, joined
from gradient_dd.report.svg import SUPERSCRIPTS

if TYPE_CHECKING:
    from gradient_dd.experiments.verdicts import Comparison

NOUNS = {"last100": "final error", "mean_error": "mean error", "early": "early error", "episodes": "episodes needed"}
TUNED = {"last100": "tuned for the final error", "mean_error": "tuned for the mean error", "what is measured": ""}
OUTCOME_WORDS = {"holds": "yes", "fails": "no", "open": "undecided"}
LONGEST = 78  # maximum number of characters of a place
WIDE = 10.0  # ratio of an interval's ends above which the estimate is uninformative
FACTORS = ("task", "rival", "size", "measure", "tuned_for", "ratios", "rho", "start")

Row = dict[str, Any]  # the factors of a comparison, in words


def number(value: float) -> str:
    """Return a number as sentences and plots show it: two decimals below 10, powers of ten at the extremes."""
    if not isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "undefined"
    size, sign = abs(value), "−" if value < 0 else ""
    if size == 0:
        return "0"
    if 0 < abs(size - 1) < 0.005:
        return sign + f"{size:.3f}".replace("1.000", "1.00")
    if 1e-3 <= size < 1e4:
        text = f"{size:.2g}" if size < 0.0995 else f"{size:.2f}" if size < 9.995 else f"{size:.3g}"
        return sign + text
    power = int(f"{size:e}".partition("e")[2])
    return f"{sign}{size / 10.0**power:.1f} × 10{str(power).translate(SUPERSCRIPTS)}"


def is_wide(one: "Comparison") -> bool:
    """Return whether the interval of a ratio spans more than a factor of 10."""
    return one.kind not in ("exact", "count") and not (one.low > 0 and one.high <= WIDE * one.low)


def is_own(one: "Comparison") -> bool:
    """Return whether both sides are Gradient-DD, with different parameters."""
    return all((side or {}).get("learner") == "gradient_dd" for side in (one.ours, one.rival))


def frame(one: "Comparison") -> str:
    """Return the type of the question that a comparison answers."""
    if one.kind != "ratio":
        return one.kind
    if one.measure == "early":
        return "early"
    if is_own(one) and one.bound == 2:
        return "worst"
    return {1.0: "lower", 0.8: "clear", 1.25: "as good"}.get(one.bound, "ratio")


def task_words(one: "Comparison") -> str:
    """Return the task of a comparison in words, with its variant."""
    name = one.task.partition("(")[0]
    words = TASK_NAMES.get(name, name)
    return f"{words} with {one.variant}" if one.variant and one.reading == "default" else words


def factors(one: "Comparison") -> Row:
    """Return the factors that may restrict a comparison, in words."""
    found: Row = dict.fromkeys(FACTORS, "")
    if one.study:
        found["task"] = ("on " if one.task.startswith("baird") else "on the ") + task_words(one)
    if not is_own(one) and one.kind not in ("exact", "time"):
        ours, rival = (str((side or {}).get("label", "")) for side in (one.ours, one.rival))
        plain = ours.removeprefix("Gradient-DD").removeprefix(", ")
        short = f"{plain} ÷ {rival}" if plain else rival.partition(",")[0]
        found["rival"] = ours if rival == "the initial error" else short
    letter = SYMBOLS.get(one.task.partition("(")[0], "")
    found["size"] = letter, f"{one.before['size']} to {one.size}" if one.before else str(one.size)
    found["measure"], found["tuned_for"] = one.measure, one.tuned_for
    for part in one.reading.split(", ") if one.reading != "default" else []:
        name = "ratios" if part.endswith("ratios") else "rho" if part.startswith("ρ") else "start"
        found[name] = ("after " if part.endswith("steps") else "from " if name == "start" else "with ") + part
    return found


def values(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the values of a factor, each once."""
    return list(dict.fromkeys(row[name] for row in rows))


def phrase(name: str, chosen: list[Any], kind: str) -> str:
    """Return the chosen values of a factor in words."""
    if name == "rival":
        return ("for " if kind == "share" else "against ") + joined(chosen)
    if name == "size":
        sizes: dict[str, list[str]] = {}
        for letter, value in chosen:
            sizes.setdefault(letter, []).append(value)
        word = "from" if kind == "growth" else "at"
        return joined([f"{word} {letter} = {joined(some)}" for letter, some in sizes.items()])
    words = {"measure": NOUNS, "tuned_for": TUNED}.get(name, {})
    return ("in " if name == "measure" else "") + joined([words.get(one, one) for one in chosen])


def box(rows: list[Row], whole: list[Row]) -> tuple[Row, bool]:
    """Return the factors that restrict `rows` within `whole`, and whether they select no other rows."""
    chosen = {name: values(rows, name) for name in FACTORS}
    inside = [row for row in whole if all(row[name] in chosen[name] for name in FACTORS)]
    same_task = [row for row in whole if row["task"] in chosen["task"]]  # a size restricts only rows of the same task
    limited = {
        name: some
        for name, some in chosen.items()
        if len(some) < len(values(whole if name == "task" else same_task, name))
    }
    return limited, len(inside) == len(rows)


def said(limited: Row, kind: str) -> str:
    """Return restricted factors in words."""
    return " ".join(filter(None, (phrase(name, some, kind) for name, some in limited.items())))


def where(rows: list[Row], whole: list[Row], kind: str, longest: int = LONGEST) -> str:
    """Return the place of a part in words: by the fewest factors, as two places, or as a count."""
    limited, exact = box(rows, whole)
    if exact and len(said(limited, kind)) <= longest:
        return said(limited, kind)
    for name in FACTORS:
        options = values(rows, name)
        boxes = [box([row for row in rows if row[name] == one], whole) for one in options]
        if len(options) == 2 and all(exact for _, exact in boxes):
            text = joined(
                [said({name: [one], **limits}, kind) for one, (limits, _) in zip(options, boxes, strict=True)]
            )
            if len(text) <= longest:
                return text
    single = {name: some for name, some in limited.items() if len(some) == 1}
    more = said(single, kind) if len(rows) > 1 else ""
    return f"in {len(rows)} of {len(whole)} comparisons" + (f", all {more}" if more else "")


def rough(value: float) -> str:
    """Return a number as sentences show it; the details on the page give exact extremes."""
    return "below 0.001" if 0 < value < 1e-3 else "over 10,000" if value >= 1e4 else number(value)


def span(estimates: Iterable[float], told: Callable[[float], str] = rough) -> str:
    """Return one number, two numbers, or a range in words."""
    ordered = sorted(estimates)
    low, high = told(ordered[0]), told(ordered[-1])
    if low == high:
        return low
    return f"{low} and {high}" if len(ordered) == 2 else f"{low} to {high}"


def numbers(some: Sequence["Comparison"]) -> str:
    """Return the estimates of a part; with a wide interval, the end that decides the outcome, or nothing."""
    if not any(map(is_wide, some)):
        return span(one.estimate for one in some)
    if some[0].outcome == "open":
        return ""
    if (some[0].side == "below") == (some[0].outcome == "holds"):
        end = rough(max(one.high for one in some))
        return end if end.startswith("below") else f"below {end}"
    end = rough(min(one.low for one in some))
    return end if end.startswith("over") else f"above {end}"


def amount(some: Sequence["Comparison"], is_first: bool, before_limit: str = "; ") -> str:
    """Return the numbers of a part; the first part also names the quantity, and the limit unless it is 0 or 1."""
    first, kind = some[0], frame(some[0])
    if kind == "exact":
        return exact_amount(some, before_limit)
    if kind == "count":
        gaps = dict.fromkeys(f"{abs(one.estimate):.0f} {'fewer' if one.estimate < 0 else 'more'}" for one in some)
        return joined(list(gaps)) + (" step sizes within twice the best error" if is_first else "")
    told = numbers(some)
    if not told:
        return f"intervals span more than a factor of {WIDE:g}"
    side = "limit" if first.side == "below" else "must exceed"
    limit = f"{before_limit}{side} {first.bound:g}" if is_first and first.bound not in (0, 1) else ""
    if not is_first:
        return f"× {told}" if kind == "growth" else told
    if kind == "growth":
        return f"advantage × {told}"
    if kind == "share":
        return f"ends at {told} times the initial error{limit}".replace("at below", "below").replace("at over", "over")
    if kind == "worst":
        return f"worst over best: {told}{limit}"
    if kind == "time":
        return f"{told} times the time of an update{limit}"
    nouns = {NOUNS.get(one.measure, "") for one in some}
    noun = f" the {nouns.pop()}" if len(nouns) == 1 else ""
    return f"{told} times{noun}{limit}"


def exact_amount(some: Sequence["Comparison"], before_limit: str) -> str:
    """Return the numbers of statements that were computed without any run."""
    texts, bound = [one.text.rstrip(":") for one in some], some[0].bound
    estimates = [one.estimate for one in some]
    if len(set(texts)) > 1:
        prefix = commonprefix(texts).rstrip(" ,(").removesuffix(" on")  # noqa: RUF071  (of texts, not of paths)
        if len(prefix) <= 15:
            return joined([f"{text} ({number(one)})" for text, one in zip(texts, estimates, strict=True)])
        return f"{prefix}: {span(estimates, number)}"
    return f"{texts[0]}: {span(estimates, number)}{before_limit}must be {some[0].side} {bound:g}"


def outcome_word(one: "Comparison") -> str:
    """Return an outcome in one to three words."""
    if one.outcome == "open" and one.bound == 1 and one.kind in ("ratio", "growth"):
        return "no clear difference" if one.kind == "ratio" else "no clear change"
    return OUTCOME_WORDS[one.outcome]


def sentence(comparisons: Sequence["Comparison"], needed: int | None = None) -> str:
    """Return the finding on a claim under one way of tuning; empty without comparisons."""
    if not comparisons:
        return ""
    if needed:
        return sentence_needed(comparisons, needed)
    rows, first = [factors(one) for one in comparisons], comparisons[0]
    if len({one.outcome for one in comparisons}) == 1:
        count, noun = len(comparisons), "checks" if first.kind == "exact" else "comparisons"
        place = "" if count == 1 else f" in both {noun}" if count == 2 else f" in all {count} {noun}"
        return upper(f"{outcome_word(first)}{place}: {amount(comparisons, True, ', ')}.")
    goals = {(row["measure"], row["tuned_for"]) for row in rows}
    if len(goals) == len({measure for measure, _ in goals}) == len({goal for _, goal in goals}):
        rows = [{**row, "tuned_for": ""} for row in rows]  # the measure already names the goal of tuning
    told: list[str] = []
    for outcome in OUTCOME_WORDS:
        part = [one for one in comparisons if one.outcome == outcome]
        if part:
            inside = [row for one, row in zip(comparisons, rows, strict=True) if one.outcome == outcome]
            at = counted_once(where(inside, rows, frame(part[0])), told)
            told.append(f"{outcome_word(part[0])} {at} ({amount(part, not told)})")
    return upper("; ".join(told) + ".")


def counted_once(place: str, before: list[str]) -> str:
    """Return "in 5" for "in 5 of 24 comparisons" if an earlier part has given the total."""
    if " comparisons" not in place or not any(" comparisons" in one for one in before):
        return place
    head, _, tail = place.partition(" of ")
    return head + tail.partition(" comparisons")[2]


def sentence_needed(comparisons: Sequence["Comparison"], needed: int) -> str:
    """Return the finding on a claim about several cases: the number that hold, and the number that must hold."""
    told = []
    for goal in dict.fromkeys(one.tuned_for for one in comparisons):
        some = [one for one in comparisons if one.tuned_for == goal]
        held = [one for one in some if one.outcome == "holds"]
        word = "yes" if len(held) >= needed else "no"
        more = f", {numbers(held)} times the error" if held and numbers(held) else ""
        words = TUNED.get(goal, goal) or "tuned for the same measure"
        told.append(f"{word} {words} (lower in {len(held)} of {len(some)} cases, {needed} needed{more})")
    return upper("; ".join(sorted(told, key=lambda one: one.startswith("no"))) + ".")


def answer_word(comparisons: Sequence["Comparison"]) -> str:
    """Return the word that begins an answer."""
    count = len(comparisons)
    held, lost = (sum(one.outcome == outcome for one in comparisons) for outcome in ("holds", "fails"))
    if held == count:
        return "Yes"
    if held == 0:
        return "No" if lost else "Undecided"
    if held >= count * 2 / 3 and lost == 0:
        return "Mostly"
    if held > count / 2:
        return "More often than not"
    return "Mostly not" if lost >= count / 2 else "Partly"


POOLED = {  # by frame: words if claims hold or fail, with and without the measure; then words for undecided claims
    "lower": (("lower {}", "higher {}"), ("lower", "higher"), "no clear difference"),
    "clear": (("clearly lower {}", "no clearly lower {}"), ("clearly lower", "not clearly lower"), "undecided"),
    "as good": (("as good a {}", "a worse {}"), ("as good", "worse"), "undecided"),
}


def pooled(comparisons: Sequence["Comparison"]) -> str:
    """Return an answer over several claims: the places of each outcome, task by task."""
    tasks = list(dict.fromkeys(map(task_words, comparisons)))
    with_noun, plain, open_word = POOLED[frame(comparisons[0])]
    told: list[str] = []
    for place, outcome in enumerate(("holds", "fails")):
        places: list[str] = []
        for task in tasks:
            inside = [one for one in comparisons if task_words(one) == task]
            part = [one for one in inside if one.outcome == outcome]
            if part:
                at = f"at every {factors(part[0])['size'][0]}"
                if len(part) < len(inside):
                    at = where(list(map(factors, part)), list(map(factors, inside)), frame(part[0]), 40)
                    at = counted_once(at, told)
                article = "" if len(tasks) == 1 else "on " if task.startswith("Baird") else f"on the {task} "
                whose = "" if told or places else " theirs"
                places.append(f"{article}{at} ({numbers(part)} times{whose})")
        if places:
            word = plain[place] if told else with_noun[place].format(NOUNS[comparisons[0].measure])
            told.append(f"{word} {joined(places)}")
    unsure = sum(one.outcome == "open" for one in comparisons)
    if unsure:
        is_counted = len(tasks) == 1 and any(" comparisons" in one for one in told)
        told.append(f"{open_word} " + (f"in {unsure}" if is_counted else "elsewhere" if told else "everywhere"))
    return upper("; ".join(told) + ".")


def over_the_run(comparisons: Sequence["Comparison"]) -> str:
    """Return the second sentence of an answer: a word for each task on the mean error."""
    tasks = list(dict.fromkeys(map(task_words, comparisons)))
    words = {task: answer_word([one for one in comparisons if task_words(one) == task]).lower() for task in tasks}
    return "Mean error over the run: " + ", ".join(f"{word} on the {task}" for task, word in words.items()) + "."


def upper(text: str) -> str:
    """Return a text with a capital first letter, unless the letter is a symbol."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text
