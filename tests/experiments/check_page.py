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

from tests.experiments.recompute_verdicts import Tables, number

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])|\binf\b|\bnan\b")
LEARNERS = {
    "TD": "td", "TDRC": "tdrc", "GTD2": "gtd2", "TDC": "tdc", "Gradient-DD": "gradient_dd",
    "natural GTD2": "natural_gtd2", "natural TDC": "natural_tdc",
}  # fmt: skip
SHOWN_FIRST = {"walk": "walk", "boyan": "boyan", "baird": "Baird"}  # the table of a study that several figures share
PAPER = "as the paper has it"
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


def of_learner(frame, learner, size=None):
    """Return the settings of a learner; Gradient-DD as the paper tunes it has κ = ζ = 1."""
    frame = frame[(frame.learner == learner) & (frame.rho_mode == "R")]
    if learner == "gradient_dd":
        frame = frame[(frame.kappa == 1) & (frame.zeta == 1)]
    return frame if size is None else frame[frame["size"] == size]


def judged_error(tables, study, size, learner, measure):
    """Return the fresh mean of the setting that is best on the runs to select on."""
    selected = of_learner(tables[SHOWN_FIRST.get(study, study)], learner, size)
    best = selected.loc[selected[f"{measure}_mean"].idxmin()]
    fresh = of_learner(tables[f"fresh-{study}"], learner, size)
    for name in ("alpha", "zeta", "kappa"):
        if best[name] == best[name]:
            fresh = fresh[fresh[name] == best[name]]
    return fresh[f"{measure}_mean"].iloc[0]


def check_headline(page, tables, claims):
    """The ratios of the headline, from what each sentence says it compares."""
    block = re.search(r'<div class="answer">(.*?)</div>', page, re.DOTALL)
    seen = 0
    for paragraph in re.findall(r"<p>(.*?)</p>", block[1] if block else "", re.DOTALL):
        text = plain(paragraph)
        alone = "independent transitions" in text
        measure = "area" if alone else "last100"
        allowed = set()
        for part in re.findall(r"[^;:.]*(?:\.\d[^;:.]*)*", text):
            place = re.search(r"\((random walk|Boyan chain), [mp] = (\d+)\)", part)
            if not place:
                continue
            before = text[: text.index(part)]
            size, study = int(place[2]), DECIDED[place[1]]
            if "with wider grids" in before + part:
                study += "-wide"
            elif alone and "on trajectories" not in before + part:
                study += "-iid"
            ours = judged_error(tables, study, size, "gradient_dd", measure)
            for said, rival in re.findall(r"([\w.+-]+) × ([\w]+)", part):
                wanted = three(ours / judged_error(tables, study, size, LEARNERS[rival], measure))
                assert said == wanted, f"headline: {said} × {rival} must be {wanted} in {part!r}"
                allowed |= {said, str(size)}
        baird = [one for one in claims if one["claim"] == "baird-better"]
        allowed |= {str(number) for one in baird for number in counted(one)}
        seen += account(text, allowed, "headline")
    return seen


def counted(verdict):
    """Return how many comparisons of a verdict hold and how many there are, as the paper tunes."""
    some = [one for j in verdict["judgements"] if j["tuning"] == PAPER for one in j["comparisons"]]
    sides = [
        number(one["high"]) < one["bound"] if one["side"] == "below" else number(one["low"]) > one["bound"]
        for one in some
    ]
    return sum(sides), len(sides)


def check_figures(page, tables):
    """The title of every figure of a study is made from its table, and its caption tells the table's runs."""
    seen = 0
    for name, inside in re.findall(r'<figure id="([\w-]+)">(.*?)</figure>', page, re.DOTALL):
        link = re.search(r'href="tables/([\w-]+)\.csv"', inside)
        if not link:
            continue
        frame, title = tables[link[1]], plain(re.search(r"<h3>(.*?)</h3>", inside, re.DOTALL)[1])
        caption = plain(re.search(r"<figcaption>(.*?)</figcaption>", inside, re.DOTALL)[1])
        measure = (
            "area_mean" if "all episodes" in caption.partition(".")[0] or name.endswith("-iid") else "last100_mean"
        )
        rivals = re.match(r"At \w = (\d+)(?:, (printed|usual) ratios)?(?:, linear features)? ", title)
        if rivals:
            seen += check_against_rivals(frame, title, rivals, measure, name)
        else:
            seen += check_spread(frame, title, measure, name)
        runs, length = re.search(r"([\d,]+) runs of ([\d,]+)", caption).groups()
        assert {int(runs)} == {int(one) for one in frame.runs}, name
        assert {int(length.replace(",", ""))} == set(frame.episodes), name
        seen += 2
    return seen


def check_against_rivals(frame, title, at, measure, name):
    """Check "At m = 40 the error of Gradient-DD is 1.4 × that of TD, …"."""
    some = frame[frame["size"] == int(at[1])]
    if at[2]:
        some = some[some.reading.str.contains("ratios=paper") == (at[2] == "printed")]
    mine = some[(some.learner == "gradient_dd") & (some.rho_mode == "R")]
    if "κ tuned" not in title:
        mine = mine[(mine.kappa == 1) & (mine.zeta == 1)]
    allowed = {at[1]}
    for said, rival in re.findall(r"([\w.+-]+) × that of ((?:natural )?\w+)", title):
        wanted = three(mine[measure].min() / some[some.learner == LEARNERS[rival]][measure].min())
        assert said == wanted, f"{name}: {said} × {rival} must be {wanted}"
        allowed.add(said)
    assert len(allowed) > 1, f"{name}: no ratio in {title!r}"
    return account(title, allowed, name)


def check_spread(frame, title, measure, name):
    """Check "m = 10: κ = 4 is lowest, κ = 0.25 has 1.1 × its error; …"."""
    seen = 0
    for part in title.split("; "):
        size, best, worst, said = re.fullmatch(r"\w = (\d+): (.+) is lowest, (.+) has (.+) × its error", part).groups()
        some = frame[(frame["size"] == int(size)) & (frame.learner == "gradient_dd")]
        symbol = {"κ": "kappa", "ζ": "zeta"}[best[0]]
        some = some[some[{"kappa": "zeta", "zeta": "kappa"}[symbol]] == 1]
        lowest = some.groupby(symbol)[measure].min()
        for label, value in ((best, lowest.idxmin()), (worst, lowest.idxmax())):
            top, _, below = label.partition(" = ")[2].partition("/")
            assert float(top) / float(below or 1) == value, f"{name}: {label!r} must be {value:g}"
        assert said == three(lowest.max() / lowest.min()), name
        seen += account(part, {size, said, *NUMBER.findall(best + " " + worst)}, name)
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
            allowed |= {str(sum(one[key] for one in some)) for key in ("held", "of")}
        allowed.add(str(len(comparisons)))
        words = [verdict["where"], verdict["statement"], verdict["criterion"], verdict["finding"], verdict["alike"]]
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
