"""Which nodes each pod may go to, as the placement problem and the moves know it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from optgap.models.placement.arrays import BoolArray, FloatArray
from optgap.models.placement.kubernetes.devices import Node
from optgap.models.placement.kubernetes.moving import Repelling
from optgap.models.placement.kubernetes.objects import Objects
from optgap.models.placement.kubernetes.requests import Pod
from optgap.models.placement.kubernetes.selection import Selection

MOST_GROUPS = 40
"""Groups of nodes that the problem tells apart by the pods they let in; rules that would make
more are kept by the moves alone, and the bound does without them."""
SAME = ("kubernetes.io/arch", "kubernetes.io/os")


class Rules:
    """The nodes that pods may go to: by labels, taints, other pods, devices and resources.

    Parameters
    ----------
    objects, nodes: the cluster.
    """

    def __init__(self, objects: Objects, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._selection = Selection([node.object for node in nodes])
        self._repelling = Repelling(
            [node.labels for node in nodes],
            [
                (pod.get("metadata", {}).get("namespace", "default"), spec, where)
                for pod in objects.pods.values()
                if (spec := pod.get("spec") or {}).get("nodeName") in objects.nodes
                and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
                and (
                    where := objects.nodes[spec["nodeName"]]["metadata"].get("labels") or {}
                ) is not None
            ],
        )  # fmt: skip
        self._there: dict[str, FloatArray] = {}
        self._platform: dict[tuple[object, ...], BoolArray] = {}

    def allowed(self, pod: Pod, node: Node | None) -> BoolArray:
        """(N,) where a pod may go, whatever else is there; `node` is where it is."""
        meta = pod.object["metadata"]
        fits = self._selection.allowed(pod.object) & self._repelling.allowed(
            meta.get("namespace", "default"), meta.get("labels") or {}
        )
        for name, amount in pod.asks.items():
            if name not in self._there:
                self._there[name] = np.array(
                    [float(n.allocatable.get(name, 0)) for n in self.nodes]
                )
            fits = fits & (self._there[name] >= amount)
        if node is None:
            return fits
        key = tuple(sorted(pod.keys)), *(node.labels.get(label) for label in SAME)
        if key not in self._platform:
            self._platform[key] = np.array(
                [
                    pod.keys <= n.devices.keys
                    and all(n.labels.get(label) == node.labels.get(label) for label in SAME)
                    for n in self.nodes
                ],
                dtype=bool,
            )
        return fits & self._platform[key]


class NodeSets:
    """Sets of nodes, each once, by number."""

    def __init__(self) -> None:
        self.sets: list[BoolArray] = []
        self._index: dict[bytes, int] = {}

    def number(self, allowed: BoolArray) -> int:
        """The number of a set; -1 for that of all nodes."""
        if allowed.all():
            return -1
        key = allowed.tobytes()
        if key not in self._index:
            self._index[key] = len(self.sets)
            self.sets.append(allowed)
        return self._index[key]


def grouped(
    base: Sequence[str], wanted: Collection[tuple[BoolArray, int]]
) -> tuple[list[str], set[bytes]]:
    """Models of nodes, divided by the tasks that nodes let in, and the rules these say exactly.

    Nodes of a model that let different tasks in become models of their own, so that bounds
    know of taints and selectors; that ends at `MOST_GROUPS`.

    Parameters
    ----------
    base: the nodes' models.
    wanted: where tasks with GPUs may go, and how many tasks these are.
    """
    keys: list[tuple[str, ...]] = [(model,) for model in base]
    exact: set[bytes] = set()
    for allowed, _count in sorted(wanted, key=lambda row: -row[1]):
        split = [
            (*key, "+" if inside else "-") if key[0] else key
            for key, inside in zip(keys, allowed, strict=True)
        ]
        if len(set(split)) <= max(MOST_GROUPS, len(set(base))):
            keys = split
            exact.add(allowed.tobytes())
    numbers: dict[str, dict[tuple[str, ...], int]] = {}
    for key in keys:
        known = numbers.setdefault(key[0], {})
        known.setdefault(key, len(known) + 1)
    models = [
        f"{key[0]} #{numbers[key[0]][key]}" if key[0] and len(numbers[key[0]]) > 1 else key[0]
        for key in keys
    ]
    return models, exact


def counted(rows: Sequence[BoolArray]) -> list[tuple[BoolArray, int]]:
    """Equal rows once each, with their number."""
    found = Counter(row.tobytes() for row in rows)
    return [(np.frombuffer(key, dtype=bool), count) for key, count in found.items()]
