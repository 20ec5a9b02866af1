"""What a new user waits for, on this machine: setting up, the first comparison, and the next ones.

    python benchmarks/first_run.py [--output benchmarks/first_run.json]

Everything happens in a fresh clone with an environment of its own and no machine code kept: first
``make compare`` as it stands, then ``optgap compare`` with an empty cache, and twice more with the
cache that it left. The largest difference between the first table and the next is printed beside
the times: what a row shows must not hang on whether anything had to be compiled. The figures that
README quotes are those of the file; a test compares them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def timed(command: list[str], folder: Path, **more: str) -> float:
    """Wall seconds of a command that has to succeed."""
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env={**os.environ, **more}, check=True, stdout=sys.stderr)
    return time.perf_counter() - started


def gaps(file: Path) -> dict[str, float]:
    """Gap to the best bound by family and row, %."""
    document = json.loads(file.read_text())
    return {
        f"{family['family']} {row['method']}": 100 * row["gap_to_bound"]
        for family in document["families"]
        for row in family["rows"]
        if row["gap_to_bound"] is not None
    }


def measure(folder: Path) -> dict[str, Any]:
    """Everything, in a clone at `folder`."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    optgap = str(folder / ".venv" / "bin" / "optgap")
    python = str(folder / ".venv" / "bin" / "python")
    cache = {"NUMBA_CACHE_DIR": str(folder / "out" / "cache")}
    found: dict[str, Any] = {"cores": len(os.sched_getaffinity(0))}
    found["setup_s"] = timed(["make", "setup"], folder)
    found["make_compare_after_setup_s"] = timed(["make", "compare"], folder)
    for name in ("cold", "warm", "warm_again"):
        command = [optgap, "compare", "--json", f"out/{name}.json"]
        found[f"{name}_s"] = timed(command, folder, **cache)
    found["help_s"] = min(timed([optgap, "--help"], folder) for _ in range(3))
    found["import_s"] = min(timed([python, "-c", "import optgap"], folder) for _ in range(3))
    first, later = gaps(folder / "out" / "cold.json"), gaps(folder / "out" / "warm.json")
    apart = {name: abs(first.get(name, math.inf) - gap) for name, gap in later.items()}
    found["largest_difference_points"] = max(apart.values())
    found["largest_difference_row"] = max(apart, key=apart.__getitem__)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder) / "optgap")
    text = json.dumps(
        {k: round(v, 2) if isinstance(v, float) else v for k, v in found.items()}, indent=2
    )
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
