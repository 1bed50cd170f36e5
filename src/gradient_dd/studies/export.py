"""Results as files that other programs read."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradient_dd.errors import Words, extra, must

if TYPE_CHECKING:
    import pandas as pd

FORMULA = ("=", "+", "-", "@")  # what the first character of a formula is


def write_frame(frame: "pd.DataFrame", target: str | Path) -> None:
    """Write a frame as CSV or Parquet, by the ending of the name."""
    path = Path(target)
    try:
        if path.suffix == ".csv":
            without_formulas(frame).to_csv(path, index=False)
        elif path.suffix == ".parquet":
            with extra("parquet"):
                import pyarrow  # noqa: F401  (pandas writes with it)
            frame.to_parquet(path, index=False)
        else:
            raise must("The file to export to", "end in .csv or .parquet", path.name)
    except OSError as error:
        raise must(f"{str(path)!r}", "be a file that can be written", Words(error.strerror or "an error")) from None


def without_formulas(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame whose texts and column names no spreadsheet takes for formulas."""
    changed = {}
    for name in frame.columns:
        if frame[name].dtype.kind not in "ifub":  # texts are many, but few of them differ
            known = {cell: harmless(cell) for cell in frame[name].unique()}
            if any(cell != shown for cell, shown in known.items() if isinstance(cell, str)):
                changed[name] = frame[name].map(known)
    return frame.assign(**changed).rename(columns=harmless)


def harmless(cell: Any) -> Any:
    """Return a cell. A text is put on one line, and gets an apostrophe in front if it looks like a formula."""
    if not isinstance(cell, str):
        return cell
    cell = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in cell)
    if not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
