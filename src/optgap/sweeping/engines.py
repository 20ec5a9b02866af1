"""Where cells run: here, in processes of this machine (joblib's), or on a Dask or Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from optgap.extras import require
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.processes import LOOK_EVERY_S, Processes, cores
from optgap.sweeping.cells import Cell, Row, run_cell

ENGINES = ("processes", "dask", "ray", "serial")
STRIKES = 2
"""How many processes a cell may take down before it counts as failed."""
CONNECT_S = 10.0
Submit = Callable[[Cell], "Future[list[Row]]"]


@dataclass(frozen=True, slots=True)
class Engine:
    """How cells are run: one loop over futures of joblib's, Dask's or Ray's processes.

    Parameters
    ----------
    name: ``processes`` of this machine, a ``dask`` or ``ray`` cluster, or ``serial``: here.
    jobs: how many processes; by default one per core. A cluster has as many as it has.
    scheduler: the address of a Dask scheduler, or of a Ray cluster; without one, Ray is started
        on this machine.

    Raises
    ------
    InputError: for another name, a missing package, or an address where none belongs.
    """

    name: str = "processes"
    jobs: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise InputError("--engine", "", self.name, one_of(ENGINES))
        if self.scheduler is None if self.name == "dask" else self.scheduler and self.name != "ray":
            found = NoQuote(f"it with{'' if self.scheduler else 'out'} --scheduler")
            expected = "--scheduler ADDRESS with dask, and only with dask or ray"
            raise InputError("--engine", self.name, found, expected)
        if self.jobs is not None and self.jobs < 1:
            raise InputError("--jobs", "", self.jobs, "at least 1")
        if self.name in ("dask", "ray"):
            require({"dask": "distributed"}.get(self.name, self.name), self.name)

    def run(
        self, cells: Sequence[Cell], stopped: Callable[[], bool]
    ) -> Iterator[tuple[Cell, list[Row]]]:
        """Cells with their rows, as they are done.

        Once `stopped` says so, no further cell is begun; those that are running end.

        Raises
        ------
        InputError: when the scheduler does not answer.
        """
        waiting, strikes = iter(cells), dict.fromkeys((cell.key for cell in cells), 0)
        running: dict[Future[list[Row]], Cell] = {}
        with getattr(self, self.name)() as (submit, room):
            while True:
                while len(running) < room() and not stopped() and (cell := next(waiting, None)):
                    running[submit(cell)] = cell
                if not running:
                    return
                for future in wait(running, LOOK_EVERY_S, FIRST_COMPLETED).done:
                    cell = running.pop(future)
                    try:
                        yield cell, future.result()
                    except (CancelledError, OSError) as error:
                        raise self._silent("a connection that broke off", error) from None
                    except Exception as error:  # its process has died
                        strikes[cell.key] += 1
                        if self.name == "processes" and strikes[cell.key] < STRIKES:
                            running[submit(cell)] = cell
                            continue
                        words = " ".join(f"its worker process died: {error}".split())[:300]
                        yield cell, cell.failed(RuntimeError(words))

    def _silent(self, what: str, error: BaseException) -> InputError:
        found = NoQuote(f"{what} ({type(error).__name__})")
        cluster = f"a {self.name.capitalize()} cluster that answers; the same command goes on"
        return InputError("--scheduler", self.scheduler or "local", found, cluster)

    @contextmanager
    def serial(self) -> Iterator[tuple[Submit, Callable[[], int]]]:
        """How a cell is handed out, and how many may be at once."""

        def here(cell: Cell) -> Future[list[Row]]:
            future: Future[list[Row]] = Future()
            future.set_result(run_cell(cell))
            return future

        yield here, lambda: 1

    @contextmanager
    def processes(self) -> Iterator[tuple[Submit, Callable[[], int]]]:
        """The same for processes of this machine, which end with the sweep."""
        count = self.jobs or cores()
        pool = Processes(count)
        try:
            yield (lambda cell: pool.submit(run_cell, cell)), (lambda: count)
        finally:
            pool.kill()

    @contextmanager
    def dask(self) -> Iterator[tuple[Submit, Callable[[], int]]]:
        """The same for a Dask cluster, which runs the cells of a lost worker again."""
        distributed = require("distributed", "dask")
        try:
            client = distributed.Client(self.scheduler, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise self._silent("no answer", error) from None
        with client, client.get_executor(pure=False) as executor:
            yield (
                lambda cell: executor.submit(run_cell, cell),
                lambda: max(2, 2 * sum(client.nthreads().values())),
            )

    @contextmanager
    def ray(self) -> Iterator[tuple[Submit, Callable[[], int]]]:
        """The same for a Ray cluster, or Ray on this machine."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would tell its makers
        ray = require("ray", "ray")
        own = {"num_cpus": self.jobs or cores(), "include_dashboard": False}
        here: dict[str, Any] = {} if self.scheduler else own
        try:
            ray.init(self.scheduler or "local", log_to_driver=False, **here)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise self._silent("no answer", error) from None
        task = ray.remote(max_retries=STRIKES)(run_cell)
        try:
            yield (
                lambda cell: task.remote(cell).future(),
                lambda: 2 * int(ray.cluster_resources().get("CPU", 1)),
            )
        finally:
            ray.shutdown()
