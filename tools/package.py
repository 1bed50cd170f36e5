"""Build the package as a release does, and try it in empty environments; `make package` runs it.

The wheel and the source archive go to dist/. packaging/smoke.py tries the wheel without extras, then with the packages
that its error messages name, and in another environment with the lowest declared version of every dependency.
"""

import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
DIST, SMOKE = ROOT / "dist", ROOT / "packaging" / "smoke.py"
INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


def lowest() -> list[str]:
    """Return the lowest declared version of every dependency and of every package of an extra, as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    users = [one for name, packages in extras.items() if name not in ("all", "dev", "docs") for one in packages]
    return [one.replace(">=", "==") for one in sorted([*project["dependencies"], *users])]


def python_of(folder: Path) -> str:
    """Return the interpreter of a new, empty environment."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return str(folder / "bin" / "python")


def build(folder: Path) -> Path:
    """Build wheel and source archive, check their metadata, and return the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    python = python_of(folder)
    subprocess.run([python, *INSTALL, "build", "twine"], check=True)
    subprocess.run([python, "-m", "build", "--outdir", DIST, ROOT], check=True, stdout=subprocess.DEVNULL)
    files = sorted(DIST.iterdir())
    subprocess.run([python, "-m", "twine", "check", "--strict", *files], check=True)
    print("\n".join(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB" for file in files), flush=True)
    return next(file for file in files if file.suffix == ".whl")


def smoke(python: str, folder: Path, *words: str) -> str:
    """Run the smoke test away from the clone; return what it prints."""
    begin = time.perf_counter()
    call = [python, "-I", SMOKE, *words]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, call))}\n{done.stdout}{done.stderr}")
    tried = len(re.findall("^gradient", done.stdout, re.MULTILINE))
    print(f"{' '.join(words) or 'all extras'}: {tried} tried in {time.perf_counter() - begin:.0f} s", flush=True)
    return done.stdout


def main() -> None:
    """Build and try the package."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        wheel = build(folder / "build")
        python = python_of(folder / "plain")
        subprocess.run([python, *INSTALL, wheel], check=True)
        for packages in sorted(set(re.findall(r"Try: pip install (.*)", smoke(python, folder, "plain")))):
            print(f"pip install {packages}", flush=True)
            subprocess.run([python, *INSTALL, *packages.split()], check=True)
        smoke(python, folder)
        (folder / "lowest.txt").write_text("\n".join(lowest()), encoding="utf-8")
        python = python_of(folder / "lowest")
        subprocess.run([python, *INSTALL, "--constraint", folder / "lowest.txt", f"{wheel}[all]"], check=True)
        print("lowest versions:", *lowest(), flush=True)
        smoke(python, folder)


if __name__ == "__main__":
    main()
