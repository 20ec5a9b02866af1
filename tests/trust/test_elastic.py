"""Elastic jobs: the optimum by a program of its own, and policies where power is scarce."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimum_elastic import optimum
from strategies_elastic import FREE, elastic_problems, jobs_of, table
from trust.agreement import examples, many

import optgap
from optgap.documents import load_problem
from optgap.models.elastic import ElasticProblem, JobClass, Overhead
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.registry import FAMILIES

POLICIES = FAMILIES["elastic"].policies

MANY = many(10, long=1000)
"""Problems; every policy runs each."""
FACTORS = (1.0, 1.0, 1.0, *(1 + x for x in (1e-15, -1e-15, 1e-12, -1e-12, 1e-9, 1e-7, 1e-3, 0.2)))
"""Limits relative to what a configuration needs: equal up to rounding, and just above."""
BELOW = (1 - 1e-5, 0.999, 0.7)
"""Clearly below: a millionth of the limit is slack."""


def job_class(rng: np.random.Generator, name: str, gpus: int, clocks: int) -> JobClass:
    """Tables that physics might give, or any positive numbers; GPU counts with gaps."""
    every = [1 << k for k in range(gpus.bit_length())]
    counts = sorted(rng.choice(every, int(rng.integers(1, len(every) + 1)), replace=False).tolist())
    n, speed = np.array(counts, dtype=float), np.linspace(0.6, 1.0, clocks)
    share, watts = rng.choice([0.3, 0.8, 1.0]), rng.uniform(80, 300)
    times = rng.uniform(0.3, 3) * np.outer(share / n + 1 - share + 0.02 * (n - 1), 1 / speed)
    powers = watts * np.outer(n, 0.3 + 0.7 * speed ** rng.choice([1, 2, 3]))
    if rng.random() < 0.3:
        times, powers = (rng.uniform(a, 10 * a, times.shape) for a in (0.2, 60.0))
    return JobClass(name, 64, tuple(counts), times, powers)


def drawn(rng: np.random.Generator, factors: tuple[float, ...] = FACTORS) -> dict[str, Any]:
    """What `ElasticProblem.of` wants, with a limit at what some configuration needs."""
    per = int(rng.choice([1, 2, 4, 8]))
    gpus = per * int(rng.integers(1, 4))
    clocks = int(rng.integers(1, 5))
    classes = [job_class(rng, f"m{c}", gpus, clocks) for c in range(int(rng.integers(1, 4)))]
    size = int(rng.integers(1, 9))
    of_class = rng.integers(0, len(classes), size).tolist()
    idle = float(rng.choice([0.0, 5.0, 60.0]))
    counted = [np.maximum(c.power_w, idle * np.array(c.counts)[:, None]) for c in classes]
    needed = max(float(counted[c].min()) for c in of_class)  # by the most demanding job
    levels = np.concatenate([w.ravel() for w in counted])
    levels = np.append(levels[levels >= needed], [needed] * len(levels))
    limit = float(rng.choice(levels)) * float(rng.choice(factors))
    work = rng.choice([0.5, 10.0, 37.5, 300.0], size)
    eta = float(rng.choice([1.0, 0.6, 0.3]))
    return {
        "classes": classes,
        "jobs": jobs_of(
            of_class, work.tolist(),
            np.sort(rng.choice([0.0, 0.0, 7.0, 60.0, 1e4], size)).tolist(),
            [int(rng.choice(classes[c].counts)) for c in of_class],
        ),
        "frequencies_mhz": np.linspace(600, 1000, clocks).tolist(),
        "gpus": gpus,
        "gpus_per_node": per,
        "eta": eta,
        "p_max_w": limit / (eta * gpus),
        "idle_w": idle,
        "cap": str(rng.choice(["power", "power", "power", "none"])),
        "overhead": (FREE, Overhead(), Overhead(7.0, 2.0, 47.0))[int(rng.integers(3))],
    }  # fmt: skip


def options(rng: np.random.Generator, name: str, clocks: list[float]) -> dict[str, Any]:
    """Some of the policy's parameters, other than they are."""
    pick = rng.choice
    every: dict[str, Any] = {
        "mode": str(pick(["strict", "paper"])),
        "frequency": str(pick(["fixed", "per_n"])),
        "profiles": str(pick(["online", "perfect"])),
        "prerun_s": float(pick([0.0, 30.0, 240.0])),
        "profile_s": float(pick([0.0, 5.0, 240.0])),
        "eta": float(pick([0.0, 0.1, 0.5, 1.0])),
        "discipline": str(pick(["2d-las", "gittins"])),
        "threshold_1": float(pick([10.0, 3250.0])),
        "threshold_2": float(pick([0.0, 7200.0])),
        "quantum_s": float(pick([1.0, 60.0])),
        "zeus_eta": float(pick([0.0, 0.5, 1.0])),
    }
    if name != "powerflow":
        every["frequency"] = float(pick([0.0, clocks[0], clocks[-1]]))
    return {k: every[k] for k in POLICIES[name].params if k in every and rng.random() < 0.4}


def serves(problem: ElasticProblem, name: str, params: dict[str, Any]) -> None:
    """Raise unless the policy finishes every job within the limits that it keeps."""
    result = optgap.run(problem, name, seed=0, time_limit=30, **params)
    assert result.termination is Termination.COMPLETED, f"{name} {params}: {result.message}"
    assert result.solution is not None, f"{name} {params}: {result.message}"
    assert result.metrics["jobs_done"] == len(problem), f"{name} {params}"
    if params.get("mode") != "paper":
        assert problem.serves_all(result.solution), f"{name} {params}"


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", range(MANY))
def test_a_job_that_can_run_alone_runs(seed: int, name: str) -> None:
    rng = np.random.default_rng([seed, list(POLICIES).index(name)])
    problem = ElasticProblem.of(**drawn(rng))
    serves(problem, name, options(rng, name, problem.frequencies_mhz.tolist()))


def test_a_limit_below_what_a_job_needs_is_refused_in_a_line() -> None:
    for seed in range(4 * MANY):
        rng = np.random.default_rng([seed, len(POLICIES)])
        given = {**drawn(rng, (1.0,)), "cap": "power"}
        needs = [
            float(np.maximum(c.power_w, given["idle_w"] * np.array(c.counts)[:, None]).min())
            for c in (given["classes"][k] for k in given["jobs"].of_class)
        ]
        given["p_max_w"] = float(rng.choice(BELOW)) * max(needs) / (given["eta"] * given["gpus"])
        with pytest.raises(InputError, match=r"^problem: power limit for m\d/64: found .* W"):
            ElasticProblem.of(**given)


def test_slices_and_first_queues_shorter_than_a_restart_come_to_an_end() -> None:
    problem = ElasticProblem.of(
        [table("unit", [[1.0]], [[100.0]])], jobs_of([0, 0, 0], [40, 40, 40]), [1000.0],
        gpus=1, gpus_per_node=1, cap="none", overhead=Overhead(20.0, 0.0, 0.0),
    )  # fmt: skip
    for name, params in (("gandiva", {"quantum_s": 5.0}), ("gandiva+zeus", {"quantum_s": 20.0}),
                         ("tiresias", {"threshold_1": 10.0})):  # fmt: skip
        serves(problem, name, params)


def test_a_policy_that_gets_nothing_done_is_told_so() -> None:
    class Restless:
        """Never lets a restart end."""

        settings = Settings()

        def decide(self, state: ElasticState) -> Decision:
            runs = np.full(len(state.jobs), int(state.count[0] == 0))
            return Decision(runs, np.zeros_like(runs), wake_s=state.time_s + 0.5)

    two = table("unit", [[1.0], [1.0]], [[100.0], [200.0]])
    problem = ElasticProblem.of([two], jobs_of([0], [10]), [1000.0], gpus=2, gpus_per_node=2)
    with pytest.raises(RuntimeError, match=r"nothing gets done at 5\d\d\d"):
        simulate(problem, Restless(), Limits())


# -- the optimum -------------------------------------------------------------------------


FEW = elastic_problems(max_jobs=3, free=True)
FOUR = elastic_problems(max_jobs=4, max_clocks=2, free=True, gpus=(1, 2))


@pytest.mark.parametrize("problems", [FEW, FOUR], ids=["few", "four"])
@pytest.mark.parametrize("cap", ["power", "none"])
def test_every_order_with_every_joint_configuration_has_the_same_optimum(
    problems: st.SearchStrategy[ElasticProblem], cap: Any
) -> None:
    @examples(25, long=250)
    @given(problem=problems)
    def agree(problem: ElasticProblem) -> None:
        problem = replace(problem, cap=cap)
        jobs = problem.jobs
        truth = optimum(
            jobs.submit_s, jobs.iterations, problem.time_s[jobs.of_class],
            problem.power_w[jobs.of_class], problem.counts, problem.gpus, problem.power_limit_w,
        )  # fmt: skip
        best = optgap.solve(problem, "exhaustive", time_limit=60)
        assert best.status is Status.OPTIMAL, best.message
        assert best.objective == pytest.approx(truth, rel=2e-6)
        assert best.bound <= truth * (1 + 1e-6)

    agree()


DOORS = {1: 4.6908, 2: 5.5232, 3: 4.5997, 4: 10.1307, 5: 9.6434, 6: 8.6571}
"""Mean JCT, s, of problems whose optimum would be less if it could profile to keep the limit."""


@pytest.mark.parametrize("number", DOORS)
def test_an_optimum_that_must_not_profile_is_reached(number: int) -> None:
    problem = load_problem(Path(__file__).parent / "elastic_doors" / f"limit-{number}.json")
    best = optgap.solve(problem, "exhaustive")
    assert best.status is Status.OPTIMAL
    assert best.objective == pytest.approx(DOORS[number], abs=6e-5)
    assert best.bound == pytest.approx(DOORS[number], abs=6e-5)
