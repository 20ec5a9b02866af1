"""What `suite.py` measures: one case is one job that we and a rival do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

LIMIT = 30.0
"""Seconds that a rival is given where it need not come to an end."""

Work = Callable[[], Any]
"""Does the job once; returns an `optgap.Result` where there is one."""


@dataclass(frozen=True)
class Case:
    """One row.

    Parameters
    ----------
    family, what: where it belongs and what is done.
    size: how many times the smallest.
    rival: who does it, too; "" for nobody.
    ours, theirs: prepare the job, unmeasured, and return the work.
    warm: do ours once before it is timed (compiled code).
    """

    family: str
    what: str
    size: int
    rival: str
    ours: Callable[[], Work]
    theirs: Callable[[], Work] | None = None
    warm: bool = False

    @property
    def key(self) -> str:
        return f"{self.family}: {self.what}, {self.size}x"


def cases() -> Iterator[Case]:
    """Every case, family by family."""
    yield from placement()
    yield from coscheduling()
    yield from fitting()


def solving(family: str, method: str, params: dict[str, Any], **options: Any) -> Callable[[], Work]:
    """Prepares `optgap.solve` on a preset."""

    def prepare() -> Work:
        import optgap

        problem = optgap.generate(family, **params)
        return lambda: optgap.solve(problem, method, **options)

    return prepare


def running(family: str, policy: str, params: dict[str, Any]) -> Callable[[], Work]:
    """Prepares `optgap.run` on a preset."""

    def prepare() -> Work:
        import optgap

        problem = optgap.generate(family, **params)
        return lambda: optgap.run(problem, policy)

    return prepare


def placement() -> Iterator[Case]:
    """FGD against a plain transcription, exact against the textbook MILP, bound against LP."""

    def plainly(size: int) -> Callable[[], Work]:
        def prepare() -> Work:
            from slow_placement import SlowRun

            import optgap

            problem = optgap.generate("placement", "alibaba", size=76 * size)

            def work() -> None:
                SlowRun(problem, "fgd").place_all()

            return work

        return prepare

    for size in (1, 2, 4, 8, 16):
        params = {"preset": "alibaba", "size": 76 * size}
        ours = running("placement", "fgd", params)
        slow = plainly(size) if size <= 2 else None
        yield Case("placement", "FGD", size, "plain Python" if slow else "", ours, slow, warm=True)
    for size in (1, 2, 4):
        params = {"preset": "small", "size": 10 * size}
        ours = solving("placement", "exact", params)
        rival = solving("placement", "milp", params, backend="cbc", time_limit=LIMIT)
        yield Case("placement", "exact power", size, "textbook MILP, CBC", ours, rival)
    for size in (1, 2, 4, 8, 16):
        params = {"preset": "alibaba", "size": 76 * size}
        ours = solving("placement", "patterns", params)
        rival = solving("placement", "bound-types", params)
        yield Case("placement", "bound", size, "linear program over types", ours, rival)


def coscheduling() -> Iterator[Case]:
    """Proven energy against the closed-form bound."""
    for size in (1, 2, 4, 8, 16):
        params = {"size": 12 * size}
        ours = solving("coscheduling", "oracle", params, time_limit=LIMIT)
        rival = solving("coscheduling", "bound-area", params)
        yield Case("coscheduling", "energy", size, "area bound alone", ours, rival)


def fitting() -> Iterator[Case]:
    """Throughput of training against scipy's curve_fit from the same starts."""

    def prepare(rows: int, by_curve_fit: bool) -> Work:
        import fitting_speed as speed

        table = speed.profile(rows, 0.05, 0)
        estimator = speed.PowerFlowThroughput(starts=4)

        def work() -> None:
            if by_curve_fit:
                speed.by_curve_fit(estimator, table)
            else:
                estimator.fit(table)

        return work

    for size in (1, 4, 16):
        ours, rival = partial(prepare, 125 * size, False), partial(prepare, 125 * size, True)
        yield Case("fitting", "throughput", size, "scipy curve_fit", ours, rival, warm=True)
