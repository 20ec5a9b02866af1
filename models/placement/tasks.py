"""Arriving tasks, and the target workload M that fragmentation is measured against."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, plain
from optgap.models.placement.arrays import (
    FloatArray,
    IntArray,
    int_column,
    same_length,
    time_column,
)
from optgap.models.times import SHORTEST_S

ONE_NODE = "1: a placement has one node for each task (queueing has jobs on several)"
"""What is expected of a task's number of nodes, which files had once."""


class TaskClass(NamedTuple):
    """Tasks that no policy can tell apart."""

    cpu_milli: int
    memory_mib: int
    num_gpu: int
    gpu_milli: int
    gpu_spec: str

    @property
    def demand_milli(self) -> int:
        """The whole GPU request, in milli-GPU."""
        return self.num_gpu * self.gpu_milli

    @property
    def allowed_models(self) -> tuple[str, ...]:
        """The GPU models it accepts; empty for any."""
        return tuple(self.gpu_spec.split("|")) if self.gpu_spec and self.num_gpu else ()

    def accepts(self, model: str) -> bool:
        """Tell whether a node with this GPU model will do."""
        return not self.allowed_models or model in self.allowed_models


@dataclass(frozen=True, eq=False)
class Tasks:
    """Tasks in order of arrival, T rows.

    Parameters
    ----------
    names: T task names (a re-sampled task may carry its original's name).
    cpu_milli: (T,) request in milli-vCPU.
    memory_mib: (T,) request in MiB.
    num_gpu: (T,) number of GPUs, 0 for a CPU-only task.
    gpu_milli: (T,) request **per GPU** in milli-GPU: 1..1000 for one GPU, 1000 for several,
        0 for a CPU-only task.
    gpu_specs: T constraints: "" for any GPU model, else ``|``-separated alternatives.
    submit_s: (T,) when each is submitted, s; 0 where tasks have no times.
    duration_s: (T,) how long each runs once started, s; infinite for one that never leaves.
    """

    names: tuple[str, ...]
    cpu_milli: IntArray
    memory_mib: IntArray
    num_gpu: IntArray
    gpu_milli: IntArray
    gpu_specs: tuple[str, ...]
    submit_s: FloatArray
    duration_s: FloatArray

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        cpu_milli: Iterable[int],
        memory_mib: Iterable[int],
        num_gpu: Iterable[int],
        gpu_milli: Iterable[int],
        gpu_specs: Iterable[str],
        source: str = "tasks",
        *,
        submit_s: Iterable[float] | None = None,
        duration_s: Iterable[float] | None = None,
    ) -> Tasks:
        """Check the columns, one row per task, and make tasks of them.

        Raises
        ------
        InputError: for no tasks, columns of different lengths, negative numbers, a GPU
            request that is none of: nothing, a share of one GPU, whole GPUs; or a time of
            submission that is no number, a duration below `SHORTEST_S`.
        """
        labels = tuple(names)
        submit = np.zeros(len(labels)) if submit_s is None else submit_s
        duration = np.full(len(labels), math.inf) if duration_s is None else duration_s
        tasks = cls(
            labels,
            int_column(cpu_milli, source, "tasks.cpu_milli"),
            int_column(memory_mib, source, "tasks.memory_mib"),
            int_column(num_gpu, source, "tasks.num_gpu"),
            int_column(gpu_milli, source, "tasks.gpu_milli"),
            tuple(gpu_specs),
            time_column(submit, source, "tasks.submit_s"),
            time_column(duration, source, "tasks.duration_s", SHORTEST_S, endless=True),
        )
        columns = {
            "name": tasks.names,
            "cpu_milli": tasks.cpu_milli,
            "memory_mib": tasks.memory_mib,
            "num_gpu": tasks.num_gpu,
            "gpu_milli": tasks.gpu_milli,
            "gpu_spec": tasks.gpu_specs,
            "submit_s": tasks.submit_s,
            "duration_s": tasks.duration_s,
        }
        if same_length(source, "tasks", columns) == 0:
            raise InputError(source, "field tasks", NoQuote("no tasks"), "at least one task")
        for k, (count, milli) in enumerate(zip(tasks.num_gpu, tasks.gpu_milli, strict=True)):
            expected = gpu_request_error(int(count), int(milli))
            if expected:
                raise InputError(source, f"field tasks.gpu_milli[{k}]", int(milli), expected)
        return tasks

    def __len__(self) -> int:
        return len(self.names)

    @property
    def timed(self) -> bool:
        """Whether any task comes later than at 0, or leaves."""
        return bool(self.submit_s.any() or np.isfinite(self.duration_s).any())

    @cached_property
    def demand_milli(self) -> IntArray:
        """(T,) whole GPU request, in milli-GPU."""
        demand: IntArray = self.num_gpu * self.gpu_milli
        return demand

    def task_class(self, k: int) -> TaskClass:
        """Return what task `k` requests."""
        return TaskClass(
            int(self.cpu_milli[k]),
            int(self.memory_mib[k]),
            int(self.num_gpu[k]),
            int(self.gpu_milli[k]),
            self.gpu_specs[k],
        )

    @cached_property
    def classes(self) -> tuple[TaskClass, ...]:
        """The distinct requests, sorted."""
        return tuple(sorted({self.task_class(k) for k in range(len(self))}))

    @cached_property
    def class_of(self) -> IntArray:
        """(T,) index into `classes`."""
        place = {c: k for k, c in enumerate(self.classes)}
        return np.array([place[self.task_class(k)] for k in range(len(self))], dtype=np.int64)

    def take(self, chosen: Iterable[int]) -> Tasks:
        """Return the tasks with these rows, in this order."""
        rows = list(chosen)
        return Tasks.of(
            [self.names[k] for k in rows],
            self.cpu_milli[rows],
            self.memory_mib[rows],
            self.num_gpu[rows],
            self.gpu_milli[rows],
            [self.gpu_specs[k] for k in rows],
            submit_s=self.submit_s[rows],
            duration_s=self.duration_s[rows],
        )

    def to_json(self) -> dict[str, Any]:
        """Columns, a row per task; times only where there are any.

        Null stands for a duration without end.
        """
        numbers = plain(self, "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
        columns = {"name": list(self.names), **numbers, "gpu_spec": list(self.gpu_specs)}
        if self.timed:
            columns["submit_s"] = self.submit_s.tolist()
            lives = self.duration_s.tolist()
            columns["duration_s"] = [None if math.isinf(life) else life for life in lives]
        return columns

    @classmethod
    def from_json(cls, fields: Fields) -> Tasks:
        """Read the JSON form.

        Raises
        ------
        InputError: for a task on several nodes, which is no longer modelled.
        """
        several = fields.integers("nodes", minimum=1) if "nodes" in fields.document else []
        for k, nodes in enumerate(several):
            if nodes > 1:
                raise InputError(fields.source, f"field tasks.nodes[{k}]", nodes, ONE_NODE)
        return cls.of(
            fields.texts("name"),
            fields.integers("cpu_milli"),
            fields.integers("memory_mib"),
            fields.integers("num_gpu"),
            fields.integers("gpu_milli"),
            fields.texts("gpu_spec"),
            fields.source,
            submit_s=fields.array("submit_s") if "submit_s" in fields.document else None,
            duration_s=_lives(fields) if "duration_s" in fields.document else None,
        )


def _lives(fields: Fields) -> list[Any]:
    return [math.inf if life is None else life for life in fields.array("duration_s")]


def gpu_request_error(num_gpu: int, gpu_milli: int) -> str:
    """Return what `gpu_milli` should be for this number of GPUs, or "" when it is that."""
    if num_gpu == 0:
        return "" if gpu_milli == 0 else "0 milli-GPU for a task without GPUs"
    if num_gpu == 1:
        return "" if 1 <= gpu_milli <= 1000 else "1 to 1000 milli-GPU for one GPU"
    return "" if gpu_milli == 1000 else "1000 milli-GPU each for several GPUs"


@dataclass(frozen=True, eq=False)
class TargetWorkload:
    """The target workload M: task classes with their popularity p_m.

    Memory is not part of a class (FGD). The order of the classes is the order in which
    floating-point sums run over them, and therefore part of the definition.

    Parameters
    ----------
    cpu_milli: (M,) request in milli-vCPU.
    gpu_milli: (M,) request per GPU in milli-GPU.
    num_gpu: (M,) number of GPUs.
    gpu_specs: M constraints, "" for any model.
    popularity: (M,) p_m, positive, summing to 1.
    """

    cpu_milli: IntArray
    gpu_milli: IntArray
    num_gpu: IntArray
    gpu_specs: tuple[str, ...]
    popularity: FloatArray

    @classmethod
    def of(
        cls,
        cpu_milli: Iterable[int],
        gpu_milli: Iterable[int],
        num_gpu: Iterable[int],
        gpu_specs: Iterable[str],
        popularity: Iterable[float],
        source: str = "workload",
    ) -> TargetWorkload:
        """Check the columns and make a workload of them.

        Raises
        ------
        InputError: for columns of different lengths, impossible GPU requests, or popularities
            that are not positive or do not sum to 1.
        """
        weights = np.array(list(popularity), dtype=np.float64)
        weights.flags.writeable = False
        workload = cls(
            int_column(cpu_milli, source, "workload.cpu_milli"),
            int_column(gpu_milli, source, "workload.gpu_milli"),
            int_column(num_gpu, source, "workload.num_gpu"),
            tuple(gpu_specs),
            weights,
        )
        columns = {
            "cpu_milli": workload.cpu_milli,
            "gpu_milli": workload.gpu_milli,
            "num_gpu": workload.num_gpu,
            "gpu_spec": workload.gpu_specs,
            "popularity": weights,
        }
        if same_length(source, "workload", columns) == 0:
            raise InputError(source, "field workload", NoQuote("no classes"), "at least one class")
        for k, (count, milli) in enumerate(zip(workload.num_gpu, workload.gpu_milli, strict=True)):
            expected = gpu_request_error(int(count), int(milli))
            if expected:
                raise InputError(source, f"field workload.gpu_milli[{k}]", int(milli), expected)
        for k, weight in enumerate(weights):
            if not (math.isfinite(weight) and weight > 0):
                raise InputError(
                    source, f"field workload.popularity[{k}]", float(weight), "a positive number"
                )
        if abs(float(weights.sum()) - 1) > 1e-9:
            raise InputError(
                source, "field workload.popularity", float(weights.sum()), "a sum of 1"
            )
        return workload

    @classmethod
    def from_counts(
        cls, counts: dict[tuple[int, int, int, str], int], share: float = 0.95
    ) -> TargetWorkload:
        """Return the most popular classes that make up `share` of all tasks (FGD's typical pods).

        `counts` maps (cpu_milli, gpu_milli, num_gpu, gpu_spec) to the number of tasks.
        Classes are sorted by count, ties by the tuple, both descending; the shortest prefix
        that reaches the share is kept and p_m renormalised in the simulators' own
        floating-point form.
        """
        total = sum(counts.values())
        order = sorted(counts, key=lambda key: (counts[key], key), reverse=True)
        kept: list[tuple[int, int, int, str]] = []
        covered = 0
        for key in order:
            if covered >= share * total:
                break
            kept.append(key)
            covered += counts[key]
        whole = len(kept) == len(order)
        prefix = covered / total
        popularity = [
            counts[key] / total if whole else (counts[key] / total) / prefix for key in kept
        ]
        return cls.of(
            [key[0] for key in kept],
            [key[1] for key in kept],
            [key[2] for key in kept],
            [key[3] for key in kept],
            popularity,
        )

    @classmethod
    def from_tasks(cls, tasks: Tasks, share: float = 0.95) -> TargetWorkload:
        """Return the target workload of a trace, every task with weight 1."""
        counts: Counter[tuple[int, int, int, str]] = Counter(
            (int(cpu), int(milli), int(count), spec)
            for cpu, milli, count, spec in zip(
                tasks.cpu_milli, tasks.gpu_milli, tasks.num_gpu, tasks.gpu_specs, strict=True
            )
        )
        return cls.from_counts(dict(counts), share)

    def __len__(self) -> int:
        return len(self.popularity)

    def to_json(self) -> dict[str, Any]:
        numbers = plain(self, "cpu_milli", "gpu_milli", "num_gpu")
        return {**numbers, "gpu_spec": list(self.gpu_specs), **plain(self, "popularity")}

    @classmethod
    def from_json(cls, fields: Fields) -> TargetWorkload:
        return cls.of(
            fields.integers("cpu_milli"),
            fields.integers("gpu_milli"),
            fields.integers("num_gpu"),
            fields.texts("gpu_spec"),
            fields.numbers("popularity", maximum=1.0),
            fields.source,
        )
