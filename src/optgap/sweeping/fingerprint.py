"""What a run depends on beside its inputs: code, solvers, Python."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import optgap
from optgap import fitting, heuristics, models, solvers
from optgap.registry import families
from optgap.versions import versions

PIN = "OPTGAP_SWEEP_CODE"
"""Environment variable that stands in for the hash of the sources: whoever edits code without
changing any number can keep results by it."""

WITHOUT_INFLUENCE = {
    *("python", "platform", "typer", "rich", "matplotlib"),
    *("pooch", "joblib", "pyarrow", "distributed", "optuna"),
}
"""Parts of `versions` that no objective, bound or solution depends on, or not in every digit."""


def digest(document: Mapping[str, Any]) -> str:
    """128 bits of the SHA-256 of a document in canonical JSON, in hexadecimal."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def code(family: str) -> str:
    """A hash of all that can change the outcome of a run in this family, its inputs aside.

    The source of models, solvers, heuristics and fitted models that the family can reach (so
    that an edit in a checkout counts, and one in another family does not), what has the
    referee look at solutions, and the versions of Python and of the packages that compute.
    """
    text = os.environ.get(PIN) or _hashed(_sources(family))
    block = {k: v for k, v in versions().items() if k not in WITHOUT_INFLUENCE}
    minor = ".".join(platform.python_version_tuple()[:2])
    return digest({"sources": text, "python": minor, "versions": block})


def _hashed(paths: list[Path]) -> str:
    sources = hashlib.sha256()
    for path in paths:
        sources.update(f"{path.parent.name}/{path.name}\0".encode())
        sources.update(path.read_bytes() + b"\0")
    return sources.hexdigest()


def _sources(family: str) -> list[Path]:
    face = Path(optgap.__file__).parent
    found = [face / "api.py", face / "sweeping" / "cell.py"]
    others = set(families()) - {family}
    for role in (models, solvers, heuristics, fitting):
        folder = Path(str(role.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            if not others & set(path.relative_to(folder).parts):
                found.append(path)
    return found
