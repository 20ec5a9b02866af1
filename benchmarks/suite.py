"""Every family against its rivals, side by side: time, memory and gap, from 1x to 16x in size.

    python benchmarks/suite.py [-o bench.json] [--only TEXT] [--largest 16] [--cap 60]
    python benchmarks/suite.py --compare before.json after.json

Each side of each row runs in a process of its own, after a warm-up where compiled code would
otherwise be timed with its compilation. A rival that a time limit ended counts with what it had
by then, and the ratio is a lower limit (">"). What has not come back after the cap is ended and
labelled so; where that is a rival, its larger sizes are not tried. Ratios of one file come from
one machine within minutes, so they can be compared between commits where seconds cannot.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from suite_cases import Case, cases  # noqa: E402  # after the path is set

SCHEMA = "optgap.bench/1"
BRIEF_S, REPEATS = 0.3, 5
"""What takes less is done so often, and its fastest counts."""


def peak_mib() -> float:
    """Most memory that this process has held, MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that the work takes, and what it gives."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def measured(case: Case, side: str) -> dict[str, Any]:
    """One side of one row, in this process."""
    work = (case.ours if side == "ours" else case.theirs)()  # type: ignore[misc]
    repeats = REPEATS
    print("ready", flush=True)  # from here on the cap counts
    if case.warm and side == "ours":
        work()
    seconds, result = timed(work)
    while seconds < BRIEF_S and repeats > 1:
        seconds, repeats = min(seconds, timed(work)[0]), repeats - 1
    found = {"seconds": seconds, "mib": peak_mib(), "objective": None, "bound": None, "gap": None}
    if result is not None:
        found |= {"objective": result.objective, "bound": result.bound, "gap": result.gap}
        found["stopped"] = str(result.termination) != "completed"
    return found


def apart(case: Case, side: str, cap_s: float) -> dict[str, Any]:
    """One side of one row, in a process of its own that is ended after `cap_s`."""
    command = [sys.executable, str(HERE / "suite.py"), "--side", side, "--key", case.key]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()  # prepared, or ended
    try:
        out, err = process.communicate(timeout=cap_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # and the solvers that it started
        process.communicate()
        return {"stopped_at": cap_s}
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": last[:200]}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def commit() -> str:
    """The commit, with a mark where the tree differs from it."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def row(case: Case, cap_s: float, rival: bool = True) -> dict[str, Any]:
    """Both sides of a case and their ratio."""
    ours = apart(case, "ours", cap_s)
    theirs = apart(case, "theirs", cap_s) if case.theirs and rival else {}
    ratio = None
    took = theirs.get("seconds", theirs.get("stopped_at"))
    if "seconds" in ours and took is not None:
        ratio = took / max(ours["seconds"], 1e-9)
    return {
        "key": case.key,
        "family": case.family,
        "what": case.what,
        "size": case.size,
        "rival": case.rival,
        "ours": ours,
        "theirs": theirs,
        "ratio": ratio,
        "ratio_is_a_lower_limit": bool(theirs.get("stopped") or theirs.get("stopped_at")),
    }


def side_text(side: dict[str, Any]) -> str:
    """Seconds, memory and gap of one side."""
    if "error" in side:
        return f"{side['error'][:33]:>33}"
    if "stopped_at" in side:
        return f"{'stopped at':>10} {side['stopped_at']:.0f} s".ljust(33)
    if not side:
        return f"{'':33}"
    gap = "" if side["gap"] is None else f"{100 * side['gap']:.3f} %"
    return f"{side['seconds']:>10.4f} s {side['mib']:>7.0f} MiB {gap:>9}"


def row_text(found: dict[str, Any]) -> str:
    """One line of the table."""
    ratio = "" if found["ratio"] is None else f"{found['ratio']:.3g} x"
    if ratio and found["ratio_is_a_lower_limit"]:
        ratio = f"> {ratio}"
    sides = f"{side_text(found['ours'])}  {side_text(found['theirs'])}"
    return f"{found['key']:44} {sides} {ratio:>12}  {found['rival']}"


def compared(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """How ratios and gaps changed between two files, the largest changes first."""
    old = {item["key"]: item for item in before["rows"]}
    lines: list[tuple[float, str]] = []
    for item in after["rows"]:
        was = old.get(item["key"])
        if was is None or item["ratio"] is None or was["ratio"] is None:
            continue
        change = item["ratio"] / was["ratio"]
        gaps = [x["ours"].get("gap") for x in (was, item)]
        gap = "" if None in gaps else f"gap {100 * gaps[0]:.3f} % -> {100 * gaps[1]:.3f} %"
        text = f"{item['key']:44} {was['ratio']:>10.3g} x {item['ratio']:>10.3g} x {change:>8.2f}"
        lines.append((abs(math.log(change)), f"{text}  {gap}"))
    head = f"{'':44} {before['commit'][:12]:>12} {after['commit'][:12]:>12} {'change':>8}"
    return [head, *(text for _, text in sorted(lines, reverse=True))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", metavar="FILE", help="write the rows as JSON")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds it")
    parser.add_argument("--largest", type=int, default=16, metavar="N", help="sizes up to N x")
    parser.add_argument("--cap", type=float, default=60.0, metavar="S", help="per side of a row")
    parser.add_argument("--compare", nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compare:
        before, after = (json.loads(Path(name).read_text()) for name in arguments.compare)
        print("\n".join(compared(before, after)))
        return 0
    table = {case.key: case for case in cases()}
    if arguments.side:
        print(json.dumps(measured(table[arguments.key], arguments.side)))
        return 0
    from optgap.versions import versions

    rows: list[dict[str, Any]] = []
    slow: set[str] = set()
    started = time.perf_counter()
    print(f"{'':44} {'ours':>33}  {'rival':>33} {'ratio':>12}")
    for case in table.values():
        if arguments.only in case.key and case.size <= arguments.largest:
            what = f"{case.family}: {case.what}"
            rows.append(row(case, arguments.cap, what not in slow))
            if "stopped_at" in rows[-1]["theirs"]:
                slow.add(what)
            print(row_text(rows[-1]), flush=True)
    total = time.perf_counter() - started
    print(f"{len(rows)} rows in {total:.0f} s, each side of each {arguments.cap:g} s at most")
    document = {
        "schema": SCHEMA,
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
        "total_s": total,
        "cap_s": arguments.cap,
        "rows": rows,
    }
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
