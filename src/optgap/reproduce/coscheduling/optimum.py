"""The Oracle: the authors' plan and bound beside a proven optimum, and every policy's gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from optgap.api import bound, run, solve
from optgap.models.coscheduling import CoschedulingProblem, CoschedulingSolution
from optgap.models.coscheduling.measured import read_schedule
from optgap.models.coscheduling.presets import within
from optgap.models.result import Result
from optgap.render import number
from optgap.reproduce.coscheduling import LOG
from optgap.reproduce.coscheduling.charts import charts
from optgap.reproduce.coscheduling.queues import H100, PLATFORMS, Platform, policies, queue
from optgap.reproduce.coscheduling.savings import AUTHORS_TAU
from optgap.reproduce.report import Item, Report, Row, Study, Tolerance

AUTHORS = {"H100": (0.6, 360), "V100": (4.7, 1200)}
"""Gap in percent at which the authors' solver stopped, and after how many seconds."""
PLAN_J = 481_710.45
"""What the authors' solver gave their plan on H100, J."""
EXACT = Tolerance(0.01, unit="J")


def oracle(item: Item, study: Study) -> Report:
    """Optima with proof, gaps, and the schedules as pictures."""
    assert study.data is not None
    rows: list[Row] = []
    schedules: list[tuple[str, CoschedulingProblem, CoschedulingSolution | None]] = []
    for platform in PLATFORMS:
        problem = queue(platform, study.data)
        study.proceed(f"optimum on {platform.name}")
        best = solve(problem, limits=study.limits.within(120))
        gap, seconds = AUTHORS[platform.name]
        claim = f"{platform.name}: solver's gap, and after how long"
        ours = f"{100 * (best.gap or 0):.4f} %, {best.seconds:.1f} s"
        note = f"{number(best.objective or 0)} J, {best.status}; {best.bound_by}"
        rows.append(Row(claim, f"{gap} %, {seconds:,} s", ours, note=note))
        if platform is H100:
            rows += _plan(problem, study.data)
        rows += _gaps(platform, problem, best)
        made = {
            "Marble": run(problem, "marble"),
            "EcoSched": run(problem, platform.ecosched),
            "least energy": best,
        }
        schedules += [(f"{platform.name}, {n}", problem, r.solution) for n, r in made.items()]
    return Report(item, "the authors' profiles and logs", tuple(rows), panels=charts(schedules))


def _plan(problem: CoschedulingProblem, data: Path) -> list[Row]:
    plan = read_schedule(data / LOG, problem, where="H100/main/oracle_model")
    found = problem.evaluate(plan)
    narrow = replace(problem, applications=tuple(within(problem.applications, AUTHORS_TAU)))
    best = solve(narrow)
    feasible = not problem.check(plan)
    off = 100 * (found.objective / (best.objective or 1) - 1)
    slow = 100 * float(found.metrics["worst_performance_loss"])
    return [
        Row(
            "H100: the authors' plan, by our referee",
            f"{number(PLAN_J)} J",
            f"{number(found.objective)} J",
            EXACT.verdict(found.objective, PLAN_J) if feasible else "no",
            f"its slowest GPU count is {slow:.0f} % slower than the fastest",
            f"{EXACT}, of a plan that is feasible",
        ),
        Row(
            f"H100: optimum of the counts at most {100 * AUTHORS_TAU:.0f} % slower",
            "",
            f"{number(best.objective or 0)} J",
            note=f"{best.status}; the authors' plan is {off:.3f} % above it",
        ),
    ]


def _gaps(platform: Platform, problem: CoschedulingProblem, best: Result) -> list[Row]:
    assert best.bound is not None
    rows = [
        Row(f"{platform.name}: {name}", "", _over(bound(problem, name).bound, best))
        for name in ("bound-patterns", "bound-area")
    ]
    perfect = f"ecosched(tau={platform.tau},signal=perfect,normalise=all)"
    for policy in (platform.ecosched, perfect, *policies(platform.tau)[1:]):
        result = run(problem, policy)
        gap = 100 * ((result.objective or 0) / best.bound - 1)
        rows.append(Row(f"{platform.name}: gap of {policy}", "", f"{gap:.2f} %"))
    free = replace(problem, numa=problem.gpus)
    unlimited, least = run(free, "marble"), bound(free)
    assert least.bound is not None
    gap = 100 * ((unlimited.objective or 0) / least.bound - 1)
    note = "against bound-patterns, with four jobs at a time allowed"
    name = f"{platform.name}: gap of marble without NUMA limit"
    rows.append(Row(name, "", f"{gap:.2f} %", "", note))
    return rows


def _over(value: float | None, best: Result) -> str:
    if value is None or best.objective is None:
        return "none"
    return f"{number(value)} J, {100 * (1 - value / best.objective):.4f} % below"
