"""What a run depends on beside its inputs: code, solvers, Python."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import optgap
from optgap.fingerprint import digest, hashed, sources, stack

__all__ = ["PIN", "code", "digest"]

PIN = "OPTGAP_SWEEP_CODE"
"""Environment variable that stands in for the hash of the sources: whoever edits code without
changing any number can keep results by it."""


@cache
def code(family: str) -> str:
    """A hash of all that can change the outcome of a run in this family, its inputs aside.

    The source of models, solvers, heuristics and fitted models that the family can reach, what
    has the referee look at solutions, and the versions of Python and of the packages that compute.
    """
    return digest({"sources": os.environ.get(PIN) or hashed(sources_of(family)), **stack()})


def sources_of(family: str) -> list[Path]:
    face = Path(optgap.__file__).parent
    return [face / "api.py", face / "sweeping" / "cell.py", *sources(family)]
