"""From the objects of a cluster to a placement problem and where its pods are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import BoolArray
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.kubernetes.devices import WHOLE, Node, family
from optgap.models.placement.kubernetes.layout import PART, Layout, lay_out
from optgap.models.placement.kubernetes.objects import COMMAND, Objects, read_objects
from optgap.models.placement.kubernetes.power import UNKNOWN_W, Figures
from optgap.models.placement.kubernetes.requests import Pod
from optgap.models.placement.kubernetes.rules import Rules, grouped
from optgap.models.placement.migrations import Further, MigrationProblem
from optgap.models.placement.openb import DeviceTable
from optgap.models.placement.power import PowerModel
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.tasks import TargetWorkload, Tasks
from optgap.models.reading import Path
from optgap.models.result import Violation

MIB = 2**20


@dataclass(frozen=True)
class KubernetesReading:
    """A cluster as it was read.

    Parameters
    ----------
    migration: the problem, where every pod is now, and what may move.
    violations: what nodes hold more of than can be allocated.
    records: pods in the file; `used` of them are in the problem.
    reasons: how many of the others are left out, by why.
    stays: how many pods must stay where they are, by why.
    warnings: what was odd.
    assumed: GPU products whose power nobody has told.
    nodes: the nodes, in the order of the problem's.
    pods: (T,) the pod of each task; "" for the pods that belong to a node, together.
    """

    migration: MigrationProblem
    violations: tuple[Violation, ...]
    records: int
    used: int
    reasons: Mapping[str, int]
    stays: Mapping[str, int]
    warnings: tuple[str, ...]
    assumed: tuple[str, ...]
    nodes: tuple[Node, ...]
    pods: tuple[str, ...]


def read_kubernetes(
    path: Path, devices: DeviceTable | None = None, plain: Collection[str] = ()
) -> KubernetesReading:
    """Read what ``kubectl get nodes,pods -A -o json`` prints; ``-`` is standard input.

    Parameters
    ----------
    path: the file; disruption budgets are respected where they are in it, too.
    devices: power by GPU product, before the figures that are built in.
    plain: further resources that draw no power.

    Raises
    ------
    InputError: for a file that is none of these, or a quantity that is none; when no pod runs.
    """
    source = str(path)
    objects = read_objects(path)
    figures = Figures(devices)
    try:
        layout = lay_out(objects, figures, plain)
        if not any(node.pods for node in layout.nodes):
            told = ", ".join(f"{n} {reason}" for reason, n in layout.reasons.items())
            raise InputError(source, "", NoQuote(f"no running pods ({told})"), "at least one")
        return _reading(source, objects, layout, figures)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(source, "", NoQuote(str(error)), "Kubernetes quantities") from None
    except (AttributeError, KeyError, TypeError) as error:  # text where an object should be, say
        found = NoQuote(f"objects of another shape ({error})")
        raise InputError(source, "", found, COMMAND) from error


def _reading(source: str, objects: Objects, layout: Layout, figures: Figures) -> KubernetesReading:
    nodes = layout.nodes
    rules = Rules(objects, nodes)
    rows = _rows(nodes, rules)
    everyone = [pod for node in nodes for pod in node.pods]
    counted_too = {n.devices.product for n in nodes if n.devices.verdict == "exact"}
    assumed = tuple(product for product in figures.assumed if product in counted_too)
    layout.warnings += [
        f"no power figures for {product!r}: {UNKNOWN_W:g} W assumed (--devices FILE)"
        for product in assumed
    ]
    return KubernetesReading(
        _migration(source, nodes, rows),
        tuple(layout.violations),
        len(objects.pods),
        len(everyone),
        dict(layout.reasons),
        dict(Counter(pod.stays for pod in everyone if pod.stays)),
        tuple(layout.warnings),
        assumed,
        tuple(nodes),
        tuple(row.pod.name if row.pod else "" for row in rows),
    )


@dataclass
class _Row:
    """A task: a pod, a share of a card of one, or all that belongs to a node.

    Parameters
    ----------
    name: of the task.
    pod: the pod; None for all that belongs to a node.
    node: the index of its node.
    asks: what it asks for, with the pod's first share only.
    cell: (GPUs, units of each, bits) on cards of the problem.
    allowed: (N,) where it may go.
    movable: whether it may go anywhere.
    milli: thousandths of each card that the problem counts: never more than it takes.
    """

    name: str
    pod: Pod | None
    node: int
    asks: Mapping[str, int]
    cell: tuple[int, int, int]
    allowed: BoolArray
    movable: bool
    milli: int = 0


def _rows(nodes: Sequence[Node], rules: Rules) -> list[_Row]:
    rows: list[_Row] = []
    base: list[_Row] = []
    everywhere = np.ones(len(nodes), dtype=bool)
    for n, node in enumerate(nodes):
        part: Counter[str] = Counter()
        for pod in node.pods:
            cells = pod.cells if node.devices.cards else []
            if pod.stays == PART and not cells:
                part.update(pod.asks)
                continue
            allowed = rules.allowed(pod, node) if not pod.stays else everywhere
            for i, cell in enumerate(cells or [(0, 0, 0)]):
                name = pod.name if len(cells) < 2 else f"{pod.name}[{i}]"
                asks = pod.asks if i == 0 else {}
                rows.append(_Row(name, pod, n, asks, cell, allowed, not pod.stays))
        if any(pod.stays == PART for pod in node.pods):
            base.append(_Row(f"{PART} {node.name}", None, n, part, (0, 0, 0), everywhere, False))
    _relax(nodes, rows)
    return rows + base


def _relax(nodes: Sequence[Node], rows: Sequence[_Row]) -> None:
    """Thousandths of a card for the problem: what fits in units, fits in these, too.

    Moves and the referee add up the units themselves.
    """
    kinds = [frozenset(node.devices.keys) for node in nodes]
    most: dict[frozenset[tuple[str, ...]], int] = {}
    for kind, node in zip(kinds, nodes, strict=True):
        most[kind] = max(most.get(kind, 0), node.devices.units)
    held = [row for row in rows if row.cell[0]]
    tiny = Counter(kinds[row.node] for row in held if WHOLE * row.cell[1] < most[kinds[row.node]])
    for row in held:
        kind = kinds[row.node]
        left = WHOLE - min(tiny[kind], WHOLE - 1)  # each tiny share counts one at least
        row.milli = max(1, left * row.cell[1] // most[kind])


def _migration(source: str, nodes: Sequence[Node], rows: Sequence[_Row]) -> MigrationProblem:
    base = [node.devices.model if node.devices.cards else "" for node in nodes]
    models, exact = grouped(base, Counter(row.allowed.tobytes() for row in rows if row.cell[0]))
    figures = dict(zip(models, (node.devices.watts for node in nodes), strict=True))
    figures.pop("", None)
    power = PowerModel({m: w[0] for m, w in figures.items()}, {m: w[1] for m, w in figures.items()})
    sets: dict[bytes, int] = {}
    specs: list[str] = []
    groups: list[int] = []
    known: dict[tuple[bytes, str], str] = {}
    for row in rows:
        own = models[row.node]
        key = row.allowed.tobytes(), own
        if row.cell[0] and key not in known:
            names = {models[n] for n in np.flatnonzero(row.allowed).tolist()} | {own}
            known[key] = "|".join(sorted(names - {""}))
        told = row.cell[0] and key[0] in exact and row.allowed[row.node]
        specs.append(known[key] if row.cell[0] else "")
        free = told or not row.movable or row.allowed.all()
        groups.append(-1 if free else sets.setdefault(key[0], len(sets)))
    memory = [row.asks.get("memory", 0) for row in rows]
    cpu = _cpu(nodes, rows)
    held = np.zeros(len(nodes), dtype=np.int64)
    at = np.array([row.node for row in rows], dtype=np.int64)
    np.add.at(held, at, np.array(memory, dtype=np.int64) // MIB)
    tasks = Tasks.of(
        [row.name for row in rows],
        cpu,
        [amount // MIB for amount in memory],
        [row.cell[0] for row in rows],
        [row.milli for row in rows],
        specs,
        source,
    )
    cluster = Cluster.of(
        [node.name for node in nodes],
        [node.capacity["cpu"] for node in nodes],
        [
            max(-(-node.allocatable.get("memory", 0) // MIB), int(held[n]))
            for n, node in enumerate(nodes)
        ],
        [node.devices.cards for node in nodes],
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
    current = PlacementSolution.of_arrays(
        at, np.array([row.cell[2] for row in rows], dtype=np.int64)
    )
    return MigrationProblem.of(
        problem,
        current,
        [row.movable for row in rows],
        [np.frombuffer(inside, dtype=bool) for inside in sets],
        groups,
        [node.closed for node in nodes],
        source,
        further=_further(nodes, rows),
        fixed_w=sum(node.devices.fixed_w for node in nodes),
    )


def _cpu(nodes: Sequence[Node], rows: Sequence[_Row]) -> list[int]:
    """Milli-vCPU of every task; a node that carries more than it has is full and stays so."""
    found = [row.asks.get("cpu", 0) for row in rows]
    left = [node.capacity["cpu"] for node in nodes]
    for k, row in enumerate(rows):
        found[k] = min(found[k], left[row.node])
        left[row.node] -= found[k]
    return found


def _further(nodes: Sequence[Node], rows: Sequence[_Row]) -> Further:
    """What moves must heed beside the problem: resources to the last unit, and units of cards."""
    names = {name: None for row in rows if row.movable for name in row.asks}
    kept = [name for name in names if _needed(name, nodes, rows)]
    return Further(
        tuple(kept),
        np.array(
            [[node.allocatable.get(name, 0) for node in nodes] for name in kept], dtype=np.int64
        ).reshape(len(kept), len(nodes)),
        np.array(
            [[row.asks.get(name, 0) for name in kept] for row in rows], dtype=np.int64
        ).reshape(len(rows), len(kept)),
        np.array([node.devices.units for node in nodes], dtype=np.int64),
        np.array([row.cell[1] for row in rows], dtype=np.int64),
        np.array([row.cell[0] and nodes[row.node].devices.fullest for row in rows], dtype=bool),
    )


def _needed(name: str, nodes: Sequence[Node], rows: Sequence[_Row]) -> bool:
    """Whether a resource may be short where the problem alone would not see it."""
    if name == "cpu":
        return any(node.allocatable.get("cpu", 0) < node.capacity["cpu"] for node in nodes)
    if name == "memory":
        return any(row.asks.get("memory", 0) % MIB for row in rows)
    if family(name) == "nvidia":
        return any(
            (name,) not in node.devices.keys or node.allocatable.get(name, 0) < node.devices.cards
            for node in nodes
            if name in node.allocatable
        )
    return True
