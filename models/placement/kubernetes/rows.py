"""Pods as tasks: one for each pod, or for each share of a card where a pod has several."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from optgap.models.placement.kubernetes.demands import Share
from optgap.models.placement.kubernetes.layout import Layout, Part
from optgap.models.placement.kubernetes.objects import Object
from optgap.models.placement.kubernetes.seats import seats


@dataclass
class Rows:
    """Tasks, a column each; `part` is the part of a node that a task is on."""

    names: list[str] = field(default_factory=list)
    pods: list[str] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    part: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    several: list[bool] = field(default_factory=list)

    @classmethod
    def of(cls, layout: Layout) -> Rows:
        """The tasks of all parts; a pod's CPU and memory go with its first share."""
        rows = cls()
        for p, part in enumerate(layout.parts):
            for name, pod, asked, held in part.members:
                for i, share in enumerate(held or [Share(0, 0)]):
                    rows.names.append(name if len(held) < 2 else f"{name}[{i}]")
                    rows.pods.append(name)
                    rows.objects.append(pod)
                    rows.part.append(p)
                    rows.cpu.append(asked.cpu_milli if i == 0 else 0)
                    rows.memory.append(asked.memory_mib if i == 0 else 0)
                    rows.shares.append(share)
                    rows.several.append(len(held) > 1)
        return rows

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """The tasks of each part that has any."""
        found: dict[int, list[int]] = defaultdict(list)
        for k, p in enumerate(self.part):
            found[p].append(k)
        return dict(found)

    def seats(self, parts: list[Part], anew: Collection[int] = ()) -> tuple[list[int], list[int]]:
        """GPUs (bits) of every task, and the GPUs that every part needs.

        Parameters
        ----------
        anew: parts where annotations are not trusted.
        """
        masks = [0] * len(self.part)
        gpus = [part.pool.gpus if part.pool else 0 for part in parts]
        for p, members in self.members.items():
            here = [k for k in members if self.shares[k].num_gpu]
            found, gpus[p] = seats([self.shares[k] for k in here], gpus[p], p not in anew)
            for k, mask in zip(here, found, strict=True):
                masks[k] = mask
        return masks, gpus

    def overfull(self, parts: list[Part], masks: list[int], gpus: list[int]) -> dict[int, Part]:
        """Parts that carry more than they have, with the CPU and memory that they carry."""
        found: dict[int, Part] = {}
        for p, here in self.members.items():
            part = parts[p]
            load: Counter[int] = Counter()
            for k in here:
                for g in range(masks[k].bit_length()):
                    load[g] += self.shares[k].gpu_milli * (masks[k] >> g & 1)
            cpu, memory = (sum(column[k] for k in here) for column in (self.cpu, self.memory))
            if (
                cpu > part.cpu_milli
                or memory > part.memory_mib
                or gpus[p] > (part.pool.gpus if part.pool else 0)
                or max(load.values(), default=0) > 1000
            ):
                most = max(part.cpu_milli, cpu), max(part.memory_mib, memory)
                found[p] = replace(part, cpu_milli=most[0], memory_mib=most[1])
        return found
