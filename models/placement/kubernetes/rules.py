"""Which nodes each pod may go to, as the placement problem and the moves know it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from optgap.models.placement.arrays import BoolArray, FloatArray
from optgap.models.placement.kubernetes.devices import Node
from optgap.models.placement.kubernetes.moving import REQUIRED
from optgap.models.placement.kubernetes.objects import Object, Objects
from optgap.models.placement.kubernetes.requests import Pod
from optgap.models.placement.kubernetes.selection import let_in, repels, tolerated

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
        self._known: dict[str, BoolArray] = {}
        self._there: dict[str, FloatArray] = {}
        self._domains: dict[str, dict[str, set[str]]] = {}
        self._repelling = list(_repelling(objects))

    def allowed(self, pod: Pod, node: Node) -> BoolArray:
        """(N,) where a pod may go, whatever else is there; `node` is where it is."""
        spec, meta = pod.object.get("spec") or {}, pod.object["metadata"]
        affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
        selector, tolerations = spec.get("nodeSelector") or {}, spec.get("tolerations") or []
        barred = self._barred(meta.get("namespace", "default"), meta.get("labels") or {})
        fits = (
            self._where(
                [selector, affinity], lambda n: let_in(n.name, n.labels, selector, affinity)
            )
            & self._where([tolerations], lambda n: tolerated(n.object, tolerations))
            & self._where(
                ["", *sorted((key, *sorted(domains)) for key, domains in barred.items())],
                lambda n: not any(n.labels.get(key) in found for key, found in barred.items()),
            )
        )
        for name, amount in pod.asks.items():
            if name in ("cpu", "memory"):  # the problem's and the moves' own
                continue
            if name not in self._there:
                there = [float(n.allocatable.get(name, 0)) for n in self.nodes]
                self._there[name] = np.array(there)
            fits = fits & (self._there[name] >= amount)
        same = [node.labels.get(label) for label in SAME]
        return fits & self._where(
            ["", "", *sorted(pod.keys), same],
            lambda n: (
                pod.keys <= n.devices.keys and [n.labels.get(label) for label in SAME] == same
            ),
        )

    def _where(self, key: list[Any], test: Callable[[Node], bool]) -> BoolArray:
        """(N,) the nodes that pass a test, which the key stands for."""
        name = json.dumps(key, sort_keys=True)
        if name not in self._known:
            self._known[name] = np.array([test(node) for node in self.nodes], dtype=bool)
        return self._known[name]

    def _barred(self, namespace: str, labels: Object) -> dict[str, set[str]]:
        """The topology domains that pods keep such a pod out of, by key."""
        name = json.dumps([namespace, labels], sort_keys=True) if self._repelling else ""
        if name in self._domains:
            return self._domains[name]
        found: dict[str, set[str]] = self._domains.setdefault(name, {})
        for spaces, selector, key, domain in self._repelling:
            if (spaces is None or namespace in spaces) and repels(selector, labels):
                found.setdefault(key, set()).add(domain)
        return found


def _repelling(objects: Objects) -> Iterator[tuple[set[str] | None, Any, str, str]]:
    """Required anti-affinity of pods that are there: namespaces, selector, topology domain.

    Pods with such terms stay, so the domains are always the same.
    """
    for pod in objects.pods.values():
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        where = objects.nodes.get(str(spec.get("nodeName")))
        if where is None or status.get("phase") in ("Succeeded", "Failed"):
            continue
        rule = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
        for term in rule.get(REQUIRED) or []:
            key = str(term.get("topologyKey", ""))
            domain = (where["metadata"].get("labels") or {}).get(key)
            own = {*(term.get("namespaces") or [])} or {pod["metadata"].get("namespace", "default")}
            spaces = None if term.get("namespaceSelector") is not None else own
            if domain is not None:
                yield spaces, term.get("labelSelector"), key, domain


def grouped(base: Sequence[str], wanted: Counter[bytes]) -> tuple[list[str], set[bytes]]:
    """Models of nodes, divided by the tasks that nodes let in, and the rules these say exactly.

    Nodes of a model that let different tasks in become models of their own, so that bounds
    know of taints and selectors; that ends at `MOST_GROUPS`.

    Parameters
    ----------
    base: the nodes' models.
    wanted: how many tasks with GPUs may go where, (N,) as bytes.
    """
    keys: list[tuple[str, ...]] = [(model,) for model in base]
    exact: set[bytes] = set()
    for row, _count in wanted.most_common():
        split = [
            (*key, "+" if inside else "-") if key[0] else key
            for key, inside in zip(keys, np.frombuffer(row, dtype=bool), strict=True)
        ]
        if len(set(split)) <= max(MOST_GROUPS, len(set(base))):
            keys = split
            exact.add(row)
    numbers: dict[str, dict[tuple[str, ...], int]] = {}
    for key in keys:
        known = numbers.setdefault(key[0], {})
        known.setdefault(key, len(known) + 1)
    models = [
        f"{key[0]} #{numbers[key[0]][key]}" if key[0] and len(numbers[key[0]]) > 1 else key[0]
        for key in keys
    ]
    return models, exact
