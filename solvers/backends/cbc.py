"""CBC: the problem is written by PuLP and solved by cbcbox's executable, else by PuLP 3's own."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.backends.linear import FloatArray, LinearModel, Options, Solved, normalised
from optgap.solvers.backends.watch import GRACE_S, watch

BOUND = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)


def probe() -> None:
    """Find what it needs, or raise ImportError."""
    import pulp  # noqa: F401

    executable()


def executable() -> str:
    """Path of the CBC to run: cbcbox's where that is installed, else the one in PuLP 3.

    Raises
    ------
    ImportError: where there is neither, or PuLP 3 has none for this machine.
    """
    try:
        from cbcbox import cbc_bin_path
    except ModuleNotFoundError:
        return _bundled()
    return str(cbc_bin_path())


def _bundled() -> str:
    from pulp import PULP_CBC_CMD

    path = str(getattr(PULP_CBC_CMD, "pulp_cbc_path", ""))
    if not os.access(path, os.X_OK):
        raise ImportError("cbcbox not installed, and PuLP has no CBC that runs here")
    return path


def solve(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Solve with the CBC executable, in a folder of its own."""
    from optgap.solvers.backends.pulp_model import write_mps

    with tempfile.TemporaryDirectory(prefix="optgap-cbc-") as name:
        folder = Path(name)
        if not write_mps(model, folder / "model.mps", limits):
            stopped = limits.stop or Termination.TIME_LIMIT
            told = "stopped while the model was written"
            return Solved(Status.NO_SOLUTION, stopped, solver=_name(), message=told)
        if options.start is not None:
            _write_start(folder / "start.sol", model, options.start)
        command = [executable(), "model.mps", *_arguments(limits, options)]
        with open(folder / "log", "w") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C reaches it once, through `watch`
            )
            asked: list[int] = []
            try:
                watch(process.wait, limits, lambda: _stop(process, asked), _grace(limits))
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        try:
            return _read(model, folder, process.returncode, limits, options.gap)
        except (ValueError, IndexError) as error:  # half a file, or not CBC's
            told = f"CBC ended with code {process.returncode}, its answer is unreadable: {error}"
            return Solved(Status.ERROR, Termination.ERROR, solver=_name(), message=told)


def _grace(limits: Limits) -> float:
    """How long CBC may take to write what it has: a time limit is kept, within 10 % and 0.7 s."""
    limit = limits.time_limit
    return GRACE_S if limit is None else min(GRACE_S, 0.5 + 0.08 * limit)


def _arguments(limits: Limits, options: Options) -> list[str]:
    arguments = ["-timeMode", "elapsed"]
    if math.isfinite(limits.remaining):
        arguments += ["-sec", f"{limits.remaining:.3f}"]
    arguments += ["-ratioGap", str(options.gap), "-allowableGap", "1e-9"]
    arguments += ["-randomCbcSeed", str(options.seed % 2**31)]
    if options.workers > 1:
        arguments += ["-threads", str(options.workers)]
    if options.start is not None:
        arguments += ["-mipstart", "start.sol"]
    return [*arguments, "-solve", "-printingOptions", "all", "-solution", "solution.txt"]


def _stop(process: subprocess.Popen[bytes], asked: list[int]) -> None:
    # CBC takes the first SIGINT as "finish now and write what you have", more as "give up".
    if process.poll() is None and not asked:
        asked.append(signal.SIGINT)
        if os.name == "nt":
            process.terminate()
        else:
            process.send_signal(signal.SIGINT)


def _write_start(path: Path, model: LinearModel, start: FloatArray) -> None:
    lines = ["Stopped on time - objective value 0"]
    lines += [f"{j} x{j} {float(value)!r} 0" for j, value in enumerate(start)]
    path.write_text("\n".join(lines) + "\n")


def _read(model: LinearModel, folder: Path, code: int | None, limits: Limits, gap: float) -> Solved:
    """CBC's solution file says why it stopped; the log alone knows the bound."""
    log = (folder / "log").read_text(errors="replace")
    path = folder / "solution.txt"
    head, *lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else [""]
    optimal = head.startswith("Optimal")
    infeasible = head.startswith(("Infeasible", "Integer infeasible"))
    stopped = head.startswith("Stopped") and "no integer solution" not in head
    sign = 1.0 if model.sense == "min" else -1.0
    values = _values(model, lines) if optimal or stopped else None
    found = BOUND.search(log)
    bound = sign * _at_least(found.group(1)) + model.offset if found else None
    if optimal and values is not None:
        if limits.stop is not None and not model.whole(values):
            # out of time after its first linear program, CBC calls that one's optimum the model's
            optimal, bound, values = False, model.objective(values), None
        else:
            bound = _proven(model, values, gap, bound)
    termination = Termination.COMPLETED if optimal or infeasible else Termination.ERROR
    if not (optimal or infeasible) and (head.startswith("Stopped") or limits.stop is not None):
        termination = limits.stop or Termination.TIME_LIMIT
    return normalised(
        model,
        solver=_name(),
        proven=optimal,
        infeasible=infeasible,
        values=values,
        bound=bound,
        termination=termination,
        message=(head.strip() or f"CBC ended with code {code}")
        if termination is Termination.ERROR
        else "",
    )


def _proven(model: LinearModel, values: FloatArray, gap: float, logged: float | None) -> float:
    """The bound that "optimal" within a gap means, or the log's: that may have few digits."""
    objective = model.objective(model.rounded(values))
    sign = 1.0 if model.sense == "min" else -1.0
    meant = objective - sign * gap * abs(objective - model.offset)
    if logged is None:
        return meant
    return max(meant, logged) if model.sense == "min" else min(meant, logged)


def _name() -> str:
    try:
        import cbcbox  # noqa: F401
    except ModuleNotFoundError:
        return f"CBC (PuLP {version('pulp')})"
    return f"CBC (cbcbox {version('cbcbox')})"


def _at_least(text: str) -> float:
    """A number from CBC's log less half a unit of its last digit: it may be rounded up."""
    mantissa, _, exponent = text.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return float(text) - 0.5 * 10.0 ** (int(exponent or 0) - digits)


def _values(model: LinearModel, lines: list[str]) -> FloatArray:
    """The columns' values; a variable in no row and without cost was not written."""
    values: FloatArray = np.clip(np.zeros(model.variables), model.lower, model.upper)
    for line in lines:
        cells = line.replace("**", " ").split()
        if len(cells) >= 3 and cells[1].startswith("x"):
            values[int(cells[1][1:])] = float(cells[2])
    return values
