"""Check every number in the headline, the figures' titles and captions and the ledger of a report against its tables.

    python -m tests.experiments.check_page FOLDER

Only report.html, the tables and claims.json of a folder are read. What a number must be is written here a second time,
from the words beside it; a number that nothing accounts for is an error. `recompute_verdicts.py` does the same for
claims.json.
"""

import json
import re
import sys
from html import unescape
from pathlib import Path

from gradient_dd.experiments.paper.figures import FIGURES
from tests.experiments.recompute_verdicts import SEARCHED, Tables, number, with_all_runs

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])|\binf\b|\bnan\b")
LEARNERS = {
    "TD": "td", "TDRC": "tdrc", "GTD2": "gtd2", "TDC": "tdc", "Gradient-DD": "gradient_dd",
    "natural GTD2": "natural_gtd2", "natural TDC": "natural_tdc",
}  # fmt: skip
SHOWN_FIRST = {
    "walk-u": "walk-various-u",
    "walk": "walk",
    "boyan": "boyan",
    "baird": "Baird",
}  # the table of a study that several figures share
DECIDED = {"random walk": "walk", "Boyan chain": "boyan"}


def plain(markup):
    """Return the words of a piece of a page."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", markup))).strip()


def three(value):
    return f"{value:.3g}"


def account(text, allowed, where):
    """Raise unless every number of a text is among the allowed ones; return how many there are."""
    found = [one.strip(",") for one in NUMBER.findall(text)]
    unknown = [one for one in found if one not in allowed]
    assert not unknown, f"{where}: nothing accounts for {unknown} in {text!r}"
    return len(found)


def of_learner(frame, learner, size=None, baird=False, held=True):
    """Return the settings of a learner; Gradient-DD as the paper tunes it has ζ = 1, and κ = 1 but on Baird."""
    frame = frame[(frame.learner == learner) & (frame.rho_mode == "R")]
    if learner == "gradient_dd" and held:
        frame = frame[(frame.zeta == 1) & ((frame.kappa == 1) | baird)]
    if baird:
        frame = frame[~frame.reading.str.contains("ratios=paper")]
    return frame if size is None else frame[frame["size"] == size]


def same_setting(frame, setting):
    """Return the rows of a table that have the parameters of a row of another."""
    for name in ("alpha", "zeta", "kappa", "reg", "c"):
        if name in frame and setting[name] == setting[name]:
            frame = frame[frame[name] == setting[name]]
    return frame


def judged_error(tables, study, size, learner, measure, held=True):
    """Return the fresh mean of the setting that is best on the runs to select on; `held` as the paper tunes."""
    baird = study == "baird"
    selected = of_learner(tables[SHOWN_FIRST.get(study, study)], learner, size, baird, held)
    last = with_all_runs(selected) if study in SEARCHED else selected
    best = last.loc[last[f"{measure}_mean"].idxmin()]
    fresh = same_setting(of_learner(tables[f"fresh-{study}"], learner, size, baird, held), best)
    return fresh[f"{measure}_mean"].iloc[0]


def check_headline(page, tables, claims):
    """The numbers of the headline, from what each sentence says it compares; every learner is tuned fully."""
    block = re.search(r'<div class="answer">(.*?)</div>', page, re.DOTALL)
    seen = 0
    for paragraph in re.findall(r"<p>(.*?)</p>", block[1] if block else "", re.DOTALL):
        text = plain(paragraph)
        allowed = told_counts(text, claims)
        for part in re.finditer(r"([^;:(]+) \((random walk|Boyan chain), [mp] = (\d+)\)", text):
            task = DECIDED[part[2]] + ("-iid" if "independent transitions" in text else "")
            before = text[: part.end()].lower()
            measure = "mean_error" if "over all episodes" in before else "last100"
            size, plainly = int(part[3]), "κ = ζ = 1" in text
            study, searched = f"{task}-fully", f"{task}-one" if plainly else f"{task}-fully"
            ours = judged_error(tables, searched, size, "gradient_dd", measure, held=plainly)
            for said, rival in re.findall(r"([\w.+-]+) × (that of Gradient-DD tuned fully|\w+)", part[1]):
                name = LEARNERS.get(rival, "gradient_dd")
                wanted = three(ours / judged_error(tables, study, size, name, measure, held=False))
                assert said == wanted, f"headline: {said} × {rival} must be {wanted} in {part[0]!r}"
                allowed |= {said, str(size)}
        seen += account(text, allowed, "headline")
    return seen


def told_counts(text, claims):
    """Return the counts that a sentence may tell: settings, or how often Gradient-DD is lower, higher and neither."""
    allowed = {"1"} if "κ = ζ = 1" in text else set()
    some = [one for v in claims if v["claim"].startswith("fully-") for j in v["judgements"] for one in j["comparisons"]]
    allowed |= {str(one["ours"]["settings"]) for one in some} if "settings for every learner" in text else set()
    baird = [one for one in some if one["task"].startswith("baird")]
    if "the share that κ takes back" in text:
        knob = [one for one in some if one not in baird and one["rival"]["learner"] == "gtd2_to_td"]
        allowed |= set(map(str, sides(knob)))
    for name, lower, neither, higher in re.findall(r"([\w-]+(?: to TD)?) (\d+) / (\d+) / (\d+)", text):
        mine = [one for one in baird if one["rival"]["label"] == name]
        assert [int(lower), int(neither), int(higher)] == sides(mine), f"headline: {name} must be {sides(mine)}"
        allowed |= {lower, neither, higher}
    return allowed


def sides(some):
    """Return how many intervals are below 1, contain it, and are above."""
    lower, higher = (
        sum(map(test, some)) for test in (lambda one: number(one["high"]) < 1, lambda one: number(one["low"]) > 1)
    )
    return [lower, len(some) - lower - higher, higher]


def check_figures(page, tables):
    """The heading of every figure of a study is made from fresh runs, and its caption tells the table's runs."""
    seen = 0
    for name, inside in re.findall(r'<figure id="([\w-]+)">(.*?)</figure>', page, re.DOTALL):
        link = re.search(r'href="tables/([\w-]+)\.csv"', inside)
        if not link:
            continue
        frame, title = tables[link[1]], plain(re.search(r"<h3>(.*?)</h3>", inside, re.DOTALL)[1])
        caption = plain(re.search(r"<figcaption>(.*?)</figcaption>", inside, re.DOTALL)[1])
        measure = "mean_error" if "over the whole run" in title else "last100"
        assert (measure == "mean_error") == ("all episodes" in caption.partition(".")[0] or name.endswith("-iid")), name
        assert ("off-policy" in title) == ("baird" in link[1].lower()), name
        study = FIGURES[name].study
        if "the error of Gradient-DD is" in title:
            seen += check_against_rivals(tables, study, title, measure, name)
        else:
            seen += check_spread(tables, study, title, measure, name)
        runs, length = re.search(r"([\d,]+) runs of ([\d,]+)", caption).groups()
        assert {int(runs)} == {int(one) for one in frame.runs}, name
        assert {int(length.replace(",", ""))} == set(frame.episodes), name
        seen += 2
    return seen


def check_against_rivals(tables, study, title, measure, name):
    """Check "…: at m = 40 the error of Gradient-DD is 1.4 × that of TD, …"."""
    size = re.search(r": at \w = (\d+) ", title)[1]
    home = "walk" if study == "walk-natural" else study  # where Gradient-DD ran
    mine = judged_error(tables, home, int(size), "gradient_dd", measure)
    allowed = {size}
    for said, rival in re.findall(r"([\w.+-]+) × that of ((?:natural )?\w+)", title):
        wanted = three(mine / judged_error(tables, study, int(size), LEARNERS[rival], measure))
        assert said == wanted, f"{name}: {said} × {rival} must be {wanted}"
        allowed.add(said)
    assert len(allowed) > 1, f"{name}: no ratio in {title!r}"
    return account(title, allowed, name)


def check_spread(tables, study, title, measure, name):
    """Check "…: m = 10, κ = 0.25 has 1.1 × the error of κ = 4; …"."""
    seen = 0
    for part in title.partition(": ")[2].split("; "):
        found = re.fullmatch(r"\w = (\d+), ([κζu]) = (.+) has (.+) × the error of [κζu] = (.+)", part)
        size, symbol, worst, said, best = found.groups()
        symbol = {"κ": "kappa", "ζ": "zeta", "u": "u"}[symbol]
        other = "kappa" if symbol == "zeta" else "zeta"
        frames = [tables[SHOWN_FIRST.get(study, study)], tables[f"fresh-{study}"]]
        frames = [one.assign(u=(one.alpha * one.kappa).round(9)) for one in frames]
        some, fresh = (
            one[(one["size"] == int(size)) & (one.learner == "gradient_dd") & (one[other] == 1)] for one in frames
        )
        rows = some.loc[some.groupby(symbol)[f"{measure}_mean"].idxmin()]
        ends = rows.loc[rows[f"{measure}_mean"].idxmax()], rows.loc[rows[f"{measure}_mean"].idxmin()]
        assert [float(worst), float(best)] == [end[symbol] for end in ends], f"{name}: {part!r}"
        high, low = (same_setting(fresh, end)[f"{measure}_mean"].iloc[0] for end in ends)
        assert said == three(high / low), f"{name}: {said} must be {three(high / low)}"
        seen += account(part, {size, said, worst, best}, name)
    return seen


def check_ledger(page, claims):
    """Every number of the ledger is one of claims.json, which follows from the tables."""
    seen = 0
    for verdict in claims:
        row = re.search(rf'<tr id="claim-{verdict["claim"]}">(.*?)(?=<tr id="claim-|</section>)', page, re.DOTALL)[1]
        comparisons = [one for judgement in verdict["judgements"] for one in judgement["comparisons"]]
        allowed = {three(abs(number(one[key]))) for one in comparisons for key in ("estimate", "low", "high")}
        sides = [side for one in comparisons for side in (one["ours"], one["rival"], one["before"]) if side]
        allowed |= {three(number(side["mean"])) for side in sides if "mean" in side}
        allowed |= {str(one[key]) for one in comparisons for key in ("size", "runs")}
        allowed |= {str(side["size"]) for side in sides if "size" in side}
        for some in ([verdict], *[[one] for one in verdict["judgements"]], *by_tuning(verdict)):
            allowed |= {str(sum(one[key] for one in some)) for key in ("held", "open", "refuted")}
        allowed.add(str(len(comparisons)))
        words = [verdict["where"], verdict["statement"], verdict["criterion"], verdict["finding"]]
        words.append(f"{verdict['alike']} {verdict['fully']}")
        told = [*words[:3], *(one["text"] + one["task"] + one["reading"] + one["edge"] for one in comparisons)]
        told += [side.get("label", "") for side in sides] + [one["tuning"] for one in comparisons]
        in_words = {one.strip(",") for text in told for one in NUMBER.findall(text)}
        seen += account(f"{words[3]} {words[4]}", allowed | in_words, verdict["claim"])
        shown = re.sub(r"<svg.*?</svg>|<a .*?</a>|<code>.*?</code>", " ", row, flags=re.DOTALL)
        seen += account(plain(shown), allowed | in_words, verdict["claim"])
    return seen


def by_tuning(verdict):
    """Return the judgements of each way of tuning."""
    groups = {}
    for one in verdict["judgements"]:
        groups.setdefault(one["tuning"], []).append(one)
    return list(groups.values())


def check_page(folder):
    """Return how many numbers were checked in the headline, the figures and the ledger."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    tables, claims = Tables(folder), json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    return check_headline(page, tables, claims), check_figures(page, tables), check_ledger(page, claims)


if __name__ == "__main__":
    headline, figures, ledger = check_page(Path(sys.argv[1]))
    print(
        f"{headline} numbers of the headline, {figures} of figures and {ledger} of the ledger follow from the tables."
    )
