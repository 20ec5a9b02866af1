"""How long it takes to read 100,000 lines of sacct.

    python benchmarks/audit_slurm.py [--jobs 100000] [--seed 0] [--write jobs.txt]

Jobs as the queueing preset draws them, with the columns that an audit asks sacct for. Bar: 5 s.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import optgap
from optgap.models.queueing.slurm import read_slurm

HEADER = (
    "JobID|JobIDRaw|User|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|Suspended|"
    "Timelimit|ReqTRES|AllocTRES|NodeList"
)
BEGIN = np.datetime64("2026-03-01T00:00:00")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.write or Path(folder) / "jobs.txt")
        path.write_text(lines(arguments.jobs, arguments.seed))
        read_slurm(path)
        started = time.perf_counter()
        log = read_slurm(path)
        seconds = time.perf_counter() - started
    print(log.problem)
    print(f"{log.records:,} lines read in {seconds:.2f} s (bar 5 s)")


def lines(jobs: int, seed: int) -> str:
    """What sacct would print of a stream of jobs that each waited a while."""
    stream = optgap.generate("queueing", seed=seed, size=jobs).jobs
    rng = np.random.default_rng(seed)
    submit = stream.arrival_s.astype(np.int64)
    start = submit + rng.integers(0, 7200, len(stream))
    end = start + np.maximum(1, stream.duration_s.astype(np.int64))
    stamps = [BEGIN + column.astype("timedelta64[s]") for column in (submit, start, end)]
    texts = [np.datetime_as_string(column, unit="s") for column in stamps]
    rows = [HEADER]
    for k in range(len(stream)):
        count = int(stream.gpus[k])
        nodes = -(-count // 8)
        first = int(rng.integers(1, 64))
        place = f"hgx{first:02d}" if nodes == 1 else f"hgx[{first:02d}-{first + nodes - 1:02d}]"
        tres = f"billing={count},cpu={8 * count},gres/gpu:h100={count},gres/gpu={count},mem=64G"
        rows.append(
            f"{k}|{k}|user{k % 97}|gpu|COMPLETED|{texts[0][k]}|{texts[0][k]}|{texts[1][k]}|"
            f"{texts[2][k]}|{end[k] - start[k]}|00:00:00|1-00:00:00|{tres}|{tres}|{place}"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
