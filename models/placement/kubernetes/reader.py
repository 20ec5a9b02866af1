"""From the objects of a cluster to a placement problem and where its pods are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import BoolArray
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.kubernetes.demands import Share
from optgap.models.placement.kubernetes.layout import Layout, Part, lay_out
from optgap.models.placement.kubernetes.moving import Budgets, sees_gpus, why_stays
from optgap.models.placement.kubernetes.objects import Object, Objects, read_objects
from optgap.models.placement.kubernetes.power import UNKNOWN_W
from optgap.models.placement.kubernetes.seats import seats
from optgap.models.placement.kubernetes.selection import Selection
from optgap.models.placement.migrations import MigrationProblem
from optgap.models.placement.openb import DeviceTable
from optgap.models.placement.power import PowerModel
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.tasks import TargetWorkload, Tasks
from optgap.models.reading import Path
from optgap.models.result import Violation

MOST_GROUPS = 40
"""Groups of nodes that the problem tells apart by the pods they let in; rules that would make
more are kept by the moves alone, and the bound does without them."""


@dataclass(frozen=True)
class KubernetesReading:
    """A cluster as it was read.

    Parameters
    ----------
    migration: the problem, where every pod is now, and what may move.
    violations: what the cluster breaks now, as the referee sees it; nodes that are overfull are
        given what they carry, so that `migration` begins with a placement.
    records: pods in the file; `used` of them are tasks of the problem.
    reasons: how many of the others are left out, by why.
    stays: how many tasks must stay where they are, by why.
    warnings: what was odd.
    real_node: (N,) the node's name in the cluster, for each node of the problem.
    pods: (T,) the pod of each task, as ``namespace/name``.
    """

    migration: MigrationProblem
    violations: tuple[Violation, ...]
    records: int
    used: int
    reasons: Mapping[str, int]
    stays: Mapping[str, int]
    warnings: tuple[str, ...]
    real_node: tuple[str, ...]
    pods: tuple[str, ...]


@dataclass
class _Rows:
    """Tasks as they are collected: one for each pod, or for each share of a card."""

    names: list[str] = field(default_factory=list)
    pods: list[str] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    part: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    several: list[bool] = field(default_factory=list)


def read_kubernetes(path: Path, devices: DeviceTable | None = None) -> KubernetesReading:
    """Read what ``kubectl get nodes,pods -A -o json`` prints; ``-`` is standard input.

    Parameters
    ----------
    path: the file; disruption budgets are respected where they are in it, too.
    devices: power by GPU product, before the figures that are built in.

    Raises
    ------
    InputError: for a file that is none of these, or a quantity that is none; when no pod runs.
    """
    source = str(path)
    objects = read_objects(path)
    try:
        layout = lay_out(objects)
    except ValueError as error:
        raise InputError(source, "", NoQuote(str(error)), "Kubernetes quantities") from None
    rows = _rows(layout)
    if not rows.names:
        told = ", ".join(f"{n} {reason}" for reason, n in layout.reasons.items())
        raise InputError(source, "", NoQuote(f"no running pods ({told})"), "at least one")
    return _reading(source, objects, layout, rows, devices)


def _rows(layout: Layout) -> _Rows:
    rows = _Rows()
    for p, part in enumerate(layout.parts):
        for name, pod, asked, held in part.members:
            for i, share in enumerate(held or [Share(0, 0)]):
                rows.names.append(name if len(held) < 2 else f"{name}[{i}]")
                rows.pods.append(name)
                rows.objects.append(pod)
                rows.part.append(p)
                rows.cpu.append(asked.cpu_milli if i == 0 else 0)
                rows.memory.append(asked.memory_mib if i == 0 else 0)
                rows.shares.append(share)
                rows.several.append(len(held) > 1)
    return rows


def _reading(
    source: str, objects: Objects, layout: Layout, rows: _Rows, devices: DeviceTable | None
) -> KubernetesReading:
    parts = layout.parts
    rules = _Rules(objects, parts, rows)
    power, unknown = _power(parts, rules.models, devices)
    layout.warnings += [
        f"no power figures for {product!r}: {UNKNOWN_W:g} W assumed (--devices FILE)"
        for product in unknown
    ]
    node = np.array(rows.part, dtype=np.int64)
    tasks = Tasks.of(
        rows.names,
        rows.cpu,
        rows.memory,
        [share.num_gpu for share in rows.shares],
        [share.gpu_milli for share in rows.shares],
        rules.specs,
        source,
    )
    masks, gpus = _all_seats(parts, rows, trust=True)
    workload = TargetWorkload.from_tasks(tasks)

    def problem(raised: Mapping[int, Part], count: list[int]) -> PlacementProblem:
        held = [raised.get(p, part) for p, part in enumerate(parts)]
        cluster = Cluster.of(
            [part.name for part in parts],
            [part.cpu_milli for part in held],
            [part.memory_mib for part in held],
            count,
            [model if n else "" for model, n in zip(rules.models, count, strict=True)],
            source,
        )
        return PlacementProblem(
            cluster, tasks, workload, np.arange(len(parts)), power,
            name=f"kubernetes {source}", origin=source,
        )  # fmt: skip

    as_read = problem({}, [part.pool.gpus if part.pool else 0 for part in parts])
    current = PlacementSolution.of_arrays(node, np.array(masks, dtype=np.int64))
    violations = [*layout.violations, *_named(as_read.check(current), rows)]
    if violations:  # give overfull nodes what they carry
        overfull = {p for p in range(len(parts)) if _overfull(parts[p], p, rows, masks, gpus)}
        masks, gpus = _all_seats(parts, rows, trust=True, anew=overfull)
        raised = {p: _raised(parts[p], p, rows) for p in overfull}
        made = problem(raised, gpus)
        current = PlacementSolution.of_arrays(node, np.array(masks, dtype=np.int64))
    else:
        made = as_read
    counts = np.bincount(node, minlength=len(parts))
    budgets = Budgets(objects.budgets)
    stays = [
        "GPUs without a request" if sees_gpus(pod) and not share.num_gpu
        else "shares of several GPUs" if several
        else why_stays(pod, budgets)
        for pod, share, several in zip(rows.objects, rows.shares, rows.several, strict=True)
    ]  # fmt: skip
    migration = MigrationProblem.of(
        PlacementProblem.of(
            made.cluster, tasks, workload, made.ranks, power, name=made.name, origin=source,
            source=source,
        ),
        current,
        [not why for why in stays],
        rules.node_sets,
        rules.node_set_of,
        np.maximum(counts, [part.pods for part in parts]),
        [part.closed for part in parts],
        source,
    )  # fmt: skip
    return KubernetesReading(
        migration,
        tuple(violations),
        len(objects.pods),
        len(set(rows.pods)),
        {**layout.reasons, **({"part of its node": layout.daemons} if layout.daemons else {})},
        dict(Counter(why for why in stays if why)),
        tuple(layout.warnings),
        tuple(part.node for part in parts),
        tuple(rows.pods),
    )


def _named(found: list[Violation], rows: _Rows) -> list[Violation]:
    """Violations with pods in place of numbers of tasks."""
    named = []
    for violation in found:
        where = violation.where
        if where.startswith("task "):
            number, _, rest = where.removeprefix("task ").partition(" ")
            where = f"{rows.names[int(number)]} {rest}"
        named.append(Violation(violation.constraint, where, violation.found, violation.limit))
    return named


def _all_seats(
    parts: list[Part], rows: _Rows, *, trust: bool, anew: set[int] | None = None
) -> tuple[list[int], list[int]]:
    """GPUs of every task, and the GPUs that every part needs; `anew` without annotations."""
    members: dict[int, list[int]] = {}
    for k, p in enumerate(rows.part):
        if rows.shares[k].num_gpu:
            members.setdefault(p, []).append(k)
    masks = [0] * len(rows.part)
    gpus = [part.pool.gpus if part.pool else 0 for part in parts]
    for p, here in members.items():
        trusted = trust and p not in (anew or ())
        found, gpus[p] = seats([rows.shares[k] for k in here], gpus[p], trusted)
        for k, mask in zip(here, found, strict=True):
            masks[k] = mask
    return masks, gpus


def _overfull(part: Part, p: int, rows: _Rows, masks: list[int], gpus: list[int]) -> bool:
    """Whether a part carries more than it has of anything."""
    here = [k for k, q in enumerate(rows.part) if q == p]
    load: Counter[int] = Counter()
    for k in here:
        for g in range(masks[k].bit_length()):
            load[g] += rows.shares[k].gpu_milli * (masks[k] >> g & 1)
    return (
        sum(rows.cpu[k] for k in here) > part.cpu_milli
        or sum(rows.memory[k] for k in here) > part.memory_mib
        or gpus[p] > (part.pool.gpus if part.pool else 0)
        or max(load.values(), default=0) > 1000
    )


def _raised(part: Part, p: int, rows: _Rows) -> Part:
    """The part with as much CPU and memory as its pods ask for."""
    here = [k for k, q in enumerate(rows.part) if q == p]
    cpu = max(part.cpu_milli, sum(rows.cpu[k] for k in here))
    memory = max(part.memory_mib, sum(rows.memory[k] for k in here))
    return Part(part.node, part.name, part.pool, cpu, memory, part.pods, part.closed)


def _power(
    parts: list[Part], models: list[str], devices: DeviceTable | None
) -> tuple[PowerModel, list[str]]:
    """Power by model, and products that nothing is known of."""
    idle: dict[str, float] = {}
    full: dict[str, float] = {}
    unknown: dict[str, None] = {}
    for part, model in zip(parts, models, strict=True):
        if part.pool is None:
            continue
        idle[model], full[model] = part.pool.watts
        told = [
            name
            for name in (part.pool.product, part.pool.model)
            if devices is not None and name in devices.full_w
        ]
        if devices is not None and told:
            idle[model], full[model] = devices.idle_w[told[-1]], devices.full_w[told[-1]]
        elif not part.pool.known:
            unknown[part.pool.product] = None
    return PowerModel(idle, full), list(unknown)


class _Rules:
    """Which nodes each task may go to: GPU models as the problem knows them, and node sets.

    Nodes of a model that let different pods in become models of their own, so that bounds
    know of taints and selectors; that ends at `MOST_GROUPS`.
    """

    def __init__(self, objects: Objects, parts: list[Part], rows: _Rows) -> None:
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
