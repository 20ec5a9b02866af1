"""Rules on the nodes that each pod may go to, and on the pods that stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from optgap.models.placement.arrays import BoolArray
from optgap.models.placement.kubernetes.devices import Node
from optgap.models.placement.kubernetes.objects import Object, Objects
from optgap.models.placement.kubernetes.requests import Pod

SAME = ("kubernetes.io/arch", "kubernetes.io/os")
CONDITION_TAINTS = "node.kubernetes.io/"
"""Taints that the control plane sets for a node's condition; such nodes are closed."""
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KEEP = ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict")
CLAIMS, LOCAL = {"persistentVolumeClaim", "ephemeral"}, {"emptyDir", "hostPath"}
KNOWN = CLAIMS | LOCAL | {"configMap", "secret", "projected", "downwardAPI", "nfs"}
"""Kinds of volumes; the others that are known are everywhere."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CRITICAL = ("system-node-critical", "system-cluster-critical")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class Rules:
    """Nodes that pods may go to, by labels, taints, other pods, devices and resources.

    Parameters
    ----------
    objects, nodes: the cluster.
    """

    def __init__(self, objects: Objects, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._open = np.array([not node.closed for node in nodes])
        self._known: dict[str, BoolArray] = {}
        self._domains: dict[str, dict[str, set[str]]] = {}
        self._repelling = list(_repelling(objects))

    def allowed(self, pod: Pod, node: Node) -> BoolArray:
        """Return the nodes (N,) that a pod may go to, however full; `node` is its present one."""
        spec, meta = pod.object.get("spec") or {}, pod.object["metadata"]
        affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
        selector, tolerations = spec.get("nodeSelector") or {}, spec.get("tolerations") or []
        barred = self._barred(meta.get("namespace", "default"), meta.get("labels") or {})
        same = [node.labels.get(label) for label in SAME]
        asks = {name: a for name, a in pod.asks.items() if "/" in name}  # moves check the others
        return (
            self._open
            & self._where([selector, affinity], lambda n: _let_in(n, selector, affinity))
            & self._where([tolerations], lambda n: _tolerated(n.object, tolerations))
            & self._where(
                ["", *sorted((key, *sorted(domains)) for key, domains in barred.items())],
                lambda n: not any(n.labels.get(key) in found for key, found in barred.items()),
            )
            & self._where(
                ["", asks, *sorted(pod.keys), same],
                lambda n: (
                    all(n.allocatable.get(name, 0) >= a for name, a in asks.items())
                    and pod.keys <= n.devices.keys
                    and [n.labels.get(label) for label in SAME] == same
                ),
            )
        )

    def _where(self, key: list[Any], test: Callable[[Node], bool]) -> BoolArray:
        """Return the nodes (N,) that pass a test; `key` identifies the test."""
        name = json.dumps(key, sort_keys=True)
        if name not in self._known:
            self._known[name] = np.array([test(node) for node in self.nodes], dtype=bool)
        return self._known[name]

    def _barred(self, namespace: str, labels: Object) -> dict[str, set[str]]:
        """Return the topology domains that other pods close to such a pod, by key."""
        name = json.dumps([namespace, labels], sort_keys=True) if self._repelling else ""
        if name in self._domains:
            return self._domains[name]
        found: dict[str, set[str]] = self._domains.setdefault(name, {})
        for spaces, selector, key, domain in self._repelling:
            if (spaces is None or namespace in spaces) and _repels(selector, labels):
                found.setdefault(key, set()).add(domain)
        return found


def _repelling(objects: Objects) -> Iterator[tuple[set[str] | None, Any, str, str]]:
    """Yield namespaces, selector and topology domain of the pods' required anti-affinity.

    Pods with such terms stay, so the domains never change.
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


# -- taints and tolerations, selectors and affinity ---------------------------------------------


def _let_in(node: Node, selector: Object, affinity: Object) -> bool:
    """Tell whether a node's name and labels satisfy a selector and required node affinity."""
    terms = affinity.get("nodeSelectorTerms") or []
    return selected(node.labels, {"matchLabels": selector}) and (
        not affinity or any(_term(node, term) for term in terms)
    )


def _term(node: Node, term: Object) -> bool:
    """Tell whether a node satisfies all expressions of a term; a term without any matches nothing.

    Terms with fields match nothing, either: but for DaemonSets nobody writes these.
    """
    expressions = term.get("matchExpressions")
    fits = selected(node.labels, {"matchExpressions": expressions})
    return bool(expressions) and not term.get("matchFields") and fits


def _label_matches(value: str | None, expression: Object) -> bool:
    """Tell whether a label's value (None if missing) satisfies a selector requirement.

    Nothing satisfies other operators, such as Gt.
    """
    operator, values = expression.get("operator"), expression.get("values") or []
    there = value is not None and (value in values or operator in OPERATORS[2:])
    return operator in OPERATORS and there == (operator in ("In", "Exists"))


def selected(labels: Object, selector: Object) -> bool:
    """Tell whether a label selector chooses an object."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _label_matches(labels.get(str(e.get("key", ""))), e)
        for e in selector.get("matchExpressions") or []
    )


def _repels(selector: Any, labels: Object) -> bool:
    """Tell whether an anti-affinity term selects a pod; an unreadable term selects every pod."""
    if selector is None:
        return False
    if not isinstance(selector, dict):
        return True
    expressions = selector.get("matchExpressions") or []
    unknown = any(e.get("operator") not in OPERATORS for e in expressions)
    return unknown or selected(labels, selector)


def _tolerated(node: Object, tolerations: Sequence[Object]) -> bool:
    """Tell whether tolerations cover all taints of a node that keep pods out."""

    def answers(taint: Object, toleration: Object) -> bool:
        key = toleration.get("key")
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            return False
        if key not in (None, "", taint.get("key")):
            return False
        same = bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")
        return toleration.get("operator", "Equal") == "Exists" or same

    return all(
        any(answers(taint, toleration) for toleration in tolerations)
        for taint in (node.get("spec") or {}).get("taints") or []
        if taint.get("effect") in ("NoSchedule", "NoExecute")
        and not str(taint.get("key", "")).startswith(CONDITION_TAINTS)
    )


# -- which pods may be moved ----------------------------------------------------------------------


def spent(budgets: Iterable[Object]) -> list[Object]:
    """Return the disruption budgets that allow no disruption at the moment."""
    return [b for b in budgets if int((b.get("status") or {}).get("disruptionsAllowed") or 0) < 1]


def on_every_node(pod: Object) -> bool:
    """Tell whether a pod is part of its node: of a DaemonSet, or a static pod's mirror."""
    meta = pod["metadata"]
    owners = [o.get("kind") for o in meta.get("ownerReferences") or []]
    mirrored = "kubernetes.io/config.mirror" in (meta.get("annotations") or {})
    return mirrored or "DaemonSet" in owners or "Node" in owners


def why_stays(pod: Object, budgets: Iterable[Object]) -> str:
    """Return why a pod must stay; "" if it may move."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    notes = {key: str(text).lower() for key, text in (meta.get("annotations") or {}).items()}
    namespace, affinity = meta.get("namespace", "default"), spec.get("affinity") or {}
    volumes = {key for volume in spec.get("volumes") or [] for key in volume} - {"name"}
    spread = spec.get("topologySpreadConstraints") or []
    ports = [port for c in spec.get("containers") or [] for port in c.get("ports") or []]
    reasons = {
        "being deleted": meta.get("deletionTimestamp"),
        "annotated to stay": notes.get(SAFE) == "false" or "true" in map(notes.get, KEEP),
        "critical for the system": spec.get("priorityClassName") in CRITICAL,
        "owned by no controller": not any(
            owner.get("controller") for owner in meta.get("ownerReferences") or []
        ),
        # volumes alone know where they are
        "a claim that may be bound to a zone or node": volumes & CLAIMS,
        "local storage": volumes & LOCAL and notes.get(SAFE) != "true",
        f"a volume of another kind ({', '.join(sorted(volumes - KNOWN))})": volumes - KNOWN,
        "disruption budget": any(
            budget["metadata"].get("namespace", "default") == namespace
            and selected(meta.get("labels") or {}, (budget.get("spec") or {}).get("selector") or {})
            for budget in budgets
        ),
        # rules about other pods and ports, which the problem cannot express
        "affinity to other pods": any(
            (affinity.get(kind) or {}).get(REQUIRED) for kind in ("podAffinity", "podAntiAffinity")
        ),
        "topology spread": any(
            rule.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for rule in spread
        ),
        "host port": spec.get("hostNetwork") or any(port.get("hostPort") for port in ports),
    }
    return next((why for why, found in reasons.items() if found), "")
