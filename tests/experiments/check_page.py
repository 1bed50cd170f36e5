"""Check every number that a report says against claims.json, which follows from the tables (`recompute_verdicts`).

    python -m tests.experiments.check_page FOLDER

Only report.html and claims.json of a folder are read. Under each way of tuning the scorecard, its boxes, the answers,
and of every claim the chip, the sentence, the forest plot and the table of comparisons are compared with claims.json.
A number is right if it is one that claims.json has there, rounded to the digits that it is shown with; a number that
nothing accounts for is an error.
"""

import json
import re
import sys
from html import unescape
from html.parser import HTMLParser
from math import isfinite, isnan
from pathlib import Path

from tests.experiments.recompute_verdicts import number, over_all, pooled

WAYS = {"p": "as the paper has it", "a": "tuned alike", "f": "tuned fully"}
NUMBER = re.compile(r"(?<![\w.])[−+]?\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?![\w])|∞|undefined")
POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
WORDS = {"hold": "holds", "partly hold": "partly holds", "do not hold": "does not hold", "undecided": "undecided"}
OUTCOMES = {"yes": "holds", "undecided": "open", "no": "fails"}
LIMITS = {1e-3, 1e4, 10.0}  # "below 0.001", "over 10,000", "more than a factor of 10"
LEFT_OPEN = {
    "th",
    "td",
    "tr",
    "tbody",
    "thead",
    "tfoot",
    "li",
    "dt",
    "dd",
    "p",
    "br",
    "meta",
    "link",
    "input",
    "use",
    "s",
}


class OneWay(HTMLParser):
    """The markup of a page without the parts that belong to other ways of tuning."""

    def __init__(self, way):
        super().__init__(convert_charrefs=False)
        self.way, self.stack, self.found = way, [], []

    def handle_starttag(self, tag, attributes):
        names = (dict(attributes).get("class") or "").split()
        hidden = "t" in names and f"t-{self.way}" not in names
        if tag not in LEFT_OPEN:
            self.stack.append(hidden or (bool(self.stack) and self.stack[-1]))
        elif hidden:
            raise AssertionError(f"{tag} may be left open: it cannot depend on the way of tuning")
        self.keep(self.get_starttag_text())

    def handle_startendtag(self, tag, attributes):
        self.keep(self.get_starttag_text())

    def handle_endtag(self, tag):
        self.keep(f"</{tag}>")
        if tag not in LEFT_OPEN:
            self.stack.pop()

    def handle_data(self, data):
        self.keep(data)

    def handle_entityref(self, name):
        self.keep(f"&{name};")

    def handle_charref(self, name):
        self.keep(f"&#{name};")

    def keep(self, text):
        if not (self.stack and self.stack[-1]):
            self.found.append(text)


def under(page, way):
    """Return the markup that a page shows under a way of tuning."""
    parser = OneWay(way)
    parser.feed(page)
    return "".join(parser.found)


def plain(markup):
    """Return the words of a piece of a page."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", markup))).strip()


def value_of(text):
    """Return the number that a text shows, and half of its last digit."""
    if text in ("∞", "undefined"):
        return float({"∞": "inf"}.get(text, "nan")), 0.0
    head, _, power = text.replace("−", "-").replace(",", "").partition(" × 10")
    scale = 10.0 ** int(power.translate(POWERS) or 0)
    return float(head) * scale, 0.5 * 10.0 ** -len(head.partition(".")[2]) * scale


def shows(text, value):
    """Return whether a text is a number, rounded: to three digits or more, or to the decimals that are shown."""
    shown, half = value_of(text)
    if not isfinite(value) or not isfinite(shown):
        return shown == value or (isnan(shown) and isnan(value))
    return abs(shown - value) <= max(half, 0.005 * abs(value) * (half >= 0.5)) * (1 + 1e-9)


def account(text, allowed, where):
    """Raise unless every number of a text is among the allowed ones; return how many there are."""
    found = NUMBER.findall(text)
    unknown = [one for one in found if not any(shows(one, value) for value in allowed)]
    assert not unknown, f"{where}: nothing accounts for {unknown} in {text!r}"
    return len(found)


def of_way(verdict, way):
    """Return the comparisons that the page shows of a claim under a way of tuning, and the way they are tuned."""
    asked = {one["tuning"] for one in verdict["judgements"]}
    tuning = WAYS[way] if WAYS[way] in asked else verdict["judgements"][0]["tuning"]
    return pooled(verdict, tuning), tuning


def tallied(comparisons):
    """Return how many comparisons held, are open and were refuted."""
    return [sum(one["outcome"] == outcome for one in comparisons) for outcome in OUTCOMES.values()]


def numbers_of(comparisons, words=""):
    """Return every number that may be said of comparisons."""
    allowed = {len(comparisons), *tallied(comparisons), *LIMITS}
    for one in comparisons:
        allowed |= {number(one[name]) for name in ("estimate", "low", "high")} | {abs(number(one["estimate"]))}
        allowed |= {one["bound"], one["size"], one["runs"], *map(number, in_words(one["text"] + one["reading"]))}
        for side in filter(None, (one["ours"], one["rival"], one["before"])):
            allowed |= set(side.get("values", {}).values()) | {side.get("size", one["size"])}
            allowed |= set(in_words(side.get("label", "")))
    return allowed | set(in_words(words))


def in_words(text):
    """Return the numbers that stand in words of the paper or of claims.json."""
    return [value_of(one)[0] for one in NUMBER.findall(text)]


def check_scorecard(page, verdicts, way):
    """The counts of claims by verdict, and the box of each claim."""
    published = [one for one in verdicts if one["source"] == "paper" and one["judgements"]]
    found = [over_all(one, of_way(one, way)[1]) for one in published]
    shown = re.search(r'<ul class="big">(.*?)</ul>', page, re.DOTALL)[1]
    told = {WORDS[plain(word)]: int(n) for n, word in re.findall(r"<b>(\d+)</b>\s*<span>(.*?)</span>", shown)}
    assert told == {word: found.count(word) for word in set(found)}, way
    for one in published:
        comparisons, _ = of_way(one, way)
        held, unsure, lost = tallied(comparisons)
        whole = max(1, held + unsure + lost)
        box = re.search(rf'href="#c-{one["claim"]}" class="tile" style="--h:(\d+)%;--o:(\d+)%"', page)
        assert [int(box[1]), int(box[2])] == [100 * held // whole, 100 * (held + unsure) // whole], one["claim"]
    return len(told) + 2 * len(published)


def check_answers(page, verdicts, way, questions):
    """The answers: their counts and ratios are those of the claims that the questions name."""
    by_name, seen = {one["claim"]: one for one in verdicts}, 0
    block = re.search(r'<div class="answers">(.*?)<div class="score">', page, re.DOTALL)[1]
    shown = re.findall(r"<h2>(.*?)</h2><p>(.*?)</p>", block, re.DOTALL)
    asked = [one for one in questions if any(name in by_name for name in one.final)]
    assert [plain(text) for text, _ in shown] == [one.text for one in asked]
    for question, (_, sentence) in zip(asked, shown, strict=True):
        final = [one for name in question.final if name in by_name for one in of_way(by_name[name], way)[0]]
        allowed = numbers_of(final)
        for task in {one["task"].partition("(")[0] for one in final}:
            allowed |= numbers_of([one for one in final if one["task"].startswith(task)])
        first = json.loads(json.dumps(final[0]))
        allowed |= {first["runs"]}
        seen += account(plain(sentence).partition("Not decided with")[0], allowed, f"{question.text} {way}")
    return seen


def check_claim(markup, verdict, way):
    """The chip, the sentence, the forest plot and the table of a claim."""
    comparisons, tuning = of_way(verdict, way)
    where, words = f"{verdict['claim']} {way}", f"{verdict['statement']} {verdict['where']}"
    chip = plain(re.search(r'<span class="chip.*?</span>', markup, re.DOTALL)[0])
    assert over_all(verdict, tuning) in chip, where
    told = re.search(r'aria-label="(\d+) yes, (\d+) undecided, (\d+) no"', markup)
    assert [int(one) for one in told.groups()] == tallied(comparisons), where
    what = re.search(r'<div class="what">(.*?)<div class="plot">', markup, re.DOTALL)[1]
    allowed = numbers_of(comparisons, words) | {verdict["needed"] or 0}
    for goal in {one["tuned_for"] for one in comparisons}:
        allowed |= numbers_of([one for one in comparisons if one["tuned_for"] == goal])
    seen = account(plain(what), allowed, where)
    plot = re.search(r'<div class="plot">(.*?)<div class="more">', markup, re.DOTALL)[1]
    values = re.findall(r'<td class="v [^"]*"[^>]*>([^<]*)', plot)
    seen += account(" ".join(values).replace("†", "").replace("–", " "), allowed, where)
    table = re.search(r'<table class="all">.*?<tbody>(.*?)</table>', markup, re.DOTALL)[1]
    rows = re.findall(r'<tr><th scope="row">.*?(?=<tr>|$)', table, re.DOTALL)
    assert len(rows) == len(comparisons), where
    for row, one in zip(rows, comparisons, strict=True):
        _, _, ours, rival, value, interval, runs, result = (plain(cell) for cell in re.split(r"<t[hd][^>]*>", row)[1:])
        low, _, high = interval.partition(" to ")
        for shown, name in ((value, "estimate"), (low, "low"), (high, "high")):
            assert shows(shown, number(one[name])), (where, shown, one[name])
        assert OUTCOMES[result] == one["outcome"], where
        assert runs == str(one["runs"] or "–"), where
        seen += 4 + account(f"{ours} {rival.replace('†', '')}", allowed, where)
    return seen


def check_sizes(page, verdicts):
    """The plots of errors over size: every mean is one of a comparison at that size."""
    means = {}
    for one in (c for v in verdicts for j in v["judgements"] for c in j["comparisons"]):
        for side in (one["ours"], one["rival"]):
            if side and "mean" in side:
                means.setdefault(one["size"], set()).add(number(side["mean"]))
    seen = 0
    for words in re.findall(r'class="chart" role="img" aria-label="([^"]*)"', page):
        for size, value in re.findall(r"\w = (\d+) ([\d.e+-]+)", words):
            assert any(float(value) == float(f"{one:.3g}") for one in means[int(size)]), (size, value)
            seen += 1
    return seen


def check_page(folder, questions=()):
    """Return how many numbers were checked in the scorecard, the answers, the claims, and the plots over size."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    verdicts = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    articles = dict(re.findall(r'<article class="claim" id="c-([\w-]+)">(.*?)</article>', page, re.DOTALL))
    judged = [one for one in verdicts if one["judgements"]]
    assert set(articles) == {one["claim"] for one in judged}
    seen = [0, 0, 0, check_sizes(page, judged)]
    for way in WAYS:
        shown = under(page, way)
        seen[0] += check_scorecard(shown, judged, way)
        seen[1] += check_answers(shown, judged, way, questions)
        seen[2] += sum(check_claim(under(articles[one["claim"]], way), one, way) for one in judged)
    return tuple(seen)


if __name__ == "__main__":
    from gradient_dd.experiments.paper.texts import QUESTIONS

    scorecard, answers, claims, sizes = check_page(Path(sys.argv[1]), QUESTIONS)
    print(
        f"{scorecard} numbers of the scorecard, {answers} of the answers, {claims} of claims and {sizes} of the plots "
        "over size follow from claims.json."
    )
