"""Audit of a Kubernetes cluster: its power, what packing could save, and the moves that do it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from optgap.auditing.result import Audit, Covered
from optgap.models.limits import Limits
from optgap.models.placement.kubernetes import KubernetesReading, read_kubernetes
from optgap.models.placement.kubernetes.devices import UNKNOWN_W
from optgap.models.placement.openb import read_devices
from optgap.models.placement.power import PowerModel
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
    power = PowerModel() if devices is None else read_devices(devices)
    names = [name.strip() for name in plain.split(",") if name.strip()]
    reading = read_kubernetes(path, power, names)
    migration = reading.migration
    found = curve(migration, limits=limits, seed=seed, wanted=() if moves is None else (moves,))
    now, best = migration.evaluate(migration.current), migration.evaluate(found.solution)
    last = found.points[-1]
    notes = [*reading.warnings, NOT_CHECKED]
    pending = sum(n for why, n in reading.reasons.items() if why.startswith("pending"))
    if pending and last.moves:
        told = f"{plural(pending, 'pending pod')} may take the room that a plan makes first."
        notes.insert(-1, told)
    return Audit(
        "kubernetes",
        str(path),
        migration.problem,
        migration.current,
        now,
        tuple(reading.violations),
        best.objective,
        plural(len(last.moves), "move"),
        last.bound_w,
        last.bound_by,
        Covered(reading.records, reading.used, dict(reading.reasons)),
        sentence(reading, found),
        tuple(_facts(reading, now, best, found)),
        tuple(notes),
        found.termination,
        found,
        asked=moves,
    )


def sentence(reading: KubernetesReading, found: MigrationCurve) -> str:
    """Say what could be saved, what is reachable with how many moves, and what is not counted."""
    now, last = found.points[0].power_w, found.points[-1]

    def share(watts: float) -> float:
        return (now - watts) / now if now else 0.0

    products = [f"{'an' if name[0] in 'AEIOU' else 'a'} {name}" for name in reading.assumed]
    assumed = f" if {' or '.join(products)} draws {UNKNOWN_W:g} W" if products else ""
    if not last.moves and share(last.bound_w) < 5e-4:
        stay = plural(sum(reading.stays.values()), "pod")
        proof = f"proven for plans that keep {stay} in place" if reading.stays else "proven"
        text = "Migrating pods saves less than 0.05 % of the counted power"
        text += f"{assumed or f' ({proof})'}."
    else:
        text = f"At most {percent(share(last.bound_w), 1)} of the counted power could be saved by "
        text += f"migrating pods{f',{assumed}' if assumed else ''}; "
        if last.moves:
            text += f"{percent(share(last.power_w), 1)} is reachable with "
            text += plural(len(last.moves), "migration") + "."
        else:
            text += "no migration found saves anything."
    unknown = sum(node.devices.verdict == "unknown" for node in reading.nodes)
    if unknown:
        text += f" The power excludes the accelerators of {unknown:,} of "
        text += plural(len(reading.nodes), "node") + "."
    return text


def _facts(
    reading: KubernetesReading, now: Evaluation, best: Evaluation, found: MigrationCurve
) -> Iterable[tuple[str, str]]:
    last, places = found.points[-1], (reading.migration.current, found.solution)
    for name, one in (("power now", now), ("best packing found", best)):
        gpus, cpus = one.metrics["power_gpu_w"], one.metrics["power_cpu_w"]
        yield name, f"{number(one.objective)} W (GPUs {number(gpus)}, CPUs {number(cpus)})"
    yield "proven bound", f"{number(last.bound_w)} W, by {last.bound_by}"
    cards = sum(node.devices.cards + node.devices.fixed[1] for node in reading.nodes)
    if cards:
        before, after = (_busy(reading, solution) for solution in places)
        yield "GPUs in use", f"{before:,} of {cards:,} now, {after:,} then"
    empty, then = (_empty(reading, solution) for solution in places)
    drained = [name for name in then if name not in set(empty)]
    more = f" and {len(drained) - NAMED:,} more" if len(drained) > NAMED else ""
    named = f" (new: {', '.join(drained[:NAMED])}{more})" if drained else ""
    yield "nodes free of other pods", f"{len(empty):,} now, {len(then):,} then{named}"
    if reading.stays:
        told = ", ".join(f"{count:,} {why}" for why, count in reading.stays.items())
        yield "pods that must stay", f"{sum(reading.stays.values()):,}: {told}"


def _empty(reading: KubernetesReading, solution: PlacementSolution) -> Sequence[str]:
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
