"""The picture of the live page in the docs, docs/images/play.png: `python -m tools.play_picture`. It needs Chromium."""

import tempfile
from pathlib import Path

from gradient_dd.report.play.page import live_page
from tools.chromium import Chromium

TARGET = Path(__file__).parent.parent / "docs" / "images" / "play.png"


def main() -> None:
    """Open the page as `gradient-dd play` writes it, wait for its runs, and save what is seen first."""
    with tempfile.TemporaryDirectory() as folder, Chromium(1200, 1020) as browser:
        page = Path(folder) / "play.html"
        page.write_text(live_page(), encoding="utf-8")
        browser.open(page)
        browser.picture(TARGET, height=1020)
    print(f"{TARGET} ({TARGET.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main()
