"""The diagram of docs/contribute/architecture.md is what the code does: who imports whom."""

import re
from collections import Counter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gradient_dd"
PAGE = (ROOT / "docs" / "contribute" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = sorted(place.stem for place in PACKAGE.iterdir() if place.is_dir() and (place / "__init__.py").exists())


def imports_of_packages():
    """Return for each package the packages that it imports."""
    graph = grimp.build_graph("gradient_dd")
    found = {package: set() for package in PACKAGES}
    for module in graph.modules:
        package = module.split(".")[1] if "." in module else ""
        for imported in graph.find_modules_directly_imported_by(module):
            other = imported.split(".")[1] if "." in imported else ""
            if package in found and other in found and other != package:
                found[package].add(other)
    return found


def drawn_packages():
    """Return the same as the page shows it, from lines like `| paper | engine, learners |`."""
    rows = re.findall(r"^\| (\w+) \| ([\w, –]+) \|$", PAGE.partition("## Who imports whom")[2], re.MULTILINE)
    return {package: set(re.findall(r"\w+", others)) for package, others in rows if package in PACKAGES}


def test_the_page_shows_who_imports_whom():
    assert drawn_packages() == imports_of_packages()


def test_the_page_names_every_package_and_file_at_the_top():
    for place in PACKAGE.iterdir():
        if place.name not in ("__pycache__", "py.typed"):
            assert place.name in PAGE, place.name


@pytest.mark.xdist_group("one process")
def test_groups_of_tests_share_a_process(request):
    """What a group shares is made once: pytest and pytest-xdist must agree on how a group is named."""
    if hasattr(request.config, "workerinput"):  # not where one process runs everything
        assert request.node.nodeid.endswith("@one process")


def test_no_class_name_is_used_in_two_modules():
    """One noun, one thing: a reader who meets a name knows which one it is."""
    names = Counter(re.findall(r"^class (\w+)", "\n".join(file.read_text() for file in PACKAGE.rglob("*.py")), re.M))
    assert [name for name, count in names.items() if count > 1] == []
