"""EcoSched, "an online energy-aware co-scheduler", from the profiles that its authors measured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from optgap.api import bound, run, solve
from optgap.heuristics.coscheduling.ecosched import best_action, phase_one, regrets, weight_of
from optgap.models.coscheduling import Application, CoschedulingProblem, JobRun
from optgap.models.coscheduling.measured import read_schedule
from optgap.models.coscheduling.presets import from_csv, within
from optgap.models.result import Result
from optgap.models.tables import Column, read_table
from optgap.render import number as grouped
from reproduction.claims import Row, Study, Verdict, at_most, number, spread

FOLDER = "profiles/ecosched"
LOG = f"{FOLDER}/measured_policy_events.csv"
TOTALS = f"{FOLDER}/measured_policy_totals.csv"
QUANTITIES = ("energy_j", "makespan_s", "edp_js")
"""In the order in which the paper and these tables give savings."""
OPTIMAL, MOST = "sequential_optimal_gpu", "sequential_max_gpu"
ORDER = (
    *("minisweep", "lbm", "cloverleaf", "tealeaf", "miniweather", "bert", "gpt2", "resnet50"),
    *("conjugateGradientMultiDeviceCG", "pot3d", "simpleP2P", "streamOrderedAllocationP2P"),
    *("resnet101", "resnet152", "vgg19", "vgg16", "MonteCarloMultiGPU"),
    *("resnet50",) * 3,
    *("vgg16",) * 5,
)
"""The main queue on H100, as the authors' sequential runs went through it. On V100 each
application was queued once; its order is not known."""
AUTHORS_TAU = 0.2
"""The slowest GPU count in the authors' own Oracle plan is 19 % slower than the fastest."""


@dataclass(frozen=True, slots=True)
class Platform:
    """A node with four GPUs in two NUMA domains, and EcoSched's settings on it.

    Parameters
    ----------
    tau, idle_weight
        τ, and λ = idle over mean busy power per GPU, as the authors' runs had them.
    idle_w
        Power of an idle GPU, W.
    """

    name: str
    tau: float
    idle_weight: float
    idle_w: float

    @property
    def ecosched(self) -> str:
        """The policy as the authors ran it; its other defaults are theirs, too."""
        return f"ecosched(tau={self.tau},idle_weight={self.idle_weight})"


H100 = Platform("H100", 0.14, 0.2036, 70.0)
V100 = Platform("V100", 0.20, 0.2065, 43.0)
PLATFORMS = (H100, V100)


def profiles(platform: str) -> str:
    """Return the file of a platform's profiles, below the data folder."""
    return f"{FOLDER}/{platform.lower()}_profiles.csv"


def queue(
    platform: Platform, data: Path, names: Sequence[str] | None = None
) -> CoschedulingProblem:
    """Return the main queue of a platform in the order of `ORDER`, or the applications `names`."""
    everything = from_csv(data / profiles(platform.name), seed=0, idle_w=platform.idle_w)
    index = {app.name: k for k, app in enumerate(everything.applications)}
    order = ORDER if platform is H100 else tuple(dict.fromkeys(ORDER))
    jobs = tuple(index[name] for name in (names or order))
    return replace(everything, jobs=jobs, name=f"{platform.name}, {len(jobs)} jobs")


def savings(metrics: Mapping[str, Any], base: Mapping[str, Any]) -> tuple[float, ...]:
    """Return 1 − value/base for energy, makespan and EDP, percent."""
    return tuple(100 * (1 - metrics[q] / base[q]) for q in QUANTITIES)


def shown(values: Sequence[float]) -> str:
    """Return percentages side by side."""
    return ", ".join(f"{v:.1f}" for v in values) + " %"


def counts_by_app(problem: CoschedulingProblem, runs: Sequence[JobRun]) -> dict[str, set[int]]:
    """Return the GPU counts that each application ran on."""
    found: dict[str, set[int]] = {}
    for one in runs:
        found.setdefault(problem.application(one.job).name, set()).add(one.gpu_count)
    return found


def _app(problem: CoschedulingProblem, name: str) -> Application:
    return next(app for app in problem.applications if app.name == name)


def _slower(app: Application, count: int) -> float:
    mode = app.mode(count)
    assert mode is not None
    return 100 * (mode.runtime_s / app.fastest.runtime_s - 1)


def _changed(app: Application, before: int, after: int) -> tuple[float, float, float]:
    """Return by how many percent a job is slower, and saves energy and EDP."""
    was, now = app.mode(before), app.mode(after)
    assert was is not None
    assert now is not None
    longer, energy = now.runtime_s / was.runtime_s, now.energy_j / was.energy_j
    return 100 * (longer - 1), 100 * (1 - energy), 100 * (1 - energy * longer)


# -- Fig. 1, 2, 3, 5 and Table II -------------------------------------------------------------


def fig1(study: Study) -> Iterator[Row]:
    """Run time over GPU counts, relative to an application's fastest."""
    for platform in PLATFORMS:
        problem = queue(platform, study.folder)
        count = _app(problem, "miniweather").fastest.gpu_count
        claim = f"{platform.name}: miniweather is fastest on"
        words = "1 GPU" if count == 1 else f"{count} GPUs"
        yield Row(claim, words, words == study.item.claims[claim])


def fig2(study: Study) -> Iterator[Row]:
    """One GPU less than the fastest count: run time, energy and EDP, on H100."""
    problem = queue(H100, study.folder)
    slower, saved, edp = _changed(_app(problem, "gpt2"), 3, 2)
    yield number("gpt2, 3 to 2 GPUs: slower", slower, "%")
    yield number("gpt2, 3 to 2 GPUs: energy saved", saved, "%")
    yield Row("gpt2, 3 to 2 GPUs: EDP saved", f"{edp:.1f} %")


def fig3(study: Study) -> Iterator[Row]:
    """The sequential baseline against pot3d on two GPUs with two others beside it."""
    three = ("pot3d", "simpleP2P", "minisweep")
    problem = queue(H100, study.folder, three)
    halves = tuple(
        replace(app, modes=tuple(m for m in app.modes if m.gpu_count <= 2))
        if app.name in three
        else app
        for app in problem.applications
    )
    beside = replace(problem, applications=halves, name="pot3d on two GPUs")
    base = run(problem, OPTIMAL).metrics
    energy, makespan, _ = savings(solve(beside, time_limit=60).metrics, base)
    claim = "pot3d on two GPUs beside simpleP2P and minisweep"
    yield Row(f"{claim}: less energy", f"{energy:.1f} % less", energy > 0)
    yield Row(f"{claim}: shorter makespan", f"{makespan:.1f} % shorter", makespan > 0)


def fig5(study: Study) -> Iterator[Row]:
    """Summed memory activity against run time, by application."""
    for platform in PLATFORMS:
        found = {}
        for app in queue(platform, study.folder).applications:
            modes = [m for m in app.modes if m.dram_util_sum]
            if len(modes) >= 3:
                activity = np.array([m.dram_util_sum for m in modes], float)
                times = np.array([m.runtime_s for m in modes])
                found[app.name] = float(np.corrcoef(np.log(activity), np.log(times))[0, 1])
        r = list(found.values())
        weak = ", ".join(sorted(name for name, one in found.items() if one > -0.9))
        claim = f"{platform.name}: correlation of log activity and log run time, by application"
        words = f"median {np.median(r):.2f}, {min(r):.2f} to {max(r):.2f}"
        yield Row(claim, words, note=f"above -0.9 of {weak} alone, of {len(found)} applications")


def table2(study: Study) -> Iterator[Row]:
    """How many GPUs EcoSched gives each application."""
    for platform in PLATFORMS:
        problem = queue(platform, study.folder)
        result = run(problem, platform.ecosched)
        assert result.solution is not None
        found = counts_by_app(problem, result.solution.runs)
        off = []
        for claim, printed in study.item.claims.items():
            where, _, name = claim.partition(": ")
            if where == platform.name and name in found:
                words = " and ".join(map(str, sorted(found[name])))
                yield Row(claim, words)
                off += [f"{name} {words} for {printed}"] if words != printed else []
        words = "; ".join([f"{len(found) - len(off)} of {len(found)}", *off])
        yield Row(f"{platform.name}: EcoSched's GPU counts", words, not off)
    yield _at_best(study)


def _at_best(study: Study) -> Row:
    """Return how much of V100's column settings and orders give that the authors do not state."""
    printed = {
        claim.partition(": ")[2]: count
        for claim, count in study.item.claims.items()
        if claim.startswith("V100: ")
    }
    problem, most = queue(V100, study.folder), 0
    grid = product((0.08, 0.14, 0.2, 0.3, 0.4), (0.0, 0.1, 0.2065, 0.5, 1.0), ("kept", "all"))
    rng = np.random.default_rng(0)
    orders = [problem.jobs, *(tuple(rng.permutation(problem.jobs).tolist()) for _ in range(3))]
    for (tau, weight, over), jobs in product(grid, orders):
        settings: dict[str, Any] = {"tau": tau, "idle_weight": weight, "normalise": over}
        made = replace(problem, jobs=jobs)
        solution = run(made, "ecosched", **settings).solution
        assert solution is not None
        found = counts_by_app(made, solution.runs)
        most = max(most, sum({int(printed[name])} == own for name, own in found.items()))
    return Row(
        "V100: most that agree, of 50 settings of τ, λ and Ê in four orders", f"{most} of 17"
    )


# -- Fig. 6 to 9 ------------------------------------------------------------------------------


def fig6(study: Study) -> Iterator[Row]:
    """Savings of EcoSched, Marble and the optimum against the two sequential baselines."""
    for platform in PLATFORMS:
        problem = queue(platform, study.folder)
        logged = _totals(study.folder) if platform is H100 else {}
        orders = []
        for seed in study.seeds:
            jobs = np.random.default_rng(seed).permutation(problem.jobs).tolist()
            orders.append(replace(problem, jobs=tuple(jobs)))
        for base in (OPTIMAL, MOST):
            baseline = run(problem, base).metrics
            for name, policy, log in (
                ("EcoSched", platform.ecosched, "ecosched"),
                ("Marble", "marble", "marble"),
            ):
                study.proceed(f"{name} on {platform.name}")
                saved = np.array([savings(run(p, policy).metrics, baseline) for p in orders])
                low, high = shown(saved.min(axis=0))[:-2], shown(saved.max(axis=0))
                note = f"orders: {low} to {high}"
                ours, half = zip(*map(spread, saved.T), strict=True)
                logs = (logged.get(log), logged.get(base))
                yield _saved(platform, name, base, ours, *logs, note, half)
            # on V100 there is no plan of the authors' to tell the limit from
            for limit in (AUTHORS_TAU, *((0.3, 0.4) if platform is V100 else ()), None):
                apps = tuple(within(problem.applications, limit))
                best = solve(replace(problem, applications=apps), time_limit=120)
                counts = (
                    "every GPU count" if limit is None else f"counts {limit:.0%} slower at most"
                )
                name = "Oracle" if limit == AUTHORS_TAU else f"Oracle of {counts}"
                logs = (logged.get("oracle_replayed"), logged.get(base))
                ours, note = savings(best.metrics, baseline), f"{best.status}, {counts}"
                yield _saved(platform, name, base, ours, *logs, note)


def _saved(
    platform: Platform,
    name: str,
    base: str,
    ours: Sequence[float],
    logged: Mapping[str, float] | None,
    logged_base: Mapping[str, float] | None,
    note: str,
    half: tuple[float, ...] = (),
) -> Row:
    if logged is not None and logged_base is not None:
        note = f"authors' log {shown(savings(logged, logged_base))}; {note}"
    # Fig. 6 has no numbers for the other baseline
    stated = base == OPTIMAL and " of " not in name
    found: Verdict | tuple[float, ...] = tuple(ours) if stated else ""
    return Row(f"{platform.name}: {name} against {base}", shown(ours), found, note, half)


def _totals(data: Path) -> dict[str, dict[str, float]]:
    """Return the authors' measured totals of the main queue on H100, by policy."""
    names = ("platform", "queue", "policy")
    numbers = (Column("makespan_s", "number"), Column("gpu_energy_j", "number"))
    table = read_table(data / TOTALS, [*map(Column, names), *numbers])
    found = {}
    for k, policy in enumerate(table["policy"]):
        if (table["platform"][k], table["queue"][k]) == ("H100", "main"):
            energy, makespan = table["gpu_energy_j"][k], table["makespan_s"][k]
            totals = (energy, makespan, energy * makespan)
            found[policy] = dict(zip(QUANTITIES, totals, strict=True))
    return found


def fig7(study: Study) -> Iterator[Row]:
    """Fig. 7 and 8: six applications on H100, EcoSched against Marble."""
    names = ("pot3d", "resnet50", "gpt2", "simpleP2P", "vgg16", "vgg19")
    problem = queue(H100, study.folder, names)
    eco, marble = run(problem, H100.ecosched), run(problem, "marble")
    best = solve(problem, time_limit=60)
    assert eco.solution is not None
    assert marble.solution is not None
    logged, alone = (_logged(study.folder, policy) for policy in ("ecosched", OPTIMAL))
    chosen = counts_by_app(problem, eco.solution.runs)
    fastest = counts_by_app(problem, marble.solution.runs)
    for name in names[:3]:
        was, now = min(fastest[name]), min(chosen[name])
        claim = f"{name}: GPUs under Marble and EcoSched"
        words = f"{was} → {now}"
        yield Row(claim, words, words == study.item.claims[claim])
        note = f"by its profile, alone, {_slower(_app(problem, name), now):.1f} %"
        slower = 100 * (logged[name] / alone[name] - 1)  # beside others, in the authors' log
        yield number(f"{name}: slower on fewer GPUs", slower, "%", note=note)
    starts = {problem.application(r.job).name: r.start_s for r in eco.solution.runs}
    pot3d = next(r for r in eco.solution.runs if problem.application(r.job).name == "pot3d")
    beside = sorted(name for name, at in starts.items() if at < pot3d.end_s and name != "pot3d")
    tail = max(starts, key=lambda name: starts[name])
    for claim, words in (("run beside pot3d", ", ".join(beside)), ("runs in the tail", tail)):
        yield Row(claim, words, words == study.item.claims[claim])
    found = savings(eco.metrics, marble.metrics)
    least = savings(best.metrics, marble.metrics)
    for k, what in enumerate(("energy", "makespan")):
        note = f"the schedule of least energy: {least[k]:.1f} %"
        yield number(f"{what} saved against Marble", found[k], "%", note=note)


def fig9(study: Study) -> Iterator[Row]:
    """How much slower each application is on the GPU counts that EcoSched gives it."""
    for platform in PLATFORMS:
        problem = queue(platform, study.folder)
        solution = run(problem, platform.ecosched).solution
        assert solution is not None
        counts = counts_by_app(problem, solution.runs)
        if platform is V100:
            app = _app(problem, "miniweather")
            (count,) = counts["miniweather"]
            claim = "V100: miniweather's GPUs"
            words = f"{count}, {app.fastest.gpu_count} being fastest"
            yield Row(claim, words, words == study.item.claims[claim])
            slower, saved, _ = _changed(app, app.fastest.gpu_count, count)
            note = (
                f"as a loss of speed; {slower:.1f} % more run time, which is the paper's definition"
            )
            lost = 100 * slower / (100 + slower)
            yield number("V100: miniweather: performance loss", lost, "%", note=note)
            note = f"four GPUs take {100 * saved / (100 - saved):.0f} % more"
            yield number("V100: miniweather: energy saved", saved, "%", note=note)
        loss = {app.name: _slower(app, max(counts[app.name])) for app in problem.applications}
        worst = sorted(loss.items(), key=lambda one: (-one[1], one[0]))[:5]
        words = ", ".join(f"{name} {value:.0f} %" for name, value in worst)
        yield Row(f"{platform.name}: slowed down most", words)


def _logged(data: Path, policy: str) -> dict[str, float]:
    """Return the mean run time of each application in the authors' run of a policy on H100, s."""
    words = ("platform", "queue", "policy", "app")
    table = read_table(data / LOG, [*map(Column, words), Column("runtime_s", "number")])
    found: dict[str, list[float]] = {}
    for *which, app, runtime in zip(*(table[w] for w in words), table["runtime_s"], strict=True):
        if tuple(which) == ("H100", "main", policy):
            found.setdefault(app.partition("#")[0], []).append(runtime)
    return {app: float(np.mean(times)) for app, times in found.items()}


# -- the Oracle, overheads --------------------------------------------------------------------


def oracle(study: Study) -> Iterator[Row]:
    """The authors' plan and bound beside a proven optimum, and every policy's gap."""
    for platform in PLATFORMS:
        problem = queue(platform, study.folder)
        study.proceed(f"optimum on {platform.name}")
        best = solve(problem, time_limit=120)
        words = f"{100 * (best.gap or 0):.4f} %, {best.seconds:.1f} s"
        note = f"{grouped(best.objective or 0)} J, {best.status}; {best.bound_by}"
        yield Row(f"{platform.name}: solver's gap, and after how long", words, note=note)
        if platform is H100:
            yield from _plan(problem, study.folder)
        yield from _gaps(platform, problem, best)


def _plan(problem: CoschedulingProblem, data: Path) -> Iterator[Row]:
    plan = read_schedule(data / LOG, problem, where="H100/main/oracle_model")
    found = problem.evaluate(plan)
    slow = 100 * float(found.metrics["worst_performance_loss"])
    same = abs(found.objective - 481_710.45) <= 0.01  # what the authors' solver gave it, J
    note = f"its slowest GPU count is {slow:.0f} % slower than the fastest"
    claim = "H100: the authors' plan, by our referee"
    words = f"{grouped(found.objective)} J{'' if same and not problem.check(plan) else ', other'}"
    yield Row(claim, words, note=note)
    best = solve(replace(problem, applications=tuple(within(problem.applications, AUTHORS_TAU))))
    off = 100 * (found.objective / (best.objective or 1) - 1)
    note = f"{best.status}; the authors' plan is {off:.3f} % above it"
    claim = "H100: optimum of the counts at most 20 % slower"
    yield Row(claim, f"{grouped(best.objective or 0)} J", note=note)


def _gaps(platform: Platform, problem: CoschedulingProblem, best: Result) -> Iterator[Row]:
    assert best.bound is not None
    for name in ("bound-patterns", "bound-area"):
        value = bound(problem, name).bound or 0.0
        below = 100 * (1 - value / (best.objective or 1))
        yield Row(f"{platform.name}: {name}", f"{grouped(value)} J, {below:.4f} % below")
    perfect = f"ecosched(tau={platform.tau},signal=perfect,normalise=all)"
    lookahead = (f"lookahead(tau={platform.tau})", "lookahead", "exact-window")
    others = ("ecosched(tau=1.0)", *lookahead, "marble", OPTIMAL, MOST)
    for policy in (platform.ecosched, perfect, *others):
        gap = 100 * ((run(problem, policy).objective or 0) / best.bound - 1)
        yield Row(f"{platform.name}: gap of {policy}", f"{gap:.2f} %")


def overhead(study: Study) -> Iterator[Row]:
    """Section V-C: decision time, profiling energy, and what pays it back."""
    profiling_s = 15.0  # per GPU count: gpt2's 64 kJ are its four powers times about 15 s
    problem = queue(H100, study.folder, tuple(dict.fromkeys(ORDER)))
    spent = {
        app.name: sum(m.power_w for m in app.modes) * profiling_s / 1000
        for app in problem.applications
    }
    dearest = max(spent, key=lambda name: spent[name])
    watts = {(a.name, m.gpu_count): m.power_w for a in problem.applications for m in a.modes}
    ms = decision_ms(problem)
    yield Row("time of a decision", f"{ms:.3f} ms", at_most(0.5, ms))
    yield number("profiling vgg16", spent["vgg16"], "kJ")
    words = f"at most {spent[dearest]:.0f} kJ ({dearest})"
    yield Row("profiling any application", words, at_most(70, spent[dearest]))
    for name, saved_w in (
        ("gpt2", watts["gpt2", 3] - watts["gpt2", 2]),
        ("vgg16", 3 * H100.idle_w),  # the node's idle GPUs, as the paper reckons
    ):
        minutes = 1000 * spent[name] / saved_w / 60
        yield number(f"profiling of {name} pays back after", minutes, "min", 2)


def decision_ms(problem: CoschedulingProblem) -> float:
    """Return the best of fifty rounds of Phase II with everything waiting, ms."""
    times = phase_one(problem, "perfect")
    kept = [regrets(a, H100.tau, t) for a, t in zip(problem.applications, times, strict=True)]
    offers = [(job, kept[a]) for job, a in enumerate(problem.jobs)]
    weight, best = weight_of(problem, None), float("inf")
    for _ in range(50):
        start = time.perf_counter()
        best_action(offers, problem.gpus, problem.numa, weight, problem.gpus)
        best = min(best, time.perf_counter() - start)
    return 1000 * best
