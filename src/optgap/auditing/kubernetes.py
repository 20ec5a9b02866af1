"""Audit of a Kubernetes cluster: its power, what packing could save, and the moves that do it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from optgap.auditing.result import Audit, Covered
from optgap.models.limits import Limits
from optgap.models.placement.kubernetes import KubernetesReading, read_kubernetes
from optgap.models.placement.kubernetes.power import UNKNOWN_W
from optgap.models.placement.openb import read_devices
from optgap.models.placement.solution import PlacementSolution
from optgap.models.reading import Path
from optgap.models.result import Evaluation
from optgap.render import number, percent, plural
from optgap.solvers.placement.migrations import MigrationCurve, curve

NAMED = 8
"""Number of nodes that a line names."""
NOT_CHECKED = (
    "not checked: quotas, webhooks, the queues and limits of KAI, Volcano or Kueue, the kubelet's "
    "topology manager, images. Kubernetes picks the node: cordon other nodes that fit, too."
)


def audit_kubernetes(
    path: Path,
    *,
    moves: int | None = None,
    devices: Path | None = None,
    plain: str = "",
    limits: Limits,
    seed: int = 0,
) -> Audit:
    """Audit what ``kubectl get nodes,pods -A -o json`` prints.

    Parameters
    ----------
    path: the file; ``-`` is standard input.
    moves: a number of moves that the curve must have.
    devices: power by GPU product, ``model,idle_w,full_w``.
    plain: further resources that draw no power, separated by commas.

    Raises
    ------
    InputError: as `read_kubernetes` and `read_devices`.
    """
    table = read_devices(devices) if devices is not None else None
    names = [name.strip() for name in plain.split(",") if name.strip()]
    reading = read_kubernetes(path, table, names)
    migration = reading.migration
    found = curve(migration, limits=limits, seed=seed, wanted=() if moves is None else (moves,))
    now, best = migration.evaluate(migration.current), migration.evaluate(found.solution)
    last = found.points[-1]
    return Audit(
        "kubernetes",
        str(path),
        migration.problem,
        migration.current,
        now,
        reading.violations,
        best.objective,
        plural(len(last.moves), "move"),
        last.bound_w,
        last.bound_by,
        Covered(reading.records, reading.used, reading.reasons),
        sentence(reading, found),
        tuple(_facts(reading, now, best, found)),
        {},
        (*reading.warnings, *_pending(reading, found), NOT_CHECKED),
        found.termination,
        migration,
        found,
        tuple(node.name for node in reading.nodes),
        asked=moves,
    )


def sentence(reading: KubernetesReading, found: MigrationCurve) -> str:
    """Say what could be saved, what is reachable with how many moves, and what is not counted."""
    now, last = found.points[0].power_w, found.points[-1]
    most = (now - last.bound_w) / now if now else 0.0
    reached = (now - last.power_w) / now if now else 0.0
    stay = sum(reading.stays.values())
    if not last.moves and most < 5e-4:
        proof = f"for plans that keep {plural(stay, 'pod')} in place" if stay else ""
        proof = f" (proven{' ' if proof else ''}{proof})"
        if reading.assumed:
            proof = f" if {_any(reading.assumed)} draws {UNKNOWN_W:g} W"
        text = f"Migrating pods saves less than 0.05 % of the counted power{proof}."
    else:
        assumed = f", if {_any(reading.assumed)} draws {UNKNOWN_W:g} W" if reading.assumed else ""
        text = f"At most {percent(most, 1)} of the counted power could be saved by migrating pods"
        text += f"{assumed}; "
        text += _reached(found, reached) if last.moves else "no migration found saves anything."
    unknown = sum(node.devices.verdict == "unknown" for node in reading.nodes)
    if unknown:
        text += f" The power excludes the accelerators of {unknown:,} of "
        text += plural(len(reading.nodes), "node") + "."
    return text


def _any(products: Sequence[str]) -> str:
    return " or ".join(f"{'an' if name[0] in 'AEIOU' else 'a'} {name}" for name in products)


def _reached(found: MigrationCurve, reached: float) -> str:
    now, last = found.points[0].power_w, found.points[-1]
    text = f"{percent(reached, 1)} is reachable with {plural(len(last.moves), 'migration')}"
    half = next((p for p in found.points if now - p.power_w >= 0.5 * (now - last.power_w)), last)
    if half is not last and 4 * len(half.moves) < 3 * len(last.moves):
        text += f", {percent((now - half.power_w) / now, 1)} with {len(half.moves):,}"
    return text + "."


def _pending(reading: KubernetesReading, found: MigrationCurve) -> Iterable[str]:
    """Yield how many pending pods may take the room of a plan."""
    count = sum(n for why, n in reading.reasons.items() if why.startswith("pending"))
    if count and found.points[-1].moves:
        yield f"{plural(count, 'pending pod')} may take the room that a plan makes first."


def _empty(reading: KubernetesReading, solution: PlacementSolution) -> list[str]:
    """Return the nodes that run no pods except their own, which stay with the node."""
    used = {n for n, pod in zip(solution.node.tolist(), reading.pods, strict=True) if pod}
    return [node.name for n, node in enumerate(reading.nodes) if n not in used]


def _busy(reading: KubernetesReading, solution: PlacementSolution) -> int:
    """Return the number of cards in use."""
    held: dict[int, int] = {}
    for n, mask in zip(solution.node.tolist(), solution.gpu_mask.tolist(), strict=True):
        held[n] = held.get(n, 0) | mask
    fixed = sum(node.devices.fixed[0] for node in reading.nodes)
    return fixed + sum(mask.bit_count() for mask in held.values())


def _facts(
    reading: KubernetesReading, now: Evaluation, best: Evaluation, found: MigrationCurve
) -> Iterable[tuple[str, str]]:
    last, current = found.points[-1], reading.migration.current
    cards = sum(node.devices.cards + node.devices.fixed[1] for node in reading.nodes)
    yield "power now", f"{number(now.objective)} W ({_parts(now)})"
    yield "best packing found", f"{number(best.objective)} W ({_parts(best)})"
    yield "proven bound", f"{number(last.bound_w)} W, by {last.bound_by}"
    if cards:
        before, after = (_busy(reading, s) for s in (current, found.solution))
        yield "GPUs in use", f"{before:,} of {cards:,} now, {after:,} then"
    empty, then = (_empty(reading, s) for s in (current, found.solution))
    yield "nodes free of other pods", f"{len(empty):,} now, {len(then):,} then"
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
