"""The row of a setting, as a store keeps it."""

import json
from typing import Any

from gradient_dd.studies.checksums import row_checksum
from gradient_dd.studies.schema import PARAMETERS_WITH_A_COLUMN


def setting_cells(key: str, facts: dict[str, Any]) -> tuple[Any, ...]:
    """Return the cells of a setting's row, its checksum last."""
    values = [facts["values"].get(name) for name in PARAMETERS_WITH_A_COLUMN]
    first = [facts[name] for name in ("description", "task", "size", "reading", "learner")]
    last = [facts[name] for name in ("schedule", "episodes", "steps", "every", "sampling", "seed")]
    cells = (key, *first, *values, facts["rho_mode"], json.dumps(facts["values"]), *last)
    return *cells, row_checksum(cells)


def restored_key(cells: list[Any], described: dict[str, str]) -> str:
    """Return the key of a setting's row; where nothing but the key is damaged, the one it was written with."""
    key, description, *others = cells
    known = described.get(description, key)
    return known if row_checksum((known, description, *others[:-1])) == others[-1] else key
