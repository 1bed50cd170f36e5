"""The diagram of docs/contribute/architecture.md is what the code does: who imports whom, and who calls whom."""

import re
import sys
import threading
from collections import Counter
from functools import cache
from pathlib import Path

import grimp
import pytest
from click.testing import CliRunner

from gradient_dd import Learner
from gradient_dd.cli.commands import cli

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gradient_dd"
PAGE = (ROOT / "docs" / "contribute" / "architecture.md").read_text(encoding="utf-8")
ROOMS = sorted(place.stem for place in PACKAGE.iterdir() if place.is_dir() and (place / "__init__.py").exists())
CALLBACKS = {  # functions that a caller passes in, and the room below calls
    ("studies", "cli"),  # progress and notices
    ("experiments", "cli"),  # the stages of a reproduction
    ("engine", "studies"),  # whether the sweep was stopped
    ("studies", "report"),  # which settings belong to a line
    ("studies", "experiments"),  # the same for several lines
}


def imports_of_rooms():
    """Return for each room the rooms that it imports."""
    graph = grimp.build_graph("gradient_dd")
    found = {room: set() for room in ROOMS}
    for module in graph.modules:
        room = module.split(".")[1] if "." in module else ""
        for imported in graph.find_modules_directly_imported_by(module):
            other = imported.split(".")[1] if "." in imported else ""
            if room in found and other in found and other != room:
                found[room].add(other)
    return found


def drawn_rooms():
    """Return the same as the page shows it, from lines like `| paper | engine, learners |`."""
    rows = re.findall(r"^\| (\w+) \| ([\w, –]+) \|$", PAGE.partition("## Who imports whom")[2], re.MULTILINE)
    return {room: set(re.findall(r"\w+", others)) for room, others in rows if room in ROOMS}


def test_the_page_shows_who_imports_whom():
    assert drawn_rooms() == imports_of_rooms()


def test_the_page_names_every_room_and_file_at_the_top():
    for place in PACKAGE.iterdir():
        if place.name not in ("__pycache__", "py.typed"):
            assert place.name in PAGE, place.name


@cache
def room_of(file):
    """Return the room of a source file; None for what is not ours."""
    path = Path(file)
    room = path.relative_to(PACKAGE).parts[0] if path.is_relative_to(PACKAGE) else None
    return room if room in ROOMS else None


class Calls:
    """Records which room calls which, on every thread."""

    def __init__(self):
        self.seen = set()

    def __call__(self, frame, event, _):
        if event == "call" and (callee := room_of(frame.f_code.co_filename)):
            above = frame.f_back
            while above is not None and room_of(above.f_code.co_filename) is None:
                above = above.f_back
            caller = room_of(above.f_code.co_filename) if above is not None else None
            if caller and caller != callee:
                self.seen.add((caller, callee))

    def __enter__(self):
        threading.setprofile(self)
        sys.setprofile(self)
        return self.seen

    def __exit__(self, *error):
        sys.setprofile(None)
        threading.setprofile(None)


def test_calls_go_the_way_imports_go(tmp_path):
    """A command calls down through the rooms; only the callbacks for progress and notices come back up."""
    allowed = {(room, other) for room, others in imports_of_rooms().items() for other in others}
    small = ["--episodes", "10", "--runs", "2", "--out"]
    commands = [
        ["sweep", "--task", "random_walk:n_states=3", "--learner", "td", *small, str(tmp_path / "a.db")],
        ["reproduce", "walk-natural", *small, str(tmp_path / "paper")],
    ]
    with Calls() as seen:
        for command in commands:
            result = CliRunner().invoke(cli, command)
            assert result.exit_code == 0, result.output
        Learner("gradient_dd", n_features=2).update([1, 0], 1.0, 0.9, [0, 1])
    assert {("cli", "studies"), ("cli", "experiments"), ("experiments", "studies"), ("stream", "learners")} <= seen
    assert seen - allowed - CALLBACKS == set()


@pytest.mark.xdist_group("one process")
def test_groups_of_tests_share_a_process(request):
    """What a group shares is made once: pytest and pytest-xdist must agree on how a group is named."""
    if hasattr(request.config, "workerinput"):  # not where one process runs everything
        assert request.node.nodeid.endswith("@one process")


def test_no_class_name_is_used_in_two_modules():
    """One noun, one thing: a reader who meets a name knows which one it is."""
    names = Counter(re.findall(r"^class (\w+)", "\n".join(file.read_text() for file in PACKAGE.rglob("*.py")), re.M))
    assert [name for name, count in names.items() if count > 1] == []
