"""Least added energy beside the consolidation policies there were, preset `pai`, paired by seed.

    python benchmarks/consolidation_least_added_energy.py [--sizes 40,500] [--seeds 3-7] [--errors]

Energy relative to the best other policy of each seed (the least of `OTHERS`, chosen with
hindsight), with 95 % intervals of the mean by Student's t, and the mean stretch of both.
"""

from __future__ import annotations

import argparse
import statistics
import time

from scipy import stats

import optgap

OTHERS = (
    "bestfit",
    "dotprod",
    "fgd",
    "hotcloud",
    "hotcloud(fit=best)",
    "first",
    "cats",
    "opt_nomig",
)
OURS = ("least_added_energy", "least_added_energy(u_max=150)")
TOLD = tuple(f"least_added_energy(duration_error={sigma})" for sigma in (0.7, 1.5))


def interval(values: list[float]) -> str:
    """Mean and half of a 95 % interval."""
    if len(values) < 2:
        return f"{values[0]:.1f}"
    reach = float(stats.t.ppf(0.975, len(values) - 1))
    half = reach * statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):.1f} ± {half:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="40,500")
    parser.add_argument("--seeds", default="3-7", help="first-last")
    parser.add_argument("--errors", action="store_true", help="wrong durations as well")
    given = parser.parse_args()
    low, high = (int(part) for part in given.seeds.split("-"))
    print(
        "tasks | capacity | policy | MJ | best other, MJ | change, % | better on | stretch | CPU s"
    )
    for size in (int(part) for part in given.sizes.split(",")):
        for capacity in ("none", "mean"):
            ours = OURS[: 2 if capacity == "none" else 1]  # means within 100 % are within 150 %
            rows(size, capacity, range(low, high + 1), ours + (TOLD if given.errors else ()))


def rows(size: int, capacity: str, seeds: range, ours: tuple[str, ...]) -> None:
    """One row for each of our variants, seed by seed against the best of the others."""
    best: list[tuple[float, float]] = []
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ours}
    cpu = dict.fromkeys(ours, 0.0)
    for seed in seeds:
        problem = optgap.generate("consolidation", "pai", seed=seed, size=size, capacity=capacity)
        best.append(min(outcome(problem, name) for name in OTHERS))
        for name in ours:
            begun = time.process_time()
            found[name].append(outcome(problem, name))
            cpu[name] += time.process_time() - begun
    others = statistics.mean(energy for energy, _ in best)
    for name, values in found.items():
        change = [100 * (e / b - 1) for (e, _), (b, _) in zip(values, best, strict=True)]
        cells = (
            size, capacity, name, f"{statistics.mean(e for e, _ in values):.1f}", f"{others:.1f}",
            interval(change), f"{sum(c < 0 for c in change)} of {len(change)}",
            " / ".join(f"{statistics.mean(s for _, s in part):.2f}" for part in (values, best)),
            f"{cpu[name] / len(seeds):.1f}",
        )  # fmt: skip
        print(*cells, sep=" | ", flush=True)


def outcome(problem, policy: str) -> tuple[float, float]:
    """MJ, and the mean stretch; every task must have run."""
    result = optgap.run(problem, policy)
    if not problem.serves_all(result.solution):
        return float("inf"), 0.0
    return result.objective / 1e6, result.metrics["mean_stretch"]


if __name__ == "__main__":
    main()
