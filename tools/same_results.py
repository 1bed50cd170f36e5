"""Compare two results files to the bit: `python tools/same_results.py BEFORE.db AFTER.db`.

After a change to the engine, `gradient-dd reproduce --runs 2 --episodes 200 --out FOLDER` before and after it must give
the same numbers wherever both have them. Which settings are run afresh may differ, where another one is selected.
"""

import sys

from gradient_dd.studies.store import Store


def results_of(path: str) -> dict[tuple[str, int], bytes]:
    """Return all numbers of a file, as bytes, by the key of the setting and the run."""
    found = {}
    with Store(path) as store, store.snapshot():
        for unit in store.units():
            curves = store.curves(unit)
            for key, numbers, points in zip(unit.keys, unit.numbers, curves, strict=True):
                found[key, unit.run] = numbers.tobytes() + points.tobytes()
    return found


def main(before: str, after: str) -> int:
    """Print how many results two files share and how many of those differ; return 1 if any does, or none is shared."""
    left, right = results_of(before), results_of(after)
    shared = left.keys() & right.keys()
    differ = sum(left[key] != right[key] for key in shared)
    only = len(left) - len(shared), len(right) - len(shared)
    print(f"{len(shared)} results in both, {differ} differ; only in one: {only[0]} and {only[1]}")
    return int(bool(differ) or not shared)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
