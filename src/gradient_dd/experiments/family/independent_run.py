"""Numbers of an independent run of ours on Collision: other code, written before this project, other draws of features.

Nobody has published them. The features are drawn anew in every run, which moves the errors of all learners together,
by several per cent; so errors are compared as ratios to a rival's on the same draws.
"""

WHERE = "an independent run of ours, Collision"

MEANS = {  # (learner, λ): tuned error, the mean over 20,000 steps
    ("td", 0.0): 0.326,
    ("tdc", 0.0): 0.334,
    ("gtd2", 0.0): 0.341,
    ("htd", 0.0): 0.331,
    ("pgtd2", 0.0): 0.181,
    ("tdrc", 0.0): 0.327,
    ("etd", 0.0): 0.126,
    ("tree_backup", 0.9): 0.175,
    ("vtrace", 0.9): 0.175,
    ("abtd", 0.9): 0.162,
}
FIXED_POINTS = {  # (learner, λ): exact error of its fixed point, the mean over draws of the features
    ("td", 0.0): 0.306,
    ("td", 0.5): 0.143,
    ("td", 0.9): 0.074,
    ("etd", 0.0): 0.111,
    ("etd", 0.5): 0.093,
    ("etd", 0.9): 0.075,
}
RIVAL = ("td", 0.0)  # whom all others are compared with
