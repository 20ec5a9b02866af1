"""PowerFlow and its comparators, change by change, against the slow transcriptions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from strategies_elastic import FREE, jobs_of, table
from transcriptions.powerflow import Answer, Slow, powerflow
from transcriptions.powerflow_comparators import (
    Fifo,
    Gandiva,
    Tiresias,
    afs,
    elastic_queue,
    zeus_clock,
)
from trust.agreement import many

from optgap.heuristics.elastic import POLICIES
from optgap.models.elastic import ElasticProblem
from optgap.models.limits import Limits

CASES = many(40)
KNOWN = {"profiles": "perfect", "mode": "strict", "frequency": "fixed"}

RULES: list[tuple[str, dict[str, Any], Callable[[], Callable[[Slow], Answer]]]] = [
    ("powerflow", KNOWN, lambda: powerflow(strict=True, per_n=False)),
    ("powerflow", {**KNOWN, "frequency": "per_n"}, lambda: powerflow(strict=True, per_n=True)),
    ("powerflow", {**KNOWN, "mode": "paper"}, lambda: powerflow(strict=False, per_n=False)),
    ("afs", {}, lambda: afs),
    ("elastic-fifo", {}, lambda: elastic_queue(by_length=False)),
    ("elastic-srtf", {}, lambda: elastic_queue(by_length=True)),
    ("fifo", {}, Fifo),
    ("tiresias", {}, Tiresias),
    ("tiresias", {"discipline": "gittins"}, lambda: Tiresias(gittins=True)),
    ("tiresias+zeus", {}, lambda: Tiresias(clock=zeus_clock(0.5))),
    ("tiresias+zeus", {"zeus_eta": 1.0}, lambda: Tiresias(clock=zeus_clock(1.0))),
    ("gandiva", {}, Gandiva),
    ("gandiva+zeus", {"zeus_eta": 0.9}, lambda: Gandiva(clock=zeus_clock(0.9))),
]


def cluster(seed: int, most: int = 10) -> ElasticProblem:
    """Four to `most` jobs of up to an hour on 4 to 16 GPUs; tables without ties."""
    draw = random.Random(seed)
    gpus, per = draw.choice(((4, 4), (8, 4), (8, 2), (16, 4)))
    clocks = sorted(draw.sample(range(600, 1500, 100), 3))
    classes = []
    for k in range(draw.randint(1, 2)):
        work, fixed, share = draw.uniform(0.5, 3), draw.uniform(0, 0.6), draw.uniform(0.5, 1)
        times, watts = [], []
        for index in range(gpus.bit_length()):
            n = 1 << index
            time = work * (share / n + 1 - share + 0.02 * (n - 1)) * draw.uniform(0.95, 1.05)
            times.append([time * (fixed + (1 - fixed) * 1500 / f) for f in clocks])
            watts.append(
                [n * (40 + 100 * (f / 1000) ** 3) * draw.uniform(0.95, 1.05) for f in clocks]
            )
        classes.append(table(f"m{k}", times, watts))
    size = draw.randint(4, most)
    limit = max(float(c.power_w[0].min()) for c in classes) * draw.choice((1.2, 3, 8))
    return ElasticProblem.of(
        classes,
        jobs_of(
            [draw.randrange(len(classes)) for _ in range(size)],
            [round(draw.uniform(50, 3000), 2) for _ in range(size)],
            sorted(round(draw.uniform(0, 2500), 3) for _ in range(size)),
            [draw.choice([n for n in (1, 1, 2, 4, 8) if n <= gpus]) for _ in range(size)],
        ),
        clocks,
        gpus=gpus,
        gpus_per_node=per,
        eta=1.0,
        p_max_w=limit / gpus,
        idle_w=0.0,
        overhead=FREE,
    )


def changes(problem: ElasticProblem, solution: Any) -> list[tuple[float, ...]]:
    """(job, start, end, GPUs, clock), one for as long as neither changes."""
    columns = (solution.job, solution.start_s, solution.end_s, solution.gpus, solution.frequency)
    merged: list[list[float]] = []
    for job, start, end, gpus, clock in sorted(zip(*(c.tolist() for c in columns), strict=True)):
        last = merged[-1] if merged else None
        if last and [job, gpus, clock] == [last[0], *last[3:]] and abs(start - last[2]) < 1e-5:
            last[2] = end
        else:
            merged.append([job, start, end, gpus, clock])
    return [tuple(row) for row in merged]


@pytest.mark.parametrize(
    ("policy", "params", "rule"), RULES, ids=lambda x: "rule" if callable(x) else str(x)[:90]
)
def test_every_job_has_the_gpus_and_the_clock_of_the_transcription(
    policy: str, params: dict[str, Any], rule: Callable[[], Callable[[Slow], Answer]]
) -> None:
    for seed in range(CASES):
        problem = cluster(seed)
        limited = problem if policy == "powerflow" else replace(problem, cap="none")
        outcome = POLICIES[policy].load()(limited, limits=Limits(), seed=0, **params)
        found = changes(problem, outcome.solution)
        slow = Slow(problem).run(rule())
        expected = [(j, a, b, int(problem.counts[k]), f) for j, a, b, k, f in slow if b - a > 1e-5]
        assert [(r[0], *r[3:]) for r in found] == [(r[0], *r[3:]) for r in expected], seed
        assert [r[1] for r in found] == pytest.approx([r[1] for r in expected], abs=1e-4), seed
        assert [r[2] for r in found] == pytest.approx([r[2] for r in expected], abs=1e-4), seed


def test_fifo_places_jobs_where_the_buddy_lists_do() -> None:
    for seed in range(CASES):
        problem = cluster(seed, most=20)  # full enough for holes that no block fits in
        unlimited = replace(problem, cap="none")
        solution = POLICIES["fifo"].load()(unlimited, limits=Limits(), seed=0).solution
        rule, placed = Fifo(), {}

        def decide(s: Slow, rule: Fifo = rule, placed: dict[int, Any] = placed) -> Answer:
            answer = rule(s)
            placed.update(rule.places)
            return answer

        starts = {row[0]: row[1] for row in Slow(problem).run(decide)}
        for job, place in zip(solution.job.tolist(), solution.place.tolist(), strict=True):
            assert solution.places[place] == placed[job], seed
        started = dict(zip(solution.job.tolist(), solution.start_s.tolist(), strict=True))
        assert started == pytest.approx(starts), seed
