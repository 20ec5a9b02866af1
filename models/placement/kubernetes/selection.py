"""Taints and tolerations, selectors and affinity: what lets a pod into a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optgap.models.placement.kubernetes.objects import Object

CONDITION_TAINTS = "node.kubernetes.io/"
"""Taints that the control plane sets by a node's condition: such nodes are closed instead."""


def let_in(name: str, labels: Object, selector: Object, affinity: Object) -> bool:
    """Whether a node's name and labels satisfy a selector and required node affinity."""
    terms = affinity.get("nodeSelectorTerms") or []
    return all(
        label_matches(labels.get(key), {"operator": "In", "values": [value]})
        for key, value in selector.items()
    ) and (not affinity or any(_term(name, labels, term) for term in terms))


def _term(name: str, labels: Object, term: Object) -> bool:
    """All expressions of a term; an empty term matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    return (
        bool(expressions or fields)
        and all(label_matches(labels.get(str(e.get("key", ""))), e) for e in expressions)
        and all(
            (name in map(str, e.get("values") or [])) != (e.get("operator") == "NotIn")
            for e in fields
        )
    )


def tolerated(node: Object, tolerations: Sequence[Object]) -> bool:
    """Whether tolerations answer all taints of a node that keep pods out."""
    return all(
        _tolerated(taint, tolerations)
        for taint in (node.get("spec") or {}).get("taints") or []
        if taint.get("effect") in ("NoSchedule", "NoExecute")
        and not str(taint.get("key", "")).startswith(CONDITION_TAINTS)
    )


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


def repels(selector: Any, labels: Object) -> bool:
    """Whether an anti-affinity term selects a pod; one that cannot be read selects every pod."""
    if selector is None:
        return False
    if not isinstance(selector, dict):
        return True
    expressions = selector.get("matchExpressions") or []
    if any(e.get("operator") not in ("In", "NotIn", "Exists", "DoesNotExist") for e in expressions):
        return True
    return selected(labels, selector)


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
