"""Nodes with one kind of device each, as placement problems have them.

A node that offers several kinds (whole cards and MIG instances, say) becomes a *part* for each.
CPU and memory are divided: each part has what its own pods ask for, and of the rest a share by
its devices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from optgap.models.placement.cluster import MAX_CPU_MILLI, MAX_GPUS_PER_NODE
from optgap.models.placement.kubernetes.demands import Demand, Share, demand, offers, shares
from optgap.models.placement.kubernetes.devices import Pool, pools
from optgap.models.placement.kubernetes.moving import on_every_node
from optgap.models.placement.kubernetes.objects import Object, Objects
from optgap.models.placement.kubernetes.quantities import quantity
from optgap.models.result import Violation


@dataclass
class Part:
    """A node, or the devices of one kind in it.

    Parameters
    ----------
    node: the node's name; `name` is the part's own.
    pool: its devices, None without GPUs.
    cpu_milli, memory_mib, pods: what pods can have.
    closed: whether the node is cordoned.
    members: its pods, with what they ask for and their GPUs here.
    """

    node: str
    name: str
    pool: Pool | None
    cpu_milli: int = 0
    memory_mib: int = 0
    pods: int = 0
    closed: bool = False
    members: list[tuple[str, Object, Demand, list[Share]]] = field(default_factory=list)


@dataclass
class Layout:
    """Parts with their pods, and what was left out.

    Parameters
    ----------
    parts: in the order of the nodes.
    reasons: pods left out, by why.
    daemons: pods that belong to their nodes; what they ask for has been taken off these.
    violations: requests for what the node does not offer.
    warnings: what was odd.
    """

    parts: list[Part]
    reasons: Counter[str]
    daemons: int
    violations: list[Violation]
    warnings: list[str]


def lay_out(objects: Objects) -> Layout:
    """Divide nodes into parts and give every running pod its part.

    Raises
    ------
    ValueError: for a quantity that is none, naming the node or pod.
    """
    layout = Layout([], Counter(), 0, [], list(objects.warnings))
    by_node: dict[str, list[Part]] = {}
    lost = {name for name, node in objects.nodes.items() if not _ready(node)}
    for name, node in objects.nodes.items():
        if name not in lost:
            by_node[name] = _parts(name, node, layout.warnings)
    if lost:
        layout.warnings.append(f"left out: {_some(lost, 'node')} not ready")
    strange: set[str] = set()
    for name, pod in objects.pods.items():
        where = str((pod.get("spec") or {}).get("nodeName"))
        reason = _not_running(pod)
        if not reason and where in lost:
            reason = "on a node that is not ready"
        elif not reason and where not in by_node:
            reason = "on a node that is not in the file"
            strange.add(where)
        if reason:
            layout.reasons[reason] += 1
        else:
            _seat(layout, name, pod, by_node[where])
    if strange:
        layout.warnings.append(
            f"pods on {_some(strange, 'node')} that the file does not have: "
            "an old or partial file, or two clusters mixed"
        )
    for parts in by_node.values():
        _divide(parts)
        layout.parts += parts
    return layout


def _ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return all(c.get("status") == "True" for c in conditions if c.get("type") == "Ready")


def _some(names: set[str], what: str) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return f"{what}{'s' if len(shown) > 1 else ''} {', '.join(shown[:3])}{more}"


def _parts(name: str, node: Object, warnings: list[str]) -> list[Part]:
    status, spec = node.get("status") or {}, node.get("spec") or {}
    offered = status.get("allocatable") or status.get("capacity") or {}
    if "allocatable" not in status:
        warnings.append(f"node {name} tells no allocatable amounts: its capacity counts")
    try:
        cpu = int(quantity(offered.get("cpu", "0")) * 1000)
        memory = int(quantity(offered.get("memory", "0")) // 2**20)
        room = min(10**6, int(quantity(offered.get("pods", "110"))))
    except ValueError as error:
        raise ValueError(f"node {name}: {error}") from None
    if cpu > MAX_CPU_MILLI:
        raise ValueError(f"node {name}: {cpu} milli-vCPU, more than {MAX_CPU_MILLI}")
    closed = bool(spec.get("unschedulable"))
    found = []
    for pool in pools(node):
        if pool.gpus > MAX_GPUS_PER_NODE:
            warnings.append(
                f"left out: {pool.gpus} devices of node {name}, more than {MAX_GPUS_PER_NODE}"
            )
            continue
        found.append(pool)
    if not found:
        return [Part(name, name, None, cpu, memory, room, closed)]
    first = Part(name, name, found[0], cpu, memory, room, closed)
    others = [Part(name, f"{name} ({p.model})", p, pods=room, closed=closed) for p in found[1:]]
    return [first, *others]


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


def _seat(layout: Layout, name: str, pod: Object, parts: list[Part]) -> None:
    """Give a pod its part, or take it off its node when it is a part of that."""
    try:
        asked = demand(pod)
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"pod {name}: {error}") from None
    if on_every_node(pod) and not asked.resource:
        layout.daemons += 1
        parts[0].cpu_milli = max(0, parts[0].cpu_milli - asked.cpu_milli)
        parts[0].memory_mib = max(0, parts[0].memory_mib - asked.memory_mib)
        parts[0].pods -= 1
        return
    if not asked.resource:
        parts[0].members.append((name, pod, asked, []))
        return
    for part in parts:
        if part.pool is not None and offers(part.pool, asked.resource):
            part.members.append((name, pod, asked, shares(pod, asked, part.pool)))
            return
    layout.reasons["asks for a GPU resource that its node does not offer"] += 1
    where = f"{name} on {parts[0].node}"
    layout.violations.append(
        Violation("a resource that the node offers", where, asked.resource, "none of it")
    )


def _divide(parts: list[Part]) -> None:
    """Divide CPU and memory of a node among its parts."""
    if len(parts) == 1:
        return
    first, devices = parts[0], [part.pool.gpus if part.pool else 0 for part in parts]
    for attribute in ("cpu_milli", "memory_mib"):
        own = [sum(getattr(m[2], attribute) for m in part.members) for part in parts]
        rest = max(0, getattr(first, attribute) - sum(own))
        for part, asked, count in zip(parts, own, devices, strict=True):
            setattr(part, attribute, asked + rest * count // max(1, sum(devices)))
