"""The nodes that a pod may be on: taints and tolerations, selectors and node affinity."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from optgap.models.placement.arrays import BoolArray
from optgap.models.placement.kubernetes.objects import Object

CONDITION_TAINTS = "node.kubernetes.io/"
"""Taints that the control plane sets by a node's condition: such nodes are closed instead."""


class Selection:
    """Answers for many pods; pods with the same rules share an answer.

    Parameters
    ----------
    nodes: the nodes.
    """

    def __init__(self, nodes: Sequence[Object]) -> None:
        self.names = np.array([node["metadata"]["name"] for node in nodes])
        self.labels = [node["metadata"].get("labels") or {} for node in nodes]
        self.taints = [
            [
                taint
                for taint in (node.get("spec") or {}).get("taints") or []
                if taint.get("effect") in ("NoSchedule", "NoExecute")
                and not str(taint.get("key", "")).startswith(CONDITION_TAINTS)
            ]
            for node in nodes
        ]
        self._columns: dict[str, list[str | None]] = {}
        self._answers: dict[str, BoolArray] = {}
        self._tainted: dict[str, list[int]] = {}
        for n, taints in enumerate(self.taints):
            if taints:
                key = json.dumps(taints, sort_keys=True)
                self._tainted.setdefault(key, []).append(n)

    def allowed(self, pod: Object) -> BoolArray:
        """(N,) the nodes whose labels and taints let the pod in."""
        spec = pod.get("spec") or {}
        affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ) or {}
        tolerations = spec.get("tolerations") or []
        selector = spec.get("nodeSelector") or {}
        key = json.dumps([selector, affinity, tolerations], sort_keys=True)
        if key not in self._answers:
            fits = np.ones(len(self.names), dtype=bool)
            for label, value in selector.items():
                fits &= self._matches({"key": label, "operator": "In", "values": [value]})
            terms = affinity.get("nodeSelectorTerms") or []
            if affinity:
                fits &= np.logical_or.reduce(
                    [np.zeros(len(self.names), bool), *(self._term(term) for term in terms)]
                )
            for nodes in self._tainted.values():
                if not all(_tolerated(taint, tolerations) for taint in self.taints[nodes[0]]):
                    fits[nodes] = False
            self._answers[key] = fits
        return self._answers[key]

    def _term(self, term: Object) -> BoolArray:
        """All expressions of a term; an empty term matches nothing."""
        expressions = term.get("matchExpressions") or []
        fields = term.get("matchFields") or []
        fits = np.full(len(self.names), bool(expressions or fields))
        for expression in expressions:
            fits &= self._matches(expression)
        for expression in fields:
            inside = np.isin(self.names, [str(v) for v in expression.get("values") or []])
            fits &= ~inside if expression.get("operator") == "NotIn" else inside
        return fits

    def _matches(self, expression: Object) -> BoolArray:
        key = str(expression.get("key", ""))
        if key not in self._columns:
            self._columns[key] = [labels.get(key) for labels in self.labels]
        return np.array([label_matches(v, expression) for v in self._columns[key]], dtype=bool)


def label_matches(value: str | None, expression: Object) -> bool:
    """Whether a label's value (None: not there) satisfies a selector requirement."""
    operator, values = expression.get("operator"), expression.get("values") or []
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    try:
        number, limit = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > limit if operator == "Gt" else operator == "Lt" and number < limit


def selected(labels: Object, selector: Object) -> bool:
    """Whether a label selector (of a disruption budget) chooses an object."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        label_matches(labels.get(str(e.get("key", ""))), e)
        for e in selector.get("matchExpressions") or []
    )


def _tolerated(taint: Object, tolerations: Sequence[Object]) -> bool:
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            continue
        key = toleration.get("key")
        if key not in (None, "", taint.get("key")):
            continue
        if toleration.get("operator", "Equal") == "Exists":
            return True
        if key and (toleration.get("value") or "") == (taint.get("value") or ""):
            return True
    return False
