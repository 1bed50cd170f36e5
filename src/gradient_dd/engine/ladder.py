"""The ladders of a learner that chooses: the learners it keeps side by side, and the numbers it chooses by.

A rung is TD, GTD2 or something between them, at a step size of its own,

    w ← w + m α ρ (y x − (1 − c) γ (x·η) x'),     y = δ if direct, else x·η
    η ← η + ζ m α (ρ δ − x·η) x

so that (c = 1, direct) is TD and (c = 0, not direct) is GTD2; or the average of another rung over the last part of the
run; or it stands still (m = 0). `stream/shadows.py` has the whole method. The numbers were chosen on three design
suites, of 22, 73 and 98 tasks, and then left alone; `docs/shadows.md` says what happens when they change.
"""

from typing import NamedTuple


class Rung(NamedTuple):
    """One learner of a ladder.

    multiple  of alpha, 0 for one that stands still or averages;  zeta  ratio of step sizes;  c  share left out of x'
    direct    whether w moves by δ itself;  averages  the number of the rung whose weights it averages, −1 for none
    """

    multiple: float
    zeta: float
    c: float
    direct: bool
    averages: int = -1


class Ladder(NamedTuple):
    """Rungs, and how to choose between them.

    first    the rung that is read out before the first choice
    caution  weight of the bias against the noise, both squared
    largest  whether B², the scale of the initial error, is the largest so far (else the one of the last blocks)
    sudden   whether a level that rises counts at once (else it is averaged, as one that falls)
    centre   step size, over the mean of ‖x‖², of what x foretells of δ and noise shadows do not get; 0 for nothing
    wait     blocks that a rung must wait after its first copy before it can be chosen; doubled with every copy
    """

    rungs: tuple[Rung, ...]
    first: int
    caution: float
    largest: bool
    sudden: bool
    centre: float
    wait: float


# GTD2 stands a larger step than TD at the same noise, and is then best with a slow η: the factors 3 and 1/4.
NARROW = Ladder(
    rungs=(
        Rung(3.0, 0.25, 0.0, False),
        Rung(1.0, 1.0, 0.0, False),
        Rung(1.0, 1.0, 0.3, False),
        Rung(1.0, 1.0, 1.0, True),
        Rung(0.6, 0.25, 0.0, False),
        Rung(0.2, 1.0, 0.3, False),
        Rung(0.2, 1.0, 1.0, True),
        *(Rung(0.0, 0.0, 0.0, False, averages=rung) for rung in (0, 1, 3, 4, 6)),
    ),
    first=6,
    caution=30.0,
    largest=True,
    sudden=False,
    centre=0.0,
    wait=0.0,
)

# Without an alpha the step sizes cover two decades, and most of them are wrong: a rung that stands still, so that doing
# nothing can be chosen, and long waits, so that a rung that had to be brought back is not tried again and again.
WIDE = Ladder(
    rungs=(
        *(
            Rung(multiple * size, zeta, c, direct)
            for size in (1.0, 0.3, 0.1, 0.03, 0.01)
            for multiple, zeta, c, direct in ((3.0, 0.25, 0.0, False), (1.0, 1.0, 0.3, False), (1.0, 1.0, 1.0, True))
        ),
        *(Rung(0.0, 0.0, 0.0, False, averages=rung) for rung in (0, 2, 3, 5, 6, 8)),
        Rung(0.0, 0.0, 0.0, False),
    ),
    first=21,
    caution=1.0,
    largest=False,
    sudden=True,
    centre=0.1,
    wait=2.0,
)

UNIT = 0.3  # alpha of the wide ladder, over the mean of ‖x‖² so far
STARTS = 3  # bias shadows of each rung
BLOCK = 50  # steps between two choices
MEMORY = 10  # blocks over which levels are averaged
STAY = 0.9  # the present choice counts as so much better than it is
WORSE = 2.0  # a rung whose predicted error is so many times the best one's starts again from the best
AVERAGE = 4.0  # an average is moved by this share over the number of blocks: it covers the last quarter of the run
WINDOW = 256  # blocks at most between two readings of the size of a growth shadow
FAR = 1e100  # a growth shadow whose size leaves [1/FAR, FAR] is scaled to 1
STEEPEST = 1e50  # growth of a growth shadow counts as this at most
HUGE = 1e200  # a level beyond it, or none, counts as this

COPIES = 1 + STARTS + 2  # of a rung: its own weights, the bias shadows, the noise shadow, the growth shadow
NOISE = STARTS + 1
GROWTH = STARTS + 2
