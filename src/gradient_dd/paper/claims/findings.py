"""One sentence for each verdict, made from its numbers."""

from gradient_dd.paper.claims.verdict import PAPER, SYMBOLS, Comparison, Judgement

MANY = 4  # judgements from which on only their fractions are told
MEASURES = {"last100": "at the end", "area": "over all episodes", "early": "over the first twentieth"}


def finding(judgements: list[Judgement]) -> str:
    """Return what was found, as the paper has it first, then what changes where tuning is another."""
    main = [one for one in judgements if one.tuning == PAPER]
    several = len(main) > 1
    parts = [sentence(one, several) for one in main] if len(main) <= MANY else [fractions(main)]
    others: dict[str, list[Judgement]] = {}
    for one in judgements:
        if one.tuning != PAPER:
            others.setdefault(one.tuning, []).append(one)
    for tuning, found in others.items():
        if len(main) <= MANY and len(found) == 1:
            parts.append(f"{first_upper(tuning)}, {sentence(found[0], False)}")
        else:
            parts.append(f"{first_upper(tuning)}, {fractions(found)}")
    return " ".join(f"{first_upper(part)}." for part in parts if part)


def fractions(judgements: list[Judgement]) -> str:
    """Return how many comparisons hold, by reading or by what was tuned for."""
    return "; ".join(f"{named(one)}: {one.held} of {one.of}" for one in judgements)


def named(judgement: Judgement) -> str:
    """Return what tells a judgement from the others of its claim."""
    tuned = {"last100": "tuned for the end", "area": "tuned for all episodes"}.get(judgement.tuned_for, "")
    return ", ".join(part for part in (judgement.reading if judgement.reading != "default" else "", tuned) if part)


def sentence(judgement: Judgement, several: bool) -> str:
    """Return the numbers of a judgement: for each pair of learners one for each size."""
    rows: dict[str, list[Comparison]] = {}
    for one in judgement.comparisons:
        rows.setdefault(row_name(one), []).append(one)
    told = "; ".join(f"{name} {numbers(some)}" for name, some in rows.items())
    lead = f"{named(judgement)}: " if several and named(judgement) else ""
    return f"{lead}{told} ({judgement.held} of {judgement.of} hold)"


def row_name(one: Comparison) -> str:
    """Return what a number is of."""
    if one.text:
        return one.text
    ours, rival = (one.ours or {}).get("label", ""), (one.rival or {}).get("label", "")
    if one.kind == "growth":
        return f"{rival} / {ours} grows"
    if one.kind == "share":
        return f"{ours} ends at this share of the first error:"
    when = MEASURES.get(one.measure, "")
    return f"{ours} / {rival} {when}".strip()


def numbers(some: list[Comparison]) -> str:
    """Return estimates with their intervals, and where they were found."""
    return ", ".join(f"{number(one.estimate)} {bracket(one)}{where(one)}" for one in some)


def bracket(one: Comparison) -> str:
    """Return an interval as it stands in a sentence; an exact number has none."""
    return "" if one.kind == "exact" else f"[{number(one.low)}, {number(one.high)}] "


def where(one: Comparison) -> str:
    """Return the size of a case, and whether a learner sits at the edge of its step sizes."""
    symbol = SYMBOLS.get(one.task.partition("(")[0], "")
    edge = f" (edge: {one.edge})" if one.edge else ""
    if not symbol:
        return edge.strip()
    if one.before:
        return f"from {symbol} = {one.before['size']} to {one.size}{edge}"
    return f"at {symbol} = {one.size}{edge}"


def number(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:.3g}"


def first_upper(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]
