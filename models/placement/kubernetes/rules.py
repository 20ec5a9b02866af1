"""Which nodes each task may go to, as the placement problem and the moves know it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from optgap.models.placement.arrays import BoolArray
from optgap.models.placement.kubernetes.layout import Part
from optgap.models.placement.kubernetes.objects import Objects
from optgap.models.placement.kubernetes.rows import Rows
from optgap.models.placement.kubernetes.selection import Selection

MOST_GROUPS = 40
"""Groups of nodes that the problem tells apart by the pods they let in; rules that would make
more are kept by the moves alone, and the bound does without them."""


class Rules:
    """Which nodes each task may go to: GPU models as the problem knows them, and node sets.

    Nodes of a model that let different pods in become models of their own, so that bounds
    know of taints and selectors; that ends at `MOST_GROUPS`.
    """

    def __init__(self, objects: Objects, parts: list[Part], rows: Rows) -> None:
        self.parts = parts
        nodes = [objects.nodes[part.node] for part in parts]
        selection = Selection(nodes)
        self.node_sets: list[BoolArray] = []
        self._index: dict[bytes, int] = {}
        wanted: list[BoolArray] = []
        offers = {part.pool.offer for part in parts if part.pool}
        offering = {
            offer: np.array([part.pool is not None and part.pool.offer == offer for part in parts])
            for offer in offers
        }
        for pod, p, share in zip(rows.objects, rows.part, rows.shares, strict=True):
            allowed = selection.allowed(pod)
            pool = parts[p].pool
            if share.num_gpu and pool is not None:
                allowed = allowed & offering[pool.offer]
            wanted.append(allowed)
        gpu_rows = Counter(
            allowed.tobytes()
            for allowed, share in zip(wanted, rows.shares, strict=True)
            if share.num_gpu
        )
        self.models, exact = self._groups(gpu_rows)
        self.specs: list[str] = []
        self.node_set_of: list[int] = []
        known: dict[tuple[bytes, str], str] = {}
        for allowed, p, share in zip(wanted, rows.part, rows.shares, strict=True):
            key = allowed.tobytes()
            if not share.num_gpu:
                self.specs.append("")
                self.node_set_of.append(-1 if allowed.all() else self._set(allowed))
                continue
            own = self.models[p]
            if (key, own) not in known:
                names = {self.models[n] for n in np.flatnonzero(allowed).tolist()} | {own}
                known[key, own] = "|".join(sorted(names))
            self.specs.append(known[key, own])
            self.node_set_of.append(-1 if key in exact and allowed[p] else self._set(allowed))

    def _set(self, allowed: BoolArray) -> int:
        key = allowed.tobytes()
        if key not in self._index:
            self._index[key] = len(self.node_sets)
            self.node_sets.append(allowed)
        return self._index[key]

    def _groups(self, gpu_rows: Counter[bytes]) -> tuple[list[str], set[bytes]]:
        """Models with their groups, and the rules that these say exactly."""
        base = [part.pool.model if part.pool else "" for part in self.parts]
        keys: list[tuple[str, ...]] = [(model,) for model in base]
        exact: set[bytes] = set()
        for row, _count in gpu_rows.most_common():
            allowed = np.frombuffer(row, dtype=bool)
            split = [
                (*key, "+" if inside else "-") if key[0] else key
                for key, inside in zip(keys, allowed, strict=True)
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
