"""Units of work for pieces of work: about a second of one quiet core each.

The constants were measured once and are never calibrated when the package runs, so that a budget
ends at the same place on every machine. They predict the CPU time within a factor of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Work in units per counted event.

    Parameters
    ----------
    lp, lp_entry
        A linear program: a constant, and per simplex iteration and row.
    lp_rows
        Rows that an iteration counts beside those of the program.
    mip_look, mip_entry
        An integer program in HiGHS: per call of its interrupt callback, and per simplex iteration
        and column.
    cpsat
        CP-SAT, per unit of its deterministic time.
    patterns, pattern_unit
        Placement: a pricing of node patterns, and per CPU unit of one node of every type.
    placed_row, moved_row
        Placement over time: a task that is put, and a move of annealing, per row of the books of
        the nodes that are looked at.
    queueing_start
        A job started on trial in a list of queueing.
    queueing_event
        An event of a queue that a policy serves.
    queueing_look
        A start that the bound by prices looks at.
    coscheduling_start
        A job started on trial in a list of coscheduling.
    """

    lp: float = 1.5e-4
    lp_entry: float = 1.1e-7
    lp_rows: int = 50
    mip_look: float = 3.4e-3
    mip_entry: float = 1.7e-7
    cpsat: float = 1.2
    patterns: float = 0.03
    pattern_unit: float = 1.95e-7
    placed_row: float = 2.5e-8
    moved_row: float = 1.6e-7
    queueing_start: float = 1e-7
    queueing_event: float = 1e-5
    queueing_look: float = 3e-8
    coscheduling_start: float = 3e-6

    def linear(self, iterations: int, rows: int) -> float:
        """Return the work of a linear program that took so many simplex iterations."""
        return self.lp + self.lp_entry * max(0, iterations) * (self.lp_rows + rows)

    def iterations(self, units: float, rows: int) -> float:
        """Return how many simplex iterations fit into `units`; infinite without a budget."""
        if not math.isfinite(units):
            return math.inf
        return max(1.0, (units - self.lp) / (self.lp_entry * (self.lp_rows + rows)))

    def integer(self, looks: int, iterations: int, columns: int) -> float:
        """Return the work of an integer program in HiGHS."""
        return self.mip_look * looks + self.mip_entry * max(0, iterations) * columns

    def pricing(self, cpu_units: int) -> float:
        """Return the work of a pricing of node patterns."""
        return self.patterns + self.pattern_unit * cpu_units

    def looks(self, units: float) -> float:
        """Return after how many looks an integer program is stopped; infinite without a budget."""
        return max(1.0, units / self.mip_look)


WORK = Work()


@dataclass(frozen=True)
class ElasticWork:
    """Work of the elastic family in units per counted event.

    Parameters
    ----------
    gain, step
        The bound at given prices: per value of an iteration, piece and configuration, and per
        value, piece after a job's submission and group of configurations.
    program, entry
        A program over events: making and pricing it, and per entry of its matrix.
    column
        The search for the best joint configuration of one interval.
    event, active
        A simulated decision: a constant, and per job of the problem.
    """

    gain: float = 2.6e-10
    step: float = 4.0e-9
    program: float = 4e-3
    entry: float = 8e-6
    column: float = 5e-4
    event: float = 4e-4
    active: float = 3e-6

    def prices(self, values: int, pieces: int, configurations: int, steps: int) -> float:
        """Return the work of one bound at given prices."""
        return values * (self.gain * pieces * configurations + self.step * steps)

    def simulated(self, events: int, jobs: int) -> float:
        """Return the work of a schedule that decides at so many events."""
        return events * (self.event + self.active * jobs)


ELASTIC = ElasticWork()


@dataclass(frozen=True)
class ConsolidationWork:
    """Work of consolidation's own loops, in units per counted event.

    Parameters
    ----------
    cell
        A cell of the tables that pricing fills.
    look
        A task that the search of pricing looks at.
    node
        A node of the enumeration of columns.
    rebuilt
        A share of a task, and 40 more, in a step of iterated greedy.
    filled
        A GPU that a task takes when GPUs are filled one by one.
    placed
        A GPU that construction compares for one of a task's GPUs.
    course
        A task and a pair of time buckets in pricing over time.
    packed
        A task and a GPU that a packing at an event compares, per order of packing.
    """

    cell: float = 2e-9
    look: float = 2e-8
    node: float = 1e-6
    rebuilt: float = 4e-6
    filled: float = 7e-6
    placed: float = 1e-8
    course: float = 1e-8
    packed: float = 9e-9


CONSOLIDATION = ConsolidationWork()
