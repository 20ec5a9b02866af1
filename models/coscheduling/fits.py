"""Run times fitted to DRAM activity (``optgap.fit/1``) in a problem: policies decide on them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from optgap.models.coscheduling.predicted import MODEL, predicted_s
from optgap.models.coscheduling.problem import Application, CoschedulingProblem, Mode
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.saved import FittedParameters

SERVES: Mapping[str, tuple[str, ...]] = {MODEL: ()}
"""The models that a problem takes, and the parameters that it needs of them."""
USED = "a policy decides on these run times, the referee counts those measured"


def refit(
    problem: CoschedulingProblem,
    fits: Sequence[FittedParameters],
    seed: int = 0,
    deal: bool = True,
) -> CoschedulingProblem:
    """Return the problem with fitted run times beside the measured ones.

    The fit's groups are applications. Where the problem has none of them, its applications become
    those that were fitted, if it may be dealt others (`deal`), with the run times and powers
    measured, and as many jobs as before are drawn from `seed`, each application once before any
    comes again.

    Raises
    ------
    InputError: for another model, several fits, an application without a group, or one without
        memory activity, run time or power to be found.
    """
    if len(fits) != 1:
        found = NoQuote(f"{len(fits)} fits")
        raise InputError("models", "", found, f"one fit of {MODEL}, by application")
    fit = fits[0]
    fit.require(SERVES)
    used = USED
    if not any(app.name in fit.groups for app in problem.applications):
        if not deal:
            found = NoQuote("a model of " + ", ".join(fit.groups))
            names = ", ".join(app.name for app in problem.applications)
            raise InputError(fit.source, "field groups", found, f"one fitted on {names}, by app")
        problem = _of_fit(problem, fit, seed)
        used += "; applications are those of the fit"
    apps = tuple(_fitted(app, fit) for app in problem.applications)
    left = [a.name for a in apps if len(a.modes) > 1 and a.modes[0].fitted_s is None]
    if not any(mode.fitted_s for app in apps for mode in app.modes):
        found = NoQuote(f"no DRAM activity of {left[0] if left else apps[0].name}")
        expected = "dram_util_sum (dram_sum) above 0 on each GPU count, over the whole run"
        raise InputError(fit.source, "", found, expected)
    if left:
        used += f"; as measured for {', '.join(left)}, of which it says nothing"
    return replace(problem, applications=apps, fits=(fit.using(used),))


def _fitted(app: Application, fit: FittedParameters) -> Application:
    """Return the application with fitted run times, if the fit and the signal cover it."""
    times = predicted_s(app, fit, fit.source) if app.name in fit.groups else None
    if times is None:
        return app
    # a run time that a fit told, as none was measured, is another one in every draw of the fit
    modes = (
        replace(m, fitted_s=t, runtime_s=t if m.runtime_s == m.fitted_s else m.runtime_s)
        for m, t in zip(app.modes, times, strict=True)
    )
    return Application(app.name, tuple(modes))


def _of_fit(problem: CoschedulingProblem, fit: FittedParameters, seed: int) -> CoschedulingProblem:
    """Return the same node and as many jobs, of the applications that were fitted."""
    apps = [_measured(name or "application", fit.facts(name), fit) for name in fit.groups]
    fitting = [app for app in apps if any(m.gpu_count <= problem.gpus for m in app.modes)]
    rng = np.random.default_rng(seed)
    return CoschedulingProblem.of(
        fitting,
        drawn_queue(rng, len(fitting), len(problem)),
        gpus=problem.gpus,
        numa=problem.numa,
        idle_w=problem.idle_w,
        goal=problem.objective.goal,
        name=f"{len(problem)} jobs of {os.path.basename(fit.source)}, seed {seed}",
        origin=f"measured: {fit.document.get('source', fit.source)}",
        releases=problem.releases or None,
        source=fit.source,
    )


def drawn_queue(rng: np.random.Generator, applications: int, size: int) -> list[int]:
    """Return the application of each of `size` jobs: each comes once before any comes again."""
    queue: list[int] = []
    while applications and len(queue) < size:
        queue += rng.permutation(applications).tolist()
    return queue[:size]


def _measured(name: str, facts: Mapping[str, object], fit: FittedParameters) -> Application:
    """Return the modes of one application, as the rows have them that were fitted."""
    columns: dict[str, list[float]] = {}
    for column, ours in (("gpus", "gpus"), ("time_s", "time_s"), ("power_w", "power_w"),
                         ("signal", "dram_sum")):  # fmt: skip
        values = facts.get(f"measured_{column}")
        if not isinstance(values, list):
            found = NoQuote(f"no {ours} of {name}, each GPU count once")
            expected = "gpus, time_s, power_w and dram_sum in the profile, fitted by application"
            raise InputError(fit.source, "", found, expected)
        columns[column] = values
    sampled = facts.get("counter") == "dram_sum"
    return Application(
        name,
        tuple(
            Mode(round(gpus), time, power, signal if sampled else None)
            for gpus, time, power, signal in zip(
                *(columns[c] for c in ("gpus", "time_s", "power_w", "signal")), strict=True
            )
        ),
    )
