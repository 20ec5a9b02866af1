"""Verdicts on counts of GPUs, against those of every placement of tiny problems."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st
from trees_consolidation import counts_of

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation.deciding import Verdict, decide
from optgap.solvers.consolidation.levels import Levels, counted, levels
from optgap.solvers.consolidation.master import Box, Master
from optgap.solvers.consolidation.packing import IntArray, Packing, packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import applies

MOST_PLACEMENTS = 20_000


def all_counts(pack: Packing, own: Levels, gang: bool) -> list[IntArray] | None:
    """Of every placement; None where there are too many to look at."""
    choices = [
        [
            gpus
            for gpus in itertools.combinations(range(pack.gpus), int(v))
            if not gang or len({int(pack.gpu_server[g]) for g in gpus}) == 1
        ]
        for v in pack.width
    ]
    if math.prod(len(one) for one in choices) > MOST_PLACEMENTS:
        return None
    found = {}
    load = np.zeros((pack.gpus, len(pack.rows)), dtype=np.int64)

    def place(places: tuple[tuple[int, ...], ...]) -> None:
        ell = len(places)
        if ell == pack.tasks:
            counts = counts_of(pack, own, list(places))
            found[tuple(counts.tolist())] = counts
            return
        for gpus in choices[ell]:
            chosen = list(gpus)
            load[chosen] += pack.rows[:, ell]
            if (load[chosen] <= pack.most).all():
                place((*places, gpus))
            load[chosen] -= pack.rows[:, ell]

    place(())
    return list(found.values())


@st.composite
def tight_problems(draw: st.DrawFn) -> ConsolidationProblem:
    """Two servers or three, about full, of tasks of which several have several GPUs."""
    span = draw(st.integers(2, 3))
    tasks = [
        Task(
            f"t{k}",
            float(draw(st.sampled_from((2, 4, 5, 6, 8, 11)))),
            draw(st.sampled_from((1, 1, 2, 2, span))),
            draw(st.sampled_from((1.1, 1.2, 1.5))),
        )
        for k in range(draw(st.integers(3, 6)))
    ]
    gang = draw(st.sampled_from(("server", "server", "free")))
    servers = [Server((0,) * span, draw(st.sampled_from((0.0, 150.0))))] * draw(st.integers(2, 3))
    kinds = [GpuKind(memory_gb=16.0)]
    return ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none", gang=gang))


def denied_exactly(
    problem: ConsolidationProblem, data: st.DataObject, *, all_listed: bool = True
) -> None:
    """A verdict on counts that are drawn near those of placements."""
    pack = packing(problem)
    own = levels(pack)
    if not applies(pack, own) or not pack.tasks:
        return
    gang = pack.gang and data.draw(st.booleans())
    truth = all_counts(pack, own, gang)
    search = Search(pack, 0)
    search.build(Limits(), tries=1)
    if truth is None or search.best is None:
        return
    near = data.draw(st.sampled_from(truth)) if truth else np.ones(len(own.quanta) + 1, dtype=int)
    less = [data.draw(st.integers(-1, 1)) for _ in near]
    vector = [max(1, near[0] - less[0])]
    for q in range(1, len(near) - 1):
        vector.append(int(np.clip(near[q] - less[q], 0, vector[-1])))
    vector.append(int(np.clip(near[-1] - less[-1], 1, len(pack.server_w))))
    low = counted(pack, own, Limits())
    box = Box((*low, pack.servers_for(low[0])), (pack.gpus,) * len(low) + (len(pack.server_w),))
    master = Master(pack, own, box, len(pack.server_w) if pack.gang else 0)
    costs = [master.watts(counts.tolist()) for counts in truth]
    most = data.draw(st.sampled_from([math.inf, *costs]))
    decision = decide(master, box.low, tuple(vector), most, Limits(), gang)
    within = [cost for counts, cost in zip(truth, costs, strict=True) if (counts <= vector).all()]
    if within and min(within) <= most:
        assert decision.verdict is not Verdict.DENIED
        assert decision.verdict is Verdict.PLACED or not all_listed
    elif not within:
        assert decision.verdict is not Verdict.PLACED
        assert decision.verdict is Verdict.DENIED or not all_listed
    if decision.places is not None:
        reached = counts_of(pack, own, decision.places)
        assert (reached[:-1] <= vector[:-1]).all()
        if gang or not pack.gang:
            assert problem.check(pack.solution(decision.places)) == []
