"""How the paper is read where it is silent, and what is wrong in it: in a line each, for the report.

The reasons stand in docs/evidence/paper.md, the corrections in docs/evidence/errata.md.
"""

READINGS = (
    ("n in α_n", "counts episodes, not steps"),
    ("w_{n−1}", "the weights one time step earlier, carried over the ends of episodes; w_{−1} = w_0"),
    ("terminal states", "have continuation discount 0; their features are never bootstrapped"),
    ("d_s", "expected visits per episode from the start, normalised; the stationary distribution on Baird"),
    ("error of an episode", "RMS over states at its end; “last 100” is the mean of the last 100, “all” of all of them"),
    ("ρ", "on the whole sample (R), or on the bootstrapped half alone (T) on Baird; never on the added term"),
    ("initial weights", "walk ½, Boyan 0, Baird (1, …, 1, 10, 1); η = 0"),
    ("TDRC", "ζ = 1, regulariser 1"),
    ("ζ of GTD2 and TDC", "tuned, and 1 beside it: the paper leaves it open"),
    ("lengths", "10,000 episodes of the Boyan chain and 200,000 steps of Baird: the paper gives none"),
    ("linear walk", "p = 6 features: the anchors as printed need one more than p = 5"),
    ("Baird's ratios", "both as printed, ((N−1)/N, N), and of the usual policies, (0, N)"),
)

# The title of each erratum in docs/evidence/errata.md, and what is wrong in a sentence.
ERRATA = (
    (
        "The sign in the combined recursion",
        "The sign before G_n ρ_n in the combined recursion must be a minus; the fixed point solves G ρ = g.",
    ),
    (
        "Whose transition matrix",
        "P and R must be those of the target policy, and sampled updates must carry the importance ratio.",
    ),
    ("The length of the combined vectors", "The combined vectors have 2p components, not 2n."),
    (
        "The multiplier of the trust region",
        "κ is the multiplier, and a fixed κ belongs to another trust region at every step.",
    ),
    ("The norm of H_n", "The proof needs ‖x_n‖² ≤ 1/κ, which is an assumption and not free."),
    ("The bound on the noise", "The bound on the noise lacks a term, and it holds in conditional expectation only."),
    (
        "The mean step is not a function of ρ_n",
        "The mean step depends on the last change as well, so the lemma does not apply as it stands.",
    ),
    ("Indices", "Limits are for n → ∞, sums run to ∞, and the products of H run downwards."),
    ("Complex eigenvalues", "The real parts of the eigenvalues are negative, not the eigenvalues."),
    ("Step sizes of one and more", "The theorem asks for step sizes below 1; the experiments use larger ones."),
    ("No discount", "The tasks have no discount, so γ must be allowed to be 1 where episodes end."),
    ("Baird's importance ratio", "The importance ratios of Baird's counterexample are 0 and N, not (N−1)/N and N."),
    ("No projection error", "On Baird's counterexample there is no projection error; GTD2 and TDC are slow."),
    (
        "Baird is outside the theorem",
        "On Baird's counterexample A and C are singular, so the theorem does not cover it.",
    ),
    (
        "The terminal feature of the Boyan chain",
        "The terminal state of the Boyan chain needs a discount of 0, not a feature.",
    ),
    ("A factor of two", "The step is −½α∇J, not −α∇J."),
    ("Anchors of the linear walk", "Anchors on 20 states as printed need six features, not five."),
    ("Text and captions", "Text and captions disagree on what α is tuned for and on the grids."),
    ("Policies", "A policy is a distribution over actions, not a map to one."),
    (
        "Independent samples",
        "The theorem assumes independent samples; every experiment runs along trajectories, and the gain is there.",
    ),
)
