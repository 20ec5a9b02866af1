"""Reader that turns the objects of a cluster into a placement problem and the pods' nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.cluster import MAX_CPU_MILLI, Cluster
from optgap.models.placement.kubernetes.devices import (
    UNKNOWN_W,
    WHOLE,
    Figures,
    Node,
    amounts,
    examine,
    family,
    notes,
    overheld,
)
from optgap.models.placement.kubernetes.objects import COMMAND, Object, Objects, read_objects
from optgap.models.placement.kubernetes.requests import Pod, requested
from optgap.models.placement.kubernetes.rules import Rules, on_every_node, spent, why_stays
from optgap.models.placement.migrations import Further, MigrationProblem
from optgap.models.placement.openb import PUBLISHED
from optgap.models.placement.power import PowerModel
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.tasks import TargetWorkload, Tasks
from optgap.models.reading import Path
from optgap.models.result import Violation

MIB = 2**20
NOT_UNDERSTOOD = "on a node whose accelerators are not understood"
PART = "part of its node"


@dataclass
class KubernetesReading:
    """Cluster as it was read.

    Parameters
    ----------
    records: number of pods in the file; `used` of them are in the problem.
    warnings: remarks about odd values.
    nodes: ready nodes with their pods, in the order of the file and of the problem.
    reasons: number of pods left out, by reason.
    violations: resources of which nodes hold more than can be allocated.
    migration: the problem, the present node of every pod, and which pods may move.
    stays: number of pods that must stay, by reason.
    assumed: GPU products of unknown power.
    pods: (T,) the pod of each task; "" for all pods that belong to a node together.
    """

    records: int
    warnings: list[str]
    nodes: list[Node] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    migration: MigrationProblem = field(init=False)
    used: int = 0
    stays: Counter[str] = field(default_factory=Counter)
    assumed: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()


def read_kubernetes(
    path: Path, power: PowerModel = PUBLISHED, plain: Collection[str] = ()
) -> KubernetesReading:
    """Read the output of ``kubectl get nodes,pods -A -o json``; ``-`` is standard input.

    Parameters
    ----------
    path: the file; disruption budgets are respected if the file has these, too.
    power: power by GPU product, as given or of the built-in figures.
    plain: further resources that draw no power.

    Raises
    ------
    InputError: for a file of another kind, or a text that is no quantity; if no pod runs.
    """
    source = str(path)
    objects = read_objects(path)
    figures = Figures(power)
    reading = KubernetesReading(len(objects.pods), list(objects.warnings))
    try:
        _lay_out(reading, objects, figures, plain)
        everyone = [pod for node in reading.nodes for pod in node.pods]
        if not everyone:
            told = ", ".join(f"{n} {reason}" for reason, n in reading.reasons.items())
            raise InputError(source, "", NoQuote(f"no running pods ({told})"), "at least one")
        pods = _tasks(reading.nodes, Rules(objects, reading.nodes))
        reading.migration = _migration(source, reading.nodes, pods)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(source, "", NoQuote(str(error)), "Kubernetes quantities") from None
    except (AttributeError, KeyError, TypeError) as error:  # text where an object should be, say
        found = NoQuote(f"objects of another shape ({error})")
        raise InputError(source, "", found, COMMAND) from error
    counted_too = {n.devices.product for n in reading.nodes if n.devices.verdict == "exact"}
    reading.assumed = tuple(product for product in figures.assumed if product in counted_too)
    reading.warnings += [
        f"no power figures for {product!r}: {UNKNOWN_W:g} W assumed (--devices FILE)"
        for product in reading.assumed
    ]
    reading.used = len(everyone)
    reading.stays = Counter(pod.stays for pod in everyone if pod.stays)
    reading.pods = tuple(pod.name if pod.object else "" for pod in pods)
    return reading


# -- nodes with their pods, and what is left out ---------------------------------------------------


def _lay_out(
    reading: KubernetesReading, objects: Objects, figures: Figures, plain: Collection[str]
) -> None:
    """Give every pod its node, and every node a verdict on its accelerators.

    Raises
    ------
    ValueError: for a text that is no quantity, naming the node or pod.
    """
    said, strange = reading.warnings, set[str]()
    lost = {name for name, node in objects.nodes.items() if not _ready(node)}
    nodes = {n: _node(n, node, figures) for n, node in objects.nodes.items() if n not in lost}
    reading.nodes += nodes.values()
    if lost:
        said.append(f"left out: {_some(lost)} not ready")
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
        except (ValueError, AttributeError, TypeError) as error:
            raise ValueError(f"pod {name}: {error}") from None
        if reason:
            reading.reasons[reason] += 1
        else:
            nodes[where].pods.append(Pod(name, pod, {**asks, "pods": 1}, on_every_node(pod)))
    if strange:
        said.append(
            f"pods on {_some(strange)} that the file does not have: "
            "an old or partial file, or two clusters mixed"
        )
    budgets, others = spent(objects.budgets), Counter[str]()
    for node in reading.nodes:
        node.devices = examine(node, plain)
        over = _over(node)
        reading.violations += over
        node.closed = node.closed or bool(over) or node.devices.verdict == "unknown"
        for one in node.pods:
            other = [name for name in one.asks if family(name, plain) == "other"]
            others.update(() if one.on_every_node else other)
            one.stays = _stays(one, node, other) or why_stays(one.object, budgets)
    said += notes(reading.nodes)
    said += [
        f"{count:,} pod{'s' if count > 1 else ''} with {name} must stay: it might draw power "
        f"(--set plain={name} if not)"
        for name, count in others.items()
    ]


def _ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return all(c.get("status") == "True" for c in conditions if c.get("type") == "Ready")


def _some(nodes: set[str]) -> str:
    shown = sorted(nodes)
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return f"node{'s' if len(shown) > 1 else ''} {', '.join(shown[:3])}{more}"


def _node(name: str, node: Object, figures: Figures) -> Node:
    status = node.get("status") or {}
    try:
        capacity, there = (amounts(status.get(key)) for key in ("capacity", "allocatable"))
    except ValueError as error:
        raise ValueError(f"node {name}: {error}") from None
    for resource in ("cpu", "memory"):
        capacity[resource] = max(capacity.get(resource, 0), there.get(resource, 0))
    if capacity["cpu"] > MAX_CPU_MILLI:
        raise ValueError(f"node {name}: {capacity['cpu']} milli-vCPU, more than {MAX_CPU_MILLI}")
    there["pods"] = min(10**6, there.get("pods", 110))
    closed = bool((node.get("spec") or {}).get("unschedulable"))
    return Node(name, node, capacity, there, figures, closed)


def _not_running(pod: Object) -> str:
    """Return why a pod holds nothing on a node; "" if it holds something."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return "finished"
    if (pod.get("spec") or {}).get("nodeName"):
        return ""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"pending ({condition.get('reason', 'not scheduled')})"
    return "pending (no scheduler has looked at it)"


class Overfull(Violation):
    """Violation: pods hold more on a node than can be allocated."""

    def __str__(self) -> str:
        return f"{self.where}: {self.found} held, {self.limit} allocatable"


def _over(node: Node) -> list[Violation]:
    """Return the resources of which a node holds too much; such a node takes no pods."""
    devices, found = node.devices, list[tuple[str, int, int]]()
    for name in {name: None for pod in node.pods for name in pod.asks}:
        kind, held, limit = family(name), node.held(name), node.allocatable.get(name, 0)
        if held > limit and (devices.verdict != "unknown" or kind in ("plain", "other")):
            called = "cards" if kind == "nvidia" and (name,) in devices.keys else name
            found.append((called, held, limit))
    cards = [("a card", most, units) for most, units in overheld(node)]
    return [Overfull("held", f"{name} of {node.name}", *over) for name, *over in found or cards]


def _stays(pod: Pod, node: Node, other: Sequence[str]) -> str:
    """Return why node or devices make a pod stay; "" if these let it go."""
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
    return "asks for a resource that might draw power" if other else ""


# -- the problem -----------------------------------------------------------------------------------


def _tasks(nodes: Sequence[Node], rules: Rules) -> list[Pod]:
    """Return a task for each pod, and one for everything that belongs to a node."""
    found: list[Pod] = []
    base: list[Pod] = []
    everywhere = np.ones(len(nodes), dtype=bool)
    for n, node in enumerate(nodes):
        part: Counter[str] = Counter()
        for pod in node.pods:
            pod.cell = pod.cell if node.devices.cards else (0, 0, 0)
            if pod.stays == PART and not pod.cell[0]:
                part.update(pod.asks)
                continue
            pod.node, pod.allowed = n, everywhere if pod.stays else rules.allowed(pod, node)
            found.append(pod)
        if any(pod.stays == PART for pod in node.pods):
            own = Pod(f"{PART} {node.name}", {}, part, stays=PART, node=n, allowed=everywhere)
            base.append(own)
    return found + base


def _relaxed(nodes: Sequence[Node], pods: Sequence[Pod]) -> list[int]:
    """Return thousandths of a card for the problem; tasks that fit in units fit in these.

    Moves check the units themselves, as a resource of the node.
    """
    kinds = [frozenset(node.devices.keys) for node in nodes]
    units = [(node.devices.units, kind) for node, kind in zip(nodes, kinds, strict=True)]
    most = {kind: max(of for of, other in units if other == kind) for kind in {*kinds}}
    held = [(kinds[pod.node], pod.cell[1]) for pod in pods]
    tiny = Counter(kind for kind, share in held if 0 < WHOLE * share < most[kind])
    # each tiny share counts one at least
    left = {kind: WHOLE - min(tiny[kind], WHOLE - 1) for kind in most}
    return [share and max(1, left[kind] * share // most[kind]) for kind, share in held]


def _migration(source: str, nodes: Sequence[Node], pods: Sequence[Pod]) -> MigrationProblem:
    devices = [node.devices for node in nodes]
    models = [one.model if one.cards else "" for one in devices]
    watts = {m: one.watts for m, one in zip(models, devices, strict=True) if m}
    power = PowerModel({m: w[0] for m, w in watts.items()}, {m: w[1] for m, w in watts.items()})
    places = {model: k for k, model in enumerate(dict.fromkeys(models))}
    kind = np.array([places[model] for model in models])
    names = [*places]
    specs = [
        "|".join(sorted({names[k] for k in (*np.unique(kind[pod.allowed]), kind[pod.node])} - {""}))
        if pod.cell[0]
        else ""
        for pod in pods
    ]
    at, masks, taken = (
        np.array(column, dtype=np.int64)
        for column in zip(
            *((p.node, p.cell[2], p.asks.get("memory", 0) // MIB) for p in pods), strict=True
        )
    )
    held = np.bincount(at, taken, len(nodes)).astype(np.int64)
    tasks = Tasks.of(
        [pod.name for pod in pods],
        _cpu(nodes, pods),
        taken.tolist(),
        [pod.cell[0] for pod in pods],
        _relaxed(nodes, pods),
        specs,
        source,
    )
    there = [-(-node.allocatable.get("memory", 0) // MIB) for node in nodes]
    cluster = Cluster.of(
        [node.name for node in nodes],
        [node.capacity["cpu"] for node in nodes],
        np.maximum(there, held).tolist(),
        [one.cards for one in devices],
        models,
        source,
    )
    problem = PlacementProblem.of(
        cluster,
        tasks,
        TargetWorkload.from_tasks(tasks),
        None,
        power,
        name=f"kubernetes {source}",
        origin=source,
        source=source,
    )
    return MigrationProblem.of(
        problem,
        PlacementSolution.of_arrays(at, masks),
        [not pod.stays for pod in pods],
        [pod.allowed for pod in pods],
        source=source,
        further=_further(nodes, pods),
        fixed_w=sum(one.fixed_w for one in devices),
    )


def _cpu(nodes: Sequence[Node], pods: Sequence[Pod]) -> list[int]:
    """Return milli-vCPU of every task; an overfull node counts as full and stays so."""
    found, left = list[int](), [node.capacity["cpu"] for node in nodes]
    for pod in pods:
        found.append(min(pod.asks.get("cpu", 0), left[pod.node]))
        left[pod.node] -= found[-1]
    return found


def _further(nodes: Sequence[Node], pods: Sequence[Pod]) -> Further:
    """Return further limits on moves: exact amounts of resources."""
    names = tuple({name: None for pod in pods if not pod.stays for name in pod.asks})

    def table(amounts: Sequence[Mapping[str, int]]) -> IntArray:
        found = [[of.get(name, 0) for name in names] for of in amounts]
        return np.array(found, dtype=np.int64).reshape(len(amounts), len(names))

    return Further(
        names,
        table([node.allocatable for node in nodes]).T,
        table([pod.asks for pod in pods]),
    )
