"""Fitted models (``optgap.fit/1``) into GPUs and tasks: power lines and exponents of Eq. 5."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optgap.models.consolidation.cluster import GpuKind, PowerLine
from optgap.models.consolidation.tasks import Task
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, load_json
from optgap.models.performance.saved import read_fit

if TYPE_CHECKING:
    from optgap.models.consolidation.problem import ConsolidationProblem

LOGGER = logging.getLogger("optgap.consolidation")
POWER, TIME = "linear-power", "power-law-jct"
NAMES = {POWER: ("P_gs", "alpha"), TIME: ("beta",)}


@dataclass(frozen=True, slots=True)
class Fit:
    """One fitted model: its parameters and the clocks it was fitted on, by group."""

    source: str
    model: str
    groups: Mapping[str, Mapping[str, float]]
    clocks: Mapping[str, tuple[float, float]]


def read(path: str | os.PathLike[str]) -> Fit:
    """Read a saved ``linear-power`` or ``power-law-jct``.

    Raises
    ------
    InputError: for another model, or a file that is not a fit.
    """
    found = read_fit(path)
    source = str(path)
    if found.model not in NAMES:
        raise InputError(source, "field model", found.model, f"{POWER} or {TIME}")
    for group, params in found.groups.items():
        for name in NAMES[found.model]:
            if name not in params:
                where = f"field groups ({group or 'all'}).params"
                raise InputError(source, where, NoQuote(f"no {name}"), f"a fitted {found.model}")
    if not found.groups:
        raise InputError(source, "field groups", NoQuote("none"), "at least one fitted group")
    return Fit(source, found.model, found.groups, _clocks(path))


def _clocks(path: str | os.PathLike[str]) -> dict[str, tuple[float, float]]:
    fields = Fields(load_json(path), str(path))
    clocks = {}
    for group in fields.objects("groups"):
        validity = group.object("validity") if "validity" in group.document else None
        if validity is not None and "frequency_mhz" in validity.document:
            values = validity.numbers("frequency_mhz")
            if len(values) == 2:
                clocks[group.text("group")] = (values[0], values[1])
    return clocks


def refit(
    problem: ConsolidationProblem,
    paths: Sequence[str],
    drawn: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
) -> ConsolidationProblem:
    """The problem with what was fitted for its GPUs, or for tasks of the groups' names.

    Parameters
    ----------
    drawn: parameters by path, group and name, instead of those in the files.

    Raises
    ------
    InputError: for a file that is not a fit, or not one for this problem.
    """
    from optgap.models.consolidation.problem import ConsolidationProblem

    fits = [read(path) for path in paths]
    if drawn is not None:
        fits = [replace(fit, groups=drawn[fit.source]) for fit in fits]
    names = [task.name for task in problem.tasks]
    kinds, tasks = apply(fits, problem.kinds, problem.tasks, names, told=drawn is None)
    return ConsolidationProblem.of(
        kinds,
        problem.servers,
        tasks,
        goal=problem.objective.goal,
        rules=problem.rules,
        period_s=problem.period_s,
        name=problem.name,
        origin=problem.origin,
        source=", ".join(paths),
    )


def apply(
    fits: Sequence[Fit],
    kinds: Sequence[GpuKind],
    tasks: Sequence[Task],
    apps: Sequence[str],
    told: bool = True,
) -> tuple[list[GpuKind], list[Task]]:
    """GPUs and tasks with what was fitted for them.

    A fit without groups, or with one group of the only GPU's name, is the GPU's. Otherwise its
    groups are GPU models, or tasks' applications (`apps`, one per task). Clocks outside what was
    fitted are warned about if they are to be `told`.

    Raises
    ------
    InputError: when a GPU model, or a task, is not among the groups.
    """
    kinds, tasks = list(kinds), list(tasks)
    for fit in fits:
        if set(fit.groups) == {""}:
            kinds = [_tuned(kind, fit, "") for kind in kinds]
        elif any(kind.name in fit.groups for kind in kinds):
            for kind in kinds:
                if kind.name not in fit.groups:
                    raise _absent(fit, kind.name)
            kinds = [_tuned(kind, fit, kind.name) for kind in kinds]
        elif any(app in fit.groups for app in apps):
            for app in apps:
                if app not in fit.groups:
                    raise _absent(fit, app)
            tasks = [_own(task, fit, app) for task, app in zip(tasks, apps, strict=True)]
        else:
            raise _absent(fit, ", ".join(dict.fromkeys(kind.name for kind in kinds)))
    if told:
        _warn(fits, kinds, tasks, apps)
    return kinds, tasks


def _absent(fit: Fit, wanted: str) -> InputError:
    found = NoQuote("a model of " + ", ".join(fit.groups))
    return InputError(fit.source, "field groups", found, f"one fitted on {wanted}")


def _tuned(kind: GpuKind, fit: Fit, group: str) -> GpuKind:
    params = fit.groups[group]
    if fit.model == TIME:
        return replace(kind, beta=params["beta"])
    return replace(kind, power=PowerLine(params["P_gs"], params["alpha"]))


def _own(task: Task, fit: Fit, app: str) -> Task:
    params = fit.groups[app]
    if fit.model == TIME:
        return replace(task, beta=params["beta"])
    return replace(task, power=PowerLine(params["P_gs"], params["alpha"]))


def _warn(
    fits: Sequence[Fit], kinds: Sequence[GpuKind], tasks: Sequence[Task], apps: Sequence[str]
) -> None:
    """Say where clocks that the tasks need lie outside those that a model was fitted on."""
    low = min(kind.floor_mhz(t.kappa, t.beta) for kind in kinds for t in tasks)
    high = max(kind.f_max_mhz for kind in kinds)
    used = {"", *(kind.name for kind in kinds), *apps}
    for fit in fits:
        ranges = [clocks for group, clocks in fit.clocks.items() if group in used]
        if not ranges:
            continue
        first, last = max(a for a, _ in ranges), min(b for _, b in ranges)
        if low < first - 1e-9 or high > last + 1e-9:
            LOGGER.warning(
                "warning: %s: %s fitted on %g to %g MHz, used from %g to %g MHz",
                fit.source,
                fit.model,
                first,
                last,
                low,
                high,
            )
