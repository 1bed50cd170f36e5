"""A Dask cluster that is not there, or goes away: one sentence, soon, and what was committed is kept."""

import ast
import logging
import os
import re
import socket
import subprocess
import sys
import time
from inspect import signature
from pathlib import Path

import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.studies import read_study
from gradient_dd.studies.cluster import dask_executor
from gradient_dd.studies.sweep import run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "foo",
            "tcp://",
            "tcp://x",
            "localhost:abc",
            "tcp://localhost:99999",
            "tcp://localhost:0",
            "://",
            "a b:1",
        ),
        *("a b:1", "http://localhost:80", "inproc://x", "ucx://h:1", "tcp://h:1/path", "tcp://[::1:8786", "\x1b[31m:1"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(address):
    begin = time.monotonic()
    with (
        pytest.raises(BadRequestError, match="'--dask' must be an address like tcp://HOST:8786"),
        dask_executor(address),
    ):
        pass
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("scheme", ["", "tcp://", "tls://"])
def test_an_address_where_nobody_listens_is_refused_soon(scheme):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begin = time.monotonic()
    with (
        pytest.raises(BadRequestError, match="must be the address of a Dask scheduler that answers"),
        dask_executor(f"{scheme}127.0.0.1:{port}"),
    ):
        pass
    assert time.monotonic() - begin < 5


def test_tls_without_certificates_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tls://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BadRequestError, match="must be the address of a Dask scheduler"), dask_executor(address):
            pass


def test_dask_prints_no_tracebacks_of_its_own():
    with pytest.raises(BadRequestError), dask_executor("nowhere"):
        pass
    assert not logging.getLogger("distributed.batched").isEnabledFor(logging.CRITICAL)


def test_the_page_calls_what_there_is():
    """Its scripts need a cluster and cannot be run here, but their calls of this package fit."""
    page = (ROOT / "docs" / "how-to" / "large-studies.md").read_text()
    known = {"dask_executor": dask_executor, "run": run, "read_study": read_study}
    called = set()
    for block in re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for call in (node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)):
            function = known.get(getattr(call.func, "id", ""))
            if function is not None:
                signature(function).bind(*call.args, **{word.arg: word.value for word in call.keywords})
                called.add(function.__name__)
    assert called == set(known)


LOST = """
import os, signal, socket, subprocess, sys, time
from dataclasses import replace
from tests.studies.test_sweep import STUDY
from gradient_dd.studies.cluster import dask_executor
from gradient_dd.studies.store import Store
from gradient_dd.studies.sweep import run

if __name__ == "__main__":
    folder = sys.argv[1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "tcp://127.0.0.1:%d" % free.getsockname()[1]
    dask, quiet = [sys.executable, "-m", "dask"], {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    port = address.rpartition(":")[2]
    scheduler = subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"], **quiet)
    worker = subprocess.Popen(
        [*dask, "worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", folder], **quiet
    )
    seen = []

    def lose(state):
        seen.append(time.monotonic())
        if len(seen) == 3:
            scheduler.kill()

    try:
        for _ in range(60):
            try:
                socket.create_connection(("127.0.0.1", int(port))).close()
                break
            except OSError:
                time.sleep(0.5)
        study = replace(STUDY, runs=3000, episodes=2000)
        with dask_executor(address) as executor:
            run(study, folder + "/a.db", executor=executor, workers=1, on_progress=lose)
    except BaseException as error:
        print(type(error).__name__, error)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    print(time.monotonic() - seen[2] < 30)
    with Store(folder + "/a.db") as store:
        print(store.rows("SELECT count(*) FROM unit")[0][0] == len(seen))
"""


def test_a_scheduler_that_is_killed_ends_the_sweep_with_one_sentence(tmp_path):
    script = tmp_path / "lost.py"
    script.write_text(LOST)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    call = [sys.executable, str(script), str(tmp_path)]
    result = subprocess.run(call, capture_output=True, text=True, env=environment, check=False, timeout=200)
    sentence, soon, kept = result.stdout.splitlines()
    assert sentence.startswith("ClusterError Lost the connection to the Dask cluster at tcp://127.0.0.1:")
    assert sentence.endswith("Committed results are kept; run the same command to resume.")
    assert (soon, kept) == ("True", "True")
    assert "Traceback" not in result.stderr
