"""Energy against delay, ours beside the published policies: `pai` over time, and elastic's `small`.

    python benchmarks/energy_delay_fronts.py [--seeds 6] [--jobs 500] [--picture FILE.png]

Consolidation: energy and mean stretch at every `u_max`, where a policy has one. Elastic: energy and
mean JCT at every η. All are relative to one reference of the same seed (`REFERENCE`), means over
seeds from `FIRST_SEED`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import optgap

FIRST_SEED = 200
U_MAX = (100, 120, 150, 200, 300, 0)
"""The last is no cap, which `least_added_energy` alone can do without."""
ETAS = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
CAPPED = ("bestfit", "hotcloud", "fgd", "cats")
OURS = "least_added_energy"
ELASTIC = ("afs", "powerflow(profiles=perfect)", "elastic-srtf", "work-value")
"""Tiresias and Gandiva take three times as long (one seed): a scale of their own."""
REFERENCE = {"consolidation": "bestfit(u_max=100)", "elastic": "elastic-srtf, η = 0.6"}
Points = dict[str, list[tuple[float, float, str]]]
"""By policy: delay and energy relative to the reference's, and at what setting."""


def consolidation(jobs: int, capacity: str, seeds: range) -> Points:
    """Mean stretch and energy of 'pai'."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for seed in seeds:
        problem = optgap.generate("consolidation", "pai", seed=seed, size=jobs, capacity=capacity)
        unit = 1.0
        for name, at in consolidation_runs(capacity):
            policy = f"{name}(u_max={at})" if at else name
            result = optgap.run(problem, policy)
            unit = result.objective if policy == REFERENCE["consolidation"] else unit
            if problem.serves_all(result.solution):
                found[name, at].append((result.metrics["mean_stretch"], result.objective / unit))
    return averaged(found, len(seeds))


def consolidation_runs(capacity: str) -> Iterator[tuple[str, str]]:
    """Which policy at which `u_max`; the reference first."""
    caps = U_MAX if capacity == "none" else (100,)
    for name in (*CAPPED, OURS):
        for cap in caps:
            if (cap != U_MAX[-2]) if name == OURS else cap:
                yield name, str(cap or "")
    yield "opt_nomig", ""


def elastic(seeds: range) -> Points:
    """Mean JCT and energy of 'small' at every η."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for seed in seeds:
        runs: dict[tuple[str, str], Any] = {}
        for eta in ETAS:
            problem = optgap.generate("elastic", "small", seed=seed, eta=eta)
            for name in ELASTIC:
                runs[name, f"{eta:g}"] = optgap.run(problem, name)
        unit = runs["elastic-srtf", "0.6"]
        for key, result in runs.items():
            joules = result.metrics["energy_j"] / unit.metrics["energy_j"]
            found[key].append((result.objective / unit.objective, joules))
    return averaged(found, len(seeds))


def averaged(found: dict[tuple[str, str], list[tuple[float, float]]], seeds: int) -> Points:
    """Means of what every seed has."""
    points: Points = defaultdict(list)
    for (name, at), values in found.items():
        if len(values) == seeds:
            delay, energy = np.mean(values, axis=0).tolist()
            points[name].append((delay, energy, at))
    return points


def shown(title: str, points: Points) -> None:
    """A table."""
    print(f"{title}\npolicy | at | delay | energy")
    for name, rows in points.items():
        for delay, energy, at in rows:
            print(f"{name} | {at} | {delay:.3f} | {energy:.3f}", flush=True)


def drawn(panels: dict[str, tuple[Points, str]], path: Path) -> None:
    """One panel beside the other; ours in bold."""
    from matplotlib.figure import Figure

    from optgap.plotting.figures import COLOURS, GREY, MARKERS

    figure = Figure(figsize=(4.6 * len(panels), 4.3), layout="constrained")
    for ax, (title, (points, label)) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for place, (name, rows) in enumerate(points.items()):
            ours = name in (OURS, "work-value")
            delay, energy, _ = zip(*rows, strict=True)
            ax.plot(
                delay, energy, color="#000000" if ours else COLOURS[place % 6],
                marker=MARKERS[place], linewidth=2.2 if ours else 1.0, markersize=5, label=name,
            )  # fmt: skip
            if ours and len(rows) > 1:
                for x, y, text in rows:
                    ax.annotate(
                        text or "no cap", (x, y), (4, 4), textcoords="offset points",
                        fontsize=7, color=GREY,
                    )  # fmt: skip
        ax.set_title(title, loc="left", fontsize=9.5)
        ax.set_xlabel(label)
        ax.set_ylabel(f"energy over that of {REFERENCE[title.partition(':')[0]]}")
        ax.legend(fontsize=7.5, frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=500, help="of consolidation")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
    panels = {
        f"consolidation: {given.jobs} tasks of 'pai', capacity=none": (
            consolidation(given.jobs, "none", seeds),
            "mean stretch (at every u_max)",
        ),
        f"consolidation: {given.jobs} tasks of 'pai', capacity=mean": (
            consolidation(given.jobs, "mean", seeds),
            "mean stretch",
        ),
        "elastic: preset 'small'": (
            elastic(seeds),
            "mean JCT over that of elastic-srtf, η = 0.6 (at every η)",
        ),
    }
    for title, (points, _) in panels.items():
        shown(title, points)
    if given.picture:
        drawn(panels, given.picture)


if __name__ == "__main__":
    main()
