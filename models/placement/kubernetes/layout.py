"""The nodes that are ready, with what they have, and the pods on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from optgap.models.placement.cluster import MAX_CPU_MILLI
from optgap.models.placement.kubernetes.devices import (
    Devices,
    Node,
    amounts,
    clipped,
    examine,
    family,
    notes,
)
from optgap.models.placement.kubernetes.moving import on_every_node, spent, why_stays
from optgap.models.placement.kubernetes.objects import Object, Objects
from optgap.models.placement.kubernetes.power import Figures
from optgap.models.placement.kubernetes.requests import Pod, requested
from optgap.models.result import Violation

NOT_UNDERSTOOD = "on a node whose accelerators are not understood"
PART = "part of its node"
PLAIN = ("plain", "other")


@dataclass
class Layout:
    """Nodes with their pods, and what was left out.

    Parameters
    ----------
    nodes: in the order of the file.
    reasons: pods left out, by why.
    violations: nodes that hold more than can be allocated.
    warnings: what was odd.
    """

    nodes: list[Node]
    reasons: Counter[str]
    violations: list[Violation]
    warnings: list[str]


def lay_out(objects: Objects, figures: Figures, plain: Collection[str]) -> Layout:
    """Give every pod its node, and every node a verdict on its accelerators.

    Raises
    ------
    ValueError: for a quantity that is none, naming the node or pod.
    """
    layout = Layout([], Counter(), [], list(objects.warnings))
    lost = {name for name, node in objects.nodes.items() if not _ready(node)}
    nodes = {
        n: _node(n, node, figures, layout) for n, node in objects.nodes.items() if n not in lost
    }
    layout.nodes = list(nodes.values())
    if lost:
        layout.warnings.append(f"left out: {_some(lost, 'node')} not ready")
    strange: set[str] = set()
    for name, pod in objects.pods.items():
        where = str((pod.get("spec") or {}).get("nodeName"))
        reason = _not_running(pod)
        if not reason and where in lost:
            reason = "on a node that is not ready"
        elif not reason and where not in nodes:
            reason = "on a node that is not in the file"
            strange.add(where)
        try:
            asks = {} if reason == "finished" else requested(pod)
            found = Pod(name, pod, {**asks, "pods": 1})
        except (ValueError, AttributeError, TypeError) as error:
            raise ValueError(f"pod {name}: {error}") from None
        if not reason:
            found.on_every_node = on_every_node(pod)
            nodes[where].pods.append(found)
            continue
        layout.reasons[reason] += 1
    if strange:
        layout.warnings.append(
            f"pods on {_some(strange, 'node')} that the file does not have: "
            "an old or partial file, or two clusters mixed"
        )
    budgets = spent(objects.budgets)
    for node in layout.nodes:
        node.devices = examine(node, plain)
        _close(layout, node)
        for one in node.pods:
            one.stays = _stays(one, node, budgets, plain)
    layout.warnings += notes(layout.nodes)
    others = Counter(
        name for node in layout.nodes for pod in node.pods for name in pod.asks
        if family(name, plain) == "other" and not pod.on_every_node
    )  # fmt: skip
    layout.warnings += [
        f"{count:,} pod{'s' if count > 1 else ''} with {name} must stay: it might draw power "
        f"(--set plain={name} if not)"
        for name, count in others.items()
    ]
    return layout


def _ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return all(c.get("status") == "True" for c in conditions if c.get("type") == "Ready")


def _some(names: set[str], what: str) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return f"{what}{'s' if len(shown) > 1 else ''} {', '.join(shown[:3])}{more}"


def _node(name: str, node: Object, figures: Figures, layout: Layout) -> Node:
    status = node.get("status") or {}
    try:
        capacity, there = (amounts(status.get(key)) for key in ("capacity", "allocatable"))
    except ValueError as error:
        raise ValueError(f"node {name}: {error}") from None
    if "allocatable" not in status:
        layout.warnings.append(f"node {name} tells no allocatable amounts: its capacity counts")
        there = dict(capacity)
    for resource in ("cpu", "memory"):
        capacity[resource] = max(capacity.get(resource, 0), there.get(resource, 0))
    if capacity["cpu"] > MAX_CPU_MILLI:
        raise ValueError(f"node {name}: {capacity['cpu']} milli-vCPU, more than {MAX_CPU_MILLI}")
    there["pods"] = min(10**6, there.get("pods", 110))
    closed = bool((node.get("spec") or {}).get("unschedulable"))
    return Node(name, node, capacity, there, figures, closed)


def _not_running(pod: Object) -> str:
    """Why a pod holds nothing on a node; "" when it does."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return "finished"
    if (pod.get("spec") or {}).get("nodeName"):
        return ""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"pending ({condition.get('reason', 'not scheduled')})"
    return "pending (no scheduler has looked at it)"


def _close(layout: Layout, node: Node) -> None:
    """Find what a node holds more of than can be allocated; such a node takes nothing."""
    devices = node.devices
    over = [
        (name, node.held(name), node.allocatable.get(name, 0))
        for name in {name: None for pod in node.pods for name in pod.asks}
        if devices.verdict != "unknown" or family(name) in PLAIN
    ]
    found = [(name, held, limit) for name, held, limit in over if held > limit]
    clips = [("a card", most, units) for most, units in clipped(node)]
    found = found or clips
    layout.violations += [
        Overfull("held", f"{_called(name, devices)} of {node.name}", held, limit)
        for name, held, limit in found
    ]
    node.closed = node.closed or bool(found) or devices.verdict == "unknown"


def _called(name: str, devices: Devices) -> str:
    """A resource in a reader's words."""
    return "cards" if family(name) == "nvidia" and (name,) in devices.keys else name


class Overfull(Violation):
    """More is held on a node than can be allocated."""

    def __str__(self) -> str:
        return f"{self.where}: {self.found} held, {self.limit} allocatable"


def _stays(pod: Pod, node: Node, budgets: list[Object], plain: Collection[str]) -> str:
    if pod.on_every_node:
        return PART
    if node.devices.verdict == "unknown":
        return NOT_UNDERSTOOD
    if node.held("cpu") > node.capacity["cpu"]:
        return "on a node that has less CPU than is asked for"
    if pod.stays:
        return pod.stays
    if len(pod.keys) > 1:
        return "asks for two kinds of device"
    if any(family(name, plain) == "other" for name in pod.asks):
        return "asks for a resource that might draw power"
    return why_stays(pod.object, budgets)
