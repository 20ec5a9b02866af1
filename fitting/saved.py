"""Writer and reader of fitted models as JSON (``optgap.fit/1``), without pickle or code."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from types import NoneType
from typing import Any

import numpy as np

from optgap.fitting import make_estimator
from optgap.fitting.estimator import Estimator
from optgap.fitting.groups import GroupedFit
from optgap.fitting.optimise import Floats, Parameter
from optgap.fitting.profile import Profile
from optgap.fitting.report import FitReport
from optgap.fitting.uncertainty import NESTED, Predictive, matrix, samples
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, dump_json, load_json
from optgap.models.performance.saved import SCHEMA


def save(path: str | os.PathLike[str], report: FitReport[Any]) -> None:
    """Write a fit with everything that predictions and judgements need."""
    dump_json(path, report.to_json())


def load(path: str | os.PathLike[str]) -> GroupedFit[Estimator]:
    """Read a fit back, ready to predict.

    Raises
    ------
    InputError: for a file that is no ``optgap.fit/1``, an unknown model, or fields that do not
        belong together.
    """
    return from_document(load_json(path), str(path))


def from_document(document: Mapping[str, Any], source: str) -> GroupedFit[Estimator]:
    """Return a fit from its JSON form."""
    fields = Fields(document, source)
    fields.schema(SCHEMA)
    base = _estimator(fields)
    fits: dict[str, Estimator] = {}
    for group in fields.objects("groups"):
        fits[group.text("group")] = restore(base, group)
    if not fits:
        raise fields.fail("groups", NoQuote("nothing"), "at least one fitted group")
    by = document.get("by")
    if by is not None and not isinstance(by, str):
        raise fields.fail("by", by, "a column name, or null")
    return GroupedFit(base, by, fits, fields.text("source", source))


def drawn(
    document: Mapping[str, Any],
    source: str,
    count: int,
    rng: np.random.Generator,
    *,
    which: Floats | None = None,
) -> list[dict[str, Any]]:
    """Return JSON forms of a fit with parameters that `uncertainty.samples` draws.

    Raises
    ------
    InputError: for a fit that carries no covariance.
    """
    fields = Fields(document, source)
    for group in fields.objects("groups"):
        if "covariance" not in group.document.get("state", {}):
            expected = "a fit as `optgap fit -o` saves it, which gaps' intervals are drawn from"
            raise group.fail("state", NoQuote("no covariance"), expected)
    found: list[dict[str, Any]] = [{**document, "groups": []} for _ in range(count)]
    fits = from_document(document, source).fits
    for group in fields.array("groups"):
        for k, one in enumerate(samples(fits[group["group"]], count, rng, which=which)):
            found[k]["groups"].append(_with_values(group, one))
    return found


def _with_values(group: Mapping[str, Any], one: Estimator) -> dict[str, Any]:
    """Return the JSON form of a group, or of an estimator in it, with the values of `one`."""
    params = {name: {**group["params"][name], "value": v} for name, v in one.params_.items()}
    facts, nested = group["state"]["facts"], one.facts_.get(NESTED)
    if nested is not None:
        facts = {**facts, NESTED: _with_values(facts[NESTED], nested)}
    return {**group, "params": params, "state": {**group["state"], "facts": facts}}


def _estimator(fields: Fields) -> Estimator:
    try:
        return make_estimator(fields.text("model"), **fields.object("settings").document)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise InputError(fields.source, error.where, error.found, error.expected) from None
        raise fields.fail("settings", NoQuote(error), "settings of the model") from None


def restore(base: Estimator, group: Fields) -> Estimator:
    """Return a fitted estimator from the JSON form of its group."""
    estimator, state = base.clone(), group.object("state")
    estimator.facts_ = _facts(state.object("facts"))
    params, values = _parameters(estimator, group)
    estimator.parameters_, estimator.theta_ = params, np.array(values)
    estimator.covariance_ = matrix(state, len(params), unknown=True)
    estimator.n_ = group.integer("n")
    estimator.r2_, estimator.mape_ = (_number(group, name, math.nan) for name in ("r2", "mape"))
    validity = group.object("validity")
    estimator.validity_ = {name: _pair(validity, name) for name in validity.document}
    estimator.warnings_ = group.texts("warnings")
    if "predictive" in state.document:  # files from before have none: parameter error alone
        predictive = Predictive.from_json(state.object("predictive"), len(params))
        estimator.predictive_ = predictive  # type: ignore[attr-defined]  # of reports alone
    return estimator


def _parameters(estimator: Estimator, group: Fields) -> tuple[tuple[Parameter, ...], list[float]]:
    """Return the parameters that the facts require, with the file's bounds, and their values."""
    try:
        known = tuple(estimator.parameters(Profile({}), estimator.facts_))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise group.fail("state.facts", NoQuote(repr(error)), "the facts of the model") from None
    params, expected = group.object("params"), [p.name for p in known]
    if list(params.document) != expected:
        raise group.fail("params", NoQuote(", ".join(params.document)), ", ".join(expected))
    found, values = [], []
    for p in known:
        item = params.object(p.name)
        ends = _number(item, "lower", -math.inf), _number(item, "upper", math.inf)
        found.append(replace(p, lower=ends[0], upper=ends[1]))
        values.append(item.number("value", *ends))
    return tuple(found), values


def _number(item: Fields, name: str, unknown: float) -> float:
    """Return a number; null stands for one that is not finite."""
    value = item.get(name, (int, float, NoneType), "a number, or null")
    return unknown if value is None else float(value)


def _facts(facts: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in facts.document.items():
        if name == NESTED:
            item = facts.object(name)
            found[name] = restore(
                _estimator(item), Fields({**item.document, "group": ""}, item.source, item.prefix)
            )
        elif isinstance(value, (bool, int, float, str)):
            found[name] = math.inf if value == "inf" else value
        elif isinstance(value, list):
            found[name] = facts.numbers(name, minimum=-math.inf)
        else:
            raise facts.fail(name, value, "a number, text or true/false")
    return found


def _pair(fields: Fields, name: str) -> tuple[float, float]:
    values = fields.numbers(name, minimum=-math.inf)
    if len(values) != 2:
        raise fields.fail(name, values, "two numbers")
    return values[0], values[1]
