"""Function behind ``optgap audit``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral
from typing import Any

from optgap.api import require_effort, require_seed, require_time_limit
from optgap.auditing.result import Audit
from optgap.comparing.gaps import compare
from optgap.models.errors import InputError, NoQuote, Said, one_of
from optgap.models.limits import Limits
from optgap.models.reading import Path
from optgap.registry import FAMILIES

KINDS = ("kubernetes", "slurm", "swf")
OPTIONS = {"kubernetes": ["plain"], "slurm": ["gpus", "pool", "wait", "zone"], "swf": ["gpus"]}
"""Options that ``--set`` knows, by kind."""


def audit(
    kind: str,
    source: Any,
    log: Any = None,
    *,
    moves: int | None = None,
    devices: Path | None = None,
    policies: str = "all",
    methods: str = "auto",
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> Audit:
    """Measure how far a real cluster's scheduler is from optimal.

    Parameters
    ----------
    kind
        ``kubernetes``, ``slurm`` or ``swf``; or a family, for a logged solution of a problem.
    source
        What the cluster printed: a path, or ``-`` for standard input; or a family's problem.
    log
        The logged solution of that problem: a path (CSV or JSON), or the solution.
    moves
        Number of migrations that the answer must have a plan for, for placements. Default: none.
    devices
        Power by GPU product (``model,idle_w,full_w``), for Kubernetes. Default: built in.
    policies, methods
        What runs beside a log, as for `compare`.
    time_limit
        Seconds after which the search of moves, or each method beside a log, is cut. Default: none.
    effort
        Factor by which all budgets of work are multiplied. Default 1.
    seed
        Seed of the random number generator. Default 0.
    limits
        Limits that can be interrupted and report progress.
    columns
        Our names for a family's log's own (``{"begin": "start_s:min"}``).
    **options
        For Slurm and SWF the pool's size as ``gpus``; for Slurm also ``pool``, ``wait``
        (``eligible`` or ``submit``) and ``zone``, whose local time the file has; for Kubernetes
        ``plain``.

    Returns
    -------
    Audit
        The gap of what happened, with `moves`, `to_frame` and `plot`.

    Raises
    ------
    InputError
        For a file that is not what the cluster prints, or an unknown option.

    Examples
    --------
    >>> import optgap
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> log = optgap.run(problem, "marble").solution
    >>> optgap.audit("coscheduling", problem, log).gap_to_bound >= 0
    True
    """
    require_time_limit(time_limit)
    require_effort(effort)
    require_seed(seed)
    given = options_of(kind, options)
    if (log is None) == (kind in FAMILIES):
        expected = "a log beside the problem" if kind in FAMILIES else "one file"
        raise InputError("audit", kind, NoQuote("no log" if log is None else "two"), expected)
    if columns and kind not in FAMILIES:
        raise InputError("--column", "", Said(f"not for {kind}"), "leave it out")
    if kind == "kubernetes":
        from optgap.auditing.kubernetes import audit_kubernetes

        return audit_kubernetes(
            source,
            moves=moves,
            devices=devices,
            limits=limits or Limits(time_limit, effort=effort),
            seed=seed,
            **given,
        )
    limits = limits or Limits()
    beside = partial(
        compare, policies=policies, methods=methods, time_limit=time_limit, effort=effort,
        seed=seed, limits=limits,
    )  # fmt: skip
    if kind in KINDS:
        from optgap.auditing.logged import audit_queue
        from optgap.models.queueing.slurm import read_slurm
        from optgap.models.queueing.swf import read_swf_log

        read: Any = read_slurm if kind == "slurm" else read_swf_log
        return audit_queue(kind, str(source), read(source, **given), beside)
    from optgap.auditing.logged import audit_solution

    return audit_solution(
        kind, source, log, beside, moves=moves, columns=columns, limits=limits, seed=seed
    )


def options_of(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a log of this kind, as text or as numbers.

    Raises
    ------
    InputError: for an unknown kind or option, or a value of the wrong type.
    """
    if kind not in (*KINDS, *FAMILIES):
        raise InputError("audit", "", kind, one_of((*KINDS, *FAMILIES)))
    known = OPTIONS.get(kind, [])
    for name in options:
        if name not in known:
            expected = one_of(known) if known else f"no option: {kind} has none"
            raise InputError("--set", "", name, expected)
    found = {name: value for name, value in options.items() if value is not None}
    gpus = found.get("gpus", 1)
    number = int(gpus) if isinstance(gpus, str) and gpus.isdigit() else gpus
    if not isinstance(number, Integral) or number < 1:
        raise InputError("--set", "gpus", gpus, "an integer of at least 1")
    return {**found, "gpus": int(number)} if "gpus" in found else found
