"""Least added energy beside the consolidation policies there were, paired by seed.

    python benchmarks/consolidation_least_added_energy.py [--sizes 40,500] [--seeds 3-7] [--errors]
        [--preset pai] [--capacities none,mean] [--hindsight 0]

Energy relative to the best other policy of each seed (the least of `OTHERS`, chosen with
hindsight), with 95 % intervals of the mean by Student's t, and the mean stretch of both.
``--hindsight`` adds, for so many seeds, how much of the distance from the best other policy to the
best schedule known is closed, and the gaps of the other, ours and it to the work's own energy. That
schedule is that of `hindsight`; what it does not find makes the share look larger than it is.
"""

from __future__ import annotations

import argparse
import statistics
import time

from scipy import stats

import optgap
from optgap.models.consolidation.presets import pai, philly

OTHERS = ("bestfit", "dotprod", "fgd", "hotcloud", "first", "cats", "opt_nomig")
OURS = ("least_added_energy", "least_added_energy(u_max=150)")
PRESETS = {"pai": pai, "philly": philly}
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
    parser.add_argument("--preset", default="pai", choices=tuple(PRESETS))
    parser.add_argument("--capacities", default="none,mean")
    parser.add_argument("--hindsight", type=int, default=0, help="seeds with hindsight as well")
    given = parser.parse_args()
    low, high = (int(part) for part in given.seeds.split("-"))
    print(
        "tasks | capacity | policy | MJ | best other, MJ | change, % | better on | stretch | CPU s"
        " | closed, % | gaps of the best other, ours, hindsight, %"
    )
    for size in (int(part) for part in given.sizes.split(",")):
        for capacity in given.capacities.split(","):
            ours = OURS[: 2 if capacity == "none" else 1]  # means within 100 % are within 150 %
            ours += TOLD if given.errors else ()
            settings = {"size": size, "capacity": capacity}
            rows(given.preset, settings, range(low, high + 1), ours, given.hindsight)


def rows(preset: str, settings: dict, seeds: range, ours: tuple[str, ...], known: int) -> None:
    """One row for each of our variants, seed by seed against the best of the others.

    `known`: of how many seeds the schedule with hindsight is made.
    """
    hindsight: list[tuple[float, float]] = []
    best: list[tuple[float, float]] = []
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ours}
    cpu = dict.fromkeys(ours, 0.0)
    for seed in seeds:
        problem = PRESETS[preset](seed=seed, **settings)
        best.append(min(outcome(problem, name) for name in OTHERS))
        for name in ours:
            begun = time.process_time()
            found[name].append(outcome(problem, name))
            cpu[name] += time.process_time() - begun
        if len(hindsight) < known:
            hindsight.append(hindsight_of(problem))
    others = statistics.mean(energy for energy, _ in best)
    for name, values in found.items():
        change = [100 * (e / b - 1) for (e, _), (b, _) in zip(values, best, strict=True)]
        cells = (
            settings["size"], settings["capacity"], name,
            f"{statistics.mean(e for e, _ in values):.1f}", f"{others:.1f}",
            interval(change), f"{sum(c < 0 for c in change)} of {len(change)}",
            " / ".join(f"{statistics.mean(s for _, s in part):.2f}" for part in (values, best)),
            f"{cpu[name] / len(seeds):.1f}", *distances(best, values, hindsight),
        )  # fmt: skip
        print(*cells, sep=" | ", flush=True)


def distances(
    best: list[tuple[float, float]],
    ours: list[tuple[float, float]],
    hindsight: list[tuple[float, float]],
) -> list[str]:
    """What is closed of the distance to hindsight, and the gaps to its bound."""
    if not hindsight:
        return []
    closed, gaps = [], []
    for (other, _), (own, _), (least, bound) in zip(best, ours, hindsight, strict=False):
        least = min(least, own)
        closed.append(100 * (other - own) / (other - least))
        gaps.append([100 * (value / bound - 1) for value in (other, own, least)])
    means = [statistics.mean(column) for column in zip(*gaps, strict=True)]
    return [interval(closed), " / ".join(f"{value:.1f}" for value in means)]


def hindsight_of(problem: optgap.Problem) -> tuple[float, float]:
    """MJ of the best schedule known, and of the bound."""
    found = optgap.solve(problem, "hindsight")
    return found.objective / 1e6, found.bound / 1e6


def outcome(problem, policy: str) -> tuple[float, float]:
    """MJ, and the mean stretch; every task must have run."""
    result = optgap.run(problem, policy)
    if not problem.serves_all(result.solution):
        return float("inf"), 0.0
    return result.objective / 1e6, result.metrics["mean_stretch"]


if __name__ == "__main__":
    main()
