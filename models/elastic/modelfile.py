"""Models from a JSON file: tables, parameters of Eq. 1-15, or a saved fit."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass
from optgap.models.elastic.tables import Trained, job_class
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, load_json
from optgap.models.performance.energy import COLUMN_NAMES, EnergyModel
from optgap.models.performance.throughput import SYNC_NAMES, ThroughputModel

SCHEMA = "optgap.elastic.models/1"
FIT = "optgap.fit/1"

Maker = Callable[[int, Floats, int, int], JobClass]
"""``maker(batch, clocks, gpus, gpus_per_node)``"""


@dataclass(frozen=True)
class ModelFile:
    """What a file of models holds.

    Parameters
    ----------
    makers: how a class is made, by the model's name.
    clocks: (F,) MHz that the file names, or None where any will do.
    """

    makers: dict[str, Maker]
    clocks: Floats | None


def read_models(path: str | os.PathLike[str]) -> ModelFile:
    """Read ``optgap.elastic.models/1`` or an ``optgap.fit/1`` of powerflow-energy.

    Raises
    ------
    InputError: naming the field that is missing or not what it should be.
    """
    fields = Fields(load_json(path), str(path))
    schema = fields.text("schema")
    if schema == FIT:
        return _from_fit(fields)
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
        makers[name] = _tables(item, name, clocks) if "tables" in item.document else _terms(item)
    if not makers:
        raise fields.fail("models", NoQuote("nothing"), "at least one model")
    return ModelFile(makers, clocks)


# -- parameters of Eq. 1-15 ---------------------------------------------------------------


def _parameters(item: Fields, name: str) -> dict[str, float]:
    inner = item.object(name)
    return {key: inner.number(key, minimum=-math.inf) for key in inner.document}


def _terms(item: Fields) -> Maker:
    """``time`` and ``energy`` as objects of parameters, ``sync`` and ``form`` beside them."""
    sync = item.choice("sync", SYNC_NAMES, "paper")
    form = item.choice("form", COLUMN_NAMES, "continuous")
    model = Trained(
        item.text("name"),
        ThroughputModel(_parameters(item, "time"), sync),  # type: ignore[arg-type]  # checked
        EnergyModel(_parameters(item, "energy"), form),  # type: ignore[arg-type]  # checked
    )
    most = item.number("max_local_batch", minimum=1e-9, default=math.inf)
    return _maker(model, most)


def _maker(model: Trained, most: float = math.inf) -> Maker:
    def make(batch: int, clocks: Floats, gpus: int, per_node: int) -> JobClass:
        return job_class(
            model, batch, clocks, gpus=gpus, gpus_per_node=per_node, most_local_batch=most
        )

    return make


# -- tables -------------------------------------------------------------------------------


def _tables(item: Fields, name: str, clocks: Floats | None) -> Maker:
    """``tables``: one object per batch (0: any) with counts, time_s and power_w by clock."""
    if clocks is None:
        raise item.fail("tables", NoQuote("no frequencies_mhz in the file"), "clocks for them")
    found: dict[int, JobClass] = {}
    for table in item.objects("tables"):
        batch = table.integer("batch", default=0)
        counts = table.integers("counts", minimum=1)
        arrays = {}
        for key in ("time_s", "power_w"):
            rows = table.array(key)
            if len(rows) != len(counts):
                found_rows = NoQuote(f"{len(rows)} rows")
                raise table.fail(key, found_rows, f"{len(counts)}, one per count")
            inner = [
                Fields({key: row}, table.source, table.prefix).numbers(key, minimum=-math.inf)
                for row in rows
            ]
            if any(len(row) != len(clocks) for row in inner):
                raise table.fail(key, NoQuote("other rows"), f"{len(clocks)} clocks per row")
            arrays[key] = np.array(inner).reshape(len(counts), len(clocks))
        found[batch] = JobClass(name, batch, tuple(counts), arrays["time_s"], arrays["power_w"])

    def make(batch: int, _: Floats, gpus: int, per_node: int) -> JobClass:
        table = found.get(batch, found.get(0))
        if table is None:
            known = ", ".join(map(str, found))
            where = f"{item.prefix}tables ({name})"
            raise InputError(item.source, where, NoQuote(f"no batch {batch}"), f"one of {known}")
        return JobClass(name, batch, table.counts, table.time_s, table.power_w)

    return make


# -- saved fits ---------------------------------------------------------------------------


def _from_fit(fields: Fields) -> ModelFile:
    """Every group of a fit of powerflow-energy; its iteration time is stored inside."""
    if fields.text("model") != "powerflow-energy":
        expected = "'powerflow-energy', whose fits hold the iteration time, too"
        raise fields.fail("model", fields.text("model"), expected)
    makers: dict[str, Maker] = {}
    lows, highs = [], []
    for group in fields.objects("groups"):
        name = group.text("group")
        facts = group.object("state").object("facts")
        time = facts.object("time")
        settings = time.object("settings")
        energy = {**_numbers(facts), **_values(group)}
        form = facts.choice("form", COLUMN_NAMES, "continuous")
        sync = settings.choice("sync", SYNC_NAMES, "paper")
        terms = {**_numbers(time.object("state").object("facts")), **_values(time)}
        model = Trained(
            name or "model",
            ThroughputModel(terms, sync),  # type: ignore[arg-type]  # checked
            EnergyModel(energy, form),  # type: ignore[arg-type]  # checked
        )
        makers[model.name] = _maker(model)
        if "validity" in group.document and "frequency_mhz" in group.object("validity").document:
            span = group.object("validity").numbers("frequency_mhz")
            lows.append(span[0])
            highs.append(span[-1])
    if not makers:
        raise fields.fail("groups", NoQuote("nothing"), "at least one fitted group")
    clocks = None
    if lows and max(lows) < min(highs):  # where all of them were measured
        clocks = np.linspace(np.ceil(max(lows)), np.floor(min(highs)), 30).round()
        clocks = np.unique(clocks)
    return ModelFile(makers, clocks)


def _values(fields: Fields) -> dict[str, float]:
    params = fields.object("params")
    return {
        name: params.object(name).number("value", minimum=-math.inf) for name in params.document
    }


def _numbers(facts: Fields) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in facts.document.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
