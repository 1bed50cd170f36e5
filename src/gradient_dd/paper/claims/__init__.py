"""The claims of the paper as data, and what our runs say of each.

A claim is judged on fresh runs of the settings that were selected on the study's own runs, so that no winner is
flattered. Criteria are stated with each claim. None is forced: where it fails, the numbers say by how much.
"""

from dataclasses import asdict
from typing import Any

from gradient_dd.paper.claims.cost import SAME_COST, costs_as_much
from gradient_dd.paper.claims.evidence import GTD2, GTD2_ONE, TD, TDC, TDC_ONE, TDRC, Claim, Evidence, Verdict
from gradient_dd.paper.claims.judges import (
    BAIRD_CRITERIA,
    as_good_as,
    as_good_as_natural,
    better_than_td,
    grows,
    insensitive,
    kappa_one_is_good,
    lower_than,
    narrower,
    on_baird,
    slower_at_first,
    tapered_is_better,
)
from gradient_dd.paper.figures import BY_KAPPA, BY_ZETA

__all__ = ["CLAIMS", "Claim", "Evidence", "Verdict", "as_data", "judge_all"]

WALK, BOYAN, LAST, ALL = ("walk",), ("boyan",), "lower", "lower error over all episodes"
CONSTANT, LINEAR, EQUAL = ("walk-constant",), ("walk-linear",), "as good"

# Other readings under which a claim that fails may hold.
WITHOUT_TUNING = (
    ("with ζ = 1 for GTD2 and TDC", lower_than(GTD2_ONE, TDC_ONE)),
    ("by the error over all episodes", lower_than(GTD2, TDC, measure="area")),
)
OVER_ALL_TD = (("by the error over all episodes", as_good_as(TDRC, TD, measure="area")),)
KAPPA_FROM_HALF = (
    ("without κ = 1/4", insensitive(BY_KAPPA[1:])),
    ("by the error over all episodes", insensitive(BY_KAPPA, "area")),
)

CLAIMS = (
    Claim(
        "walk-better",
        "5.1 (1)",
        "Lower tuned error than GTD2 and TDC",
        LAST,
        WALK,
        lower_than(GTD2, TDC),
        others=WITHOUT_TUNING,
    ),
    Claim("walk-grows", "5.1 (1)", "The advantage over GTD2 grows with m", "ratio grows", WALK, grows(GTD2)),
    Claim("walk-as-td", "5.1 (2)", "As good as TDRC and TD", EQUAL, WALK, as_good_as(TDRC, TD), others=OVER_ALL_TD),
    Claim(
        "walk-sensitive",
        "5.1 (2)",
        "More sensitive to α than TD and TDRC",
        "fewer step sizes within twice the best error",
        WALK,
        narrower,
    ),
    Claim("walk-faster", "5.1", "Converges faster than GTD2 and TDC", ALL, WALK, lower_than(GTD2, TDC, measure="area")),
    Claim(
        "walk-as-fast",
        "5.1",
        "As fast as TDRC and TD",
        f"{EQUAL}, all episodes",
        WALK,
        as_good_as(TDRC, TD, measure="area"),
    ),
    Claim(
        "walk-speed-grows",
        "5.1",
        "The advantage in speed over GTD2 grows with m",
        "ratio grows",
        WALK,
        grows(GTD2, "area"),
    ),
    Claim("walk-zeta", "5.1, A.5", "Insensitive to ζ", "insensitive", WALK, insensitive(BY_ZETA)),
    Claim("walk-kappa-one", "5, A.5", "κ = 1 is a good choice", "as good as the best κ", WALK, kappa_one_is_good),
    Claim(
        "walk-kappa",
        "A.5, 6",
        "Insensitive to κ",
        "insensitive",
        WALK,
        insensitive(BY_KAPPA),
        others=KAPPA_FROM_HALF,
    ),
    Claim(
        "walk-constant",
        "5.1 (3)",
        "With constant steps: lower than GTD2 and TDC",
        LAST,
        CONSTANT,
        lower_than(GTD2, TDC),
        others=WITHOUT_TUNING,
    ),
    Claim(
        "walk-constant-td",
        "5.1 (3)",
        "With constant steps: as good as TDRC and TD",
        EQUAL,
        CONSTANT,
        as_good_as(TDRC, TD),
        others=OVER_ALL_TD,
    ),
    Claim(
        "walk-linear",
        "5.1, A.5",
        "With linear features: lower than GTD2 and TDC",
        LAST,
        LINEAR,
        lower_than(GTD2, TDC),
        others=WITHOUT_TUNING,
    ),
    Claim(
        "walk-linear-td",
        "5.1, A.5",
        "With linear features: as good as TDRC and TD",
        EQUAL,
        LINEAR,
        as_good_as(TDRC, TD),
        others=OVER_ALL_TD,
    ),
    Claim(
        "walk-natural",
        "3, A.5",
        "Compares well with natural GTD2 and natural TDC",
        EQUAL,
        ("walk", "walk-natural"),
        as_good_as_natural,
    ),
    *(
        Claim(
            name,
            "4 (A1)",
            "Faster than GTD2 and TDC on independent transitions, as the theorem assumes",
            ALL,
            (name,),
            lower_than(GTD2, TDC, measure="area"),
            "iid",
            (("with ζ = 1 for GTD2 and TDC", lower_than(GTD2_ONE, TDC_ONE, measure="area")),),
        )
        for name in ("walk-iid", "boyan-iid")
    ),
    Claim(
        "boyan-better",
        "5.2 (1)",
        "Lower tuned error than GTD2 and TDC",
        LAST,
        BOYAN,
        lower_than(GTD2, TDC),
        others=WITHOUT_TUNING,
    ),
    Claim("boyan-faster", "5.2 (1)", "Faster than GTD2 and TDC", ALL, BOYAN, lower_than(GTD2, TDC, measure="area")),
    Claim(
        "boyan-as-td",
        "5.2 (2)",
        "Competitive with TDRC and TD",
        EQUAL,
        BOYAN,
        as_good_as(TDRC, TD),
        others=OVER_ALL_TD,
    ),
    Claim(
        "boyan-slow-start",
        "5.2 (2)",
        "Somewhat slower than TDRC and TD at first",
        "higher error over the first twentieth",
        BOYAN,
        slower_at_first,
    ),
    Claim("boyan-grows", "5.2 (3)", "The advantage over GTD2 grows with p", "ratio grows", BOYAN, grows(GTD2)),
    Claim("boyan-grows-tdc", "5.2 (3)", "The advantage over TDC grows with p", "ratio grows", BOYAN, grows(TDC)),
    Claim(
        "boyan-tapered",
        "5.2 (4)",
        "Better with tapered than with constant steps",
        LAST,
        ("boyan", "boyan-constant"),
        tapered_is_better,
    ),
    Claim(
        "boyan-kappa",
        "A.5",
        "Insensitive to κ",
        "insensitive",
        BOYAN,
        insensitive(BY_KAPPA),
        others=KAPPA_FROM_HALF,
    ),
    *(
        Claim(
            f"baird-{i}-{ratios}-{mode}",
            "5.3",
            statement,
            BAIRD_CRITERIA[statement],
            ("baird",),
            test,
            f"{ratios} ratios, {mode}",
            tuple(
                (f"{other} ratios, {placed}", on_baird(other, placed)[statement])
                for other in ("paper", "standard")
                for placed in ("R", "T")
                if (other, placed) != (ratios, mode)
            ),
        )
        for ratios in ("paper", "standard")
        for mode in ("R", "T")
        for i, (statement, test) in enumerate(on_baird(ratios, mode).items(), 1)
    ),
    Claim(
        "better-than-td",
        "abstract",
        "Better than TD in several cases",
        LAST,
        ("walk", "walk-constant", "boyan"),
        better_than_td,
    ),
    Claim(
        "same-cost",
        "1, 3",
        "Costs as much as GTD2",
        f"time of an update at most {SAME_COST:g} times",
        ("walk", "boyan"),
        costs_as_much,
    ),
)


def judge_all(evidence: dict[str, Evidence]) -> list[Verdict]:
    """Return the verdict of every claim whose studies are at hand."""
    return [claim.judge(evidence) for claim in CLAIMS if set(claim.studies) <= set(evidence)]


def as_data(verdicts: list[Verdict]) -> list[dict[str, Any]]:
    """Return verdicts as plain data."""
    return [asdict(verdict) for verdict in verdicts]
