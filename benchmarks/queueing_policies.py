"""How fast are the queueing policies?

Prints seconds per policy on 1,000 jobs beside the plain simulator that the tests use, and their
ratio; what an event costs as the queue grows, for streams that arrive all at once; and, with
--data, seconds per policy on the 82,247 jobs of the Philly trace.

    python benchmarks/queueing_policies.py [--quick] [--data DIR]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from optgap.heuristics.queueing import POLICIES
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.presets import from_csv, mixed
from optgap.models.result import Outcome

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from transcriptions.queue_schedulers import RULES, Slow

QUEUES = (1_000, 3_000, 10_000, 30_000)
PHILLY = Path("profiles/traces/philly_jobs.csv.gz")
PHILLY_NODES = 48


def timed(problem: QueueingProblem, name: str) -> tuple[float, Outcome]:
    """Seconds of one run, and what it gave."""
    function = POLICIES[name].load()
    started = time.perf_counter()
    outcome = function(problem, limits=Limits(), seed=0)
    return time.perf_counter() - started, outcome


def thousand(quick: bool) -> None:
    problem = mixed(seed=0, size=1000)
    print(problem.summary)
    for name in POLICIES:  # compile, or fetch what is compiled already
        timed(problem, name)
    print("policy           ours s   plain s   ratio")
    total = 0.0
    for name in POLICIES:
        ours = min(timed(problem, name)[0] for _ in range(3))
        total += ours
        rule = RULES.get(name) or RULES.get(f"{name}(lookahead=0)")
        if rule is None or quick:
            print(f"{name:14} {ours:8.4f}")
            continue
        started = time.perf_counter()
        Slow(problem).run(rule)
        plain = time.perf_counter() - started
        print(f"{name:14} {ours:8.4f} {plain:9.2f} {plain / ours:7.0f}x")
    print(f"all of them    {total:8.4f}")


def queues() -> None:
    print("\nµs per event by longest queue, all jobs arriving at once")
    print("policy        " + "".join(f"{size:>10,}" for size in QUEUES) + "   growth")
    for name in POLICIES:
        each = []
        for size in QUEUES:
            problem = mixed(seed=0, size=size, arrivals="all_at_zero")
            seconds, outcome = timed(problem, name)
            each.append(1e6 * seconds / int(outcome.info["events"]))
        growth = each[-1] / each[0]
        print(f"{name:14}" + "".join(f"{x:10.1f}" for x in each) + f"   {growth:5.1f}x")


def philly(folder: Path) -> None:
    problem = from_csv(folder / PHILLY, nodes=PHILLY_NODES)
    print(f"\n{problem.summary}")
    print("policy              s  µs/event  longest queue")
    for name in POLICIES:
        seconds, outcome = timed(problem, name)
        each, longest = 1e6 * seconds / outcome.info["events"], outcome.info["longest_queue"]  # type: ignore[operator]
        print(f"{name:14} {seconds:6.2f} {each:9.1f} {longest:14,}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the thousand jobs only, ours alone")
    parser.add_argument("--data", default=os.environ.get("OPTGAP_DATA"), help="public traces")
    options = parser.parse_args()
    thousand(options.quick)
    if not options.quick:
        queues()
    if options.data and (Path(options.data) / PHILLY).is_file() and not options.quick:
        philly(Path(options.data))
