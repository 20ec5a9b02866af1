"""The built wheel and source archive, used away from the tree in clean environments.

    python tests/release/built.py python3.11 python3.12 python3.13
    python tests/release/built.py --lowest python3.11

builds both from what is committed (the wheel from the source archive), has ``twine check`` read
them, and for each Python installs the wheel with the newest dependencies that are allowed, or the
lowest, and goes through a few commands of every kind in an empty folder. Then the source archive
takes the wheel's place, and what it installed has to be the same files. Exits with 1 when something
fails.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

from clean import Clean, cloned
from lowest import constraints, project

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
TREE = "import models"
WHERE = "import optgap; print(optgap.__file__)"
MISSING = "pip install 'optgap[sweep]'"


class Check:
    """Goes through steps, says how each went, and counts those that failed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failed = 0

    def that(self, what: str, good: bool, told: str = "", seconds: float = 0.0) -> None:
        """Note one step; `told` is shown where it is not good."""
        print(f"{'  ' if good else '! '}{seconds:6.1f} s  {what}", flush=True)
        if not good:
            self.failed += 1
            print(told[-4000:], flush=True)


def build(place: Path) -> tuple[Path, Path]:
    """The wheel and the source archive of what is committed, both read by ``twine check``."""
    tools = Clean(sys.executable, place / "tools")
    tools.settle()
    tools.checked(["pip", "install", "--quiet", "build", "twine"])
    made = place / "dist"
    source = cloned(place / "source")
    tools.checked(["python", "-m", "build", "--outdir", str(made), str(source)])
    (wheel,), (archive,) = made.glob("*.whl"), made.glob("*.tar.gz")
    print(tools.checked(["twine", "check", "--strict", str(wheel), str(archive)]).strip())
    return wheel, archive


def commands(user: Clean, check: Check) -> None:
    """Every command, and what it has to leave behind."""
    shutil.rmtree(user.here)
    user.here.mkdir()
    for name, text in FILES.items():
        (user.here / name).write_text(text)
    for line in COMMANDS.strip().splitlines():
        started = time.monotonic()
        done = user.run(shlex.split(line))
        told = f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        check.that(line, done.returncode == 0, told, time.monotonic() - started)
    absent = [name for name in MADE if not (user.here / name).exists()]
    check.that("files that were asked for", not absent, f"not there: {absent}")
    gaps = user.here / "gaps.json"
    proven = json.loads(gaps.read_text())["best_bound"] if gaps.exists() else None
    check.that("a bound is proven", proven is not None)
    check.that(
        "nothing of the tree can be imported", user.run(["python", "-c", TREE]).returncode != 0
    )


def sweeps(user: Clean, check: Check, install: list[str], wheel: Path) -> None:
    """An extra that is missing is said in a line; once it is there, its command runs."""
    command = ["optgap", "sweep", "GRID.toml", "-o", "GRID.parquet"]
    done = user.run(command)
    check.that(
        "sweep without its extra", done.returncode == 2 and MISSING in done.stderr, done.stderr
    )
    user.checked([*install, f"{wheel}[sweep]"])
    done = user.run(command)
    check.that("sweep with its extra", done.returncode == 0, done.stdout + done.stderr)


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
    user.settle()
    install = ["pip", "install", "--quiet"]
    version = user.checked(["python", "-V"]).strip()
    if lowest:
        limits = place / "lowest.txt"
        minor = ".".join(version.split()[-1].split(".")[:2])
        limits.write_text("\n".join(constraints(project(), ["sweep"], minor)) + "\n")
        install += ["--constraint", str(limits)]
    check = Check(f"{version}, {'lowest' if lowest else 'newest'} dependencies")
    print(f"\n{check.name}: the wheel")
    # one of COMMANDS asks for CBC, and PuLP 4 carries none
    user.checked([*install, f"{wheel}[cbc]"])
    user.checked(["pip", "check"])
    of_wheel = installed(user)
    commands(user, check)
    sweeps(user, check, install, wheel)
    print(f"{check.name}: the source archive")
    user.checked(["pip", "uninstall", "--quiet", "--yes", "optgap"])
    user.checked([*install, "--no-deps", str(archive)])
    check.that("it installs what the wheel does", installed(user) == of_wheel)
    done = user.run(["optgap", "compare", "problem.json"])
    check.that("optgap compare problem.json", done.returncode == 0, done.stdout + done.stderr)
    print(*user.checked(["pip", "freeze"]).split(), sep=" ")
    print(f"{check.name}: {check.failed or 'none'} failed")
    return not check.failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--lowest", action="store_true", help="with the lowest dependencies")
    given = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="optgap-built-") as name:
        place = Path(name)
        wheel, archive = build(place)
        for number, python in enumerate(given.pythons):
            good &= used(python, wheel, archive, place / str(number), given.lowest)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
