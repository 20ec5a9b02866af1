"""Exported formulations, given to other solvers as files: they reach the optima proven here."""

from __future__ import annotations

import itertools
import math
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_elastic import elastic_problems
from trust.agreement import examples, problems, solved

import optgap
from optgap.models.elastic import ElasticProblem
from optgap.models.errors import InputError
from optgap.models.result import Status

CLOSE = 2e-6
USUAL = 8


def highs(model: Path, solution: Path) -> None:
    """HiGHS by its own means."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    assert solver.readModel(str(model)) == highspy.HighsStatus.kOk
    solver.run()
    solver.writeSolution(str(solution), 0)


def cbc(model: Path, solution: Path) -> None:
    """PuLP's or cbcbox's CBC, by its command line."""
    from optgap.solvers.backends.cbc import executable

    try:
        command = executable()
    except ImportError as error:
        pytest.skip(str(error))
    arguments = ["-ratioGap", "0", "-allowableGap", "0", "-solve", "-solution", str(solution)]
    subprocess.run([command, str(model), *arguments], check=True, capture_output=True)


SOLVERS = {"highs": highs, "cbc": cbc}


def completed(solution: Path, found: Any) -> bool:
    """Give CBC's file the form of Gurobi's, with its zeros; False where there is no solution."""
    first, *rows = solution.read_text().splitlines()
    if "nfeasible" in first:
        return False
    values = dict.fromkeys(found.names, "0")
    for row in rows:
        _, name, value, *_ = row.replace("**", " ").split()
        values[name] = value
    lines = [f"# Objective value = {first.split()[-1]}"]
    lines += [f"{name} {value}" for name, value in values.items() if name in found.names]
    solution.write_text("\n".join(lines) + "\n")
    return True


def answers(problem: Any, **params: Any) -> Iterator[tuple[str, float | None]]:
    """What each solver finds, one given an LP and the other an MPS file, by the referee."""
    with tempfile.TemporaryDirectory() as name:
        for k, (solver, run) in enumerate(SOLVERS.items()):
            ending = (".lp", ".mps")[(k + len(str(problem))) % 2]
            if problem.objective.described.sense == "max" and solver == "cbc":
                ending = ".lp"  # PuLP's CBC minimises whatever an MPS file says
            model, solution = Path(name, f"{solver}{ending}"), Path(name, f"{solver}.sol")
            optgap.export(problem, model, **params)
            run(model, solution)
            if solver == "cbc" and not completed(solution, optgap.formulation(problem, **params)):
                yield f"{solver}, {ending}", None
                continue
            result = optgap.read_solution(problem, solution, **params)
            assert "referee finds" not in result.message
            yield f"{solver}, {ending}", result.objective


def reach(problem: Any, low: float | None, high: float | None, **params: Any) -> None:
    """Every solver's optimum is between these two; None where there is no solution."""
    for by, found in answers(problem, **params):
        assert (found is None) == (high is None), by
        if found is not None and low is not None and high is not None:
            slack = CLOSE * max(1.0, abs(high))
            assert low - slack <= found <= high + slack, by


def reach_what_is_proven(problem: Any, method: str) -> None:
    """Between bound and objective: these differ only where times were rounded for a proof."""
    exact = solved(problem, method)
    if exact.status is Status.INFEASIBLE:
        reach(problem, None, None)
        return
    assert exact.status is Status.OPTIMAL or "rounded" in exact.message
    assert exact.bound is not None
    assert exact.objective is not None
    reach(problem, *sorted([exact.bound, exact.objective]))


@pytest.mark.parametrize(
    ("family", "small", "method"),
    [
        ("consolidation", {"max_tasks": 3}, "exact"),
        ("placement", {"max_tasks": 5}, "exact"),
        ("coscheduling", {"goals": ("energy", "makespan"), "max_jobs": 4}, "oracle"),
        ("queueing", {}, "exact"),
    ],
)
def test_a_printed_formulation_has_the_proven_optimum(
    family: str, small: dict[str, Any], method: str
) -> None:
    @examples(USUAL)
    @given(problem=problems(family, **small))
    def reached(problem: Any) -> None:
        reach_what_is_proven(problem, method)

    reached()


@examples(USUAL)
@given(problem=elastic_problems(max_jobs=3), late=st.booleans())
def test_powerflows_decision_is_the_best_of_all_choices(
    problem: ElasticProblem, late: bool
) -> None:
    at_s = -1.0 if late else 0.0
    try:
        optgap.formulation(problem, at_s=at_s)
    except InputError as error:
        assert "GPUs or more" in str(error)  # noqa: PT017 - too many jobs at once
        return
    best = best_choice(problem, at_s)
    reach(problem, best, best, at_s=at_s)
    chosen = optgap.solve(problem, "decision", at_s=at_s)
    assert (chosen.objective is None) == (best is None)
    assert best is None or chosen.objective == pytest.approx(best, rel=CLOSE)


def best_choice(problem: ElasticProblem, at_s: float) -> float | None:
    """The least mean JCT of one configuration a job, by trying them all."""
    moment = float(problem.jobs.submit_s.max() if at_s == -1 else problem.epoch_s + at_s)
    jobs = np.flatnonzero(problem.jobs.submit_s <= moment).tolist()
    options = []
    for j in jobs:
        c, work = problem.jobs.of_class[j], problem.jobs.iterations[j]
        rows = []
        for k, f in np.argwhere(np.isfinite(problem.time_s[c])).tolist():
            n = int(problem.counts[k])
            starts = problem.overhead.seconds(n)
            watts = float(problem.power_w[c, k, f])
            held = starts + float(work * problem.time_s[c, k, f])
            rows.append((n, max(watts, problem.idle_w * n) if starts else watts, held))
        options.append(rows)
    least = math.inf
    for choice in itertools.product(*options):
        fits = sum(n for n, _, _ in choice) <= problem.gpus
        if fits and sum(w for _, w, _ in choice) <= problem.power_allowed_w:
            least = min(least, math.fsum(held for _, _, held in choice))
    waited = math.fsum(moment - problem.jobs.submit_s[j] for j in jobs)
    return (least + waited) / len(jobs) if math.isfinite(least) else None
