"""``optgap profile``."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Annotated

import typer

from optgap.cli import DONE, PARTIAL
from optgap.cli import options as opt
from optgap.models.errors import InputError, NoQuote


def command(
    workload: Annotated[
        list[str] | None, opt.argument("COMMAND", "after `--`: sample while this runs")
    ] = None,
    output: Annotated[
        str, opt.option("--output -o", "CSV", "where the samples go")
    ] = "profile.csv",
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", callback=opt.positive, help="how long at most"),
    ] = None,
    interval: Annotated[float, opt.option("--interval", "S", "seconds between samples")] = 0.1,
    gpus: Annotated[str | None, opt.option("--gpus", "0,1,…", "which GPUs (default: all)")] = None,
    json: opt.JsonFile = None,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.cli.work import Output
    from optgap.fitting.nvml import Nvml
    from optgap.fitting.sampler import sample
    from optgap.models.jsonio import write_text

    opt.require_writable(json, output)
    if not workload and seconds is None:
        found = NoQuote("neither --seconds nor a command")
        raise InputError("profile", "", found, "how long to sample")
    chosen = _indices(gpus)
    machine = Nvml()
    try:
        with _interruptible() as interrupted, _running(workload) as over:
            limit = float("inf") if seconds is None else seconds

            def stop(elapsed: float) -> bool:
                return elapsed >= limit or interrupted() or over()

            text = sample(machine, stop, interval_s=interval, indices=chosen)
            early = interrupted()
    finally:
        machine.close()
    write_text(output, text)
    out = Output(json, quiet or output == "-")
    count = text.count("\n") - 1
    out.line(f"{count} samples in {output}; optgap fit … {output} cuts them into runs")
    out.document({"schema": "optgap.profile/1", "output": output, "samples": count})
    return PARTIAL if early else DONE


def _indices(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError("--gpus", "", text, "numbers with commas between them") from None


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C ends the sampling and keeps what there is."""
    asked: list[int] = []

    def note(signum: int, frame: FrameType | None) -> None:
        asked.append(signum)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread
        before = {}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _running(workload: list[str] | None) -> Iterator[Callable[[], bool]]:
    """The command beside the sampling; it is ended if it outlasts it."""
    if not workload:
        yield lambda: False
        return
    try:
        process = subprocess.Popen(workload)
    except OSError as error:
        raise InputError("profile", workload[0], NoQuote(error.strerror), "a command") from None
    try:
        yield lambda: process.poll() is not None
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
