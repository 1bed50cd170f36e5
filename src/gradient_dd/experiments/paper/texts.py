"""The texts of the report about the paper, except its claims: sections, questions, interpretations and errata."""

from typing import NamedTuple

TITLE = "Does Gradient-DD hold up?"


class Section(NamedTuple):
    """A section of the report: its name in claims and figures, its title, its place in the paper, and the setup.

    by_size   plots of errors over size: a title, a measure, and the claims whose comparisons contain the errors
    short     the title for places with little space
    """

    name: str
    title: str
    where: str
    setup: str
    by_size: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    short: str = ""


class PaperQuestion(NamedTuple):
    """A question that the top of the page answers, from claims on the final error and from claims on the mean error."""

    text: str
    final: tuple[str, ...]
    mean: tuple[str, ...] = ()


SIZES = ("Final error by size", "last100"), ("Mean error by size", "mean_error")
SECTIONS = (
    Section(
        "walk",
        "Random walk",
        "5.1",
        "m states in a row, tabular values, on-policy. Reward 1 at the right end.",
        ((*SIZES[0], ("walk-better", "walk-as-td")), (*SIZES[1], ("walk-faster", "walk-as-fast"))),
    ),
    Section(
        "boyan",
        "Boyan chain",
        "5.2",
        "p interpolating features, linear values, on-policy, decreasing step sizes.",
        ((*SIZES[0], ("boyan-better", "boyan-as-td")), (*SIZES[1], ("boyan-faster", "boyan-as-fast"))),
    ),
    Section(
        "baird",
        "Baird’s counterexample",
        "5.3",
        "The off-policy example on which TD diverges: N states, N + 1 weights, constant step sizes. The paper’s "
        "importance ratios belong to no two policies, and it does not say where ρ stands. So each claim is checked "
        "with the printed and the usual ratios, ρ on the whole sample or on the bootstrap, and two types of start.",
        short="Baird",
    ),
    Section(
        "theory",
        "Theory and general claims",
        "1, 3, 4, 6",
        "Statements of the paper across tasks, and results that need no sampling.",
        short="Theory",
    ),
)
QUESTIONS = (
    PaperQuestion(
        "Does it end below GTD2 and TDC, the gradient methods it is compared with?",
        ("walk-better", "boyan-better"),
        ("walk-faster", "boyan-faster"),
    ),
    PaperQuestion(
        "Does it end as low as TD and TDRC?", ("walk-as-td", "boyan-as-td"), ("walk-as-fast", "boyan-as-fast")
    ),
    PaperQuestion("Does it end below its rivals off-policy, on Baird’s example?", ("baird-better",)),
)
# Our choices on points that the paper leaves open, one line each; docs/evidence/paper.md gives the reasons.
READINGS = (
    ("n in α_n", "counts episodes, not steps"),
    ("w_{n−1}", "the weights one time step earlier, also across the ends of episodes; w_{−1} = w_0"),
    ("terminal states", "have continuation discount 0; their features are never bootstrapped"),
    ("d_s", "expected visits per episode from the start, normalised; the stationary distribution on Baird"),
    ("error of an episode", "RMS over states at its end; “last 100” averages the last 100, “all” averages all"),
    ("ρ", "on the whole sample (R), or on the bootstrapped half alone (T) on Baird; never on the added term"),
    ("initial weights", "walk ½, Boyan 0, Baird (1, …, 1, 10, 1); η = 0"),
    ("TDRC", "ζ = 1, regulariser 1"),
    ("ζ of GTD2 and TDC", "tuned, and also fixed at 1: the paper leaves it open"),
    ("lengths", "10,000 episodes of the Boyan chain and 200,000 steps of Baird: the paper gives none"),
    ("linear walk", "p = 6 features: the anchors as printed need one more than p = 5"),
    ("Baird's ratios", "both as printed, ((N−1)/N, N), and of the usual policies, (0, N)"),
)

# Errors in the paper, in the order of docs/evidence/errata.md, which gives the corrections.
ERRATA = (
    "The sign before G_n ρ_n in the combined recursion must be a minus; the fixed point solves G ρ = g.",
    "P and R must be those of the target policy, and sampled updates must include the importance ratio.",
    "The combined vectors have 2p components, not 2n.",
    "κ is the multiplier, and a fixed κ belongs to another trust region at every step.",
    "The proof needs ‖x_n‖² ≤ 1/κ, which is an additional assumption.",
    "The bound on the noise lacks a term, and it holds in conditional expectation only.",
    "The mean step depends on the last change as well, so the lemma does not apply as stated.",
    "Limits are for n → ∞, sums run to ∞, and the products of H run downwards.",
    "The real parts of the eigenvalues are negative, not the eigenvalues.",
    "The theorem requires step sizes below 1; the experiments use larger step sizes.",
    "The tasks have no discount, so γ must be allowed to be 1 where episodes end.",
    "The importance ratios of Baird's counterexample are 0 and N, not (N−1)/N and N.",
    "On Baird's counterexample there is no projection error; GTD2 and TDC are slow.",
    "On Baird's counterexample A and C are singular, so the theorem does not cover it.",
    "The terminal state of the Boyan chain needs a discount of 0, not a feature.",
    "The step is −½α∇J, not −α∇J.",
    "Anchors on 20 states as printed need six features, not five.",
    "Text and captions disagree on the goal of tuning α and on the grids.",
    "A policy is a distribution over actions, not a map to one.",
    "The theorem assumes independent samples; every experiment runs along trajectories, where the gain arises.",
)
