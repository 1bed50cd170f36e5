"""No file that this package reads runs code: who may unpickle or execute is listed here, with the reason."""

import ast
from pathlib import Path

import pytest

import gradient_dd

SOURCE = Path(gradient_dd.__file__).parent
UNPICKLERS = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
ALLOWED = {
    (
        "engine/kernels/compiler.py",
        "pickle",
    ): "compiled kernels are code: docs/contribute/guarantees.md explains",
    ("engine/kernels/compiler.py", "exec"): "makes a kernel from source that the engine has written from a rule",
    ("studies/cluster.py", "cloudpickle"): "sends a user's own rule to Dask workers that he started himself",
}


def uses(tree):
    """Yield whatever could run code that a file holds: modules that unpickle, `eval`, `exec`, `allow_pickle`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ({name.name.partition(".")[0] for name in node.names} & UNPICKLERS)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ({node.module.partition(".")[0]} & UNPICKLERS)
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            yield from ({name} & {"eval", "exec", "read_pickle", "find_class"})
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            refused = isinstance(node.value, ast.Constant) and node.value.value is False
            yield from [] if refused else ["allow_pickle"]


def found_in(source):
    """Return (file, use) for every use in a folder that is not listed."""
    found = set()
    for file in source.rglob("*.py"):
        name = file.relative_to(source).as_posix()
        for use in uses(ast.parse(file.read_text(encoding="utf-8"))):
            if (name, use) not in ALLOWED:
                found.add((name, use))
    return found


def test_no_module_unpickles_or_executes():
    assert not found_in(SOURCE)


def test_every_exception_is_needed():
    for (name, use), reason in ALLOWED.items():
        assert use in set(uses(ast.parse((SOURCE / name).read_text(encoding="utf-8")))), reason


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from marshal import loads",
        "def read():\n    import numpy, cloudpickle as c",
        "eval('1')",
        "import builtins\nbuiltins.exec('1')",
        "np.load(file, allow_pickle=True)",
        "np.load(file, allow_pickle=flag)",
    ],
)
def test_a_planted_use_is_seen(text, tmp_path):
    (tmp_path / "planted.py").write_text(text)
    assert len(found_in(tmp_path)) == 1
