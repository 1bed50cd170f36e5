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

# What is wrong in the paper, in the order of docs/evidence/errata.md, which has the corrections.
ERRATA = (
    "The sign before G_n ρ_n in the combined recursion must be a minus; the fixed point solves G ρ = g.",
    "P and R must be those of the target policy, and sampled updates must carry the importance ratio.",
    "The combined vectors have 2p components, not 2n.",
    "κ is the multiplier, and a fixed κ belongs to another trust region at every step.",
    "The proof needs ‖x_n‖² ≤ 1/κ, which is an assumption and not free.",
    "The bound on the noise lacks a term, and it holds in conditional expectation only.",
    "The mean step depends on the last change as well, so the lemma does not apply as it stands.",
    "Limits are for n → ∞, sums run to ∞, and the products of H run downwards.",
    "The real parts of the eigenvalues are negative, not the eigenvalues.",
    "The theorem asks for step sizes below 1; the experiments use larger ones.",
    "The tasks have no discount, so γ must be allowed to be 1 where episodes end.",
    "The importance ratios of Baird's counterexample are 0 and N, not (N−1)/N and N.",
    "On Baird's counterexample there is no projection error; GTD2 and TDC are slow.",
    "On Baird's counterexample A and C are singular, so the theorem does not cover it.",
    "The terminal state of the Boyan chain needs a discount of 0, not a feature.",
    "The step is −½α∇J, not −α∇J.",
    "Anchors on 20 states as printed need six features, not five.",
    "Text and captions disagree on what α is tuned for and on the grids.",
    "A policy is a distribution over actions, not a map to one.",
    "The theorem assumes independent samples; every experiment runs along trajectories, and the gain is there.",
)
