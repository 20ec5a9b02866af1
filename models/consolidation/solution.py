"""GPUs of every task, and frequencies of the GPUs, over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from optgap.models.errors import NoQuote
from optgap.models.shown import Brief

if TYPE_CHECKING:
    from optgap.models.consolidation.problem import ConsolidationProblem
    from optgap.models.csvout import Table
    from optgap.models.jsonio import Fields

SCHEMA = "optgap.consolidation.solution/1"


@dataclass(frozen=True, slots=True)
class Assignment:
    """Assignment of a task to `gpus` from `start_s` on (numbered through the cluster, ascending).

    A task that migrates has one assignment for each place. If all tasks are present at once,
    each task has one assignment, from 0 s on.
    """

    task: int
    gpus: tuple[int, ...]
    start_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Clock:
    """Frequency `mhz` of an active GPU from `time_s` on."""

    gpu: int
    mhz: float
    time_s: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class ConsolidationSolution(Brief):
    """Consolidation solution: assignments and frequencies, in order of time."""

    assignments: tuple[Assignment, ...]
    clocks: tuple[Clock, ...]

    @classmethod
    def of(
        cls, assignments: Iterable[Assignment], clocks: Iterable[Clock]
    ) -> ConsolidationSolution:
        """Make a solution of assignments and clocks in any order."""
        return cls(
            tuple(sorted(assignments, key=lambda a: (a.start_s, a.task))),
            tuple(sorted(clocks, key=lambda c: (c.time_s, c.gpu))),
        )

    def moved(self, by_s: float) -> ConsolidationSolution:
        """Return the same schedule with all times shifted by `by_s`."""
        return ConsolidationSolution(
            tuple(replace(a, start_s=a.start_s + by_s) for a in self.assignments),
            tuple(replace(c, time_s=c.time_s + by_s) for c in self.clocks),
        )

    def __len__(self) -> int:
        return len({a.task for a in self.assignments})

    def placements(self, problem: ConsolidationProblem) -> Table:
        """Return a row per assignment; a server that has all of its GPUs stands once."""
        rows = []
        for a in self.assignments:
            places = [problem.places[g] for g in a.gpus]
            servers = [server for server, _ in places]
            servers = servers if len(set(servers)) > 1 else servers[:1]
            name = problem.tasks[a.task].name
            rows.append((name, a.start_s, servers, [index for _, index in places]))
        return ("task", "start_s", "server", "gpu_index"), rows

    def to_json(self, problem: ConsolidationProblem) -> dict[str, Any]:
        """Return the JSON form; GPUs as [server, index in it].

        Where all tasks are present at once, `frequencies_mhz` has one list per server with 0
        for a GPU that sleeps; over time it lists the changes.
        """
        place = problem.places
        timed = problem.objective.goal == "energy"
        assignments = []
        for a in self.assignments:
            entry: dict[str, Any] = {
                "task": problem.tasks[a.task].name,
                "gpus": [list(place[g]) for g in a.gpus],
            }
            if timed:
                entry["start_s"] = a.start_s
            assignments.append(entry)
        if timed:
            clocks: list[Any] = [
                {"time_s": c.time_s, "gpu": list(place[c.gpu]), "mhz": c.mhz} for c in self.clocks
            ]
        else:
            clocks = [[0.0] * len(server.gpus) for server in problem.servers]
            for c in self.clocks:
                server, k = place[c.gpu]
                clocks[server][k] = c.mhz
        return {"schema": SCHEMA, "assignments": assignments, "frequencies_mhz": clocks}

    @classmethod
    def from_json(cls, fields: Fields, problem: ConsolidationProblem) -> ConsolidationSolution:
        """Read a solution of `problem`; tasks left out do not run.

        Raises
        ------
        InputError: for an unknown task or GPU, or a task given twice where nothing moves.
        """
        fields.schema(SCHEMA)
        timed = problem.objective.goal == "energy"
        numbers = {task.name: k for k, task in enumerate(problem.tasks)}
        assignments: list[Assignment] = []
        seen: set[int] = set()
        for entry in fields.objects("assignments"):
            name = entry.text("task")
            if name not in numbers:
                raise entry.fail("task", name, "a task of the problem")
            task = numbers[name]
            if task in seen and not timed:
                raise entry.fail("task", NoQuote(f"{name} twice"), "it once")
            seen.add(task)
            gpus = tuple(
                _gpu(entry, f"gpus[{k}]", pair, problem)
                for k, pair in enumerate(entry.array("gpus"))
            )
            start = entry.number("start_s", default=0.0) if timed else 0.0
            assignments.append(Assignment(task, tuple(sorted(gpus)), start))
        read = _timed_clocks if timed else _clocks
        return cls.of(assignments, read(fields, problem))


def _gpu(fields: Fields, where: str, pair: object, problem: ConsolidationProblem) -> int:
    whole = isinstance(pair, list) and len(pair) == 2 and all(type(x) is int for x in pair)
    found = problem.numbers.get(tuple(pair)) if whole else None  # type: ignore[arg-type]
    if found is None:
        raise fields.fail(where, pair, "[server, gpu] of the cluster")
    return found


def _timed_clocks(fields: Fields, problem: ConsolidationProblem) -> list[Clock]:
    return [
        Clock(
            _gpu(entry, "gpu", entry.array("gpu"), problem),
            entry.number("mhz"),
            entry.number("time_s", default=0.0),
        )
        for entry in fields.objects("frequencies_mhz")
    ]


def _clocks(fields: Fields, problem: ConsolidationProblem) -> list[Clock]:
    rows = fields.array("frequencies_mhz")
    if len(rows) != len(problem.servers):
        shown = NoQuote(f"{len(rows)} lists")
        raise fields.fail("frequencies_mhz", shown, f"one for each of {len(problem.servers)}")
    clocks = []
    for i, (row, server) in enumerate(zip(rows, problem.servers, strict=True)):
        where = f"frequencies_mhz[{i}]"
        numeric = isinstance(row, list) and all(type(x) in (int, float) for x in row)
        if not numeric or len(row) != len(server.gpus):
            raise fields.fail(where, row, f"{len(server.gpus)} clocks in MHz, 0 for a sleeping GPU")
        for j, mhz in enumerate(row):
            if mhz:
                clocks.append(Clock(problem.numbers[i, j], float(mhz)))
    return clocks
