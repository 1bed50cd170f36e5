"""Results as files that other programs read."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradient_dd.errors import Words, extra, must

if TYPE_CHECKING:
    import pandas as pd

FORMULA = tuple("=+-@\t\r\n")


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
    """Return a frame whose texts no spreadsheet takes for formulas: an apostrophe stands before those that look it."""
    texts = {name: frame[name].map(harmless) for name in frame.columns if frame[name].dtype.kind not in "ifub"}
    return frame.assign(**texts).rename(columns=harmless)


def harmless(cell: Any) -> Any:
    """Return a cell; a text that begins as a formula does, and is no number, gets an apostrophe in front."""
    if not isinstance(cell, str) or cell[:1] not in FORMULA:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
