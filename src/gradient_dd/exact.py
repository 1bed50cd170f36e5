"""Exact quantities of a task. The code is in `gradient_dd.tasks.exact`."""

from gradient_dd.tasks.exact import *  # noqa: F403
