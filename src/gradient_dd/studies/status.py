"""What a results file holds, in numbers."""

from typing import Any

from gradient_dd.studies.store import Store


def store_status(store: Store) -> dict[str, Any]:
    """Return what a store holds: the study started last, and for each task its settings, runs and results."""
    studies = store.rows("SELECT name, text, at FROM study ORDER BY id DESC LIMIT 1")
    tasks = store.rows(
        "SELECT task, size, reading, count(DISTINCT setting), count(DISTINCT run), count(*), sum(diverged_step > 0) "
        "FROM result JOIN setting ON setting = id GROUP BY task, size, reading ORDER BY min(id)"
    )
    totals = "SELECT count(*), coalesce(sum(steps), 0), coalesce(sum(seconds), 0) FROM unit"
    units, steps, seconds = store.rows(totals)[0]
    names = ("task", "size", "reading", "settings", "runs", "results", "diverged")
    return {
        "study": dict(zip(("name", "text", "started"), studies[0], strict=True)) if studies else None,
        "tasks": [dict(zip(names, row, strict=True)) for row in tasks],
        "units": units,
        "steps": steps,
        "worker_seconds": seconds,
    }
