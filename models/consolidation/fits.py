"""Fitted models (``optgap.fit/1``) in a problem: power lines, exponents of Eq. 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optgap.models.consolidation.cluster import GpuKind, PowerLine
from optgap.models.consolidation.tasks import Task
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.fitted import common_clocks
from optgap.models.performance.saved import FittedParameters, told
from optgap.models.quantities import warn

if TYPE_CHECKING:
    from optgap.models.consolidation.problem import ConsolidationProblem

LINE, TIME = "linear-power", "power-law-jct"
SERVES: Mapping[str, tuple[str, ...]] = {
    LINE: ("P_gs", "alpha"),
    TIME: ("beta",),
}
"""The models that a problem takes, and the parameters that it needs of them."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Objects of fits: GPUs, tasks, and the application of each task."""

    kinds: tuple[GpuKind, ...]
    tasks: tuple[Task, ...]
    apps: tuple[str, ...]


def refit(
    problem: ConsolidationProblem,
    fits: Sequence[FittedParameters],
    seed: int = 0,
    *,
    clocks: bool = True,
    deal: bool = True,
) -> ConsolidationProblem:
    """Return the problem with what was fitted for its GPUs, or for its tasks by application.

    A fit without groups, or with one of a GPU's name, is the GPU's; otherwise its groups are
    applications. Where no task is of one of them, tasks take them in turn if they may be dealt
    out (`deal`). A problem without fits takes over the clocks that the fits were made on, unless
    `clocks` says that it has its own. `seed` is not used.

    Raises
    ------
    InputError: for a fit that is not one for this problem, or fits that share no clock.
    """
    from optgap.models.consolidation.problem import ConsolidationProblem

    for fit in fits:
        fit.require(SERVES)
    apps = tuple(task.app or task.name for task in problem.tasks)
    hosts, dealt = Hosts(problem.kinds, problem.tasks, apps), ""
    if deal:
        hosts, dealt = _dealt(fits, _named(fits, hosts))
    hosts, used = apply(fits, hosts, clocks=clocks and not problem.fits)
    if dealt:
        used = [f"{text}; {dealt}" if fit.groups.keys() - {""} else text
                for fit, text in zip(fits, used, strict=True)]  # fmt: skip
    made = ConsolidationProblem.of(
        hosts.kinds,
        problem.servers,
        hosts.tasks,
        goal=problem.objective.goal,
        rules=problem.rules,
        period_s=problem.period_s,
        name=problem.name,
        origin=problem.origin,
        source=", ".join(fit.source for fit in fits),
    )
    kept = tuple(fit.using(text) for fit, text in zip(fits, used, strict=True))
    if not problem.fits:
        told(kept)
        _warn(fits, hosts)
    return replace(made, fits=kept)


def _dealt(fits: Sequence[FittedParameters], hosts: Hosts) -> tuple[Hosts, str]:
    """Applications for tasks that have none among the groups, and what was done in words."""
    grouped = [fit for fit in fits if _by_task(fit, hosts)]
    if not grouped or any(app in fit.groups for fit in grouped for app in hosts.apps):
        return hosts, ""
    shared = [g for g in grouped[0].groups if all(g in fit.groups for fit in grouped)]
    if not shared:
        found = NoQuote("; ".join(", ".join(fit.groups) for fit in grouped))
        raise InputError(grouped[0].source, "field groups", found, "an application in every fit")
    apps = tuple(shared[k % len(shared)] for k in range(len(hosts.tasks)))
    tasks = tuple(replace(t, app=app) for t, app in zip(hosts.tasks, apps, strict=True))
    what = "tasks take it" if len(shared) == 1 else f"tasks take the {len(shared)} in turn"
    return Hosts(hosts.kinds, tasks, apps), what


def _named(fits: Sequence[FittedParameters], hosts: Hosts) -> Hosts:
    """Return the only kind of GPU under the name of the one that was fitted by GPU model."""
    names = {g for fit in fits if fit.document.get("by") == "gpu_model" for g in fit.groups}
    if len(names) != 1 or len(hosts.kinds) != 1:
        return hosts
    return replace(hosts, kinds=(replace(hosts.kinds[0], name=names.pop()),))


def _warn(fits: Sequence[FittedParameters], hosts: Hosts) -> None:
    """Say where clocks that the tasks need lie outside those that a model was fitted on."""
    low = min(kind.floor_mhz(t.kappa, t.beta) for kind in hosts.kinds for t in hosts.tasks)
    high = max(kind.f_max_mhz for kind in hosts.kinds)
    known = {"", *(kind.name for kind in hosts.kinds), *hosts.apps}
    for fit in fits:
        spans = [fit.span(g, "frequency_mhz") for g in fit.groups if g in known]
        ends = [span for span in spans if span]
        if not ends:
            continue
        first, last = max(a for a, _ in ends), min(b for _, b in ends)
        if low < first - 1e-9 or high > last + 1e-9:
            fitted = f"{fit.model} fitted on {first:g} to {last:g} MHz"
            warn(f"{fit.source}: {fitted}, used from {low:g} to {high:g} MHz")


def _by_task(fit: FittedParameters, hosts: Hosts) -> bool:
    """Tell whether a fit's groups are applications."""
    return set(fit.groups) != {""} and not any(kind.name in fit.groups for kind in hosts.kinds)


def apply(fits: Sequence[FittedParameters], hosts: Hosts, clocks: bool) -> tuple[Hosts, list[str]]:
    """GPUs and tasks with what was fitted for them, and what became of each fit in words.

    Raises
    ------
    InputError: when a GPU model, or a task, is not among the groups; with `clocks`, which take
        the fits' ranges and steps over, when these share none.
    """
    kinds, tasks, used = list(hosts.kinds), list(hosts.tasks), []
    if clocks:
        kinds = [_clocked(kind, fits, hosts) for kind in kinds]
    for fit in fits:
        if _by_task(fit, hosts):
            missing = next((app for app in hosts.apps if app not in fit.groups), None)
            if missing is not None:
                raise _absent(fit, missing)
            tasks = [_own(t, fit, app) for t, app in zip(tasks, hosts.apps, strict=True)]
        else:
            kinds = [_tuned(kind, fit) for kind in kinds]
        what = "β of Eq. 5" if fit.model == TIME else "P_gs and α of Eq. 1"
        low, high = min(k.f_min_mhz for k in kinds), max(k.f_max_mhz for k in kinds)
        used.append(f"{what} on {low:g} to {high:g} MHz")
    return Hosts(tuple(kinds), tuple(tasks), hosts.apps), used


def _absent(fit: FittedParameters, wanted: str) -> InputError:
    found = NoQuote("a model of " + ", ".join(fit.groups))
    return InputError(fit.source, "field groups", found, f"one fitted on {wanted}")


def _line(fit: FittedParameters, group: str) -> PowerLine:
    """Return the power line of a group."""
    return PowerLine(fit.groups[group]["P_gs"], fit.groups[group]["alpha"])


def _tuned(kind: GpuKind, fit: FittedParameters) -> GpuKind:
    group = "" if set(fit.groups) == {""} else kind.name
    if group not in fit.groups:
        raise _absent(fit, kind.name)
    if fit.model == TIME:
        return replace(kind, beta=fit.groups[group]["beta"])
    return replace(kind, power=_line(fit, group))


def _own(task: Task, fit: FittedParameters, app: str) -> Task:
    if fit.model == TIME:
        return replace(task, beta=fit.groups[app]["beta"])
    return replace(task, power=_line(fit, app))


def _clocked(kind: GpuKind, fits: Sequence[FittedParameters], hosts: Hosts) -> GpuKind:
    """Return the GPU with the clocks that all fits about it were made on: their range and steps.

    Raises
    ------
    InputError: when there are none.
    """
    found = common_clocks(
        (fit, group)
        for fit in fits
        for group in fit.groups
        if group in ("", kind.name) or group in hosts.apps
    )
    if found is None:
        return kind
    low, high, steps = found
    return replace(kind, f_min_mhz=low, f_max_mhz=high, frequencies_mhz=steps)
