"""Choosing the tuned setting: the one place where "the best of these settings" is decided."""

from collections.abc import Callable, Sequence

from gradient_dd.arrays import Array
from gradient_dd.errors import Words, must
from gradient_dd.learners import Setting
from gradient_dd.studies import intervals


def places(settings: Sequence[Setting], wanted: Callable[[Setting], bool]) -> list[int]:
    """Return the places of the wanted settings."""
    return [place for place, setting in enumerate(settings) if wanted(setting)]


def tuned(settings: Sequence[Setting], errors: Array, wanted: Callable[[Setting], bool]) -> int:
    """Return the place of the best of the wanted settings; errors: (settings, runs).

    It has the smallest mean error. A setting that diverged in any run is chosen only where all of them did.
    """
    ours = places(settings, wanted)
    if not ours:
        raise must("The settings to choose from", "include one that is wanted", Words("none"))
    return ours[intervals.select(errors[ours])]
