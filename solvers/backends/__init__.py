"""Solver back ends, one small file each; nothing here imports a solver.

A formulation is a `LinearModel` (``solvers/backends/linear.py``) and `solve` sends it to HiGHS or
CBC; what comes back is a `Solved` whichever solver ran. Formulations of CP-SAT's own go through
``solvers/backends/cpsat.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from optgap.models.errors import InputError, NoQuote, one_of

if TYPE_CHECKING:
    from optgap.models.limits import Limits
    from optgap.solvers.backends.linear import LinearModel, Solved


@dataclass(frozen=True, slots=True)
class Backend:
    """A solver that can be used, and what it can do.

    Parameters
    ----------
    name: as users type it.
    title: as its authors write it.
    packages: distributions it needs, with the versions that work.
    linear: takes a `LinearModel`.
    extra: of optgap, which installs what a plain installation may not have.
    """

    name: str
    title: str
    packages: Mapping[str, str]
    linear: bool = True
    extra: str = ""

    @property
    def module(self) -> str:
        return f"optgap.solvers.backends.{self.name}"

    @property
    def install(self) -> str:
        """The command that installs what is needed."""
        if self.extra:
            return f"pip install 'optgap[{self.extra}]'"
        return "pip install " + " ".join(f"'{name}{spec}'" for name, spec in self.packages.items())


# The ortools wheel bundles HiGHS 1.12 as libhighs.so.1 and highspy ships its own from 1.15 on:
# whichever is imported second dies with an undefined symbol (google/or-tools#5246).
# highspy 1.14.0 calls wrong solutions optimal (ERGO-Code/HiGHS#2957).
HIGHSPY = ">=1.12,<1.14"
ORTOOLS = ">=9.15.6755,<10"
PULP = {"pulp": ">=3.3.1,<5", "cbcbox": ">=2.931"}

BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend("highs", "HiGHS", {"highspy": HIGHSPY}),
        Backend("cbc", "CBC", PULP, extra="cbc"),
        Backend("cpsat", "CP-SAT", {"ortools": ORTOOLS}, linear=False),
    )
}


class BackendUnavailable(InputError):
    """A back end that was asked for cannot be used here; says why and what to install."""


@dataclass(frozen=True, slots=True)
class Usable:
    """One row of `optgap --version`: a back end, the versions found, and why it cannot be used."""

    name: str
    title: str
    versions: Mapping[str, str]
    reason: str

    @property
    def usable(self) -> bool:
        return not self.reason


def backends() -> list[Usable]:
    """Return every back end with its packages' versions, without importing any of them."""
    return [
        Usable(backend.name, backend.title, installed(backend), unusable(backend.name))
        for backend in BACKENDS.values()
    ]


def installed(backend: Backend) -> dict[str, str]:
    """Return the versions of the installed packages that a back end needs."""
    return {name: found for name in backend.packages if (found := _version(name))}


def unusable(name: str) -> str:
    """Return why a back end cannot be used and what to run, or "" if it can.

    The function looks at installed versions only; `available` also imports the back end.
    """
    reason = _trouble(name)
    return f"{reason}; run: {BACKENDS[name].install}" if reason else ""


def available(name: str) -> str:
    """Import a back end; "" when it works, else why not and what to run."""
    reason = _trouble(name) or _import_trouble(name)
    return f"{reason}; run: {BACKENDS[name].install}" if reason else ""


def require(name: str) -> Backend:
    """Return the back end of this name, ready to use.

    Raises
    ------
    InputError: for an unknown name.
    BackendUnavailable: if the back end cannot be used here, with the command that helps.
    """
    if name not in BACKENDS:
        raise InputError("back end", "", name, one_of(BACKENDS))
    reason = _trouble(name) or _import_trouble(name)
    if reason:
        raise BackendUnavailable(
            "back end", name, NoQuote(reason), f"what this installs: {BACKENDS[name].install}"
        )
    return BACKENDS[name]


def _trouble(name: str) -> str:
    """Return the trouble of a back end with the installed versions, in less than a line."""
    backend = BACKENDS[name]
    needed = {p: spec for p, spec in backend.packages.items() if _version(p) or not _carried(p)}
    missing = [package for package in needed if not _version(package)]
    if missing:
        return f"{' and '.join(missing)} not installed"
    if name == "highs":
        return _highspy_trouble(_version("highspy"), bool(_version("ortools")))
    for package, spec in needed.items():
        if not _satisfies(_version(package), spec):
            return f"{package} {_version(package)}, which is not {spec}"
    return ""


def _carried(package: str) -> bool:
    """PuLP 3 carries a CBC, PuLP 4 none."""
    return package == "cbcbox" and (0,) < _release(_version("pulp")) < (4,)


def _highspy_trouble(found: str, with_ortools: bool) -> str:
    release = _release(found)
    if release[:2] == (1, 14):
        return f"highspy {found}, which calls wrong solutions optimal (ERGO-Code/HiGHS#2957)"
    if release >= (1, 15) and with_ortools:
        return f"highspy {found} and ortools, which clash in a process (google/or-tools#5246)"
    if release < (1, 12):
        return f"highspy {found}, which is too old"
    return ""


def _import_trouble(name: str) -> str:
    try:
        import_module(BACKENDS[name].module).probe()
    except ImportError as error:
        return " ".join(str(error).split())
    return ""


def solve(model: LinearModel, *, backend: str, limits: Limits, **options: Any) -> Solved:
    """Send a linear model to a back end.

    Parameters
    ----------
    model: the formulation.
    backend: ``highs`` or ``cbc``.
    limits: time limit, interrupt and progress.
    options: see `Options` in ``solvers/backends/linear.py``.

    Raises
    ------
    InputError: for a back end that is unknown, unusable or not for such models, or a model with
        numbers that are none.
    """
    from optgap.models.limits import NO_MEMORY
    from optgap.models.result import Status, Termination
    from optgap.solvers.backends.linear import Options, Solved, without_work

    chosen = require(backend)
    if not chosen.linear:
        linear = [name for name, one in BACKENDS.items() if one.linear]
        raise InputError("back end", "", backend, one_of(linear))
    model.validate()
    trivial = without_work(model, limits)
    if trivial is not None:
        return trivial
    run = import_module(chosen.module).solve
    try:
        solved: Solved = run(model, limits, Options(**options))
    except MemoryError:  # what the method has found without this solver is worth keeping
        return Solved(Status.ERROR, Termination.ERROR, solver=chosen.title, message=NO_MEMORY)
    return solved


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _release(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: 1.13.1rc2 → (1, 13, 1)."""
    numbers: list[int] = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def _satisfies(found: str, spec: str) -> bool:
    release = _release(found)
    for clause in spec.split(","):
        wanted = _release(clause.lstrip("<>="))
        if clause.startswith(">=") and release < wanted:
            return False
        if clause.startswith("<") and release >= wanted:
            return False
    return True
