"""``optgap fit``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optgap.cli import CALL
from optgap.cli import options as opt
from optgap.fitting import ESTIMATORS
from optgap.models.errors import InputError, NoQuote, one_of

DEVICES = "device-power"
"""Model of two power levels, without held-out rows; a .csv file gets the levels as a table."""
DROPPED = ("missing", "suspects")
READING: dict[str, Any] = {"strict": True, "samples": True, "fields": ""}
"""Settings of the reader of files, beside those of the model."""

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.fitting.profile import Profile


Arguments = Annotated[
    list[str],
    opt.argument("[MODEL] CSV", f"a model, then profiles; models: {', '.join(ESTIMATORS)}"),
]


def command(
    *,
    arguments: Arguments,
    by: Annotated[
        str | None, opt.option("--by", "COL[,COL]", "fit each value of these columns apart")
    ] = None,
    cv: Annotated[
        str | None,
        opt.option(
            "--cv",
            "K|COL|COL>VALUE",
            "held out: K folds (10 or 3; 0 for none), a value of a column at a time, those above",
        ),
    ] = None,
    units: Annotated[
        list[str] | None, opt.option("--unit", "COL=UNIT", "the unit of a column; repeatable")
    ] = None,
    look: Annotated[
        bool, typer.Option("--audit", help="no MODEL: say what the profiles hold, fit nothing")
    ] = False,
    drop: Annotated[
        list[str] | None,
        opt.option(
            "--drop",
            "missing|suspects",
            "leave out rows with missing values, or that the audit suspects; repeatable",
        ),
    ] = None,
    columns: opt.Columns = None,
    settings: opt.Settings = None,
    output: Annotated[str | None, opt.option("--output -o", "FILE", "save the model here")] = None,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
) -> int:
    from optgap.cli.work import Output
    from optgap.fitting import make_estimator
    from optgap.fitting.devices import device_csv
    from optgap.fitting.workflow import fit
    from optgap.models.jsonio import dump_json, write_text
    from optgap.models.tables import guarded
    from optgap.parameters import assignments, typed

    _require_outputs(json, output, plot, arguments)
    given = assignments(settings or [], "--set")
    said = {name: given.pop(name) for name in READING if name in given}
    reading = {**READING, **typed(said, READING, "fit", "--set")}
    model, files = _split(arguments, look)
    named = {
        "columns": assignments(columns or [], "--column"),
        "units": assignments(units or [], "--unit"),
        "by": by,
        "reads": ESTIMATORS[model].load().reads() if model else (),
    }
    table = _table(files, named, reading)
    out = Output(json)
    if look:
        return _audit(out, table, by, plot)
    for kind in drop or []:
        if kind not in DROPPED:
            raise InputError("--drop", "", kind, one_of(DROPPED))
    if "suspects" in (drop or []):
        table = _without_suspects(table, by)
    nothing: dict[str, Any] = {"cv": 0, "leave_out": None, "extrapolate": None}
    held_out = nothing if model == DEVICES else _held_out(cv)
    values = typed(given, make_estimator(model).get_params(), model, "--set")
    whole = "missing" in (drop or [])
    report = fit(table, model, by=by, **held_out, drop_missing=whole, **{"seed": seed, **values})
    # files first: a reader of the text who has seen enough (| head) closes the pipe
    if output is not None and model == DEVICES and output.endswith(".csv"):
        write_text(output, guarded(device_csv(report.fit)))
    elif output is not None:
        dump_json(output, report.to_json())
    if plot is not None:
        report.plot(plot)
    out.line(str(report))
    out.document(report.to_json() if json is not None else {})
    out.wrote(output, plot, json)
    if (saved := output or json) is None:
        out.following("fit", "-o", "fit.json", *CALL.get().words, why="keeps the model")
    elif not saved.endswith(".csv"):
        out.following("report", saved, "-o", "report.html", why="as a page")
    return 0


def _require_outputs(
    json: str | None, output: str | None, plot: str | None, read: Sequence[str]
) -> None:
    from optgap.models.figures import require_ending

    opt.require_writable(json, output, plot, read=read)
    require_ending(plot)


def _audit(out: Output, table: Profile, by: str | None, plot: str | None) -> int:
    from optgap.fitting.audit import audit
    from optgap.fitting.plots import save_samples

    found = audit(table, by)
    if plot is not None:
        save_samples(plot, table)
    out.line(str(found))
    out.document(found.to_json())
    return 0


def _without_suspects(table: Profile, by: str | None) -> Profile:
    """Return the rows that no finding of the audit names."""
    import numpy as np

    from optgap.fitting.audit import audit

    suspects = audit(table, by).suspect_rows
    rows = np.setdiff1d(np.arange(len(table)), suspects)
    if not len(rows):
        raise InputError(table.source, "", NoQuote("suspects only"), "rows that the audit trusts")
    return table.take(rows).noting(f"{len(suspects)} suspect rows left out")


def _split(arguments: list[str], look: bool) -> tuple[str, list[str]]:
    """Return the model's name and the files."""
    if look:
        return "", arguments
    model, files = arguments[0], arguments[1:]
    if model not in ESTIMATORS:
        raise InputError("fit", "MODEL", model, one_of(ESTIMATORS))
    if not files:
        raise InputError("fit", "CSV", NoQuote("nothing"), "a profile to fit to")
    return model, files


def _table(files: list[str], named: dict[str, Any], reading: dict[str, Any]) -> Profile:
    from optgap.fitting.groups import reason
    from optgap.fitting.readers import read_profiles

    table = read_profiles(
        files,
        **named,
        strict=reading["strict"],
        sampled=reading["samples"],
        fields=[name for name in reading["fields"].split(",") if name],
    )
    if not named["reads"]:
        table = table.noting(
            *(f"{name} not read: {reason(e)}" for name, e in table.refused.items())
        )
    return table


def _held_out(text: str | None) -> dict[str, Any]:
    """Return the arguments of `fit` about held-out rows."""
    name, sign, value = (text or "").partition(">")
    found: dict[str, Any] = {"cv": None, "leave_out": None, "extrapolate": None}
    if text is None:
        return found
    try:
        if sign:
            return found | {"extrapolate": {name.strip(): float(value)}}
        return found | {"cv": int(text)}
    except ValueError:
        if sign:
            raise InputError("--cv", "", text, "K, COL, or COL>NUMBER") from None
    return found | {"leave_out": text}
