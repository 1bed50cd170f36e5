"""The paper: Zhu & Murray, Gradient Descent Temporal Difference-difference Learning, every figure and every claim."""

from gradient_dd.experiments.experiment import Experiment, PaperQuestion, Section
from gradient_dd.experiments.paper.exact_statements import check_statements
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.readings import ERRATA, READINGS
from gradient_dd.experiments.paper.studies import COMPANIONS, PAPER_STUDIES

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
        "p interpolating features, linear values, on-policy, falling step sizes.",
        ((*SIZES[0], ("boyan-better", "boyan-as-td")), (*SIZES[1], ("boyan-faster", "boyan-as-fast"))),
    ),
    Section(
        "baird",
        "Baird’s counterexample",
        "5.3",
        "The off-policy example on which TD diverges: N states, N + 1 weights, constant step sizes. The paper’s "
        "importance ratios belong to no two policies, and it does not say where ρ stands. So each claim is checked "
        "with the printed and the usual ratios, ρ on the whole sample or on the bootstrap, from two types of start.",
        short="Baird",
    ),
    Section(
        "theory",
        "Theory and general claims",
        "1, 3, 4, 6",
        "What the paper states across tasks, and what can be computed without sampling.",
        short="Theory",
    ),
)
QUESTIONS = (
    PaperQuestion(
        "Does it end below GTD2 and TDC, which it builds on?",
        ("walk-better", "boyan-better"),
        ("walk-faster", "boyan-faster"),
    ),
    PaperQuestion(
        "Does it end as low as TD and TDRC?", ("walk-as-td", "boyan-as-td"), ("walk-as-fast", "boyan-as-fast")
    ),
    PaperQuestion("Does it end below its rivals off-policy, on Baird’s example?", ("baird-better",)),
)
EXPERIMENT = Experiment(
    "paper",
    "Does Gradient-DD hold up?",
    PAPER_STUDIES,
    CLAIMS,
    FIGURES,
    COMPANIONS,
    DRAWINGS,
    SECTIONS,
    QUESTIONS,
    check_statements,
    READINGS,
    ERRATA,
)
