"""What others have published about this family, as data: orderings, areas read off a figure, and where they stand.

TDRC_AREAS   area under the RMSPBE relative to TDRC, read off a figure to about 0.05
"""

OURS = "this project"
COLLISION = "Ghiassian & Sutton (2021), Collision"
ROOMS = "Ghiassian & Sutton (2021), Four Rooms"
REGULARISED = "Ghiassian et al. (2020), TDRC, figure 1"

FIRST_TIER, LAST_TIER = ("etd", "etd_beta"), ("tree_backup", "vtrace", "abtd")
MIDDLE_TIER = ("td", "tdc", "gtd2", "htd", "pgtd2", "tdrc")  # the authors call TDC GTD

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
