"""Results as files that other programs read."""

from pathlib import Path
from typing import TYPE_CHECKING

from gradient_dd.errors import Words, extra, must

if TYPE_CHECKING:
    import pandas as pd


def write_frame(frame: "pd.DataFrame", target: str | Path) -> None:
    """Write a frame as CSV or Parquet, by the ending of the name."""
    path = Path(target)
    try:
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
        elif path.suffix == ".parquet":
            with extra("parquet"):
                import pyarrow  # noqa: F401  (pandas writes with it)
            frame.to_parquet(path, index=False)
        else:
            raise must("The file to export to", "end in .csv or .parquet", path.name)
    except OSError as error:
        raise must(f"{str(path)!r}", "be a file that can be written", Words(error.strerror or "an error")) from None
