"""Exact quantities of a task, exported from `gradient_dd.tasks.exact`."""

from gradient_dd.tasks.exact import *  # noqa: F403
