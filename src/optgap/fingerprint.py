"""Hashes of what a result depends on: documents, sources, versions."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from optgap import fitting, heuristics, models, solvers
from optgap.registry import families
from optgap.versions import versions

WITHOUT_INFLUENCE = {
    *("python", "platform", "typer", "rich", "matplotlib"),
    *("pooch", "joblib", "pyarrow", "distributed", "ray", "optuna"),
}
"""Parts of `versions` that no objective, bound or solution depends on, or not in every digit."""


def digest(document: Mapping[str, Any]) -> str:
    """128 bits of the SHA-256 of a document in canonical JSON, in hexadecimal."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stack() -> dict[str, Any]:
    """The versions of Python and of the packages that compute."""
    block = {k: v for k, v in versions().items() if k not in WITHOUT_INFLUENCE}
    return {"python": ".".join(platform.python_version_tuple()[:2]), "versions": block}


def sources(family: str) -> list[Path]:
    """Source files of models, solvers, heuristics and fitting that a family can reach.

    An edit in a checkout counts, and one in another family does not.
    """
    found = []
    others = set(families()) - {family}
    for role in (models, solvers, heuristics, fitting):
        folder = Path(str(role.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            if not others & set(path.relative_to(folder).parts):
                found.append(path)
    return found


def hashed(paths: Iterable[Path]) -> str:
    """One hash of several source files, with their names."""
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.parent.name}/{path.name}\0".encode())
        total.update(path.read_bytes() + b"\0")
    return total.hexdigest()
