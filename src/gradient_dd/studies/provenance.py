"""The origin of a result: versions, processor, commit."""

import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gradient_dd.studies.study import ENGINE_VERSION


def provenance() -> dict[str, Any]:
    """Return the versions, the processor and the commit of this process."""
    return {
        "gradient-dd": version("gradient-dd"),
        "engine": ENGINE_VERSION,
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "machine": platform.machine(),
        "processor": processor(),
    }


@cache
def commit() -> str:
    """Return the commit of the source, "" without a checkout; a trailing "+" marks uncommitted changes."""
    here = Path(__file__).parent
    if not any((parent / ".git").exists() for parent in here.parents):
        return ""
    try:
        call = ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--abbrev=12"]
        return subprocess.run(call, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


@cache
def processor() -> str:
    """Return the processor's name."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
