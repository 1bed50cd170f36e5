"""What runs of the lane engine leave, as arrays."""

from dataclasses import dataclass

from gradient_dd.arrays import Array, Integers


@dataclass(frozen=True)
class LaneResults:
    """What runs of many settings leave; settings in the order given.

    last100, area                    (runs, settings) means of errors; inf where the lane diverged
    curve                            (runs, settings, bins) means over bins of points
    diverged_step, diverged_episode  (runs, settings) where the error left the bound; 0 if it did not
    steps                            (runs,) steps made
    """

    last100: Array
    area: Array
    curve: Array
    diverged_step: Integers
    diverged_episode: Integers
    steps: Integers
