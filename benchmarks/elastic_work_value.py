"""Work value beside the published elastic policies, on seeds that it was not tuned on.

    python benchmarks/elastic_work_value.py [--seeds 20] [--hindsight 6] [--runs 60] [--day SEEDS]
        [--settings TEXT]

Mean JCT relative to the best published policy of each seed, with 95 % intervals of the mean, and
how much of the distance from there to the best schedule known with hindsight the policy closes.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import optgap

TRAINING = range(100, 106)
"""Seeds on which `power` and `spread_s` were chosen."""
PUBLISHED = (
    "afs", "powerflow(profiles=perfect)", "powerflow", "tiresias", "gandiva", "elastic-srtf",
)  # fmt: skip
OURS = "work-value"
SETTINGS = {
    "small": {},
    "η = 0.4": {"eta": 0.4},
    "η = 1": {"eta": 1.0},
    "restarts free": {"restarts": False},
    "T4": {"pool": "t4"},
    "96 jobs in 2 h": {"size": 96},
    "24 jobs in 2 h": {"size": 24},
}


def interval(values: list[float]) -> str:
    """Mean and half of a 95 % interval, in per cent."""
    half = 1.96 * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):6.2f} ± {100 * half:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--hindsight", type=int, default=6, help="seeds with offline as well")
    parser.add_argument("--runs", type=int, default=60, help="schedules of offline")
    parser.add_argument("--day", type=int, default=0, help="seeds of the day of 1,901 jobs")
    parser.add_argument("--settings", default="", help="only those with this in their name")
    given = parser.parse_args()
    settings = {k: v for k, v in SETTINGS.items() if given.settings in k}
    names = (*PUBLISHED, OURS)
    print("setting".ljust(16), *(n.replace("profiles=", "").rjust(18) for n in names), "closed")
    for label, chosen in settings.items():
        row(label, chosen, range(given.seeds), given.hindsight, given.runs)
    if given.day:
        row("day", {"preset": "day"}, range(given.day), min(given.hindsight, 1), 2)


def row(label: str, settings: dict, seeds: range, hindsight: int, runs: int) -> None:
    """Paired differences to the best published policy, per seed."""
    relative: dict[str, list[float]] = {name: [] for name in (*PUBLISHED, OURS)}
    closed, wins, cpu = [], 0, 0.0
    for seed in seeds:
        problem = optgap.generate("elastic", **{"preset": "small", **settings}, seed=seed)
        found = {}
        for name in (*PUBLISHED, OURS):
            begun = time.process_time()
            found[name] = optgap.run(problem, policy=name).objective
            if name == OURS:
                cpu += time.process_time() - begun
        best = min(found[name] for name in PUBLISHED)
        wins += found[OURS] < best
        for name, value in found.items():
            relative[name].append(value / best - 1)
        if len(closed) < hindsight:
            known = optgap.solve(problem, method=f"offline(runs={runs})").objective
            known = min(known, found[OURS])
            closed.append((best - found[OURS]) / (best - known) if best > known else np.nan)
    cells = [interval(values).rjust(18) for values in relative.values()]
    print(
        label.ljust(16), *cells, f"{100 * float(np.nanmean(closed)):.0f} %" if closed else "-",
        f"better on {wins} of {len(seeds)}, {cpu / len(seeds):.2f} CPU s a run", flush=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
