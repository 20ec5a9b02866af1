"""The built wheel and source archive, used away from the tree in clean environments.

    python tests/release/built.py python3.11 python3.12 python3.13
    python tests/release/built.py --lowest python3.11

builds both from what is committed (the wheel from the source archive), has ``twine check`` read
them, and for each Python installs the wheel with the newest dependencies that are allowed, or the
lowest, and goes through the README's Python and a few commands of every kind in an empty folder.
Then the source archive takes the wheel's place, and what it installed has to be the same files;
the README's ``make`` lines run in a clone. Exits with 1 when something fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, not by pytest
import pages

ROOT = Path(__file__).parents[2]
LIMIT_S = 1800
"""For one command; a busy machine is slow."""
FILES = {
    "NODES.csv": "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,G2\nn1,64000,262144,2,G2\n",
    "TASKS.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
    "t0,4000,8192,1,500\nt1,4000,8192,1,1000\n",
    "POWER.csv": "application,clock_mhz,power_w\n"
    "a,500,100\na,700,131\na,900,160\na,1100,189\na,1300,221\n",
    "GRID.toml": '[[grid]]\nfamily = "placement"\npresets = ["small"]\npolicies = ["fgd"]\n',
}
COMMANDS = """
optgap --help
optgap --version --json
optgap --version
optgap families
optgap generate placement --nodes NODES.csv --tasks TASKS.csv -o drawn.json
optgap generate placement --preset small --size 6 -o problem.json
optgap solve problem.json --json best.json
optgap solve problem.json --bound-only
optgap run problem.json --policy fgd -o fgd.json
optgap check problem.json fgd.json --strict
optgap compare problem.json --json gaps.json --plot gaps.png
optgap report gaps.json -o gaps.html
optgap solve problem.json --method milp --set backend=highs
optgap solve problem.json --method milp --set backend=cbc
optgap solve problem.json --method exact
optgap compare consolidation --preset mixed --size 6 --policies default --methods bound-area
optgap compare coscheduling --size 5
optgap generate queueing --preset small --size 5 -o queue.json
optgap solve queue.json --method bound-prices --bound-only
optgap compare elastic --preset tiny --policies fifo --methods bound-prices
optgap fit --audit POWER.csv
optgap fit linear-power POWER.csv --by application --cv 5 -o model.json --plot fit.png
"""
MADE = ("best.json", "gaps.json", "gaps.png", "gaps.html", "model.json", "fit.png")
WHERE = "import optgap; print(optgap.__file__)"
MISSING = "pip install 'optgap[sweep]'"


class Clean:
    """One Python with an environment and an empty folder of its own, and the steps taken there.

    Parameters
    ----------
    python: the interpreter to make the environment with.
    place: a folder for all of it.
    """

    def __init__(self, python: str, place: Path) -> None:
        self.failed = 0
        self.here, self.bin = place / "here", place / "venv" / "bin"
        self.here.mkdir(parents=True)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("OPTGAP", "PYTHON"))},
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(place / "cache"),
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip")),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        # `make` is to find no environment of ours either
        self.environment.pop("VIRTUAL_ENV", None)
        self.checked([python, "-m", "venv", str(self.bin.parent)])

    def run(
        self, command: list[str], folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder (`here`); its first word is looked for in ours first."""
        own = self.bin / command[0]
        return subprocess.run(
            [str(own) if own.exists() else command[0], *command[1:]],
            cwd=folder or self.here,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def checked(self, command: list[str]) -> str:
        """Return what the command prints; a failure ends it all."""
        done = self.run(command)
        if done.returncode:
            raise SystemExit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def that(self, what: str, good: bool, told: str = "", seconds: float = 0.0) -> None:
        """Note one step; `told` is shown where it is not good."""
        self.failed += not good
        print(f"{'  ' if good else '! '}{seconds:6.1f} s  {what}", flush=True)
        if not good:
            print(told[-4000:], flush=True)

    def step(self, command: list[str], folder: Path | None = None) -> None:
        """Take one step, and note how it went."""
        started = time.monotonic()
        done = self.run(command, folder)
        told = f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        what = shlex.join(command).partition("\n")[0]
        self.that(what, done.returncode == 0, told, time.monotonic() - started)


def cloned(place: Path) -> Path:
    """What is committed, in a new folder."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(place)], check=True)
    return place


def build(place: Path) -> tuple[Path, Path]:
    """The wheel and the source archive of what is committed, both read by ``twine check``."""
    tools = Clean(sys.executable, place / "tools")
    tools.checked(["pip", "install", "--quiet", "build", "twine"])
    made = place / "dist"
    source = cloned(place / "source")
    tools.checked(["python", "-m", "build", "--outdir", str(made), str(source)])
    (wheel,), (archive,) = made.glob("*.whl"), made.glob("*.tar.gz")
    print(tools.checked(["twine", "check", "--strict", str(wheel), str(archive)]).strip())
    return wheel, archive


def commands(user: Clean) -> None:
    """The README's Python and every command, and what it has to leave behind."""
    for name, text in FILES.items():
        (user.here / name).write_text(text)
    for item in pages.read(ROOT / "README.md"):
        if isinstance(item, pages.Script):
            user.step(["python", "-c", item.text])
    for line in COMMANDS.strip().splitlines():
        user.step(shlex.split(line))
    absent = [name for name in MADE if not (user.here / name).exists()]
    user.that("files that were asked for", not absent, f"not there: {absent}")
    gaps = user.here / "gaps.json"
    proven = json.loads(gaps.read_text())["best_bound"] if gaps.exists() else None
    user.that("a bound is proven", proven is not None)
    outside = user.run(["python", "-c", "import models"]).returncode
    user.that("nothing of the tree can be imported", outside != 0)


def sweeps(user: Clean, install: list[str], wheel: Path) -> None:
    """An extra that is missing is said in a line; once it is there, its command runs."""
    command = ["optgap", "sweep", "GRID.toml", "-o", "GRID.parquet"]
    done = user.run(command)
    said = done.returncode == 2 and MISSING in done.stderr
    user.that("sweep without its extra", said, done.stderr)
    user.checked([*install, f"{wheel}[sweep]"])
    user.step(command)


def installed(user: Clean) -> dict[str, bytes]:
    """The package's files as they are installed, by name."""
    folder = Path(user.checked(["python", "-c", WHERE]).strip()).parent
    if user.bin.parent not in folder.parents:
        raise SystemExit(f"optgap is imported from {folder}")
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files
        if "__pycache__" not in path.parts
    }


def used(python: str, wheel: Path, archive: Path, place: Path, lowest: bool) -> bool:
    """Whether all goes well with one Python."""
    user = Clean(shutil.which(python) or python, place)
    install = ["pip", "install", "--quiet"]
    version = user.checked(["python", "-V"]).strip()
    if lowest:
        limits = str(place / "lowest.txt")
        resolve = ["uv", "pip", "compile", "--quiet", "--resolution", "lowest-direct"]
        user.checked(["pip", "install", "--quiet", "uv"])
        user.checked([*resolve, "--extra", "sweep", "-o", limits, str(ROOT / "pyproject.toml")])
        install += ["--constraint", limits]
    print(f"\n{version}, {'lowest' if lowest else 'newest'} dependencies: the wheel")
    # one of COMMANDS asks for CBC, and PuLP 4 carries none
    user.checked([*install, f"{wheel}[cbc]"])
    user.checked(["pip", "check"])
    of_wheel = installed(user)
    commands(user)
    sweeps(user, install, wheel)
    print(f"{version}: the source archive")
    user.checked(["pip", "uninstall", "--quiet", "--yes", "optgap"])
    user.checked([*install, "--no-deps", str(archive)])
    user.that("it installs what the wheel does", installed(user) == of_wheel)
    user.step(["optgap", "compare", "problem.json"])
    print(*user.checked(["pip", "freeze"]).split(), sep=" ")
    for item in () if lowest else pages.read(ROOT / "README.md"):
        if isinstance(item, pages.Command) and item.words[0] == "make":
            user.step([*item.words, f"PYTHON={python}"], cloned(place / "clone"))
    print(f"{version}: {user.failed or 'none'} failed")
    return not user.failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--lowest", action="store_true", help="with the lowest dependencies")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="optgap-built-") as name:
        place = Path(name)
        wheel, archive = build(place)
        good = [
            used(python, wheel, archive, place / str(number), given.lowest)
            for number, python in enumerate(given.pythons)
        ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
