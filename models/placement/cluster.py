"""The nodes of a GPU cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, plain
from optgap.models.placement.arrays import IntArray, int_column, same_length

if TYPE_CHECKING:
    from optgap.models.placement.tasks import TaskClass

MAX_GPUS_PER_NODE = 62
"""The GPUs of a placement are the bits of one 64-bit integer."""

MAX_CPU_MILLI = 10**8
"""100,000 vCPU: no node has more, and a slip of units would fill the memory with packages."""

TASKS_PER_NODE = 1001
"""The simulators' limit on tasks of one node (FGD); never binding on the public traces."""


@dataclass(frozen=True, slots=True)
class NodeType:
    """Nodes that no formulation can tell apart."""

    model: str
    gpus: int
    cpu_milli: int
    memory_mib: int

    def __str__(self) -> str:
        gpus = f"{self.gpus} {self.model} GPUs" if self.gpus else "no GPU"
        return f"nodes of {self.cpu_milli} milli-CPU, {self.memory_mib} MiB, {gpus}"

    def takes(self, task: TaskClass) -> bool:
        """Return whether one such task fits an empty node of this type."""
        return (
            task.cpu_milli <= self.cpu_milli
            and task.memory_mib <= self.memory_mib
            and task.num_gpu <= self.gpus
            and (task.num_gpu == 0 or task.accepts(self.model))
        )

    def lacks(self, task: TaskClass) -> str:
        """Return what an empty node of this type lacks for one such task."""
        asked = (
            ("milli-CPU", task.cpu_milli - self.cpu_milli),
            ("MiB", task.memory_mib - self.memory_mib),
            ("GPUs", task.num_gpu - self.gpus),
        )
        short = [f"short by {more} {what}" for what, more in asked if more > 0]
        if task.num_gpu and self.gpus and not task.accepts(self.model):
            short.append(f"not of {task.gpu_spec}")
        return ", ".join(short)


@dataclass(frozen=True, eq=False)
class Cluster:
    """N nodes, one row each.

    Parameters
    ----------
    names: N distinct node names.
    cpu_milli: (N,) capacity in milli-vCPU (1000 = one vCPU).
    memory_mib: (N,) capacity in MiB.
    gpus: (N,) number of GPUs; each has 1000 milli-GPU.
    models: N GPU model names ("" on a node without GPUs).
    """

    names: tuple[str, ...]
    cpu_milli: IntArray
    memory_mib: IntArray
    gpus: IntArray
    models: tuple[str, ...]

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        cpu_milli: Iterable[int],
        memory_mib: Iterable[int],
        gpus: Iterable[int],
        models: Iterable[str],
        source: str = "cluster",
    ) -> Cluster:
        """Check the columns and make a cluster of them.

        Raises
        ------
        InputError: for no nodes, columns of different lengths, repeated names, negative
            numbers, more than `MAX_GPUS_PER_NODE` GPUs or `MAX_CPU_MILLI` of CPU, or a GPU node
            without a model.
        """
        cluster = cls(
            tuple(names),
            int_column(cpu_milli, source, "nodes.cpu_milli"),
            int_column(memory_mib, source, "nodes.memory_mib"),
            int_column(gpus, source, "nodes.gpus"),
            tuple(models),
        )
        cluster._validate(source)
        return cluster

    def _validate(self, source: str) -> None:
        columns = {
            "name": self.names,
            "cpu_milli": self.cpu_milli,
            "memory_mib": self.memory_mib,
            "gpus": self.gpus,
            "model": self.models,
        }
        if same_length(source, "nodes", columns) == 0:
            raise InputError(source, "field nodes", NoQuote("no nodes"), "at least one node")
        repeated = [name for name, count in Counter(self.names).items() if count > 1]
        if repeated:
            raise InputError(
                source, "field nodes.name", repeated[0], "every node name once, not repeated"
            )
        for k, name in enumerate(self.names):
            if not name:
                raise InputError(source, f"field nodes.name[{k}]", name, "a name")
            if self.gpus[k] > MAX_GPUS_PER_NODE:
                raise InputError(
                    source,
                    f"field nodes.gpus[{k}]",
                    int(self.gpus[k]),
                    f"at most {MAX_GPUS_PER_NODE} GPUs",
                )
            if self.cpu_milli[k] > MAX_CPU_MILLI:
                raise InputError(
                    source,
                    f"field nodes.cpu_milli[{k}]",
                    int(self.cpu_milli[k]),
                    f"at most {MAX_CPU_MILLI} milli-vCPU",
                )
            if self.gpus[k] > 0 and not self.models[k]:
                raise InputError(source, f"field nodes.model[{k}]", "", "a GPU model")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def gpu_capacity_milli(self) -> int:
        """Capacity of all GPUs, in milli-GPU."""
        return 1000 * int(self.gpus.sum())

    @cached_property
    def index(self) -> dict[str, int]:
        """Node index by name."""
        return {name: k for k, name in enumerate(self.names)}

    @cached_property
    def types(self) -> tuple[NodeType, ...]:
        """The distinct node types, sorted."""
        rows = sorted({self._type_key(k) for k in range(len(self))})
        return tuple(NodeType(*row) for row in rows)

    @cached_property
    def type_of(self) -> IntArray:
        """(N,) index into `types`."""
        place = {(t.model, t.gpus, t.cpu_milli, t.memory_mib): k for k, t in enumerate(self.types)}
        return np.array([place[self._type_key(k)] for k in range(len(self))], dtype=np.int64)

    def _type_key(self, k: int) -> tuple[str, int, int, int]:
        return (
            self.models[k],
            int(self.gpus[k]),
            int(self.cpu_milli[k]),
            int(self.memory_mib[k]),
        )

    def to_json(self) -> dict[str, Any]:
        numbers = plain(self, "cpu_milli", "memory_mib", "gpus")
        return {"name": list(self.names), **numbers, "model": list(self.models)}

    @classmethod
    def from_json(cls, fields: Fields) -> Cluster:
        return cls.of(
            fields.texts("name"),
            fields.integers("cpu_milli"),
            fields.integers("memory_mib"),
            fields.integers("gpus"),
            fields.texts("model"),
            fields.source,
        )
