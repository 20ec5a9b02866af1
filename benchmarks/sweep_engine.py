"""What does the sweep engine cost, beside a plain loop, and how fast does it see what is done?

Cells of one second that only wait, so that the engine is timed and not the cores: a plain loop
over `optgap.run`, the engine in this process, and the engine with two processes (whole, and
without the seconds that the processes take to start). Then ``optgap sweep --resume`` on a grid of
10,000 cells that are all done, as a user calls it.

    python benchmarks/sweep_engine.py [--cells N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import optgap
from optgap import sweeping
from optgap.sweeping.fingerprint import PIN
from optgap.sweeping.table import write_rows

POLICY = """
import time

def second(task, state):
    time.sleep(0.2)  # for each of five tasks
    nodes = state.feasible(task)
    return nodes[0] if nodes.size else None
"""
MANY = 10_000


def grid(cells: int) -> dict[str, Any]:
    """So many cells of one second."""
    small = {"family": "placement", "presets": ["small"], "instance": {"size": 5}}
    return {"seeds": cells, "grid": [{**small, "policies": ["second.py:second"]}]}


def looped(cells: int) -> float:
    """Seconds of the plain loop."""
    began = time.perf_counter()
    for seed in range(cells):
        problem = optgap.generate("placement", "small", size=5, seed=seed)
        optgap.run(problem, "second.py:second", seed=seed)
    return time.perf_counter() - began


def swept(cells: int, engine: sweeping.Engine) -> tuple[float, float]:
    """Seconds of a sweep, and of all but its first rows per remaining cell and process."""
    ends: list[float] = []
    limits = optgap.Limits(progress=lambda *_: ends.append(time.perf_counter()))
    began = time.perf_counter()
    done = sweeping.run(
        sweeping.read_spec(grid(cells)), f"{engine.name}.parquet", engine=engine, limits=limits
    )
    assert not done.failed, done.failed[0]["error"]
    whole = time.perf_counter() - began
    jobs = engine.jobs or 1
    # ends[0] is told before the first row; each process's first row carries its start
    steady = (ends[-1] - ends[jobs]) / (len(ends) - 1 - jobs) * jobs
    return whole, steady


def resumed() -> float:
    """Seconds of `optgap sweep --resume` where all of `MANY` cells are done."""
    sizes = ", ".join(str(size) for size in range(1, 11))
    Path("many.toml").write_text(
        f"seeds = {MANY // 40}\n[[grid]]\nfamily = 'placement'\npresets = ['small']\n"
        f"policies = ['fgd', 'random', 'pwr', 'bestfit']\ninstance.size = [{sizes}]\n"
    )
    spec = sweeping.load_spec("many.toml")
    assert len(spec.cells) == MANY
    one = sweeping.run_cell(next(iter(spec.cells.values())))
    write_rows(({**one, **cell.head} for cell in spec.cells.values()), "many.parquet")
    command = [sys.executable, "-m", "optgap", "sweep", "many.toml", "--resume"]
    began = time.perf_counter()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f"{MANY} there before, 0 now" in out, out
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=30)
    cells = parser.parse_args().cells
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ[PIN] = "benchmark"  # sources that change meanwhile are none of its business
        Path("second.py").write_text(POLICY)
        looped(1)  # compiled code is loaded
        plain = looped(cells) / cells
        print(f"cells of one second, {cells} in each run   s per cell   over a plain loop")
        print(f"plain loop                               {plain:10.3f}")
        whole, _ = swept(cells, sweeping.Engine("serial"))
        show("this process", whole / cells, plain)
        whole, steady = swept(2 * cells, sweeping.Engine("processes", 2))
        show("two processes, once started", steady, plain)
        show(f"two processes, whole ({2 * cells} cells)", whole / cells, plain)
        print(f"\nresume check of {MANY:,} cells: {min(resumed() for _ in range(2)):.2f} s")
        os.chdir("/")


def show(name: str, seconds: float, plain: float) -> None:
    """One line: seconds per cell and process, and how much more than in the loop."""
    print(f"{name:40} {seconds:10.3f}   {100 * (seconds / plain - 1):+7.2f} %")


if __name__ == "__main__":
    main()
