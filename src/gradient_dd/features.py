"""Feature maps from observations to feature rows, exported from `gradient_dd.stream.features`."""

from gradient_dd.stream.features import *  # noqa: F403
from gradient_dd.stream.features import __all__ as __all__
