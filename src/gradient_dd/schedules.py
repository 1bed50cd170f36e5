"""Step-size schedules, exported from `gradient_dd.engine.schedules`."""

from gradient_dd.engine.schedules import Schedule, constant, parse_schedule, tapered

__all__ = ["Schedule", "constant", "parse_schedule", "tapered"]
