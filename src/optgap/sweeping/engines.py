"""Engines of a sweep: this process, or by joblib processes of this machine, Dask or Ray."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any

from optgap.extras import require
from optgap.models.errors import InputError, NoQuote, Said, one_of
from optgap.processes import belong, cores
from optgap.sweeping.cells import Cell, Row, run_cell

ENGINES = ("processes", "dask", "ray", "serial")
CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Engine:
    """Engine that runs the cells of a sweep.

    Parameters
    ----------
    name: ``processes`` of this machine, a ``dask`` or ``ray`` cluster, or ``serial``: here.
    jobs: number of processes. Default: one per core. A running cluster ignores it.
    scheduler: address of a Dask scheduler, or of a Ray cluster. Without an address, Ray starts
        on this machine.

    Raises
    ------
    InputError: for another name, a missing package, or an address that the engine does not take.
    """

    name: str = "processes"
    jobs: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise InputError("--engine", "", self.name, one_of(ENGINES))
        if self.scheduler is None if self.name == "dask" else self.scheduler and self.name != "ray":
            found = Said("takes no --scheduler" if self.scheduler else "needs --scheduler ADDRESS")
            remedy = "give it with dask, and only with dask or ray"
            raise InputError("--engine", self.name, found, remedy)
        if self.jobs is not None and self.jobs < 1:
            raise InputError("--jobs", "", self.jobs, "at least 1")
        if self.name in ("dask", "ray"):
            require({"dask": "distributed"}.get(self.name, self.name), self.name)

    def run(self, cells: Sequence[Cell], stopped: Callable[[], bool]) -> Iterator[list[Row]]:
        """Yield the rows of each cell as it is done.

        Once `stopped` returns true, no further cell begins, and running cells end.

        Raises
        ------
        InputError: if a process has died, or the cluster does not answer.
        """
        left = iter(cells)
        going = iter(lambda: None if stopped() else next(left, None), None)
        if self.name == "serial":
            yield from map(run_cell, going)
            return
        import joblib  # a quarter of a second, which nothing else here needs

        away = joblib.delayed(partial(_away, os.getpid()))
        with ExitStack() as ends:
            count = self._begin(joblib, ends)
            try:
                if self.name == "ray":
                    # its back end returns whole lists alone: a few cells of each process at a time
                    while some := list(islice(going, 4 * count)):
                        yield from joblib.Parallel(count, batch_size=1)(map(away, some))
                else:
                    how = {"return_as": "generator_unordered", "pre_dispatch": "n_jobs"}
                    yield from joblib.Parallel(count, batch_size=1, **how)(map(away, going))
            except Exception as error:  # what goes wrong in a cell is part of its rows
                found = NoQuote(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
                expected = "processes that live; the same command goes on with what is missing"
                raise InputError("--engine", self.name, found, expected) from error

    def _begin(self, joblib: Any, ends: ExitStack) -> int:
        """Have joblib use the processes or the cluster until `ends` closes; return how many.

        Processes of this machine end with the sweep. After a kill, idle processes end within ten
        seconds. A Dask cluster runs the cells of a lost worker again.
        """
        if self.name == "processes":
            from joblib.externals.loky import get_reusable_executor

            count = self.jobs or cores()
            if count > 1:
                ends.callback(lambda: get_reusable_executor().shutdown(kill_workers=True))
            ends.enter_context(joblib.parallel_config("loky", idle_worker_timeout=10))
            return count
        try:
            if self.name == "dask":
                client = require("distributed", "dask").Client(
                    self.scheduler, timeout=CONNECT_S, set_as_default=False
                )
                ends.enter_context(client)
                ends.enter_context(joblib.parallel_config("dask", client=client))
                return -1
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would tell its makers
            ray = require("ray", "ray")
            own = {"num_cpus": self.jobs or cores(), "include_dashboard": False}
            here: dict[str, Any] = {} if self.scheduler else own
            ray.init(self.scheduler or "local", log_to_driver=False, logging_level="error", **here)
        except (OSError, RuntimeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            found = NoQuote(f"no answer ({type(error).__name__})")
            expected = f"a {self.name.capitalize()} cluster that answers"
            raise InputError("--scheduler", self.scheduler or "local", found, expected) from None
        ends.callback(ray.shutdown)
        require("ray.util.joblib", "ray").register_ray()
        ends.enter_context(joblib.parallel_config("ray"))
        return int(ray.cluster_resources().get("CPU", 1))


def _away(home: int, cell: Cell) -> list[Row]:
    """Run a cell in another process, which the process `home` began or a cluster has.

    A Dask worker runs cells beside its main thread, which alone may handle signals, and ends with
    its own cluster.
    """
    if os.getppid() == home and threading.current_thread() is threading.main_thread():
        _belong(home)
    return run_cell(cell)


_belong = cache(belong)
"""`belong`, called once in each process."""
