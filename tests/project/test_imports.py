"""What is loaded when, and what works without the extras: each promise in a process of its own."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gradient_dd.errors import EXTRAS

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PLAIN = ("click", "numba", "numpy", "pandas", "pyarrow", "rich", "scipy")  # what comes with the package
OPTIONAL = ("matplotlib", "jinja2", "gymnasium", "distributed", "dask", "cloudpickle", "jax", "optax")

# Run before a program: no package of an extra can be imported.
BLOCK = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def program(code, *arguments, **environment):
    """Run Python code in a fresh process and return what it left."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def output(code, *arguments, **environment):
    """Run Python code in a fresh process and return what it printed; it must succeed."""
    result = program(code, *arguments, **environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def loaded_by(code, *arguments):
    """Return the modules that are loaded once Python code has run."""
    report = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    return set(json.loads(output(code + report, *arguments).splitlines()[-1]))


def loaded_by_commands(*commands):
    """Return the modules that are loaded once some commands have run, one after the other."""
    code = """
import json, sys
from gradient_dd.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
"""
    return loaded_by(code, json.dumps(commands))


def test_importing_the_package_loads_no_other():
    assert not {*PLAIN, *OPTIONAL} & loaded_by("import gradient_dd")


def test_help_loads_click_alone():
    """That is what makes it answer in a blink."""
    loaded = loaded_by_commands(["--help"], ["--version"], ["sweep", "--help"], ["reproduce", "--help"])
    assert {*PLAIN, *OPTIONAL} & loaded == {"click"}


def test_looking_compiles_draws_and_builds_nothing():
    looking = ["list"], ["show", "gradient_dd"], ["show", "baird"], ["list", "tasks", "--json"]
    loaded = loaded_by_commands(*looking)
    assert {*PLAIN, *OPTIONAL} & loaded <= {"click", "numpy", "scipy"}
    building = {"gradient_dd.experiments.paper.studies", "gradient_dd.engine.lanes"}  # the first builds a hundred tasks
    assert not building & loaded


# Imports every module of the package but the room of networks, and the experiment about them.
EVERY_MODULE = """
import importlib, pkgutil, gradient_dd
for module in pkgutil.walk_packages(gradient_dd.__path__, "gradient_dd."):
    if ".networks" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_no_other_package_loads_jax_until_a_network_is_asked_for():
    """JAX takes seconds to load, and the other packages reach networks only inside functions."""
    assert not {"jax", "optax"} & loaded_by(EVERY_MODULE)


# The environment when NumPy is imported for the first time.
WATCH = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print("threads when NumPy loads:", os.environ.get("OPENBLAS_NUM_THREADS"))
            sys.meta_path.remove(self)

sys.meta_path.insert(0, Watch())
"""


def test_blas_is_told_its_threads_before_numpy_loads():
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    code = WATCH + "from gradient_dd.cli import main; main()"
    for given, seen in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        command = [sys.executable, "-c", code, "show", "baird"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment | given).stdout
        assert shown.startswith(f"threads when NumPy loads: {seen}\n")


def test_blas_is_left_alone_where_numpy_is_loaded_already():
    code = "import os, sys, numpy\nfrom gradient_dd.cli import main\nsys.argv = ['', '--help']\n"
    code += "try: main()\nfinally: print('threads:', os.environ.get('OPENBLAS_NUM_THREADS'))"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert shown.endswith("threads: None\n")


# Run without the extras; leaves a results file.
SLIM_PROGRAM = """
import sys
import numpy as np
import gradient_dd as gdd
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.report.play.page import live_page
from gradient_dd.studies import Study, grid, task
from gradient_dd.theory import largest_stable_alpha

agent = gdd.Learner("gradient_dd", n_features=2, alpha=0.5)
agent.update([1, 0], 1.0, 0.9, [0, 1])
walk = gdd.tasks.random_walk(5)
assert gdd.reference.run(walk, "gradient_dd", episodes=50, alpha=0.1).errors[-1] < walk.rmsve(walk.initial_weights)
P = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
assert gdd.tasks.from_tables(P, [[[0, 1]], [[0, 0]]], 1.0, np.ones((2, 1))).true_values == [1.0]
settings = [gdd.LEARNERS["td"].setting(alpha=alpha) for alpha in (0.1, 0.2)]
assert run_lanes(walk, settings, Horizon(episodes=20), runs=2).last100.shape == (2, 2)
assert 0 < largest_stable_alpha(walk, "gradient_dd") < 1
results = gdd.run(Study("s", (task("random_walk", n_states=5),), (grid("td"),), episodes=20, runs=2), out=sys.argv[1])
assert np.isfinite(results.errors("random_walk(n_states=5)")[1]).all()
gdd.testing.check_learner(gdd.LEARNERS["gtd2"])
assert live_page().startswith("<!doctype html>")
assert not {"click", "pandas", "matplotlib", "gymnasium"} & set(sys.modules)
print("all of it works")
"""


@pytest.fixture(scope="module")
def slim(tmp_path_factory):
    """Return what the program above prints, and its results file."""
    file = tmp_path_factory.mktemp("slim") / "results.db"
    return output(BLOCK + SLIM_PROGRAM, str(file)), file


@pytest.mark.xdist_group("slim")
def test_learning_sampling_and_theory_need_no_extra(slim):
    assert slim[0] == "all of it works\n"


@pytest.mark.xdist_group("slim")
def test_status_compiles_nothing_and_draws_nothing(slim):
    assert {*PLAIN, *OPTIONAL} & loaded_by_commands(["status", "--out", str(slim[1])]) <= {"click", "numpy", "scipy"}


CLUSTER = "from gradient_dd.studies.cluster import dask_executor; dask_executor('local').__enter__()"


NEEDED = (
    ("cluster", "cloudpickle", CLUSTER),
    ("environments", "gymnasium", "import gradient_dd.tasks.environments"),
    ("neural", "jax", "import gradient_dd; gradient_dd.Network(2)"),
    ("neural", "jax", "import gradient_dd; gradient_dd.NetworkLearner"),
    ("report", "matplotlib", "import gradient_dd.report.canvas"),
    ("report", "matplotlib", "import gradient_dd.report.study_figure"),
    ("report", "matplotlib", "import gradient_dd.experiments.paper.drawings.rates"),
    ("report", "jinja2", "import gradient_dd.experiments.page"),
)


def test_what_needs_an_extra_says_so(tmp_path):
    catch = """
import json, os, sys
from gradient_dd.errors import GradientDDError
os.chdir(sys.argv[2])
for code in json.loads(sys.argv[1]):
    try:
        exec(code)
    except ImportError as error:
        assert isinstance(error, GradientDDError)
        print(error)
    else:
        print("works", code)
"""
    printed = output(BLOCK + catch, json.dumps([code for *_, code in NEEDED]), str(tmp_path)).splitlines()
    for (extra, package, _), sentence in zip(NEEDED, printed, strict=True):
        user, packages = EXTRAS[extra]
        assert sentence == f"{user} needs {package}, which is not installed. Try: pip install {packages}"


def test_the_plain_install_evaluates_a_csv_file(tmp_path):
    (tmp_path / "log.csv").write_text("obs,reward,done\n" + "0,1,0\n1,0,1\n" * 30)
    code = BLOCK + "from gradient_dd.cli import main; main()"
    shown = output(code, "evaluate", str(tmp_path / "log.csv"), "--discount", "0.9")
    assert "Value at the start of episodes: 1 " in shown


def test_every_extra_that_a_sentence_names_is_declared():
    declared = DECLARED["optional-dependencies"]
    plain = {
        extra: [name.partition(">")[0] for name in declared[extra]] for extra in set(declared) - {"all", "dev", "docs"}
    }
    assert {extra: packages.split() for extra, (_, packages) in EXTRAS.items()} == plain
    assert declared["all"] == [f"gradient-dd[{','.join(sorted(EXTRAS))}]"]
    assert sorted(name.partition(">")[0] for name in DECLARED["dependencies"]) == sorted(PLAIN)


def test_the_environments_are_registered_whenever_gymnasium_arrives():
    make = "assert gymnasium.make('gradient_dd/Baird-v0', n_states=5).unwrapped.task.n_states == 5; print('made')"
    asked = "import gradient_dd, importlib.util; assert importlib.util.find_spec('gymnasium'); "
    orders = ("import gradient_dd, gymnasium; ", "import gymnasium, gradient_dd; ", asked + "import gymnasium; ")
    for order in orders:
        assert output(order + make) == "made\n"
    unused = "import sys; assert not any('AfterGymnasium' in repr(one) for one in sys.meta_path); print('gone')"
    assert output(f"{orders[0]}{unused}") == "gone\n"


def test_without_gymnasium_the_package_works_and_the_import_fails_as_usual():
    code = "import gradient_dd\ntry:\n    import gymnasium\nexcept ModuleNotFoundError as e:\n    print(e.name)"
    assert output(BLOCK + code) == "gymnasium\n"


def test_public_modules_can_be_imported_from():
    code = """
from gradient_dd.exact import mspbe
from gradient_dd.features import TileCoder
from gradient_dd.schedules import tapered
import gradient_dd as gdd
assert gdd.features.TileCoder is TileCoder and gdd.schedules.tapered is tapered and gdd.exact.mspbe is mspbe
study = gdd.Study("s", ["random_walk"], [gdd.grid("td", alpha=0.1)], schedule="tapered(1000)", episodes=2)
assert study.schedule == tapered(1000) and study.tasks == (gdd.task("random_walk"),)
try:
    gdd.LEARNERS["mine"] = gdd.LEARNERS["td"]
except TypeError:
    print("read only")
"""
    assert output(code) == "read only\n"
