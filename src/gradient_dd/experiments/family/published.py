"""What others have published about this family, as data: numbers, orderings, and where they stand.

COLLISION_MEANS   error over 20,000 steps, averaged over runs with features drawn anew, with its standard error
TDRC_AREAS        area under the RMSPBE relative to TDRC, read off a figure to about 0.05
"""

OURS = "this project"
COLLISION = "Ghiassian & Sutton (2021), Collision"
ROOMS = "Ghiassian & Sutton (2021), Four Rooms"
REGULARISED = "Ghiassian et al. (2020), TDRC, figure 1"

FIRST_TIER, LAST_TIER = ("etd", "etd_beta"), ("tree_backup", "vtrace", "abtd")
MIDDLE_TIER = ("td", "tdc", "gtd2", "htd", "pgtd2", "tdrc")  # the authors call TDC GTD

COLLISION_MEANS = {  # (learner, λ): (mean, standard error)
    ("td", 0.0): (0.326, 0.02),
    ("tdc", 0.0): (0.334, 0.02),
    ("gtd2", 0.0): (0.341, 0.02),
    ("htd", 0.0): (0.331, 0.02),
    ("pgtd2", 0.0): (0.181, 0.02),
    ("tdrc", 0.0): (0.327, 0.02),
    ("etd", 0.0): (0.126, 0.02),
    ("tree_backup", 0.9): (0.175, 0.003),
    ("vtrace", 0.9): (0.175, 0.003),
    ("abtd", 0.9): (0.162, 0.003),
}
FIXED_POINTS = {  # (learner, λ): exact error of its fixed point on Collision, averaged over draws of the features
    ("td", 0.0): 0.306,
    ("td", 0.5): 0.143,
    ("td", 0.9): 0.074,
    ("etd", 0.0): 0.111,
    ("etd", 0.5): 0.093,
    ("etd", 0.9): 0.075,
}
ROUNDED = 5e-4  # numbers with three digits are so far off at most
TWO_SAMPLES = (0.336, 0.02)  # PGTD2 at λ = 0 with two independent samples: our own trial before this study
READ_OFF = 0.05  # how far a number read off a figure may be off

TDRC_PROBLEMS = {
    "walk-tabular": 3_000,
    "walk-inverted": 3_000,
    "walk-dependent": 3_000,
    "boyan": 10_000,
    "baird-7": 20_000,
}
TDRC_AREAS = {
    "gtd2": {"walk-tabular": 1.62, "walk-inverted": 1.35, "walk-dependent": 1.55, "boyan": 1.22, "baird-7": 1.48},
    "tdc": {"walk-tabular": 1.30, "walk-inverted": 1.13, "walk-dependent": 1.28, "boyan": 2.88, "baird-7": 0.82},
    "td": {"walk-tabular": 0.96, "walk-inverted": 1.10, "walk-dependent": 0.90, "boyan": 1.13, "baird-7": float("inf")},
    "htd": {"walk-tabular": 0.98, "walk-inverted": 1.03, "walk-dependent": 0.95},
}
