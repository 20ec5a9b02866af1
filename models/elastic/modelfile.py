"""Models from a JSON file: tables, or a saved fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.document import by_count
from optgap.models.elastic.fits import Fitted, together
from optgap.models.elastic.jobs import JobClass
from optgap.models.elastic.tables import Maker
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, load_json
from optgap.models.performance.saved import SCHEMA as FIT
from optgap.models.performance.saved import FittedParameters, read_fits

SCHEMA = "optgap.elastic.models/1"


@dataclass(frozen=True)
class ModelFile:
    """Content of a file of models.

    Parameters
    ----------
    makers: how a class is made, by the model's name.
    clocks: (F,) MHz that the file names, or None where any will do.
    fits, fitted: the fits that it comes from, and what they say together.
    """

    makers: dict[str, Maker]
    clocks: Floats | None
    fits: Sequence[FittedParameters] = ()
    fitted: Fitted | None = None


def read_models(models: Any) -> ModelFile:
    """Read ``optgap.elastic.models/1``, or fits (``optgap.fit/1``) that together say enough.

    Parameters
    ----------
    models: the path of a file, a fit, or a list of either.

    Raises
    ------
    InputError: naming the field that is missing or not what it should be; as `fits.together`.
    """
    several = list(models) if isinstance(models, (list, tuple)) else [models]
    document = load_json(several[0]) if isinstance(several[0], (str, os.PathLike)) else {}
    if len(several) > 1 or document.get("schema") in (None, FIT):
        fits = read_fits(several)
        fitted = together(fits)
        return ModelFile(dict(fitted.makers), fitted.clocks, fits, fitted)
    path = several[0]
    fields = Fields(document, str(path))
    schema = fields.text("schema")
    if schema != SCHEMA:
        raise fields.fail("schema", schema, f"{SCHEMA!r} or {FIT!r}")
    clocks = (
        np.array(fields.numbers("frequencies_mhz", minimum=1.0))
        if "frequencies_mhz" in fields.document
        else None
    )
    makers: dict[str, Maker] = {}
    for item in fields.objects("models"):
        name = item.text("name")
        if name in makers:
            raise item.fail("name", name, "a name of its own")
        makers[name] = _tables(item, name, clocks)
    if not makers:
        raise fields.fail("models", NoQuote("nothing"), "at least one model")
    return ModelFile(makers, clocks)


def _tables(item: Fields, name: str, clocks: Floats | None) -> Maker:
    """Return ``tables``: one object per batch (0: any) with counts, time_s and power_w by clock."""
    if clocks is None:
        raise item.fail("tables", NoQuote("no frequencies_mhz in the file"), "clocks for them")
    found: dict[int, JobClass] = {}
    for table in item.objects("tables"):
        batch = table.integer("batch", default=0)
        counts = table.integers("counts", minimum=1)
        tables = by_count(table, len(counts), len(clocks))
        found[batch] = JobClass(name, batch, tuple(counts), *tables)

    def make(batch: int, _: Floats, gpus: int, per_node: int) -> JobClass:
        table = found.get(batch, found.get(0))
        if table is None:
            known = ", ".join(map(str, found))
            where = f"{item.prefix}tables ({name})"
            raise InputError(item.source, where, NoQuote(f"no batch {batch}"), f"one of {known}")
        return JobClass(name, batch, table.counts, table.time_s, table.power_w)

    return make
