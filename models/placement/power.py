"""Node power: a package or GPU in use draws full power (Eq. 2-3; of Eq. 1 see `CpuRule`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from optgap.models.errors import InputError
from optgap.models.jsonio import Fields

CpuRule = Literal["packages", "eq1"]

CORE_MILLI = 2000
"""milli-vCPU of a physical core: two vCPUs. A package counts its busy cores."""

MOST_W = 1e9
"""Beyond it, methods that count in integers lose the watts of all other devices."""

GPU_IDLE_W: Mapping[str, float] = {
    "T4": 10.0,
    "A10": 30.0,
    "G2": 30.0,
    "P100": 25.0,
    "V100M16": 30.0,
    "V100M32": 30.0,
    "A100": 50.0,
    "G3": 50.0,
}
"""Idle power in W by GPU model: Table II (G2 taken for A10, G3 for A100, as the paper does)."""

GPU_FULL_W: Mapping[str, float] = {
    "T4": 70.0,
    "A10": 150.0,
    "G2": 150.0,
    "P100": 250.0,
    "V100M16": 300.0,
    "V100M32": 300.0,
    "A100": 400.0,
    "G3": 400.0,
}
"""Thermal design power in W by GPU model: Table II."""


@dataclass(frozen=True, slots=True)
class CpuProfile:
    """A CPU package: physical cores (two vCPUs each), idle and full power in W."""

    cores: int = 16
    idle_w: float = 15.0
    full_w: float = 120.0

    @property
    def vcpu_milli(self) -> int:
        """Capacity of one package in milli-vCPU."""
        return CORE_MILLI * self.cores


@dataclass(frozen=True)
class PowerModel:
    """The power of a node from what is free in it.

    Parameters
    ----------
    gpu_idle_w, gpu_full_w: W by GPU model.
    cpu: the CPU package that every node carries (the default, Intel Xeon E5-2682 v4, is the
        paper's assumption: the trace names no CPUs).
    cpu_rule: how allocated vCPUs turn into active packages.

        ``packages`` (default, the published implementation): a node has
        ceil(cores/16) packages and ceil(busy cores/16) of them are active.
        ``eq1`` (the paper's formula, literally): ceil(allocated/32) packages active and
        floor(free/32) idle, so packages that are neither draw nothing.
        The two agree on nodes whose vCPUs are a multiple of 32; on the Alibaba cluster
        idle CPUs draw 55,665 W by the first and 47,745 W by the second.
    """

    gpu_idle_w: Mapping[str, float] = field(default_factory=lambda: dict(GPU_IDLE_W))
    gpu_full_w: Mapping[str, float] = field(default_factory=lambda: dict(GPU_FULL_W))
    cpu: CpuProfile = field(default_factory=CpuProfile)
    cpu_rule: CpuRule = "packages"

    def cpu_w(self, capacity_milli: int, free_milli: int) -> float:
        """P_CPU of a node in W, Eq. 1 under `cpu_rule`."""
        if self.cpu_rule == "eq1":
            size = self.cpu.vcpu_milli
            active = -((free_milli - capacity_milli) // size)
            return self.cpu.full_w * active + self.cpu.idle_w * (free_milli // size)
        active = self.active_packages(capacity_milli, free_milli)
        idle = self.packages(capacity_milli) - active
        return self.cpu.full_w * active + self.cpu.idle_w * idle

    def packages(self, capacity_milli: int) -> int:
        """CPU packages of a node with this many milli-vCPU."""
        cores = math.ceil(capacity_milli / CORE_MILLI)
        return math.ceil(cores / self.cpu.cores)

    def active_packages(self, capacity_milli: int, free_milli: int) -> int:
        """Packages with at least one busy core."""
        cores = math.ceil(capacity_milli / CORE_MILLI)
        return math.ceil((cores - free_milli // CORE_MILLI) / self.cpu.cores)

    def cpu_edges(self, capacity_milli: int) -> list[int]:
        """Return the largest CPU uses below the capacity, in milli-vCPU, before `cpu_w` changes."""
        capacity, size = capacity_milli, self.cpu.vcpu_milli
        if self.cpu_rule == "eq1":
            # ceil(used/size) changes after multiples of the size, floor(free/size) when the
            # free part falls below one
            whole = {k * size for k in range(capacity // size + 1)}
            edges = whole | {capacity - edge for edge in whole}
        else:
            # k packages suffice while floor(free/core) >= cores − 16·k
            cores = math.ceil(capacity / CORE_MILLI)
            steps = range(self.packages(capacity))
            edges = {capacity - CORE_MILLI * (cores - self.cpu.cores * k) for k in steps}
        return sorted(edge for edge in edges if 0 <= edge < capacity)

    def gpu_w(self, model: str, gpu_free_milli: Sequence[int]) -> float:
        """P_GPU of a node in W, Eq. 2: full power for every GPU with anything on it."""
        busy = sum(1 for free in gpu_free_milli if free < 1000)
        if not gpu_free_milli:
            return 0.0
        idle = len(gpu_free_milli) - busy
        return self.gpu_full_w[model] * busy + self.gpu_idle_w[model] * idle

    def to_json(self) -> dict[str, Any]:
        tables = {name: dict(getattr(self, name)) for name in ("gpu_idle_w", "gpu_full_w")}
        cpu = {f"cpu_{name}": value for name, value in asdict(self.cpu).items()}
        return {**tables, **cpu, "cpu_rule": self.cpu_rule}

    @classmethod
    def from_json(cls, fields: Fields) -> PowerModel:
        tables: list[dict[str, float]] = []
        for name in ("gpu_idle_w", "gpu_full_w"):
            table = fields.object(name)
            tables.append({model: table.number(model, 0.0, MOST_W) for model in table.document})
        model = cls(
            tables[0],
            tables[1],
            CpuProfile(
                fields.integer("cpu_cores", minimum=1),
                fields.number("cpu_idle_w", 0.0, MOST_W),
                fields.number("cpu_full_w", 0.0, MOST_W),
            ),
            "eq1" if fields.choice("cpu_rule", ("packages", "eq1")) == "eq1" else "packages",
        )
        model.validate(fields.source)
        return model

    def validate(self, source: str) -> None:
        """Raise InputError for a missing figure, or a device that draws more idle than busy."""
        for name, idle in self.gpu_idle_w.items():
            full = self.gpu_full_w.get(name)
            if full is None or full < idle:
                raise InputError(
                    source,
                    f"field power.gpu_full_w.{name}",
                    full,
                    f"at least the idle power, {idle:g} W",
                )
        for name in self.gpu_full_w:
            if name not in self.gpu_idle_w:
                raise InputError(source, f"field power.gpu_idle_w.{name}", None, "a power in W")
        if self.cpu.full_w < self.cpu.idle_w:
            raise InputError(
                source,
                "field power.cpu_full_w",
                self.cpu.full_w,
                f"at least the idle power, {self.cpu.idle_w:g} W",
            )
