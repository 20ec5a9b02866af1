"""From a table to a report: fit, hold out, and say what the audit found."""

from __future__ import annotations

from typing import Any

from optgap.fitting.audit import audit
from optgap.fitting.estimator import Estimator
from optgap.fitting.groups import cross_validate, fit_groups
from optgap.fitting.profile import Profile
from optgap.fitting.report import FitReport
from optgap.fitting.splits import Extrapolate, KFold, LeaveOneGroupOut, LeaveOneValueOut, Split
from optgap.models.errors import InputError


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
    notes += [f"suspect: {item}" for item in _merged(profile, by)]
    if by is None and "application" in profile:
        count = len(set(profile["application"].tolist()))
        if count > 1:
            notes.append(f"{count} applications fitted as one; by application they are apart")
    held = None
    words = ""
    if split is not None:
        try:
            held = cross_validate(estimator, profile, by, split)
            words = describe(split)
        except InputError as error:
            if not isinstance(split, KFold):
                raise
            notes.append(f"nothing could be held out: {error}")
    return FitReport(fit, profile, held, words, tuple(notes))


def _merged(profile: Profile, by: str | None) -> list[str]:
    """Findings of the audit, single points counted by column."""
    single: dict[str, int] = {}
    found = []
    for item in audit(profile, by).suspects:
        if len(item.rows) == 1:
            single[item.column] = single.get(item.column, 0) + 1
        else:
            found.append(str(item))
    found += [
        f"{count} points of {name} far from their neighbours" for name, count in single.items()
    ]
    return found


def describe(split: Split) -> str:
    """What a split holds out, in words."""
    if isinstance(split, KFold):
        return f"{split.folds} folds"
    if isinstance(split, LeaveOneValueOut):
        return f"leave one {split.column} out within each group"
    if isinstance(split, LeaveOneGroupOut):
        return f"leave one {split.column} out"
    if isinstance(split, Extrapolate):
        return f"{split.column} above {split.upto:g}"
    return type(split).__name__
