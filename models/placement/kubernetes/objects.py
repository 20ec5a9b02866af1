"""Reader of the output of ``kubectl get nodes,pods -A -o json`` as plain objects by kind."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import load_any
from optgap.models.reading import Held, Path, read_text

Object = dict[str, Any]
COMMAND = "what `kubectl get nodes,pods,pdb -A -o json` prints"
KINDS = ("Node", "Pod", "PodDisruptionBudget")
OTHERS = (
    (r"(---\s|#.*\n)*\s*-?\s*(apiVersion|items|kind|metadata|spec):\s", "YAML"),
    (r"\s*Name:\s", "output of kubectl describe"),
    (r"\s*(NAMESPACE|NAME)\s", "a table of kubectl get"),
)
"""Lines that kubectl prints beside JSON."""


@dataclass
class Objects:
    """Objects of a cluster.

    Parameters
    ----------
    nodes, pods, budgets: objects of the API server; pods and nodes occur once each.
    warnings: remarks about odd values.
    """

    nodes: dict[str, Object] = field(default_factory=dict)
    pods: dict[str, Object] = field(default_factory=dict)
    budgets: list[Object] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_objects(path: Path) -> Objects:
    """Read nodes, pods and disruption budgets; ``-`` stands for standard input.

    Raises
    ------
    InputError: for text that is not JSON (with line and column) or no such list; for a node or
        pod that occurs twice with different uids, as in a file of two clusters.
    """
    source, text = str(path), read_text(path, stdin=True)
    for like, name in OTHERS:
        if re.match(like, text):
            expected = "JSON: kubectl get nodes,pods,pdb -A -o json"
            raise InputError(source, "", NoQuote(name), expected)
    document = load_any(Held(source, text), lenient=True)
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise InputError(source, "", NoQuote("no list of items"), COMMAND)
    found = Objects()
    for k, item in enumerate(items):
        if not isinstance(item, dict):
            raise InputError(source, f"field items[{k}]", item, COMMAND)
        _add(found, str(item.get("kind") or ""), item, f"items[{k}]", source=source)
    for name, there in (("nodes", found.nodes), ("pods", found.pods)):
        if not there:
            raise InputError(source, "", NoQuote(f"no {name}"), COMMAND)
    return found


def _add(found: Objects, kind: str, item: Object, place: str, *, source: str) -> None:
    if kind not in KINDS:
        if f"left out: {kind or 'objects without a kind'}" not in found.warnings:
            found.warnings.append(f"left out: {kind or 'objects without a kind'}")
        return
    meta = item.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        raise InputError(source, f"field {place}.metadata.name", NoQuote("nothing"), "a name")
    for part in ("spec", "status"):
        if not isinstance(item.get(part, {}), dict):
            raise InputError(source, f"field {place}.{part}", item[part], "an object")
    if kind == "PodDisruptionBudget":
        found.budgets.append(item)
        return
    there = found.nodes if kind == "Node" else found.pods
    name = meta["name"] if kind == "Node" else f"{meta.get('namespace', 'default')}/{meta['name']}"
    before = there.setdefault(name, item)
    if before["metadata"].get("uid") != meta.get("uid"):
        where = f"field {place}.metadata.uid"
        expected = f"one {kind.lower()} {name}: with two uids these are two clusters in one file"
        raise InputError(source, where, meta.get("uid"), expected)
