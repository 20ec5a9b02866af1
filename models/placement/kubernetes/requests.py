"""Amounts of every resource that a pod requests, by the scheduler's own sums."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from optgap.models.placement.arrays import BoolArray
from optgap.models.placement.kubernetes.objects import Object

Amounts = dict[str, int]
"""Amounts by resource: CPU in milli-vCPU, others in their own unit, rounded up."""
Key = tuple[str, ...]
"""Kind of device; a pod may only go to nodes that have the same kinds."""
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
    """Pod on a node of the file.

    Parameters
    ----------
    name: ``namespace/name``.
    object: object of the API.
    asks: requested amounts.
    on_every_node: whether the pod belongs to its node (DaemonSet, static pod).
    cell: (GPUs, units of each, bits) of the cards that it holds.
    keys: kinds of device that the pod requests.
    stays: reason why the pod must stay; "" if it may move.
    node, allowed: index of its node, and the nodes (N,) that it may go to.
    """

    name: str
    object: Object
    asks: Amounts
    on_every_node: bool = False
    cell: tuple[int, int, int] = (0, 0, 0)
    keys: set[Key] = field(default_factory=set)
    stays: str = ""
    node: int = -1
    allowed: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def part(self, name: str) -> Mapping[str, Any]:
        """Return the ``labels`` or ``annotations``."""
        found: Mapping[str, Any] = self.object["metadata"].get(name) or {}
        return found


@lru_cache(maxsize=65536)
def quantity(text: str | int | float) -> Fraction:
    """Return the exact number that ``500m``, ``1536Mi`` or ``1e3`` stands for in the API.

    Raises
    ------
    ValueError: for a text that is no quantity.
    """
    found = _FORM.fullmatch(str(text))
    if found is None or len(found[1]) > 40 or (found[3] and abs(int(found[3])) > 40):
        raise ValueError(f"{text!r} is no quantity")
    number = Fraction(found[1])
    return number * Fraction(10) ** int(found[3]) if found[2] else number * _SUFFIX[found[4]]


def whole(name: str, value: Fraction) -> int:
    """Return the amount in whole units, rounded up."""
    return -int(-value * (1000 if name == "cpu" else 1) // 1)


def requested(pod: Object) -> Amounts:
    """Return the amounts that a pod requests.

    Containers and sidecars add up. An init container counts with the sidecars before it, by the
    maximum. Requests of the pod itself replace CPU, memory and huge pages; overhead is added.

    Raises
    ------
    ValueError: for a text that is no quantity.
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
    """Return a container's requests, with lone limits and what a resize has not freed yet."""
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
