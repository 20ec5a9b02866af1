"""Energy of a training iteration: PowerFlow, Eq. 6-15."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
PowerForm = Literal["printed", "continuous", "physical"]

GHZ = 1000.0
"""Polynomials are written in f/1000 (GHz), so that their coefficients are all in W."""


def power_columns(form: PowerForm, frequency_mhz: Floats, f0_mhz: float, kappa: float) -> Floats:
    """Factors of the coefficients of P(f); shape (rows, k), the coefficients all in W.

    With x = f/1000, x0 = f0/1000 and h = max(x - x0, 0):
    ``printed`` (Eq. 13-14): 1, x below f0; 1, x, x², x³ from f0 on, free to jump;
    ``continuous``: 1, x, h, h², h³, the same cubic above f0 joined at f0;
    ``physical``: 1, x, x·V² with V = 1 + κ·h, the voltage held up to f0 and rising above.
    """
    x = frequency_mhz / GHZ
    h = np.maximum(x - f0_mhz / GHZ, 0.0)
    one = np.ones_like(x)
    if form == "printed":
        low = (frequency_mhz < f0_mhz).astype(float)
        high = 1.0 - low
        parts = [low, low * x, high, high * x, high * x**2, high * x**3]
    elif form == "continuous":
        parts = [one, x, h, h**2, h**3]
    else:
        parts = [one, x, x * (1 + kappa * h) ** 2]
    return np.stack(parts, axis=1)


COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "printed": ("b_low_w", "a_low_w", "d_high_w", "c_high_w", "b_high_w", "a_high_w"),
    "continuous": ("b_low_w", "a_low_w", "c_high_w", "b_high_w", "a_high_w"),
    "physical": ("static_w", "linear_w", "voltage_w"),
}


def static_factor(frequency_mhz: Floats, f0_mhz: float) -> Floats:
    """P_static / S_l: 1 below f0 and f/f0 from there on (Eq. 15, continuous: c_h·f0 = S_l)."""
    return np.where(frequency_mhz < f0_mhz, 1.0, frequency_mhz / f0_mhz)


def iteration_energy(
    gpus: ArrayLike,
    t_grad_s: ArrayLike,
    t_sync_s: ArrayLike,
    t_iter_s: ArrayLike,
    p_grad_w: ArrayLike,
    p_sync_w: ArrayLike,
    p_static_w: ArrayLike,
) -> Floats:
    """E_iter = n·(P_grad·T_grad + P_sync·T_sync + P_static·T_iter) in J (Eq. 6-9)."""
    n, tg, ts, ti, pg, py, ps = (
        np.asarray(item, dtype=float)
        for item in (gpus, t_grad_s, t_sync_s, t_iter_s, p_grad_w, p_sync_w, p_static_w)
    )
    return np.asarray(n * (pg * tg + py * ts + ps * ti))


def log_power(theta: Floats, design: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Return ln of the mean power of a GPU, E / (n·T_iter) of Eq. 6-15, and its Jacobian.

    Parameters
    ----------
    theta: θ and β of Eq. 12, S_l of Eq. 15, the share of P_grad that P_sync has on top of
        Eq. 14, then the coefficients of φ and, where there are any, those of P_sync.
    design: ``columns`` (rows, k) of `power_columns`, ``static`` of `static_factor`, the shares
        ``grad_share`` and ``sync_share`` of the iteration, ``batch`` per GPU, and ``floor_w``:
        no GPU in training draws less.
    """
    columns, share, waits = design["columns"], design["grad_share"], design["sync_share"]
    size = columns.shape[1]
    shift, beta, static, wait = theta[:4]
    grad, sync = theta[4 : 4 + size], theta[4 + size :]
    shifted = design["batch"] + shift
    level = np.log(shifted) + beta
    active = share + wait * waits
    phi = columns @ grad
    power = phi * level * active + static * design["static"]
    if len(sync):
        power = power + (columns @ sync) * waits
    power = np.maximum(power, design["floor_w"])
    jacobian = np.empty((len(power), len(theta)))
    jacobian[:, 1] = phi * active
    jacobian[:, 0] = jacobian[:, 1] / shifted
    jacobian[:, 2] = design["static"]
    jacobian[:, 3] = phi * level * waits
    jacobian[:, 4 : 4 + size] = columns * (level * active)[:, None]
    if len(sync):
        jacobian[:, 4 + size :] = columns * waits[:, None]
    return np.log(power), jacobian / power[:, None]


@dataclass(frozen=True)
class EnergyModel:
    """Eq. 12-15 with its coefficients in W (absent ones are 0).

    Parameters
    ----------
    parameters: ``f0_mhz``, ``kappa`` (1/GHz), ``theta`` and ``beta`` of Eq. 12 (α = 1, its
        scale being φ's), ``static_w`` (S_l), and the coefficients of φ as ``grad_<name>`` and
        of P_sync as ``sync_<name>`` with the names of `COLUMN_NAMES[form]`; ``wait_share``, the
        share of P_grad that P_sync has on top of these; ``floor_w``, which is the least that a
        GPU in training draws.
    form: how φ and P_sync depend on the clock.
    """

    parameters: Mapping[str, float]
    form: PowerForm = "continuous"

    def _curve(self, prefix: str, frequency_mhz: Floats) -> Floats:
        get = self.parameters.get
        columns = power_columns(self.form, frequency_mhz, get("f0_mhz", np.inf), get("kappa", 0.0))
        weights = [get(f"{prefix}_{name}", 0.0) for name in COLUMN_NAMES[self.form]]
        return np.asarray(columns @ np.array(weights))

    def powers(
        self, local_batch: ArrayLike, frequency_mhz: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return (P_grad, P_sync, P_static) in W per GPU, Eq. 12-15; arguments broadcast."""
        b, f = np.broadcast_arrays(
            np.asarray(local_batch, dtype=float), np.asarray(frequency_mhz, dtype=float)
        )
        shape, flat = f.shape, f.reshape(-1)
        get = self.parameters.get
        batch = np.log(b.reshape(-1) + get("theta", 0.0)) + get("beta", 0.0)
        p_grad = self._curve("grad", flat) * batch
        p_sync = self._curve("sync", flat) + get("wait_share", 0.0) * p_grad
        p_static = get("static_w", 0.0) * static_factor(flat, get("f0_mhz", np.inf))
        return p_grad.reshape(shape), p_sync.reshape(shape), p_static.reshape(shape)

    def iteration_energy(
        self,
        gpus: ArrayLike,
        local_batch: ArrayLike,
        frequency_mhz: ArrayLike,
        t_grad_s: ArrayLike,
        t_sync_s: ArrayLike,
        t_iter_s: ArrayLike,
    ) -> Floats:
        """E_iter in J over all GPUs, Eq. 6-9."""
        powers = self.powers(local_batch, frequency_mhz)
        energy = iteration_energy(gpus, t_grad_s, t_sync_s, t_iter_s, *powers)
        least = self.parameters.get("floor_w", 0.0) * np.multiply(gpus, t_iter_s)
        return np.maximum(energy, least) if "floor_w" in self.parameters else energy
