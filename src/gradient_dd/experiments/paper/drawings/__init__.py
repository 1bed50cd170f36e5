"""Figures that need no study, and the diagram above the figure of a study."""

from gradient_dd.errors import extra

with extra("report"):
    import matplotlib  # noqa: F401  (every file of this folder draws with it)
