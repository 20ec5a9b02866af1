"""Model of the iteration time of data-parallel training (PowerFlow, Eq. 1-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Floats, Parameter, bounds
from optgap.fitting.profile import Profile
from optgap.models.performance.throughput import (
    SYNC_NAMES,
    SyncForm,
    ThroughputModel,
    grad_columns,
    io_columns,
    log_time,
    sync_columns,
)

IoForm = Literal["full", "none"]

GAMMAS = ("gamma1", "gamma2")
BENDS = 6
"""Least number of clocks that tell what an iteration takes beside computing at any clock."""

_STARTS = ((9.0, 1.1), (1.1, 3.0), (9.0, 3.0), (1.1, 1.1), (9.0, 1.5), (2.0, 3.0))
"""Values of (γ1, γ2) at the starts."""

_MEASURE = {
    "local": "several GPUs on one node, at 2, 4 and more GPUs",
    "node": "several nodes, at different counts of GPUs",
    "clock": "at least two core clocks",
    "batch": "at least two batches per GPU",
}


@dataclass(kw_only=True, eq=False)
class PowerFlowThroughput(Estimator):
    """T_iter of PowerFlow, Eq. 1-5, with outer exponent 1/γ2 and a choice of forms for T_sync.

    Parameters
    ----------
    sync: form of T_sync, see `models.performance.throughput.sync_columns`: ``paper`` (Eq. 4),
        ``ring`` or ``topology``.
    io: ``full`` (Eq. 2) or ``none`` (T_IO = 0, when loading is hidden or cannot be told).

    A table needs ``gpus`` and ``local_batch``; ``nodes``, ``gpus_on_node`` and
    ``frequency_mhz`` are optional (defaults: one node; n / nodes; no clock term).
    """

    name = "powerflow-throughput"
    response = "time_s"
    needs = ("gpus", "local_batch")
    uses = ("nodes", "gpus_on_node", "frequency_mhz")
    swept = False
    sync: SyncForm = "paper"
    io: IoForm = "full"
    loss_scale: float = 0.05
    starts: int = 12

    def settle(self, table: Profile) -> Design:
        """Return whether the clock is known and varies, and the scopes of synchronisation."""
        gpus, batch, nodes, on_node, clock = layout(table)
        local, node = (nodes <= 1) & (gpus > 1), nodes > 1
        facts = {
            "batch": len(np.unique(batch)) > 1,
            "clock": bool(clock is not None and len(np.unique(clock)) > 1),
            "bends": bool(clock is not None and len(np.unique(clock)) >= BENDS),
            "local": len(np.unique(gpus[local])),
            "local_beyond": bool(np.any(gpus[local] > 2)),
            "node": len(np.unique(gpus[node])),
            "node_beyond": bool(np.any(gpus[node] > 2)),
            "node_clock": bool(clock is not None and len(np.unique(clock[node])) > 1),
            "local_clock": bool(clock is not None and len(np.unique(clock[local])) > 1),
        }
        # at one batch the GPUs of a node alone tell loading from synchronising: with rows to spare
        others = 4 + sum(_seen(name, facts) for name in SYNC_NAMES[self.sync])
        facts["io"] = facts["batch"] or (len(np.unique(on_node)) > 1 and len(table) >= others)
        return facts

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        batch, over = _MEASURE["batch"], "several batches on more than one GPU"
        loads, syncs = self.io != "none", facts["local"] + facts["node"] > 0
        io = loads and facts["io"]
        beside = io or (loads and facts.get("bends", False))
        told = [  # name, meaning, whether the rows tell it, what to measure
            ("a_io_s", "T_IO, constant part", beside, batch),
            ("b_io_s", "T_IO per sample on the node", io, batch),
            ("a_grad_s", "T_grad, constant part", True, batch),
            ("b_grad_s", "T_grad per sample", facts["batch"], batch),
            ("k_grad_s_mhz", "T_grad per sample and 1/f", facts["clock"], _MEASURE["clock"]),
        ]
        for name in SYNC_NAMES[self.sync]:
            scope = "clock" if name.endswith("_mhz") else "local" if "local" in name else "node"
            told.append((name, f"T_sync, {name}", _seen(name, facts), _MEASURE[scope]))
        told.append(("gamma1", "overlap of T_IO and T_grad", beside, batch))
        told.append(("gamma2", "overlap of computing and synchronising", syncs, over))
        found = []
        for name, meaning, seen, measure in told:
            least, most = (1.0, 10.0) if name in GAMMAS else (0.0, np.inf)
            top = most if seen else least
            found.append(Parameter(name, _unit(name), least, top, meaning, measure))
        return found

    def guess(self, table: Profile, facts: Design) -> Floats:
        """Return a start whose parts are shares of the median time, spread evenly over terms."""
        design, time = self.design(table, facts), float(np.median(table.numbers("time_s")))
        parts = []
        for key, share in (("io", 0.3), ("grad", 0.5), ("sync", 0.3)):
            size = np.max(np.abs(design[key]), axis=0)
            parts.append(share * time / np.where(size == 0, 1.0, size))
        return np.concatenate([*parts, [1.5, 2.0]])

    def _starts(self, first: Floats, params: tuple[Parameter, ...]) -> Floats:
        """Return the guess, and starts whose parts take random shares of the median time.

        The p-norms have separate minima near the sum (γ = 1) and near the maximum (γ = 10), so
        the starts alternate between these.
        """
        rng = np.random.default_rng(self.seed)
        lower, upper = bounds(params)
        rows = [first]
        for k in range(max(self.starts, 1) - 1):
            row = first * rng.uniform(0.1, 2.0, len(first))
            row[-2:] = _STARTS[k % len(_STARTS)]
            rows.append(row)
        return np.clip(np.array(rows), lower, upper)

    def design(self, table: Profile, facts: Design) -> Design:
        gpus, batch, nodes, on_node, clock = layout(table)
        clock = clock if facts["clock"] else None
        return {
            "io": io_columns(batch, on_node),
            "grad": grad_columns(batch, clock),
            "sync": sync_columns(self.sync, gpus, nodes, on_node, clock),
        }

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        return log_time(theta, design)

    def remarks(self, table: Profile) -> list[str]:
        said = {
            "local": "no run on several GPUs of one node",
            "local_beyond": "no run on more than two GPUs of one node",
            "node": "no run on several nodes",
            "node_beyond": "no run on more than two GPUs of several nodes",
            "batch": "one batch only: a_grad holds what grows with it",
            "clock": "one clock only: k_grad and the clock terms of T_sync are part of the "
            "constants",
        }
        lacks = {key: key.removesuffix("_beyond") for key in said if not self.facts_[key]}
        return [f"{said[k]}; measure {_MEASURE[of]}" for k, of in lacks.items()
                if k == of or of not in lacks]  # fmt: skip

    @property
    def model_(self) -> ThroughputModel:
        """Fitted model, for solvers and policies."""
        return ThroughputModel(self.params_, self.sync)


def _unit(name: str) -> str:
    if name in GAMMAS:
        return ""
    per_batch = "s/sample" if name in ("b_io_s", "b_grad_s") else "s"
    return "s·MHz" if name.endswith("_mhz") else per_batch


def _seen(name: str, facts: Design) -> bool:
    """Tell whether the data determine the T_sync parameter `name`."""
    scope = "local" if "local" in name else "node" if "node" in name or "pair" in name else "any"
    if scope == "any":
        seen = facts["local"] + facts["node"] > 0
        beyond, clock = facts["local_beyond"] or facts["node_beyond"], facts["clock"]
        if "cross" in name:
            return bool(facts["node"] and facts["local"])
    else:
        seen, beyond, clock = facts[scope] > 0, facts[f"{scope}_beyond"], facts[f"{scope}_clock"]
    if name.endswith("_mhz"):
        return bool(seen and clock and (beyond or not name.startswith("K")))
    return bool(seen and (beyond or not name.startswith(("B", "latency"))))


def layout(table: Profile) -> tuple[Floats, Floats, Floats, Floats, Floats | None]:
    """Return GPUs, local batch, nodes, GPUs on a node, and clock or None of each row.

    Raises
    ------
    InputError: for fewer GPUs than nodes, or more GPUs on a node than there are.
    """
    gpus, batch = table.numbers("gpus"), table.numbers("local_batch")
    nodes = table.numbers("nodes") if "nodes" in table else np.ones_like(gpus)
    on_node = np.ceil(gpus / np.maximum(nodes, 1))
    if "gpus_on_node" in table:
        on_node = table.numbers("gpus_on_node")
    good = (gpus >= 1) & (nodes >= 1) & (nodes <= gpus) & (on_node >= 1) & (on_node <= gpus)
    for row in np.flatnonzero(~good)[:1]:  # what is missing is not good either
        found = f"{gpus[row]:g} GPUs on {nodes[row]:g} nodes, {on_node[row]:g} on one"
        expected = "at least one GPU per node, and no more on a node than in all"
        table.require(good, "gpus", expected, found)
    clock = table.numbers("frequency_mhz") if "frequency_mhz" in table else np.zeros(0)
    good = np.isfinite(clock) & (clock > 0)
    if not good.any():
        return gpus, batch, nodes, on_node, None
    table.require(good, "frequency_mhz", "a clock above 0 in every row, or in none")
    return gpus, batch, nodes, on_node, clock
