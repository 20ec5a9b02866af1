"""Amounts of every resource that a pod asks for, as the scheduler adds them up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from optgap.models.placement.kubernetes.objects import Object

Amounts = dict[str, int]
"""CPU in milli-vCPU, every other resource in its own unit (memory in bytes), rounded up."""
Key = tuple[str, ...]
"""A kind of device: a pod may only go to nodes that have the same kinds."""
_FORM = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE])([+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?))"
)
_SUFFIX = {
    "": Fraction(1),
    **{name: Fraction(10) ** (3 * k) for k, name in enumerate(("n", "u", "m"), -3)},
    **{name: Fraction(1000) ** k for k, name in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{name: Fraction(1024) ** k for k, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}


@dataclass
class Pod:
    """A pod on a node of the file.

    Parameters
    ----------
    name: ``namespace/name``.
    object: the API's object.
    asks: what it asks for.
    on_every_node: whether it belongs to its node (DaemonSet, static pod).
    cells: (GPUs, units of each, bits) of the cards it holds, an entry for each share of a card.
    keys: the kinds of device that it asks for.
    stays: why it must stay where it is, "" where it may move.
    """

    name: str
    object: Object
    asks: Amounts
    on_every_node: bool = False
    cells: list[tuple[int, int, int]] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)
    stays: str = ""

    def part(self, name: str) -> Mapping[str, Any]:
        """``labels`` or ``annotations``."""
        found: Mapping[str, Any] = self.object["metadata"].get(name) or {}
        return found


@lru_cache(maxsize=65536)
def quantity(text: str | int | float) -> Fraction:
    """The number that ``500m``, ``1536Mi`` or ``1e3`` stands for, exactly, by the API's own rule.

    Raises
    ------
    ValueError: for what is no quantity.
    """
    found = _FORM.fullmatch(str(text))
    if found is None or len(found[1]) > 40 or (found[3] and abs(int(found[3])) > 40):
        raise ValueError(f"{text!r} is no quantity")
    number = Fraction(found[1])
    return number * Fraction(10) ** int(found[3]) if found[2] else number * _SUFFIX[found[4]]


def whole(name: str, value: Fraction) -> int:
    """The amount in whole units, rounded up."""
    return -int(-value * (1000 if name == "cpu" else 1) // 1)


def requested(pod: Object) -> Amounts:
    """What a pod asks for.

    Containers and sidecars add up; an init container counts with the sidecars before it, by the
    maximum; requests of the pod itself replace CPU, memory and huge pages; the overhead is added.

    Raises
    ------
    ValueError: for a quantity that is none.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    told = {
        (key, state.get("name")): state
        for key in ("containers", "initContainers")
        for state in status.get(f"{key[:-1]}Statuses") or []
    }
    total: dict[str, Fraction] = {}
    staying: dict[str, Fraction] = {}
    peaks: list[dict[str, Fraction]] = []
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or []:
            own = _container(container, told.get((key, container.get("name"))))
            if key == "containers":
                _add(total, own)
            elif container.get("restartPolicy") == "Always":
                _add(staying, own)
            else:
                peaks.append(dict(staying))
                _add(peaks[-1], own)
    _add(total, staying)
    for peak in peaks:
        for name, value in peak.items():
            total[name] = max(total.get(name, Fraction(0)), value)
    for name, value in _amounts((spec.get("resources") or {}).get("requests")).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            total[name] = value
    _add(total, _amounts(spec.get("overhead")))
    return {name: whole(name, value) for name, value in total.items() if value}


def _container(container: Object, state: Object | None) -> dict[str, Fraction]:
    """A container's requests; a limit alone is one, and so is what a resize has not freed yet."""
    asked = container.get("resources") or {}
    found = _amounts({**(asked.get("limits") or {}), **(asked.get("requests") or {})})
    if state:
        live = (state.get("resources") or {}).get("requests")
        for there in (_amounts(state.get("allocatedResources")), _amounts(live)):
            for name in {"cpu", "memory"} & set(there):
                found[name] = max(found.get(name, Fraction(0)), there[name])
    return found


def _amounts(texts: Any) -> dict[str, Fraction]:
    found = {name: quantity(text) for name, text in (texts or {}).items()}
    for name, value in found.items():
        if value < 0:
            raise ValueError(f"{name} {texts[name]!r} is no quantity that can be asked for")
    return found


def _add(total: dict[str, Fraction], more: Mapping[str, Fraction]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, Fraction(0)) + value
