"""Run times out of a fitted ``dram-runtime`` model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from optgap.models.coscheduling.problem import Application, Mode
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.formulas import blended_runtime, runtime_from_dram
from optgap.models.performance.saved import FittedParameters, read_fit

MODEL = "dram-runtime"


def dram_fit(path: Any) -> FittedParameters:
    """Return a saved ``dram-runtime`` fit with one group per application.

    Raises
    ------
    InputError: for a file that is none, or another model.
    """
    fit = read_fit(path)
    if fit.model != MODEL:
        raise InputError(fit.source, "field model", fit.model, repr(MODEL))
    return fit


def predicted_s(app: Application, fit: FittedParameters, source: str) -> list[float] | None:
    """Run time of each mode in s; None where some mode was not sampled or has no traffic.

    Raises
    ------
    InputError: for an application with several modes that the fit has no group for.
    """
    group = fit.groups.get(app.name)
    if group is None:
        if len(app.modes) == 1:
            return None
        raise InputError(source, "field groups", NoQuote(f"none for {app.name}"), "one, by app")
    times = [_time(x, group, source) for mode in app.modes if (x := _signal(mode, fit, app.name))]
    return times if len(times) == len(app.modes) else None


def _signal(mode: Mode, fit: FittedParameters, app: str) -> float | None:
    """Return the fit's signal: DRAM activity, or the measurement of a counter in its place."""
    facts = fit.facts(app)
    if facts.get("counter", "dram_sum") == "dram_sum":
        return mode.dram_util_sum
    known = zip(facts.get("measured_gpus", ()), facts.get("measured_signal", ()), strict=True)
    return next((float(x) for gpus, x in known if gpus == mode.gpu_count), None)


def filled(app: Application, missing: set[int], fit: FittedParameters, source: str) -> Application:
    """Return the application with the run times of the GPU counts in `missing` predicted.

    Raises
    ------
    InputError: where the fit or the signal says nothing about it.
    """
    if not missing:
        return app
    times = predicted_s(app, fit, source)
    if times is None:
        shown = NoQuote(f"no memory activity of {app.name} on some GPU count")
        raise InputError(source, "", shown, "dram_util_sum above 0 wherever runtime_s is empty")
    return Application(
        app.name,
        tuple(
            replace(m, runtime_s=t) if m.gpu_count in missing else m
            for m, t in zip(app.modes, times, strict=True)
        ),
    )


def _time(x: float, group: Mapping[str, float], source: str) -> float:
    """Return the run time by the form whose parameters the group has, s."""
    names = set(group)
    if names == {"a", "b", "c", "k"}:
        time = float(blended_runtime(x, group["a"], group["b"], group["c"], group["k"]))
    elif names == {"a", "b"}:
        time = float(runtime_from_dram(x, "rate", group["a"], group["b"]))
    elif names == {"c", "k"}:
        time = float(runtime_from_dram(x, "power", group["c"], group["k"]))
    else:
        shown = NoQuote(", ".join(sorted(names)))
        raise InputError(source, "field params", shown, "a, b, c, k of a dram-runtime model")
    if not 0 < time < 1e12:
        raise InputError(source, "field params", time, "a positive run time")
    return time
