"""Times and powers at 2, 4 and 8 GPUs, predicted from a sweep of the clock on one GPU at one batch.

    python benchmarks/fitting_one_gpu.py [--draws N]

Every class of the pools `a100` and `t4` with 3 % noise, fitted twice: with the priors as they are,
which know the network in question, and with those of times without it. For both:
how many of the predictions are within a factor of two, and how many of the pool's values 90 %
intervals hold. Exits 1 where more than three times of the first, or any power, are further off.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from optgap.fitting.powerflow_energy import PowerFlowEnergy
from optgap.fitting.uncertainty import samples
from optgap.fitting.workflow import report_of
from optgap.models.elastic import pools
from optgap.models.elastic.jobs import JobClass
from optgap.models.performance import priors
from optgap.models.performance.throughput import ThroughputModel

NOISE, LEVEL = 0.03, 0.9
POOLS = {pool: pools.fitted_terms(pool) for pool in ("a100", "t4")}
TERMS = {"a_io_s": 0, "b_io_s": 1, "a_grad_s": 0, "theta_local_s": 0, "B_local_s": 0,
         "theta_node_s": 0, "B_node_s": 0}  # fmt: skip
"""Parameters of the pools, and whether they go with the batch."""


def without(network: str | None) -> Mapping[str, priors.Prior]:
    """`priors.TIME` estimated from the classes of all networks but one; of none: as they are."""
    if network is None:
        return priors.TIME
    found: dict[str, list[float]] = {name: [] for name in (*TERMS, "gamma1", "gamma2")}
    for pool, source in POOLS.items():
        for model, terms in source.items():
            for batch in pools.BATCHES[pool][model] if model != network else ():
                whole = float(ThroughputModel(terms).iteration_time(1, batch))
                for name, power in TERMS.items():
                    found[name].append(max(terms.get(name, 0.0) * batch**power / whole, 0.01))
                for name in ("gamma1", "gamma2"):
                    found[name].append(max(terms[name] - 1, 0.1))
    logs = {name: np.log(values) for name, values in found.items()}
    return {
        **priors.TIME,
        **{name: replace(priors.TIME[name], median=float(np.exp(v.mean())),
                         spread=float(v.std(ddof=1))) for name, v in logs.items()},
    }  # fmt: skip


def rows_of(item: JobClass, clocks: np.ndarray, gpus: int, noise: float) -> dict[str, object]:
    """Rows of a class on so many GPUs of one node, over the clocks."""
    k, one = item.counts.index(gpus), np.ones(len(clocks))
    rng = np.random.default_rng(1)
    time = item.time_s[k] * np.exp(noise * rng.standard_normal(len(clocks)))
    power = item.power_w[k] / gpus * np.exp(noise * rng.standard_normal(len(clocks)))
    return {
        "gpus": gpus * one, "nodes": one, "gpus_on_node": gpus * one, "frequency_mhz": clocks,
        "local_batch": item.batch / gpus * one, "time_s": time, "power_w": power,
        "energy_j": power * time * gpus,
    }  # fmt: skip


def judged(item: JobClass, clocks: np.ndarray, draws: int) -> list[tuple[np.ndarray, ...]]:
    """(factor off, share within the intervals) of times and powers, for 2, 4 and 8 GPUs."""
    fit = report_of(PowerFlowEnergy(), rows_of(item, clocks, 1, NOISE)).fit.fits[""]
    drawn = samples(fit, draws, np.random.default_rng(0))
    tail = (1 - LEVEL) / 2
    found = []
    for n in item.counts[1:]:
        rows = rows_of(item, clocks, n, 0.0)
        truth = np.array([rows["time_s"], rows["power_w"]])
        point, *several = (_both(one, rows, n) for one in (fit, *drawn))
        low, high = np.quantile(np.array(several), [tail, 1 - tail], axis=0)
        off = np.exp(np.abs(np.log(point / truth)).max(axis=1))
        found.append((off, ((low <= truth) & (truth <= high)).mean(axis=1)))
    return found


def _both(fit: Any, rows: dict[str, object], n: int) -> np.ndarray:
    """(2, clocks) time in s, and power of a GPU in W."""
    seconds = fit.facts_["time"].predict(rows)
    return np.array([seconds, fit.predict(rows) / seconds / n])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400, metavar="N")
    args = parser.parse_args()
    missed = 0
    for title in ("priors as they are", "priors without the network"):
        names, off, held = [], [], []
        for pool, source in POOLS.items():
            for item in pools.classes(pool, gpus=8, gpus_per_node=8):
                network = next(name for name in source if item.label.startswith(name))
                known = without(network if "without" in title else None)
                with patch.multiple(priors, TIME=known):
                    found = judged(item, pools.board_of(pool).clocks, args.draws)
                names += [f"{item.label} on {n} GPUs" for n in item.counts[1:]]
                off += [one for one, _ in found]
                held += [one for _, one in found]
        wrong, within = np.array(off) > 2, np.array(held)
        print(f"{title}: {len(names)} configurations")
        for k, what in enumerate(("times", "powers")):
            print(f"  {what}: {int((~wrong[:, k]).sum())} within a factor of two, "
                  f"90 % intervals hold {100 * within[:, k].mean():.0f} %")  # fmt: skip
        for i in np.flatnonzero(wrong.any(axis=1)):
            print(
                f"  {names[i]}: {off[i].max():.2f} times off, intervals hold "
                f"{100 * held[i][0]:.0f} % of times, {100 * held[i][1]:.0f} % of powers"
            )
        missed += int("without" not in title and wrong[:, 0].sum() > 3) + int(wrong[:, 1].sum())
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
