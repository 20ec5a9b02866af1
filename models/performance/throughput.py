"""Iteration time of data-parallel training: PowerFlow, Eq. 1-5.

Every term is linear in its parameters, so a fit and a prediction share the same columns:
`io_columns`, `grad_columns` and `sync_columns` give the factors, `iteration_time` joins them.
The outer exponent of Eq. 5 is 1/γ2 (printed as γ2): only then is the result a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
SyncForm = Literal["paper", "ring", "topology"]

IO_NAMES = ("a_io_s", "b_io_s")
GRAD_NAMES = ("a_grad_s", "b_grad_s", "k_grad_s_mhz")
SYNC_NAMES: Mapping[str, tuple[str, ...]] = {
    "paper": (
        "theta_local_s",
        "B_local_s",
        "A_local_s_mhz",
        "K_local_s_mhz",
        "theta_node_s",
        "B_node_s",
        "A_node_s_mhz",
        "K_node_s_mhz",
    ),
    "ring": (
        "theta_sync_s",
        "ring_sync_s",
        "B_sync_s",
        "A_sync_s_mhz",
        "theta_cross_s",
    ),
    "topology": (
        "theta_local_s",
        "B_local_s",
        "theta_node_s",
        "latency_node_s",
        "B_node_s",
        "share_node_s",
        "pair_node_s",
        "pair_share_s",
    ),
}


def io_columns(local_batch: Floats, gpus_on_node: Floats) -> Floats:
    """Factors of (a_IO, b_IO) in T_IO, Eq. 2; shape (rows, 2)."""
    return np.stack([np.ones_like(local_batch), local_batch * gpus_on_node], axis=1)


def grad_columns(local_batch: Floats, frequency_mhz: Floats | None) -> Floats:
    """Factors of (a_g, b_g, k_g) in T_grad, Eq. 3; shape (rows, 3), k_g's zero without a clock."""
    clock = np.zeros_like(local_batch) if frequency_mhz is None else local_batch / frequency_mhz
    return np.stack([np.ones_like(local_batch), local_batch, clock], axis=1)


def sync_columns(
    form: SyncForm,
    gpus: Floats,
    nodes: Floats,
    gpus_on_node: Floats,
    frequency_mhz: Floats | None,
) -> Floats:
    """Factors of `SYNC_NAMES[form]` in T_sync, Eq. 4; shape (rows, parameters), 0 for one GPU.

    ``paper``: a constant, one per GPU beyond two, and both over the clock, for one node and
    for several. ``ring``: ring all-reduce, whose traffic per GPU grows as (n-1)/n, with one
    set of parameters and a step when nodes are crossed. ``topology``: across nodes, latency
    grows with log2 of the nodes, the GPUs of a node share its link, and a pair of nodes, which
    exchange over a single route, has a rate of its own.
    """
    local = ((nodes <= 1) & (gpus > 1)).astype(float)
    node = (nodes > 1).astype(float)
    beyond = gpus - 2
    per_clock = np.zeros_like(gpus) if frequency_mhz is None else 1.0 / frequency_mhz
    if form == "paper":
        parts = [
            scope * factor
            for scope in (local, node)
            for factor in (np.ones_like(gpus), beyond, per_clock, beyond * per_clock)
        ]
    elif form == "ring":
        several = local + node
        parts = [several, several * (gpus - 1) / gpus, several * beyond, several * per_clock, node]
    else:
        pair = node * (nodes == 2)
        parts = [
            local,
            local * beyond,
            node,
            node * np.log2(np.maximum(nodes, 1)),
            node * beyond,
            node * (gpus_on_node - 1),
            pair,
            pair * (gpus_on_node - 1),
        ]
    return np.stack(parts, axis=1)


def p_norm(
    t_io: Floats, t_grad: Floats, t_sync: Floats, gamma1: float | Floats, gamma2: float | Floats
) -> Floats:
    """T_iter of Eq. 5 in s from its parts in s; γ = 1 adds them, large γ takes the largest."""
    first = np.maximum(np.maximum(t_io, t_grad), 1e-300)
    compute = first * ((t_io / first) ** gamma1 + (t_grad / first) ** gamma1) ** (1 / gamma1)
    second = np.maximum(compute, t_sync)
    joined = (compute / second) ** gamma2 + (t_sync / second) ** gamma2
    return np.asarray(second * joined ** (1 / gamma2))


def log_time(theta: Floats, design: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Return ln T_iter (Eq. 5) and its Jacobian in (T_IO, T_grad, T_sync, γ1, γ2) parameters.

    With C the inner norm, the shares w_C = (C/T)^γ2, w_S = (T_sync/T)^γ2 and likewise inside
    give d ln T / d ln C = w_C and so on; d ln T / dγ2 = (w_C ln C + w_S ln T_sync − ln T)/γ2.
    """
    io, grad, sync = design["io"], design["grad"], design["sync"]
    first, second = io.shape[1], io.shape[1] + grad.shape[1]
    gamma1, gamma2 = theta[-2:]
    tiny = 1e-300
    t_io = np.maximum(io @ theta[:first], tiny)
    t_grad = np.maximum(grad @ theta[first:second], tiny)
    t_sync = np.maximum(sync @ theta[second:-2], tiny)
    log_io, log_grad, log_sync = np.log(t_io), np.log(t_grad), np.log(t_sync)
    log_compute, w_io = _log_norm(log_io, log_grad, gamma1)
    log_total, w_compute = _log_norm(log_compute, log_sync, gamma2)
    w_grad, w_sync = 1 - w_io, 1 - w_compute
    jacobian = np.empty((len(t_io), len(theta)))
    jacobian[:, :first] = io * (w_compute * w_io / t_io)[:, None]
    jacobian[:, first:second] = grad * (w_compute * w_grad / t_grad)[:, None]
    jacobian[:, second:-2] = sync * np.where(t_sync > tiny, w_sync / t_sync, 0.0)[:, None]
    inner = w_io * log_io + w_grad * log_grad - log_compute
    outer = w_compute * log_compute + w_sync * log_sync - log_total
    jacobian[:, -2] = w_compute * inner / gamma1
    jacobian[:, -1] = outer / gamma2
    return log_total, jacobian


def _log_norm(log_a: Floats, log_b: Floats, gamma: float) -> tuple[Floats, Floats]:
    """Return ln (a^γ + b^γ)^(1/γ) and a's share of the sum, without leaving the range of floats."""
    gap = gamma * (log_b - log_a)
    share = 1 / (1 + np.exp(np.minimum(gap, 700)))
    return np.maximum(log_a, log_b) + np.log1p(np.exp(-np.abs(gap))) / gamma, share


@dataclass(frozen=True)
class ThroughputModel:
    """PowerFlow's throughput model with its parameters (absent ones are 0, γ are 1).

    Parameters
    ----------
    parameters: by name, in s and s·MHz: `IO_NAMES`, `GRAD_NAMES`, `SYNC_NAMES[form]` and
        ``gamma1``, ``gamma2`` in [1, 10].
    form: how T_sync is written.
    """

    parameters: Mapping[str, float]
    form: SyncForm = "paper"

    def _vector(self, names: tuple[str, ...]) -> Floats:
        return np.array([self.parameters.get(name, 0.0) for name in names])

    def parts(
        self,
        gpus: ArrayLike,
        local_batch: ArrayLike,
        frequency_mhz: ArrayLike | None = None,
        nodes: ArrayLike = 1,
        gpus_on_node: ArrayLike | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """Return (T_IO, T_grad, T_sync), s, Eq. 2-4; arguments broadcast. Default r: n / nodes."""
        clock = 1.0 if frequency_mhz is None else frequency_mhz
        on_node = 0.0 if gpus_on_node is None else gpus_on_node
        n, b, f, m, r = np.broadcast_arrays(
            *(np.asarray(item, dtype=float) for item in (gpus, local_batch, clock, nodes, on_node))
        )
        shape = n.shape
        n, b, f, m, r = (item.reshape(-1) for item in (n, b, f, m, r))
        r = np.ceil(n / m) if gpus_on_node is None else r
        known = None if frequency_mhz is None else f
        t_io = io_columns(b, r) @ self._vector(IO_NAMES)
        t_grad = grad_columns(b, known) @ self._vector(GRAD_NAMES)
        t_sync = sync_columns(self.form, n, m, r, known) @ self._vector(SYNC_NAMES[self.form])
        return t_io.reshape(shape), t_grad.reshape(shape), t_sync.reshape(shape)

    def iteration_time(
        self,
        gpus: ArrayLike,
        local_batch: ArrayLike,
        frequency_mhz: ArrayLike | None = None,
        nodes: ArrayLike = 1,
        gpus_on_node: ArrayLike | None = None,
    ) -> Floats:
        """T_iter in s, Eq. 5."""
        parts = self.parts(gpus, local_batch, frequency_mhz, nodes, gpus_on_node)
        gamma1 = self.parameters.get("gamma1", 1.0)
        gamma2 = self.parameters.get("gamma2", 1.0)
        return p_norm(*parts, gamma1, gamma2)
