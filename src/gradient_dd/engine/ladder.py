"""The ladder of a learner that chooses: the learners it keeps side by side, and the numbers it chooses by.

A rung is TD, GTD2 or something between them, at a step size of its own:

    w ← w + m α ρ (y x − (1 − c) γ (x·η) x'),     y = δ if direct, else x·η
    η ← η + ζ m α (ρ δ − x·η) x

so that (c = 1, direct) is TD and (c = 0, not direct) is GTD2. `online/shadows.py` has the whole method. The numbers
were chosen on a design suite of 22 tasks and then left alone; `docs/shadows.md` says what happens when they change.
"""

from typing import NamedTuple


class Rung(NamedTuple):
    """One learner of a ladder: multiple of alpha, ratio of step sizes, share c, and whether w moves by δ itself."""

    multiple: float
    zeta: float
    c: float
    direct: bool


# GTD2 stands a larger step than TD at the same noise, and is then best with a slow η: the factors 3 and 1/4.
NARROW = (
    Rung(3.0, 0.25, 0.0, False),
    Rung(1.0, 1.0, 0.0, False),
    Rung(1.0, 1.0, 0.3, False),
    Rung(1.0, 1.0, 1.0, True),
    Rung(0.6, 0.25, 0.0, False),
    Rung(0.2, 1.0, 0.3, False),
    Rung(0.2, 1.0, 1.0, True),
)

WIDE = tuple(
    Rung(multiple * size, zeta, c, direct)
    for size in (1.0, 0.3, 0.1, 0.03, 0.01)
    for multiple, zeta, c, direct in ((3.0, 0.25, 0.0, False), (1.0, 1.0, 0.3, False), (1.0, 1.0, 1.0, True))
)

UNIT = 0.3  # alpha of the wide ladder, over the mean of ‖x‖² so far
STARTS = 3  # bias shadows of each rung
BLOCK = 50  # steps between two choices
MEMORY = 10  # blocks over which levels are averaged
CAUTION = 30.0  # weight of the bias against the noise, both squared
STAY = 0.9  # the present choice counts as so much better than it is
WORSE = 2.0  # a rung whose predicted error is so many times the best one's starts again from the best
HUGE = 1e200  # a level beyond it, or none, counts as this
