"""From the objects of a cluster to a placement problem and where its pods are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.kubernetes.layout import Layout, Part, lay_out
from optgap.models.placement.kubernetes.moving import Budgets, sees_gpus, why_stays
from optgap.models.placement.kubernetes.objects import COMMAND, Objects, read_objects
from optgap.models.placement.kubernetes.power import UNKNOWN_W
from optgap.models.placement.kubernetes.rows import Rows
from optgap.models.placement.kubernetes.rules import Rules
from optgap.models.placement.migrations import MigrationProblem
from optgap.models.placement.openb import DeviceTable
from optgap.models.placement.power import PowerModel
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.tasks import TargetWorkload, Tasks
from optgap.models.reading import Path
from optgap.models.result import Violation


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
        return _read(source, objects, devices)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(source, "", NoQuote(str(error)), "Kubernetes quantities") from None
    except (AttributeError, KeyError, TypeError) as error:  # text where an object should be, say
        found = NoQuote(f"objects of another shape ({error})")
        raise InputError(source, "", found, COMMAND) from error


def _read(source: str, objects: Objects, devices: DeviceTable | None) -> KubernetesReading:
    layout = lay_out(objects)
    rows = Rows.of(layout)
    if not rows.names:
        told = ", ".join(f"{n} {reason}" for reason, n in layout.reasons.items())
        raise InputError(source, "", NoQuote(f"no running pods ({told})"), "at least one")
    return _reading(source, objects, layout, rows, devices)


def _reading(
    source: str, objects: Objects, layout: Layout, rows: Rows, devices: DeviceTable | None
) -> KubernetesReading:
    parts = layout.parts
    rules = Rules(objects, parts, rows)
    power, unknown = _power(parts, rules.models, devices)
    layout.warnings += [
        f"no power figures for {product!r}: {UNKNOWN_W:g} W assumed (--devices FILE)"
        for product in unknown
    ]
    made, current, violations = _standing(source, parts, rows, rules, power)
    stays = _stays(rows, Budgets(objects.budgets))
    migration = MigrationProblem.of(
        made,
        current,
        [not why for why in stays],
        rules.node_sets,
        rules.node_set_of,
        np.maximum(np.bincount(current.node, minlength=len(parts)), [part.pods for part in parts]),
        [part.closed for part in parts],
        source,
    )
    return KubernetesReading(
        migration,
        (*layout.violations, *violations),
        len(objects.pods),
        len(set(rows.pods)),
        {**layout.reasons, **({"part of its node": layout.daemons} if layout.daemons else {})},
        dict(Counter(why for why in stays if why)),
        tuple(layout.warnings),
        tuple(part.node for part in parts),
        tuple(rows.pods),
    )


def _standing(
    source: str, parts: list[Part], rows: Rows, rules: Rules, power: PowerModel
) -> tuple[PlacementProblem, PlacementSolution, list[Violation]]:
    """The problem, where its tasks are, and what that breaks.

    Nodes that are overfull are given what they carry in the problem.
    """
    tasks = Tasks.of(
        rows.names,
        rows.cpu,
        rows.memory,
        [share.num_gpu for share in rows.shares],
        [share.gpu_milli for share in rows.shares],
        rules.specs,
        source,
    )
    node = np.array(rows.part, dtype=np.int64)
    workload = TargetWorkload.from_tasks(tasks)
    name = f"kubernetes {source}"

    def cluster(held: list[Part], gpus: list[int]) -> Cluster:
        return Cluster.of(
            [part.name for part in parts],
            [part.cpu_milli for part in held],
            [part.memory_mib for part in held],
            gpus,
            [model if n else "" for model, n in zip(rules.models, gpus, strict=True)],
            source,
        )

    masks, gpus = rows.seats(parts)
    there = cluster(parts, [part.pool.gpus if part.pool else 0 for part in parts])
    # not checked as problems are: a request may be larger than what every node has
    as_read = PlacementProblem(there, tasks, workload, np.arange(len(parts)), power)
    current = PlacementSolution.of_arrays(node, np.array(masks, dtype=np.int64))
    violations = _named(as_read.check(current), rows)
    if violations:
        raised = rows.overfull(parts, masks, gpus)
        masks, gpus = rows.seats(parts, anew=raised)
        there = cluster([raised.get(p, part) for p, part in enumerate(parts)], gpus)
        current = PlacementSolution.of_arrays(node, np.array(masks, dtype=np.int64))
    made = PlacementProblem.of(
        there, tasks, workload, None, power, name=name, origin=source, source=source
    )
    return made, current, violations


def _stays(rows: Rows, budgets: Budgets) -> list[str]:
    """Why each task must stay where it is, "" where it may move."""
    return [
        "GPUs without a request"
        if sees_gpus(pod) and not share.num_gpu
        else "shares of several GPUs"
        if several
        else why_stays(pod, budgets)
        for pod, share, several in zip(rows.objects, rows.shares, rows.several, strict=True)
    ]


def _named(found: list[Violation], rows: Rows) -> list[Violation]:
    """Violations with pods in place of numbers of tasks."""
    named = []
    for violation in found:
        where = violation.where
        if where.startswith("task "):
            number, _, rest = where.removeprefix("task ").partition(" ")
            where = f"{rows.names[int(number)]} {rest}"
        named.append(Violation(violation.constraint, where, violation.found, violation.limit))
    return named


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
