"""The jobs of ``sacct --json``, of Slurm 22.05 to 24.11, as the columns of its table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import load_any
from optgap.models.queueing.slurm.table import JSON, Table, of_another
from optgap.models.reading import Held

NOT_SET = 4294967294
"""NO_VAL: what stands where there is no number."""


def read_document(text: str, source: str) -> Table:
    """Read the JSON form.

    Raises
    ------
    InputError: for what is no JSON, or has no list of jobs.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = load_any(Held(source, text))
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise InputError(source, "field jobs", NoQuote("no list"), f"what `{JSON}` prints")
    rows: list[dict[str, str]] = []
    for k, job in enumerate(jobs):
        if not isinstance(job, dict) or "job_id" not in job:
            raise InputError(source, f"field jobs[{k}].job_id", NoQuote("nothing"), "a job")
        if "job_state" in job and "time" not in job:
            raise of_another(source, "squeue")
        try:
            rows.append(_row(job))
        except (AttributeError, TypeError, ValueError, KeyError, IndexError):
            found = NoQuote("another shape")
            raise InputError(source, f"field jobs[{k}]", found, "a job of `sacct --json`") from None
    names = rows[0] if rows else _row({"job_id": 0})
    columns = {name: [row[name] for row in rows] for name in names}
    return Table(columns, [f"jobs[{k}]" for k in range(len(rows))])


def _row(job: dict[str, Any]) -> dict[str, str]:
    time, tres = job.get("time") or {}, job.get("tres") or {}
    state = (job.get("state") or {}).get("current")
    limit, elapsed = time.get("limit"), time.get("elapsed")
    endless = limit is None or (isinstance(limit, dict) and not _number(limit))
    return {
        "jobid": _name(job),
        "jobidraw": str(job["job_id"]),
        "user": str((job.get("association") or {}).get("user") or job.get("user") or ""),
        "partition": str(job.get("partition") or ""),
        "state": str(state[0] if isinstance(state, list) else state or ""),
        "submit": _time(time.get("submission")),
        **{name: _time(time.get(name)) for name in ("eligible", "start", "end")},
        "elapsedraw": "" if elapsed is None else str(_number(elapsed)),
        "suspended": f"0:{_number(time.get('suspended'))}",
        "timelimit": "UNLIMITED" if endless else str(_number(limit)),
        "reqtres": _tres(tres.get("requested")),
        "alloctres": _tres(tres.get("allocated")),
        "nodelist": str(job.get("nodes") or ""),
        "restarts": str(_number(job.get("restart_cnt"))),
    }


def _name(job: dict[str, Any]) -> str:
    """The id as the table has it: ``12_3`` in an array, ``36+1`` in a heterogeneous job."""
    array, het = job.get("array") or {}, job.get("het") or {}
    if het.get("job_id"):
        return f"{het['job_id']}+{_number(het.get('job_offset'))}"
    if array.get("job_id"):
        task = array.get("task_id")
        known = task.get("set", True) if isinstance(task, dict) else task is not None
        return f"{array['job_id']}_{_number(task) if known else '[' + str(array.get('task')) + ']'}"
    return str(job["job_id"])


def _number(value: Any) -> int:
    """A plain number, or ``{set, infinite, number}``; 0 for none."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else 0
    return int(value) if isinstance(value, (int, float)) else 0


def _time(value: Any) -> str:
    number = _number(value)
    return str(number) if 0 < number < NOT_SET else ""


def _tres(items: Sequence[Any] | None) -> str:
    """TRES as the table writes them, as far as GPUs go."""
    gres = [item for item in items or [] if item.get("type") == "gres"]
    return ",".join(f"gres/{item.get('name')}={_number(item.get('count'))}" for item in gres)
