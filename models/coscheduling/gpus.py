"""Choice of concrete GPUs for GPU counts, the same for every method and policy."""

from __future__ import annotations

from collections.abc import Iterable

from optgap.models.coscheduling.problem import CoschedulingProblem
from optgap.models.coscheduling.solution import CoschedulingSolution, JobRun
from optgap.models.times import slack_s


class Node:
    """Node with the holders of its GPUs and NUMA domains.

    GPU g belongs to domain ⌊g·K/M⌋. A job owns the lowest free domain and takes that domain's
    free GPUs first, then the lowest others.
    """

    def __init__(self, problem: CoschedulingProblem) -> None:
        self.free = set(range(problem.gpus))
        self.domains = set(range(problem.numa))
        self.owner = [g * problem.numa // problem.gpus for g in range(problem.gpus)]
        self.held: dict[int, tuple[int, tuple[int, ...]]] = {}

    def start(self, job: int, count: int) -> tuple[int, ...]:
        """Give `job` a domain and `count` GPUs, which must be free."""
        domain = min(self.domains)
        ranked = sorted(self.free, key=lambda g: (self.owner[g] != domain, g))
        chosen = tuple(sorted(ranked[:count]))
        self.domains.remove(domain)
        self.free.difference_update(chosen)
        self.held[job] = (domain, chosen)
        return chosen

    def end(self, job: int) -> None:
        """Take them back."""
        domain, gpus = self.held.pop(job)
        self.domains.add(domain)
        self.free.update(gpus)


def placed(
    problem: CoschedulingProblem, starts: Iterable[tuple[int, int, float]]
) -> CoschedulingSolution:
    """Return the schedule behind (job, GPU count, start in s) triples that keep both capacities."""
    node = Node(problem)
    running: list[JobRun] = []
    runs: list[JobRun] = []
    for job, count, start in sorted(starts, key=lambda item: (item[2], item[0])):
        for run in [run for run in running if run.end_s <= start + slack_s(start)]:
            node.end(run.job)
            running.remove(run)
        end = start + problem.mode(job, count).runtime_s
        run = JobRun(job, start, end, node.start(job, count))
        running.append(run)
        runs.append(run)
    return CoschedulingSolution.of(runs)
