"""The notebooks of docs/notebooks as pages of the site; `mkdocs.yml` names this file as a hook.

Hand-written pages link to NAME.ipynb, which code hosts show; on the site the links lead to the page made here.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FOLDER = Path(__file__).parent / "notebooks"
LINK = re.compile(r"(\]\([^()\s]*)\.ipynb\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every notebook, and its pictures."""
    for notebook in sorted(FOLDER.glob("*.ipynb")):
        page, pictures = page_of(notebook.stem, json.loads(notebook.read_text(encoding="utf-8"))["cells"])
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=page))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to notebooks to their pages."""
    return LINK.sub(r"\1.md)", markdown)


def page_of(name: str, cells: list[dict[str, Any]]) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in cells:
        source = "".join(cell["source"]).strip()
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![{output['metadata'].get('alt', 'Output of the code above')}]({file})")
            elif "image/svg+xml" in data:
                parts.append(f"<div>{data['image/svg+xml']}</div>")
            elif "text/html" in data:
                table = re.sub('<table (border="1" )?class="dataframe">', "<table>", "".join(data["text/html"]))
                parts.append(re.sub(r"\n\s*\n", "\n", table).strip())
            else:
                text = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"```text\n{text.rstrip()}\n```")
    head, *rest = parts
    return "\n\n".join([head, f'<a href="{name}.ipynb" download>Download this notebook</a>', *rest]), pictures
