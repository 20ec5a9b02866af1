"""The compact model by itself, and by turns with branching."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model
from trees_consolidation import built, least_watts

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.consolidation import exact as module
from optgap.solvers.consolidation.branching import Tree
from optgap.solvers.consolidation.compact import Compact
from optgap.solvers.consolidation.exact import COMPACT_GPUS, COMPACT_TASKS, exact
from optgap.solvers.consolidation.levels import levels
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.search import Search


def small(seed: int) -> ConsolidationProblem:
    """Six tasks on servers of two GPUs; memory alone limits them."""
    return mixed(seed=seed, size=6, servers=4, gpus_per_server=2, capacity="none")


@pytest.mark.parametrize("seed", range(12))
def test_numbered_servers_leave_an_optimal_placement(seed: int) -> None:
    problem = small(seed)
    least = least_watts(problem)
    assert least is not None
    pack = packing(problem)
    answer, places = Compact(pack, levels(pack), 4, None).run(Limits(20), 0.0, 4, 0)
    assert answer.status == cp_model.OPTIMAL
    assert places is not None
    assert problem.check(pack.solution(places)) == []
    assert pack.total(places) == pytest.approx(least, rel=1e-6)


def test_no_server_is_passed_over_by_the_widest_tasks() -> None:
    pack = packing(small(1))
    compact = Compact(pack, levels(pack), 4, None)
    widest = int(max(range(pack.tasks), key=lambda ell: (pack.width[ell], pack.rows[0, ell])))
    compact.model.add(sum(compact.x[widest, g] for g in range(2, compact.gpus)) >= 1)
    answer, _ = compact.run(Limits(20), 0.0, 4, 0)
    assert answer.status == cp_model.INFEASIBLE


@pytest.mark.parametrize("idle", ["branching", "the compact model"])
def test_either_ends_it_where_the_other_comes_to_nothing(
    idle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = mixed(seed=0, size=32, gpus_per_server=4, capacity="none")
    proofs = []
    monkeypatch.setattr(module, "TURN_S", 1e-4)  # no machine ends it in the first turn

    def closing(*given: object) -> tuple[object, Termination, bool]:
        proofs.append(given[2])
        return given[2], Termination.TIME_LIMIT, False

    if idle == "branching":
        monkeypatch.setattr(Tree, "run", lambda tree, _: tree.bound)
    else:
        monkeypatch.setattr(module, "_close", closing)
    outcome = exact(problem, limits=Limits(120), seed=0)
    assert outcome.status is Status.OPTIMAL
    assert problem.check(outcome.solution) == []
    assert ("compact" in str(outcome.bound_by)) == (idle == "branching")
    assert bool(proofs) == (idle != "branching")


def test_only_few_gpus_with_memory_alone_have_turns() -> None:
    def taken(problem: ConsolidationProblem) -> bool:
        tree, _ = built(packing(problem))
        return module._small(tree)

    assert taken(small(0))
    assert not taken(mixed(seed=0, size=6, servers=4, gpus_per_server=2, capacity="mean"))
    assert not taken(mixed(seed=0, size=6, servers=4, gpus_per_server=2, gang="free"))
    tasks = [Task(f"t{k}", 20.0, 2, 1.2) for k in range(COMPACT_GPUS // 2)]
    one_more = [*tasks, Task("more", 20.0, 2, 1.2)]
    for given, few in ((tasks, True), (one_more, False)):
        servers = [Server((0, 0), 10.0)] * len(given)
        assert taken(ConsolidationProblem.of([GpuKind()], servers, given)) == few
    tiny = [Task(f"t{k}", 0.1, 2, 1.2) for k in range(COMPACT_TASKS + 1)]
    for some, few in ((tiny[1:], True), (tiny, False)):
        assert taken(ConsolidationProblem.of([GpuKind()], [Server((0, 0))] * 2, some)) == few


def test_annealing_exchanges_tasks_of_several_gpus() -> None:
    """Full servers, each with a dear and a cheap task: no task can go alone."""
    sizes = {"dear a": 20.0, "cheap a": 12.0, "cheap b": 20.0, "dear b": 12.0}
    tasks = [Task(name, gb, 2, 1.1 if "dear" in name else 1.5) for name, gb in sizes.items()]
    servers = [Server((0, 0), 100.0)] * 2
    problem = ConsolidationProblem.of([GpuKind()], servers, tasks, rules=Rules("none"))
    pack = packing(problem)
    search = Search(pack, 0)
    search.offer([(0, 1), (0, 1), (2, 3), (2, 3)])
    before, least = search.watts, least_watts(problem)
    assert least is not None
    assert least < before - 1.0
    search.improve(Limits(10), 5.0, least)
    assert search.places is not None
    assert problem.check(pack.solution(search.places)) == []
    assert search.watts == pytest.approx(least)
