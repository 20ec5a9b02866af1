"""What published jobs say of one whose clock was swept on one GPU count at one batch.

Such rows fix T_iter there, and what goes with 1/f; how the rest is shared among loading,
synchronising and what shrinks with the batch is drawn from jobs that were measured on many GPUs,
all terms of a job together: what loads long also overlaps more. A draw weighs what the rows say for
it, and is scaled to the time that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from optgap.fitting.optimise import Floats
from optgap.models.elastic import pools
from optgap.models.performance.priors import TIME
from optgap.models.performance.throughput import ThroughputModel, p_norm

POOLS = {"a100": pools.A100, "t4": pools.T4}
PER_BATCH = {"a_io_s": 0, "b_io_s": 1, "a_grad_s": 0, "b_grad_s": 1, "theta_local_s": 0,
             "B_local_s": 0, "theta_node_s": 0, "B_node_s": 0}  # fmt: skip
"""Terms that published fits have, and whether they go with the batch; b_grad is all that does."""
GAMMAS = ("gamma1", "gamma2")
NAMES = (*PER_BATCH, *GAMMAS)
LEAST, LEAST_GAMMA = 0.001, 0.05
"""What a term of no size counts as, as a share of T_iter; and γ − 1."""
DRAWS, ROWS = 4000, 10
"""Draws that are weighed, on so many of the rows."""
NOISE = 0.03
"""Least relative error of a row."""


@cache
def jobs(without: str | None = None) -> tuple[Floats, Floats]:
    """(jobs, `NAMES`) logarithms of shares of T_iter on one GPU, of γ − 1, and (jobs,) weights.

    Every network weighs the same, at however many batches it was measured. One may be left out.
    """
    rows, weights = [], []
    for pool, source in POOLS.items():
        for network, terms in source.items():
            batches = pools.BATCHES[pool][network] if network != without else ()
            for batch in batches:
                whole = float(ThroughputModel(terms).iteration_time(1, batch))
                shares = [terms.get(n, 0.0) * batch**k / whole for n, k in PER_BATCH.items()]
                more = [max(terms[n] - 1, LEAST_GAMMA) for n in GAMMAS]
                rows.append([*np.maximum(shares, LEAST), *more])
                weights.append(1 / len(batches))
    return np.log(rows), np.array(weights) / sum(weights)


def alike(
    names: tuple[str, ...],
    unit: Mapping[str, float],
    design: Mapping[str, Floats],
    target: Floats,
    noise: float,
    count: int,
    seed: int,
) -> Floats:
    """(count, parameters) of jobs that are like a published one and like the rows.

    Parameters
    ----------
    names: parameters of Eq. 2-5, the γ last.
    unit: of each term, s or s·MHz per share of T_iter; 0 for those that there are not.
    design: columns of the rows, as `models.performance.throughput.log_time` takes them.
    target: (rows,) ln of the measured T_iter in s.
    noise: relative error of a row.
    """
    rng = np.random.default_rng(seed)
    logs, weights = jobs()
    # Silverman's rule: how far a kernel reaches
    n, d = logs.shape
    reach = (4 / (d + 2)) ** (1 / (d + 4)) * n ** (-1 / (d + 4)) * logs.std(axis=0, ddof=1)
    at = rng.choice(n, DRAWS, p=weights)
    drawn = dict(
        zip(NAMES, np.exp(logs[at] + reach * rng.standard_normal((DRAWS, d))).T, strict=True)
    )
    ours = {k: p for k, p in TIME.items() if k not in NAMES}
    fixed = TIME["b_grad_s"]
    if unit["k_grad_s_mhz"] > 0:  # of what goes with the batch, a part goes with the clock, too
        slope = drawn["b_grad_s"]
        drawn["b_grad_s"] = slope * np.minimum(_lognormal(rng, fixed.median, fixed.spread), 1.0)
        drawn["k_grad_s_mhz"] = slope - drawn["b_grad_s"]
    for name, prior in ours.items():
        drawn.setdefault(name, _lognormal(rng, prior.median, prior.spread))
    theta = np.stack([drawn[k] * unit[k] for k in names[:-2]], axis=1)
    gammas = 1 + np.minimum(np.stack([drawn[k] for k in GAMMAS], axis=1), 9.0)
    rows = np.linspace(0, len(target) - 1, min(ROWS, len(target))).round().astype(int)
    off = target[rows] - np.log(_times(theta, gammas, design, rows))
    level = off.mean(axis=1)
    squares = np.sum((off - level[:, None]) ** 2, axis=1) * len(target) / len(rows)
    likely = np.exp(-0.5 * (squares - squares.min()) / max(noise, NOISE) ** 2)
    # one draw for each of `count` equal parts of the likelihood
    steps = (np.arange(count) + rng.random()) / count
    chosen = np.searchsorted(np.cumsum(likely) / likely.sum(), steps)
    chosen = rng.permutation(np.minimum(chosen, DRAWS - 1))
    errors = noise * rng.standard_normal(count)
    scaled = theta[chosen] * np.exp(level[chosen] + errors)[:, None]
    return np.concatenate([scaled, gammas[chosen]], axis=1)


def _lognormal(rng: np.random.Generator, median: float, spread: float) -> Floats:
    return np.asarray(median * np.exp(spread * rng.standard_normal(DRAWS)))


def _times(theta: Floats, gammas: Floats, design: Mapping[str, Floats], rows: Floats) -> Floats:
    """(draws, rows) T_iter of Eq. 5."""
    io, grad, sync = (design[key][rows].T for key in ("io", "grad", "sync"))
    first, second = len(io), len(io) + len(grad)
    parts = theta[:, :first] @ io, theta[:, first:second] @ grad, theta[:, second:] @ sync
    return p_norm(*parts, gammas[:, :1], gammas[:, 1:])
