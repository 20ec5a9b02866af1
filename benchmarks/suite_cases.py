"""What `suite.py` measures: one case is one job that we and a rival do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

LIMIT = 20.0
"""Seconds that a solver is given where it need not come to an end."""

SIZES = (1, 2, 4, 8, 16)

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
    yield from consolidation()
    yield from coscheduling()
    yield from queueing()
    yield from elastic()
    yield from fitting()


def solving(
    family: str,
    method: str,
    params: dict[str, Any],
    first: dict[str, Any] | None = None,
    **options: Any,
) -> Callable[[], Work]:
    """Prepares `optgap.solve` on a preset; `first`: a small one that makes it compile."""

    def prepare() -> Work:
        import optgap

        if first is not None:
            optgap.solve(optgap.generate(family, **first), method, **options)
        problem = optgap.generate(family, **params)
        return lambda: optgap.solve(problem, method, **options)

    return prepare


def running(family: str, policy: str, params: dict[str, Any], **options: Any) -> Callable[[], Work]:
    """Prepares `optgap.run` on a preset."""

    def prepare() -> Work:
        import optgap

        problem = optgap.generate(family, **params)
        return lambda: optgap.run(problem, policy, **options)

    return prepare


def placement() -> Iterator[Case]:
    """FGD against a plain transcription, exact against the textbook MILP, bound against LP."""

    def plainly(size: int) -> Callable[[], Work]:
        def prepare() -> Work:
            from transcriptions.pwr_fgd import SlowRun

            import optgap

            problem = optgap.generate("placement", "alibaba", size=76 * size)

            def work() -> None:
                SlowRun(problem, "fgd").place_all()

            return work

        return prepare

    for size in SIZES:
        params = {"preset": "alibaba", "size": 76 * size}
        ours = running("placement", "fgd", params)
        yield Case("placement", "FGD", size, "plain Python", ours, plainly(size), warm=True)
    for size in SIZES:
        params = {"preset": "alibaba", "size": 8 * size}
        ours = solving("placement", "exact", params, time_limit=LIMIT)
        rival = solving("placement", "milp", params, backend="cbc", time_limit=LIMIT)
        yield Case("placement", "exact power", size, "textbook MILP, CBC", ours, rival)
    for size in SIZES:
        params = {"preset": "alibaba", "size": 76 * size}
        small = {"preset": "alibaba", "size": 2}
        ours = solving("placement", "patterns", params, small, time_limit=LIMIT)
        rival = solving("placement", "bound-pooled", params)
        yield Case("placement", "bound", size, "pooled nodes", ours, rival)


def consolidation() -> Iterator[Case]:
    """Exact against the printed formulation on CBC; CATS' decisions against plain Python."""
    for size in SIZES:
        params = {"size": 8 * size, "capacity": "none"}
        small = {"size": 8}
        ours = solving("consolidation", "exact", params, small, time_limit=LIMIT)
        printed = solving("consolidation", "printed", params, backend="cbc", time_limit=LIMIT)
        yield Case("consolidation", "exact", size, "printed formulation, CBC", ours, printed)
    for size in SIZES:
        fast, slow = partial(cats, size, False), partial(cats, size, True)
        yield Case("consolidation", "20 of CATS' decisions", size, "plain Python", fast, slow, True)


def cats(size: int, plainly: bool) -> Work:
    """Twenty decisions on a cluster that CATS has filled: 312 tasks on 128 GPUs at 1x."""
    from consolidation_cats import Cats, CatsParams, ConsolidationState, mixed, plain

    problem = mixed(seed=1, size=312 * size, servers=16 * size, capacity="none", samples=120)
    policy, state = Cats(CatsParams()), ConsolidationState(problem)
    ones = [k for k, task in enumerate(problem.tasks) if task.gpus == 1][-20:]
    for task in range(ones[0]):
        chosen = policy.decide(state, task)
        if chosen is not None:
            state.put(task, chosen)

    def work() -> None:
        for task in ones:
            if plainly:
                plain(problem, state, task)
            else:
                policy.decide(state, task)

    return work


def coscheduling() -> Iterator[Case]:
    """Proven energy against the closed-form bound; makespan against PyJobShop."""
    for size in SIZES:
        params = {"size": 12 * size}
        ours = solving("coscheduling", "oracle", params, {"size": 4}, time_limit=LIMIT)
        rival = solving("coscheduling", "bound-area", params)
        yield Case("coscheduling", "energy", size, "area bound alone", ours, rival)
    for size in SIZES:
        params = {"size": 12 * size, "goal": "makespan"}
        small = {"size": 4, "goal": "makespan"}
        ours = solving("coscheduling", "oracle", params, small, time_limit=LIMIT, workers=8)
        yield Case("coscheduling", "makespan", size, "PyJobShop", ours, partial(jobshop, size))


def jobshop(size: int) -> Work:
    """The same queue as a job shop."""
    if find_spec("pyjobshop") is None:
        raise SystemExit("skipped: pip install pyjobshop")
    from coscheduling_makespan import rival

    import optgap

    problem = optgap.generate("coscheduling", size=12 * size, goal="makespan")

    def work() -> SimpleNamespace:
        objective, bound, seconds = rival(problem, LIMIT)
        stopped = "time limit" if seconds >= LIMIT else "completed"
        gap = objective / bound - 1 if bound else None
        return SimpleNamespace(objective=objective, bound=bound, gap=gap, termination=stopped)

    return work


def queueing() -> Iterator[Case]:
    """Policies against a plain simulator of the rules as written; exact alone."""
    for policy in ("hps", "easy", "sbs"):
        for size in SIZES:
            whole = {"lookahead": 0} if policy == "sbs" else {}
            ours = running("queueing", policy, {"size": 125 * size}, **whole)
            slow = partial(one_by_one, policy, size)
            yield Case("queueing", policy, size, "plain Python", ours, slow, warm=True)
    for size in SIZES:
        params = {"size": 5 * size, "arrivals": "all_at_zero", "nodes": 1}
        ours = solving("queueing", "exact", params, params | {"size": 4}, time_limit=LIMIT)
        yield Case("queueing", "exact", size, "", ours, None)


def one_by_one(policy: str, size: int) -> Work:
    """A policy by lists and loops, from the tests."""
    from transcriptions.queue_schedulers import RULES, Slow

    import optgap

    problem = optgap.generate("queueing", size=125 * size)
    rule = RULES.get(policy) or RULES[f"{policy}(lookahead=0)"]

    def work() -> None:
        Slow(problem).run(rule)

    return work


def elastic() -> Iterator[Case]:
    """PowerFlow over a day; one decision, proven, against the same knapsack as a MILP."""
    for size in SIZES:
        params = {"preset": "day", "size": 119 * size, "gpus": 16 * size}
        ours = running("elastic", "powerflow", params)
        yield Case("elastic", "PowerFlow, a day", size, "", ours, warm=True)
    for size in SIZES:
        ours, milp = partial(decision, size, False), partial(decision, size, True)
        yield Case("elastic", "one decision", size, "MILP, HiGHS", ours, milp, warm=True)


def decision(size: int, by_milp: bool) -> Work:
    """Jobs at random stages, each at one of 8 GPU counts and 30 clocks."""
    from elastic_snapshot import GAP, Limits, apart, milp, snapshot, solve

    item = snapshot(30 * size, 32 * size)

    def work() -> SimpleNamespace:
        found = milp(item, limits=Limits(LIMIT), gap=GAP) if by_milp else solve(item, GAP)
        return SimpleNamespace(
            objective=found.objective,
            bound=found.bound,
            gap=apart(found),
            termination="completed" if found.proven else "time limit",
        )

    return work


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

    for size in SIZES:
        ours, rival = partial(prepare, 125 * size, False), partial(prepare, 125 * size, True)
        yield Case("fitting", "throughput", size, "scipy curve_fit", ours, rival, warm=True)
