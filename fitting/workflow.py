"""Workflow from a table to a report: read, fit, hold out rows, and audit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from optgap.fitting import make_estimator
from optgap.fitting.audit import advice, audit
from optgap.fitting.devices import NAME as DEVICES
from optgap.fitting.estimator import Estimator
from optgap.fitting.groups import Split, cross_validate, fit_groups
from optgap.fitting.profile import Profile
from optgap.fitting.profile import drop_missing as without_missing
from optgap.fitting.readers import read_profile
from optgap.fitting.report import FitReport
from optgap.fitting.uncertainty import carried, draw_from, unknown
from optgap.models.errors import InputError, NoQuote, one_of

MANY_ROWS = 100_000
"""Rows from which on three folds judge a fit as well as ten."""


def fit(
    table: str | os.PathLike[str] | Profile | Any,
    model: str,
    *,
    by: str | Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    cv: int | None = None,
    leave_out: str | None = None,
    extrapolate: Mapping[str, float] | None = None,
    drop_missing: bool = False,
    strict: bool = True,
    seed: int = 0,
    **settings: Any,
) -> FitReport[Any]:
    """Fit one model to measurements.

    Parameters
    ----------
    table
        A path, a DataFrame, a mapping of columns, or what `read_profile` returned.
    model
        A name that ``optgap fit --help`` lists, such as ``linear-power``.
    by
        Column or columns (``"a,b"``) whose values are fitted apart. Default: none, but
        ``gpu_model`` for ``device-power``.
    columns, units
        Names and units of the table's columns, as for `read_profile`.
    cv
        Number of folds that are held out. 0 holds out none. Default 10, from 100,000 rows on 3.
    leave_out
        Column of which one value at a time is held out, in place of folds. Default: none.
    extrapolate
        Column and value above which rows are held out, ``{"gpus": 8}``, in place of folds.
    drop_missing
        Whether to leave out rows in which something that the model reads is missing. Default False.
    strict
        Whether to refuse, rather than warn of, values that suggest another unit. Default True.
    seed
        Seed of the random number generator. Default 0.
    **settings
        The model's own settings.

    Returns
    -------
    FitReport
        Parameters with intervals and errors, with `predict`, `to_frame` and `plot`.

    Raises
    ------
    InputError
        For an unknown model or setting, or a table that cannot be fitted, in one line that says
        what is missing and what to measure.

    Examples
    --------
    >>> import optgap
    >>> table = {"frequency_mhz": [600, 900, 1200, 1400], "power_w": [80, 107, 134, 152]}
    >>> report = optgap.fit(table, "linear-power", cv=0)
    >>> round(report.predict({"frequency_mhz": 1000}))
    116
    """
    estimator = make_estimator(model, **{"seed": seed, **settings})
    for name, given in (("columns", columns), ("units", units), ("extrapolate", extrapolate)):
        if given is not None and not isinstance(given, Mapping):
            raise InputError("fit", name, given, 'a mapping, such as {"clock": "frequency_mhz"}')
    if cv is not None and (not isinstance(cv, int) or isinstance(cv, bool)):
        raise InputError("fit", "cv", cv, "how many folds, or 0 for none")
    by = ",".join(map(str, by)) if isinstance(by, (list, tuple)) else by
    if by is not None and not isinstance(by, str):
        raise InputError("fit", "by", by, "a column, or several as 'a,b'")
    if not isinstance(table, Profile):
        profile = read_profile(
            table, columns=columns, units=units, strict=strict, by=by, reads=estimator.reads()
        )
    elif columns or units:
        found = NoQuote("columns or units beside a profile")
        raise InputError("fit", "columns", found, "them where the profile is read")
    else:
        profile = table
    if drop_missing:
        profile = without_missing(profile, estimator.reads())
    apart = [("leave_out", name) for name in ([] if leave_out is None else [leave_out])]
    apart += [("extrapolate", name) for name in extrapolate or {}]
    groups = [] if by is None else [("by", name) for name in profile.split(by)]
    for what, name in [*groups, *apart]:
        if not profile.has(name):
            raise InputError(profile.source, what, name, one_of(profile.columns))
    if len(apart) > 1:
        found = NoQuote("several ways")
        raise InputError("leave_out, extrapolate", "", found, "one column to hold rows out by")
    if by is None and model == DEVICES and "gpu_model" in profile:
        by = "gpu_model"
    folds = (10 if len(profile) < MANY_ROWS else 3) if cv is None else cv
    split = Split(folds, seed) if folds else None
    for _, column in apart:
        split = Split(column=column, upto=(extrapolate or {}).get(column))
    return report_of(estimator, profile, by, split)


def report_of(
    estimator: Estimator, table: object, by: str | None = None, split: Split | None = None
) -> FitReport[Any]:
    """Fit `estimator` to every group of `table` and judge it on rows held out by `split`.

    Parameters
    ----------
    split: what is held out; None skips it.

    Raises
    ------
    InputError: as `fit_groups`, and for a split that finds nothing to hold out; too few rows
        for folds are reported instead.
    """
    profile = estimator.prepare(table)
    fit = fit_groups(estimator, profile, by)
    notes = [f"{len(fit.fits)} groups"] if by else []
    notes += [f"not fitted: {reason}" for reason in fit.skipped]
    notes += [f"suspect: {item}" for item in audit(profile, by).suspects]
    notes += advice(profile, by, estimator.reads())
    if by is None and "application" in profile:
        count = len(set(profile["application"].tolist()))
        if count > 1:
            notes.append(f"{count} applications fitted as one; by application they are apart")
    held = None
    # no row is meant to draw full power: errors of held-out rows say nothing of devices
    if split is not None and estimator.name != DEVICES:
        try:
            held = cross_validate(estimator, profile, by, split, near=fit.fits)
        except InputError as error:
            if split.column:
                raise
            notes.append(f"nothing could be held out: {error}")
    draw_from(fit, profile)
    parts = carried(fit)
    notes += dict.fromkeys(filter(None, map(unknown, fit.fits.values())))
    if parts and not any(part.startswith("between") for part in parts):
        notes.append(f"intervals carry {' and '.join(parts)} error alone")
    return FitReport(fit, profile, held, str(split) if held else "", tuple(notes))
