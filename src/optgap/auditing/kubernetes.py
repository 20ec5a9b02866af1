"""A Kubernetes cluster: what it draws now, what packing could save, and the moves that do it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optgap.auditing.result import Audit, Covered
from optgap.models.limits import Limits
from optgap.models.placement.kubernetes import KubernetesReading, read_kubernetes
from optgap.models.placement.openb import read_devices
from optgap.models.placement.solution import PlacementSolution
from optgap.models.reading import Path
from optgap.models.result import Evaluation
from optgap.render import number, percent
from optgap.solvers.placement.migrations import MigrationCurve, curve

NAMED = 8
"""Nodes that a line names."""
LISTED = 5000
"""Nodes that a table lists."""


def audit_kubernetes(
    path: Path,
    *,
    moves: int | None = None,
    devices: Path | None = None,
    limits: Limits,
    seed: int = 0,
) -> Audit:
    """Audit what ``kubectl get nodes,pods -A -o json`` prints.

    Parameters
    ----------
    path: the file; ``-`` is standard input.
    moves: a number of moves that the curve must have.
    devices: power by GPU product, ``model,idle_w,full_w``.

    Raises
    ------
    InputError: as `read_kubernetes` and `read_devices`.
    """
    table = read_devices(devices) if devices is not None else None
    reading = read_kubernetes(path, table)
    found = curve(
        reading.migration, limits=limits, seed=seed, wanted=() if moves is None else (moves,)
    )
    problem, current = reading.migration.problem, reading.migration.current
    now, best = problem.evaluate(current), problem.evaluate(found.solution)
    last = found.points[-1]
    return Audit(
        "kubernetes",
        str(path),
        problem,
        current,
        now,
        reading.violations,
        best.objective,
        f"{len(last.moves):,} moves",
        last.bound_w,
        last.bound_by,
        Covered(reading.records, reading.used, reading.reasons),
        sentence(found),
        tuple(_facts(reading, now, best, found)),
        _tables(reading, found),
        reading.warnings,
        found.termination,
        reading.migration,
        found,
        reading.real_node,
        asked=moves,
    )


def sentence(found: MigrationCurve) -> str:
    """What could be saved, and what is reachable with how many moves."""
    now, last = found.points[0].power_w, found.points[-1]
    most, reached = (now - last.bound_w) / now, (now - last.power_w) / now
    if not last.moves:
        found_none = "no move found saves anything"
        if most < 5e-4:
            return "nothing could be saved by packing: no plan saves 0.05 % of the power (proven)"
        return f"at most {percent(most, 1)} of the power could be saved by packing; {found_none}"
    text = f"at most {percent(most, 1)} of the power could be saved by packing; "
    text += f"{percent(reached, 1)} is reachable with {len(last.moves):,} moves"
    half = next((p for p in found.points if now - p.power_w >= 0.5 * (now - last.power_w)), last)
    if half is not last and 4 * len(half.moves) < 3 * len(last.moves):
        share = percent((now - half.power_w) / now, 1)
        text += f", {share} with {len(half.moves):,}"
    return text


def _pods(reading: KubernetesReading, solution: PlacementSolution) -> dict[str, int]:
    """How many pods run on each node of the cluster, in all of its parts."""
    counts = dict.fromkeys(reading.real_node, 0)
    for n in solution.node.tolist():
        counts[reading.real_node[n]] += 1
    return counts


def _empty(reading: KubernetesReading, solution: PlacementSolution) -> list[str]:
    """Nodes of the cluster that run no pod."""
    return [name for name, count in _pods(reading, solution).items() if not count]


def _facts(
    reading: KubernetesReading, now: Evaluation, best: Evaluation, found: MigrationCurve
) -> Iterable[tuple[str, str]]:
    last = found.points[-1]
    yield "power now", f"{number(now.objective)} W ({_parts(now)})"
    yield "best packing found", f"{number(best.objective)} W ({_parts(best)})"
    yield "proven bound", f"{number(last.bound_w)} W, by {last.bound_by}"
    yield "GPUs occupied", percent(float(now.metrics["allocated_share"]), 1)
    before, after = (percent(float(e.metrics["frag_share"]), 1) for e in (now, best))
    yield "fragmentation", f"{before} of the GPUs now, {after} then"
    empty = _empty(reading, reading.migration.current)
    then = _empty(reading, found.solution)
    yield "nodes without pods", f"{len(empty):,} now, {len(then):,} then"
    drained = [name for name in then if name not in set(empty)]
    if drained:
        yield "nodes that would be free", _named(drained)
    if reading.stays:
        told = ", ".join(f"{count:,} {why}" for why, count in reading.stays.items())
        yield "pods that must stay", f"{sum(reading.stays.values()):,}: {told}"


def _parts(evaluation: Evaluation) -> str:
    gpus, cpus = evaluation.metrics["power_gpu_w"], evaluation.metrics["power_cpu_w"]
    return f"GPUs {number(gpus)}, CPUs {number(cpus)}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{len(names):,}: {', '.join(names[:NAMED])}{more}"


def _tables(
    reading: KubernetesReading, found: MigrationCurve
) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Nodes that need nothing any more."""
    now, then = _pods(reading, reading.migration.current), _pods(reading, found.solution)
    rows = [
        {
            "node": name,
            "pods now": was,
            "pods then": 0,
            "what": "could be drained" if was else "empty already",
        }
        for name, was in now.items()
        if not then[name]
    ]
    return {"Nodes that could be switched off or drained": rows[:LISTED]} if rows else {}
