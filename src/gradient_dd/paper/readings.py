"""How the paper is read where it is silent, and what is wrong in it: in a line each, for the report.

The reasons stand in docs/paper.md, the corrections in docs/errata.md.
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

ERRATA = (
    "The sign in the combined recursion",
    "Whose transition matrix",
    "The length of the combined vectors",
    "The multiplier of the trust region",
    "The norm of H_n",
    "The bound on the noise",
    "The mean step is not a function of ρ_n",
    "Indices",
    "Complex eigenvalues",
    "Step sizes of one and more",
    "No discount",
    "Baird's importance ratio",
    "No projection error",
    "Baird is outside the theorem",
    "The terminal feature of the Boyan chain",
    "A factor of two",
    "Anchors of the linear walk",
    "Text and captions",
    "Policies",
    "Independent samples",
)
