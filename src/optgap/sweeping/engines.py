"""Where cells run: here, in processes of this machine (by joblib), or on a cluster."""

from __future__ import annotations

import itertools
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args
from uuid import uuid4

from optgap.extras import require
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.processes import cores
from optgap.sweeping.cell import Cell, Row, failed, run_cell

Name = Literal["processes", "dask", "ray", "serial"]
STRIKES = 2
"""How many worker processes a cell may take down, running alone, before it counts as failed."""
CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Engine:
    """How cells are run.

    Parameters
    ----------
    name: ``processes`` of this machine, a ``dask`` or ``ray`` cluster, or ``serial`` in this
        process.
    jobs: how many processes; by default one per core. A cluster has as many as it has.
    scheduler: the address of a Dask scheduler, or of a Ray cluster; without one, Ray is started
        on this machine.

    Raises
    ------
    InputError: for another name, a scheduler where there is none, or ``dask`` without one.
    """

    name: str = "processes"
    jobs: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.name not in get_args(Name):
            raise InputError("--engine", "", self.name, one_of(get_args(Name)))
        with_one = {"dask": (True,), "ray": (True, False)}.get(self.name, (False,))
        if (self.scheduler is not None) not in with_one:
            found = NoQuote("it with" if self.scheduler else "it without") + " --scheduler"
            expected = "--scheduler ADDRESS with dask, and only with dask or ray"
            raise InputError("--engine", self.name, NoQuote(found), expected)
        if self.jobs is not None and self.jobs < 1:
            raise InputError("--jobs", "", self.jobs, "at least 1")

    def require(self) -> None:
        """Raise InputError when the package that the engine needs is missing."""
        if self.name == "dask":
            require("distributed", "dask")
        elif self.name == "ray":
            require("ray", "ray")
        elif self.name == "processes":
            require("joblib", "sweep")

    def run(self, cells: Sequence[Cell], stopped: Callable[[], bool]) -> Iterator[Row]:
        """The rows of all cells, in the order in which they are done.

        Once `stopped` says so, no further cell is begun; those that are running end.

        Raises
        ------
        InputError: when a package is missing or the scheduler does not answer.
        """
        if self.name == "serial":
            for cell in cells:
                if stopped():
                    return
                yield run_cell(cell)
            return
        if self.name == "ray":
            yield from _ray(self.scheduler, self.jobs, cells, stopped)
        elif self.scheduler is not None:
            yield from _cluster(self.scheduler, cells, stopped)
        else:
            yield from self._processes(cells, stopped)

    def _processes(self, cells: Sequence[Cell], stopped: Callable[[], bool]) -> Iterator[Row]:
        with _own_processes():
            yield from self._rounds(cells, stopped)

    def _rounds(self, cells: Sequence[Cell], stopped: Callable[[], bool]) -> Iterator[Row]:
        """Rows as they come; what is left is handed out again when a process has died."""
        left = {cell.key: cell for cell in cells}
        strikes: dict[str, int] = {}
        while left and not stopped():
            out: set[str] = set()
            # those that were at work when a process died go one at a time: the one that
            # takes its process down shows itself, the others get through
            suspects = [key for key in left if key in strikes]
            turn = suspects[:1] or list(left)
            try:
                for row in _joblib(self.jobs or cores(), [left[k] for k in turn], out, stopped):
                    out.discard(row["key"])
                    strikes.pop(row["key"], None)
                    del left[row["key"]]
                    yield row
            except _lost() as error:
                for key in out:
                    strikes[key] = strikes.get(key, 0) + bool(suspects)
                    if strikes[key] >= STRIKES:
                        yield _given_up(left.pop(key), error)


# -- processes of this machine -------------------------------------------------------------


@contextmanager
def _own_processes() -> Iterator[None]:
    """Processes that begin and end with a sweep.

    joblib keeps them for whoever comes next, in the folder and the environment of when they began.
    """
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(reuse=True).shutdown()
    try:
        yield
    finally:
        get_reusable_executor(reuse=True).shutdown()


def _joblib(
    jobs: int, cells: Sequence[Cell], out: set[str], stopped: Callable[[], bool]
) -> Iterator[Row]:
    """Rows as they come; `out` holds the keys of the cells that have been handed out."""
    import joblib

    def tasks() -> Iterator[Any]:
        for cell in cells:
            if stopped():
                return
            out.add(cell.key)
            yield joblib.delayed(_remote)(cell)

    work = joblib.Parallel(
        n_jobs=max(2, jobs),  # with one, joblib would run the cells in this process
        backend="loky",
        batch_size=1,
        # each process that is at work has its next cell waiting
        pre_dispatch=2 * jobs if jobs > 1 else 1,
        return_as="generator_unordered",
    )
    yield from work(tasks())


def _remote(cell: Cell) -> Row:
    """`run_cell` in a process of its own, which ends with the one that hands out the cells."""
    import multiprocessing

    # a worker of a cluster is nobody's child here, and has its own rules
    if multiprocessing.parent_process() is not None:
        _obey()
    return run_cell(cell)


@cache
def _obey() -> None:
    """Leave Ctrl-C to the parent process, and do not outlive it."""
    import signal
    import threading
    import time

    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=watch, daemon=True).start()


def _lost() -> tuple[type[BaseException], ...]:
    """What is raised when a process of this machine has died."""
    from concurrent.futures.process import BrokenProcessPool

    from joblib.externals.loky.process_executor import TerminatedWorkerError

    return BrokenProcessPool, TerminatedWorkerError


def _given_up(cell: Cell, error: BaseException) -> Row:
    """The row of a cell that nobody survives."""
    reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
    text = f"its worker process died, time and again: {reason}"
    return cell.head | failed(text, "fault")


# -- a Dask cluster ------------------------------------------------------------------------


def _cluster(address: str, cells: Sequence[Cell], stopped: Callable[[], bool]) -> Iterator[Row]:
    """Rows as they come from a Dask cluster, which hands the cells of a lost worker to others.

    Not through joblib: it would run the cells here while the cluster has one worker, take no
    notice of workers that join later, and give up everything with the first cell that nobody
    survives.
    """
    import distributed
    from distributed.comm.core import CommClosedError

    client = _connect(distributed, address)
    try:
        with client:
            yield from _futures(distributed, client, cells, stopped)
    except (distributed.CancelledError, ConnectionError, CommClosedError) as error:
        found = NoQuote(f"a connection that broke off ({type(error).__name__})")
        expected = "a Dask scheduler; --resume goes on"
        raise InputError("--scheduler", address, found, expected) from None


def _futures(
    distributed: Any, client: Any, cells: Sequence[Cell], stopped: Callable[[], bool]
) -> Iterator[Row]:
    waiting = iter(cells)
    running: dict[Any, Cell] = {}
    done = distributed.as_completed([], loop=client.loop)

    def hand_out() -> None:
        """Two cells for each thread that the cluster has now, none once we are to stop."""
        room = 0 if stopped() else max(2, 2 * sum(client.nthreads().values())) - len(running)
        for cell in itertools.islice(waiting, max(0, room)):
            future = client.submit(run_cell, cell, key=f"optgap-{cell.key}-{uuid4()}", pure=False)
            running[future] = cell
            done.add(future)

    hand_out()
    while running:
        future = next(done)
        cell = running.pop(future)
        try:
            row = future.result()
        except distributed.KilledWorker as error:
            row = _given_up(cell, error)
        yield row
        hand_out()


def _connect(distributed: Any, address: str) -> Any:
    """A client of the scheduler at this address."""
    try:
        return distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        found = NoQuote(f"no answer ({type(error).__name__})")
        raise InputError("--scheduler", address, found, "a Dask scheduler") from None


# -- Ray -----------------------------------------------------------------------------------


def _ray(
    address: str | None, jobs: int | None, cells: Sequence[Cell], stopped: Callable[[], bool]
) -> Iterator[Row]:
    """Rows as they come from a Ray cluster, or from Ray on this machine.

    Not through joblib either: its Ray backend gives results only once all are there.
    """
    # Ray would tell its makers what it is used for
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if address is not None:
        _require_answer(address)  # Ray itself would try for minutes
    here = {"num_cpus": jobs or cores(), "include_dashboard": False} if address is None else {}
    try:
        # what befalls a worker is in the row that it was to make
        ray.init(address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **here)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        found = NoQuote(f"no answer ({type(error).__name__})")
        raise InputError("--scheduler", address or "local", found, "a Ray cluster") from None
    try:
        yield from _ray_tasks(ray, cells, stopped)
    except ray.exceptions.RaySystemError as error:
        found = NoQuote(f"a connection that broke off ({type(error).__name__})")
        raise InputError(
            "--scheduler", address or "local", found, "a Ray cluster; --resume goes on"
        ) from None
    finally:
        ray.shutdown()


def _require_answer(address: str) -> None:
    """Raise InputError when nobody listens at ``HOST:PORT`` or ``ray://HOST:PORT``."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        raise InputError("--scheduler", "", address, "HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        found = NoQuote(f"no answer ({type(error).__name__})")
        raise InputError("--scheduler", address, found, "a Ray cluster") from None


def _ray_tasks(ray: Any, cells: Sequence[Cell], stopped: Callable[[], bool]) -> Iterator[Row]:
    task = ray.remote(max_retries=STRIKES)(run_cell)
    waiting = iter(cells)
    running: dict[Any, Cell] = {}
    while True:
        room = 0 if stopped() else 2 * int(ray.cluster_resources().get("CPU", 1)) - len(running)
        for cell in itertools.islice(waiting, max(0, room)):
            running[task.remote(cell)] = cell
        if not running:
            return
        (done, *_), _ = ray.wait(list(running), num_returns=1)
        cell = running.pop(done)
        try:
            row = ray.get(done)
        except ray.exceptions.WorkerCrashedError as error:
            row = _given_up(cell, error)
        yield row
