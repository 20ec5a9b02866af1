"""The one function behind ``optgap audit``."""

from __future__ import annotations

from typing import Any

from optgap.api import require_seed, require_time_limit
from optgap.auditing.result import Audit
from optgap.models.errors import InputError, one_of
from optgap.models.limits import Limits
from optgap.models.reading import Path

KINDS = ("kubernetes",)


def audit(
    kind: str,
    source: Path,
    *,
    moves: int | None = None,
    devices: Path | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    **options: Any,
) -> Audit:
    """How far a real cluster's scheduler is from optimal.

    Parameters
    ----------
    kind: ``kubernetes``.
    source: what the cluster printed: a path, or ``-`` for standard input.
    moves: a number of migrations that the answer must have a plan for.
    devices: power by GPU product (``model,idle_w,full_w``), for Kubernetes.
    time_limit: seconds for the search; a bound is kept.

    Raises
    ------
    InputError: for a file that is not what the cluster prints.
    """
    require_time_limit(time_limit)
    require_seed(seed)
    if kind not in KINDS:
        raise InputError("audit", "", kind, one_of(KINDS))
    limits = limits or Limits(time_limit)
    from optgap.auditing.kubernetes import audit_kubernetes

    wanted = () if moves is None else (moves,)
    return audit_kubernetes(source, moves=wanted, devices=devices, limits=limits, seed=seed)
