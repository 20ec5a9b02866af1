"""Which pods may be moved, why the others stay, and which nodes pods keep others out of."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from optgap.models.placement.arrays import BoolArray
from optgap.models.placement.kubernetes.objects import Object
from optgap.models.placement.kubernetes.selection import selected

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KEEP = ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict")
FREE_VOLUMES = {"configMap", "secret", "projected", "downwardAPI", "nfs"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CRITICAL = ("system-node-critical", "system-cluster-critical")


class Budgets:
    """Disruption budgets that allow none at the moment, by namespace."""

    def __init__(self, budgets: Iterable[Object]) -> None:
        self._spent: dict[str, list[tuple[str, Object]]] = defaultdict(list)
        for budget in budgets:
            meta, status = budget["metadata"], budget.get("status") or {}
            if int(status.get("disruptionsAllowed") or 0) < 1:
                selector = (budget.get("spec") or {}).get("selector") or {}
                self._spent[meta.get("namespace", "default")].append((meta["name"], selector))

    def holds(self, pod: Object) -> str:
        """The budget that keeps a pod where it is, or ""."""
        meta = pod["metadata"]
        labels = meta.get("labels") or {}
        for name, selector in self._spent.get(meta.get("namespace", "default"), ()):
            if selected(labels, selector):
                return name
        return ""


def on_every_node(pod: Object) -> bool:
    """Whether a pod is part of its node: of a DaemonSet, or a static pod's mirror."""
    meta = pod["metadata"]
    if "kubernetes.io/config.mirror" in (meta.get("annotations") or {}):
        return True
    return any(o.get("kind") in ("DaemonSet", "Node") for o in meta.get("ownerReferences") or [])


def why_stays(pod: Object, budgets: Budgets) -> str:
    """Why a pod must stay where it is; "" when it may move."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    notes = meta.get("annotations") or {}
    if meta.get("deletionTimestamp"):
        return "being deleted"
    if str(notes.get(SAFE, "")).lower() == "false" or any(
        str(notes.get(key, "")).lower() == "true" for key in KEEP
    ):
        return "annotated to stay"
    if spec.get("priorityClassName") in CRITICAL:
        return "critical for the system"
    if not any(o.get("controller") for o in meta.get("ownerReferences") or []):
        return "owned by no controller"
    safe = str(notes.get(SAFE, "")).lower() == "true"
    return (
        _volumes(spec, safe)
        or ("disruption budget" if budgets.holds(pod) else "")
        or _needs_others(spec)
    )


def _volumes(spec: Object, safe: bool) -> str:
    """Why a pod's volumes keep it where it is: only the volumes themselves say where they are."""
    found = ""
    for volume in spec.get("volumes") or []:
        kinds = {key for key in volume if key != "name"}
        if kinds & {"persistentVolumeClaim", "ephemeral"}:
            return "a claim that may be bound to a zone or node"
        if kinds & {"emptyDir", "hostPath"}:
            found = found or ("" if safe else "local storage")
        elif kinds - FREE_VOLUMES:
            found = f"a volume of another kind ({min(kinds)})"
    return found


def _needs_others(spec: Object) -> str:
    """Rules about other pods and ports, which the problem does not know."""
    affinity = spec.get("affinity") or {}
    if any((affinity.get(k) or {}).get(REQUIRED) for k in ("podAffinity", "podAntiAffinity")):
        return "affinity to other pods"
    spread = spec.get("topologySpreadConstraints") or []
    if any(rule.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for rule in spread):
        return "topology spread"
    ports = (p for c in spec.get("containers") or [] for p in c.get("ports") or [])
    return "host port" if spec.get("hostNetwork") or any(p.get("hostPort") for p in ports) else ""


class Repelling:
    """Required anti-affinity of pods that are there: whom it keeps out of which nodes.

    Pods with such terms stay, so the nodes are always the same.

    Parameters
    ----------
    nodes: the nodes' labels.
    pods: (namespace, spec, labels of its node) of every pod that is on a node.
    """

    def __init__(self, nodes: Sequence[Object], pods: Iterable[tuple[str, Object, Object]]) -> None:
        self._terms: list[tuple[set[str] | None, Any, BoolArray]] = []
        self._answers: dict[str, BoolArray] = {}
        self._every = np.ones(len(nodes), dtype=bool)
        for namespace, spec, where in pods:
            rule = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
            for term in rule.get(REQUIRED) or []:
                key = str(term.get("topologyKey", ""))
                domain = where.get(key)
                if domain is None:
                    continue
                inside = np.array([labels.get(key) == domain for labels in nodes], dtype=bool)
                spaces = {*(term.get("namespaces") or [])} or {namespace}
                everywhere = None if term.get("namespaceSelector") is not None else spaces
                self._terms.append((everywhere, term.get("labelSelector"), inside))

    def allowed(self, namespace: str, labels: Object) -> BoolArray:
        """(N,) the nodes that no pod keeps such a pod out of."""
        if not self._terms:
            return self._every
        key = json.dumps([namespace, labels], sort_keys=True)
        if key not in self._answers:
            fits = self._every.copy()
            for spaces, selector, inside in self._terms:
                if (spaces is None or namespace in spaces) and _selects(selector, labels):
                    fits &= ~inside
            self._answers[key] = fits
        return self._answers[key]


def _selects(selector: Any, labels: Object) -> bool:
    """Whether a term selects a pod; a selector that cannot be read selects every pod."""
    if selector is None:
        return False
    if not isinstance(selector, dict):
        return True
    expressions = selector.get("matchExpressions") or []
    if any(e.get("operator") not in ("In", "NotIn", "Exists", "DoesNotExist") for e in expressions):
        return True
    return selected(labels, selector)
