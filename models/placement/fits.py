"""Fitted device power (``optgap.fit/1``) in a problem: idle and full W by model, Eq. 1-2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.saved import FittedParameters
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.power import CpuProfile, PowerModel
from optgap.models.placement.problem import PlacementProblem

DEVICES = "device-power"
SERVES: Mapping[str, tuple[str, ...]] = {DEVICES: ("idle_w", "full_w")}
"""The models that a problem takes, and the parameters that it needs of them."""
CPU = "cpu"
Watts = dict[str, tuple[float, float]]
"""Idle and full power by device, W."""


def refit(
    problem: PlacementProblem,
    fits: Sequence[FittedParameters],
    seed: int = 0,
    deal: bool = True,
) -> PlacementProblem:
    """Return the problem with measured idle and full power.

    A group goes to the GPU models whose names it has in it (``NVIDIA A100-SXM4-40GB`` to ``A100``);
    one whose name begins with CPU is the CPU package. Where no model of the cluster is named,
    the node types take the groups in turn, if they may be dealt out (`deal`), and tasks that ask
    for a model take any. `seed` is not used.

    Raises
    ------
    InputError: for another model, or a device that draws more at rest than in use.
    """
    boards, chips = watts_of(fits)
    cluster, tasks = problem.cluster, problem.tasks
    taken = matches(boards, cluster.models)
    words = "P_idle and P_full of Eq. 2 for " + ", ".join(taken)
    if boards and not taken and not deal:
        found = NoQuote("power of " + ", ".join(boards))
        expected = f"that of one of {', '.join(sorted(set(cluster.models) - {''}))}"
        raise InputError(fits[0].source, "field groups", found, expected)
    if boards and not taken:
        cluster, taken = _dealt(cluster, list(boards))
        tasks = replace(tasks, gpu_specs=("",) * len(tasks))
        words = "P_idle and P_full of Eq. 2; node types take the devices in turn"
    others = sorted(set(cluster.models) - {"", *taken})
    if others and boards:
        words += f" ({', '.join(others)} as before)"
    if chips:
        words += "; the CPU package of Eq. 1" if boards else ""
    power = _power(problem.power, {model: boards[name] for model, name in taken.items()}, chips)
    power.validate(fits[0].source if fits else "problem")
    made = PlacementProblem.of(
        cluster,
        tasks,
        problem.workload,
        problem.ranks,
        power,
        problem.objective,
        problem.name,
        problem.origin,
        source=", ".join(fit.source for fit in fits),
        over_time=problem.over_time,
    )
    said = words if boards else "P_idle and P_full of the CPU package, Eq. 1"
    return replace(made, fits=tuple(fit.using(said) for fit in fits))


def watts_of(fits: Sequence[FittedParameters]) -> tuple[Watts, Watts]:
    """Idle and full power of the GPUs and of the CPU packages that were fitted, by group.

    Raises
    ------
    InputError: for another model.
    """
    table: Watts = {}
    for fit in fits:
        fit.require(SERVES)
        table |= {g or "GPU": (p["idle_w"], p["full_w"]) for g, p in fit.groups.items()}
    chips = {name: w for name, w in table.items() if name.lower().startswith(CPU)}
    return {name: w for name, w in table.items() if name not in chips}, chips


def matches(boards: Watts, models: Iterable[str]) -> dict[str, str]:
    """Return the group for each of these GPU models that one is about."""
    found = {}
    for model in dict.fromkeys(filter(None, models)):
        named = [name for name in boards if name == model]
        named += [name for name in boards if model.lower() in name.lower()]
        if named:
            found[model] = named[0]
    return found


def _dealt(cluster: Cluster, boards: Sequence[str]) -> tuple[Cluster, dict[str, str]]:
    """Return the cluster with its GPU models replaced by those measured, type after type."""
    old = list(dict.fromkeys(filter(None, cluster.models)))
    new = {model: boards[k % len(boards)] for k, model in enumerate(old)}
    models = tuple(new.get(model, "") for model in cluster.models)
    return replace(cluster, models=models), {name: name for name in new.values()}


def _power(
    old: PowerModel,
    boards: Watts,
    chips: Watts,
) -> PowerModel:
    cpu = old.cpu
    if len(chips) > 1:
        found = NoQuote(", ".join(chips))
        raise InputError("device-power", "groups", found, "one CPU package: all nodes carry it")
    for idle, full in chips.values():
        cpu = CpuProfile(cpu.cores, idle, full)
    idle_w = {**old.gpu_idle_w, **{name: w[0] for name, w in boards.items()}}
    full_w = {**old.gpu_full_w, **{name: w[1] for name, w in boards.items()}}
    return PowerModel(idle_w, full_w, cpu, old.cpu_rule)
