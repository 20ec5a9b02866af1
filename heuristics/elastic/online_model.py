"""Model of a training job's time and power, learnt while the job runs (PowerFlow, Sec. 5.2).

A pre-run on the fewest GPUs gives times and powers over the clocks; every further GPU count and
clock adds rows. After each, the parameters of Eq. 2-5 and 12-15 become the most probable ones under
the priors of published jobs (`priors`), so the model also predicts unmeasured configurations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.models.performance.energy import log_power, power_columns, static_factor
from optgap.models.performance.priors import BETA, STATIC, SYNC, TIME
from optgap.models.performance.throughput import (
    GRAD_NAMES,
    IO_NAMES,
    SYNC_NAMES,
    grad_columns,
    io_columns,
    log_time,
    sync_columns,
)

Floats = NDArray[np.float64]
Curve = Callable[[Floats], tuple[Floats, Floats]]
"""Function of z, the logs of parameters: (rows,) logarithms, (rows, parameters) Jacobian."""


STEPS = 8
"""Largest number of Gauss-Newton steps."""
DAMPINGS = (0.0, 0.03, 1.0, 30.0)
"""Dampings that are tried in turn if a step does not help, as in Levenberg-Marquardt."""
LONGEST = 2.0
"""Longest step in any logarithm, because the curve is not linear further away."""
SETTLED = 0.05
"""Least fall of the cost, in units of a squared standard deviation, worth another step."""


def most_probable(
    curve: Curve,
    target: Floats,
    noise: float,
    *,
    mean: Floats,
    spread: Floats,
    start: Floats,
) -> Floats:
    """Return the z that minimises Σ((curve(z) − target)/noise)² + Σ((z − mean)/spread)².

    Parameters
    ----------
    target: (rows,) logarithms that were measured.
    noise: standard deviation of each logarithm.
    mean, spread: (parameters,) mean and standard deviation of the prior.
    start: (parameters,) initial z.
    """
    precise, tight = 1.0 / noise**2, 1.0 / spread**2
    z = start
    log, slope = curve(z)
    miss, off = log - target, z - mean
    cost = precise * float(miss @ miss) + float(off @ (tight * off))
    for _ in range(STEPS):
        normal = precise * (slope.T @ slope)
        diagonal = normal.reshape(-1)[:: len(z) + 1]  # a view
        diagonal += tight
        pull, size = precise * (slope.T @ miss) + tight * off, diagonal.copy()
        for damping in DAMPINGS:
            diagonal[:] = size * (1.0 + damping)
            move = -np.linalg.solve(normal, pull)
            there = z + move * min(1.0, LONGEST / max(float(np.abs(move).max()), 1e-300))
            log, ahead = curve(there)
            missed, away = log - target, there - mean
            lower = precise * float(missed @ missed) + float(away @ (tight * away))
            if lower < cost:
                break
        else:
            return z
        fall = cost - lower
        z, slope, miss, off, cost = there, ahead, missed, away, lower
        if fall < SETTLED:
            break
    return z


Bools = NDArray[np.bool_]
Rows = NDArray[np.int64] | slice
TIME_NAMES = (*IO_NAMES, *GRAD_NAMES, *SYNC_NAMES["paper"], "gamma1", "gamma2")
MEAN = np.array([TIME[name].mean_log for name in TIME_NAMES])
SPREAD = np.array([TIME[name].spread for name in TIME_NAMES])
MOST_GAMMA = float(np.log(9.0))

DYNAMIC = (0.05, 0.3)
"""Medians of the linear and the voltage part of φ, as shares of the least measured power. These
matter little, because the clocks of the pre-run tell the two parts apart."""
DYNAMIC_SPREAD = 1.5
POWER_MEAN = np.log([BETA.median, STATIC.median, *DYNAMIC, SYNC.median])
POWER_SPREAD = np.array([BETA.spread, STATIC.spread, DYNAMIC_SPREAD, DYNAMIC_SPREAD, SYNC.spread])
LEAST_NOISE = 1e-4
"""Least standard deviation that is assumed of a measurement."""


@dataclass(frozen=True, slots=True)
class Board:
    """Voltage of a GPU: breakpoint in MHz, slope above it in 1/GHz (form ``physical``)."""

    f0_mhz: float
    kappa: float


def board_of(clocks_mhz: Floats, power_w: Floats) -> Board:
    """Return the board whose voltage explains (applications, clocks) powers of one GPU best.

    The search refines a grid over f0 and κ five times; given both, P(f) is linear.
    """
    if len(clocks_mhz) < 4:
        return Board(float(clocks_mhz[-1]), 0.0)
    curves = (power_w / power_w.mean(axis=1, keepdims=True)).T
    low, high = float(clocks_mhz[0]), float(clocks_mhz[-1])
    f0, log_kappa = 0.5 * (low + high), 0.0
    wide, steep = 0.45 * (high - low), 3.0
    for _ in range(5):
        grid = [
            (f, k)
            for f in np.clip(np.linspace(f0 - wide, f0 + wide, 7), low, high).tolist()
            for k in np.linspace(log_kappa - steep, log_kappa + steep, 5).tolist()
        ]
        f0, log_kappa = min(grid, key=lambda at: _misfit(clocks_mhz, curves, at[0], at[1]))
        wide, steep = wide / 3, steep / 2.5
    return Board(f0, float(np.exp(log_kappa)))


def _misfit(clocks_mhz: Floats, curves: Floats, f0_mhz: float, log_kappa: float) -> float:
    columns = power_columns("physical", clocks_mhz, f0_mhz, float(np.exp(log_kappa)))[:, [0, 2]]
    columns[:, 0] = static_factor(clocks_mhz, f0_mhz)
    weights = np.linalg.lstsq(columns, curves, rcond=None)[0]
    return float(np.sum((columns @ weights - curves) ** 2))


@dataclass(frozen=True, eq=False)
class Configurations:
    """GPU counts and clocks that a class of jobs may run at, as factors of its parameters.

    Parameters
    ----------
    gpus: (K,) counts, the fewest first.
    batch: global batch.
    clocks_mhz: (F,) ascending.
    gpus_per_node: number of GPUs of each node.
    board: see `Board`.
    """

    gpus: Floats
    batch: float
    clocks_mhz: Floats
    gpus_per_node: int
    board: Board

    @cached_property
    def _grid(self) -> tuple[Floats, ...]:
        """Return GPUs, nodes, GPUs on a node, clock and batch per GPU, each (K·F,)."""
        n, f = (g.reshape(-1) for g in np.meshgrid(self.gpus, self.clocks_mhz, indexing="ij"))
        return (
            n,
            np.ceil(n / self.gpus_per_node),
            np.minimum(n, self.gpus_per_node),
            f,
            self.batch / n,
        )

    @cached_property
    def time(self) -> tuple[Floats, Floats, Floats]:
        """Factors of shares of T on the fewest GPUs, (K·F, 2), (K·F, 3) and (K·F, 8)."""
        n, nodes, on_node, f, bs = self._grid
        per_batch, per_clock = bs / bs[0], f / self.clocks_mhz[-1]
        io = io_columns(per_batch, on_node / on_node[0])
        return (
            io,
            grad_columns(per_batch, per_clock),
            sync_columns("paper", n, nodes, on_node, per_clock),
        )

    @cached_property
    def power(self) -> tuple[Floats, Floats, Floats]:
        """Factors of φ's two parts, (K·F, 2), 1 at the lowest clock, those of P_static, and bs."""
        f = self._grid[3]
        columns = power_columns("physical", f, self.board.f0_mhz, self.board.kappa)[:, 1:]
        return columns / columns[0], static_factor(f, self.board.f0_mhz), self._grid[4]


class OnlineModel:
    """Model of one job: `update` takes measurements, `predict` returns all configurations."""

    def __init__(self, where: Configurations, noise_time: float, noise_power: float) -> None:
        self.where = where
        self.noise = (max(noise_time, LEAST_NOISE), max(noise_power, LEAST_NOISE))
        self.z_time, self.z_power = MEAN.copy(), POWER_MEAN.copy()
        self.scale_s, self.scale_w = 0.0, 0.0

    def update(self, seen: Bools, log_time_s: Floats, log_power_w: Floats) -> None:
        """Fit the model to all rows measured so far, starting from the last fit.

        Parameters
        ----------
        seen: (K·F,) the configurations that were measured, the fewest GPUs among them.
        log_time_s, log_power_w: (K·F,) ln of T_iter in s and of the power of a GPU in W there.
        """
        rows = np.flatnonzero(seen)
        if not self.scale_s:
            self.scale_s, self.scale_w = float(log_time_s[rows[-1]]), float(log_power_w[rows].min())
        parts = tuple(columns[rows] for columns in self.where.time)

        def time(z: Floats) -> tuple[Floats, Floats]:
            return _log_time(z, *parts)

        target = log_time_s[rows] - self.scale_s
        self.z_time = most_probable(
            time, target, self.noise[0], mean=MEAN, spread=SPREAD, start=self.z_time
        )
        design = self._power_design(rows)
        target = log_power_w[rows] - self.scale_w

        def power(z: Floats) -> tuple[Floats, Floats]:
            return _log_power(z, design)

        self.z_power = most_probable(
            power, target, self.noise[1], mean=POWER_MEAN, spread=POWER_SPREAD, start=self.z_power
        )

    def predict(self) -> tuple[Floats, Floats]:
        """Return T_iter in s and the power of all GPUs in W, shape (K, F)."""
        shape = (len(self.where.gpus), len(self.where.clocks_mhz))
        log_t, _ = _log_time(self.z_time, *self.where.time)
        log_p, _ = _log_power(self.z_power, self._power_design(slice(None)))
        time_s = np.exp(log_t + self.scale_s).reshape(shape)
        return time_s, np.exp(log_p + self.scale_w).reshape(shape) * self.where.gpus[:, None]

    def _power_design(self, rows: Rows) -> dict[str, Any]:
        """Return the arguments of `log_power` for these rows, with the times estimated so far."""
        io, grad, sync = (columns[rows] for columns in self.where.time)
        theta = _theta(self.z_time)
        log, _ = log_time(theta, {"io": io, "grad": grad, "sync": sync})
        total = np.exp(log)
        columns, static, batch = (columns[rows] for columns in self.where.power)
        return {
            "columns": columns,
            "static": static,
            "batch": batch,
            "level": float(np.log(self.where.batch / self.where.gpus[0] + 1.0)),
            "grad_share": (grad @ theta[2:5]) / total,
            "sync_share": (sync @ theta[5:-2]) / total,
            "floor_w": 0.0,
        }


def _theta(z: Floats) -> Floats:
    """Return the parameters of Eq. 2-5 from their logarithms; the last ones are of γ − 1."""
    theta = np.exp(z)
    theta[-2:] = 1.0 + np.exp(np.minimum(z[-2:], MOST_GAMMA))
    return theta


def _log_time(z: Floats, io: Floats, grad: Floats, sync: Floats) -> tuple[Floats, Floats]:
    theta = _theta(z)
    log, slope = log_time(theta, {"io": io, "grad": grad, "sync": sync})
    theta[-2:] = np.where(z[-2:] < MOST_GAMMA, theta[-2:] - 1.0, 0.0)
    return log, slope * theta


def _log_power(z: Floats, design: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Return ln power from ln of β, P_static, φ's two parts on the fewest GPUs, P_sync's share."""
    beta, static, linear, voltage, wait = np.exp(z)
    level = design["level"] + beta
    grad = np.array([linear, voltage]) / level
    log, slope = log_power(np.array([1.0, beta, static, wait, *grad]), design)
    by = np.empty((len(log), 5))
    by[:, 0] = beta * (slope[:, 1] - (slope[:, 4:6] @ grad) / level)
    by[:, 1] = static * slope[:, 2]
    by[:, 2:4] = slope[:, 4:6] * grad
    by[:, 4] = wait * slope[:, 3]
    return log, by
