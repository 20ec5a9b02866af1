"""Lettich et al., "Power- and Fragmentation-aware Online Scheduling for GPU Datacenters"
(CCGrid 2025, arXiv 2412.17484).

As in the paper a trace is inflated to 1.3 times the GPU capacity, tasks arrive one after another
and never leave, and each of ten seeds, 42 to 51, draws another order of arrivals and other ranks.
The random streams are ours, so that single runs differ from the published ones and averages
should not. The paper states what can be read off a plot, mostly with a "~".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from optgap.api import run
from optgap.heuristics.placement.custom import PlacementState, Task
from optgap.models.placement import Cluster, PlacementProblem, Tasks, making, presets
from optgap.models.placement.alibaba import NODE_TYPES
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.openb import read_nodes, read_tasks
from optgap.models.placement.power import GPU_FULL_W, GPU_IDLE_W, CpuRule, PowerModel
from optgap.models.placement.sampling import Sampling, inflate
from optgap.models.placement.series import replay
from optgap.models.placement.tasks import TargetWorkload
from reproduction.claims import SLACK, Row, Study, agreement, at_most, holds, worst
from reproduction.curves import (
    LOADS,
    RAMP,
    Curve,
    Curves,
    curve_of,
    first_failure,
    gap,
    lead,
    nearest,
    on_grid,
    only,
    peak,
    savings,
    span,
    stays_above,
    until,
)

NODES = "openb/openb_node_list_gpu_node.csv"
ALL_NODES = "openb/openb_node_list_all_node.csv"
INFLATED = 1.3
"""GPU demand of all arrivals over GPU capacity."""

FGD, PWR, HALF = "fgd", "pwr", "pwr+fgd(alpha=0.5)"
LOW, MIDDLE, HIGH = OURS = ("pwr+fgd(alpha=0.05)", "pwr+fgd(alpha=0.1)", "pwr+fgd(alpha=0.2)")
RIVALS = ("bestfit", "dotprod", "gpupacking", "gpuclustering")
TESTED = (*OURS, *RIVALS)
NAMES = {
    FGD: "FGD",
    PWR: "PWR",
    LOW: "α=0.05",
    MIDDLE: "α=0.1",
    HIGH: "α=0.2",
    HALF: "α=0.5",
    "bestfit": "BestFit",
    "dotprod": "DotProd",
    "gpupacking": "GpuPacking",
    "gpuclustering": "GpuClustering",
}
"""As the paper calls them."""
SAVED_50 = "saving at 50 % (%)"


def pods(trace: str) -> str:
    """Return the file of a trace, below the data folder."""
    return f"openb/openb_pod_list_{trace}.csv"


@dataclass(frozen=True)
class Trace:
    """A set of runs: which tasks, and how they arrive.

    Parameters
    ----------
    name
        As in ``openb_pod_list_<name>.csv``.
    change
        One of `CHANGES`, or "".
    """

    name: str = "default"
    sampling: Sampling = "trace-first"
    change: str = ""

    def problem(self, data: Path | None, seed: int) -> PlacementProblem:
        """Return the problem of one seed; without a data folder from the counts in the package."""
        if data is None:
            return presets.alibaba(seed=seed, load=INFLATED, sampling=self.sampling)
        problem = presets.from_csv(
            data / NODES,
            data / pods(self.name),
            seed=seed,
            load=INFLATED,
            sampling=self.sampling,
        )
        return CHANGES[self.change](data, problem, seed) if self.change else problem


@dataclass(frozen=True)
class Runs:
    """The runs on one trace, made when they are first asked for and shared between items."""

    study: Study
    trace: Trace

    def curve(self, policy: str, quantity: str) -> Curve:
        """Return ``power_w``, ``power_gpu_w`` or ``grar`` of a policy over load."""
        return curve_of(np.array([self._one(policy, seed)[quantity] for seed in self.study.seeds]))

    def _one(self, policy: str, seed: int) -> dict[str, FloatArray]:
        key = (self.trace, self.study.files, seed, policy)
        shared = self.study.shared
        if key not in shared:
            self.study.proceed(f"{self.trace.name}, seed {seed}: {policy}")
            if shared.get("which") != key[:3]:  # one problem at a time: they are large
                shared["which"] = key[:3]
                shared["problem"] = self.trace.problem(self.study.files, seed)
            shared[key] = placed(shared["problem"], run(shared["problem"], policy, seed=seed))
        found: dict[str, FloatArray] = shared[key]
        return found

    def make(self, policies: Iterable[str]) -> Runs:
        """Run these policies, seed by seed."""
        for seed in self.study.seeds:
            for policy in policies:
                self._one(policy, seed)
        return self

    def saving(self, policy: str) -> Curve:
        """Return the power saved against FGD, percent."""
        return savings(self.curve(FGD, "power_w"), self.curve(policy, "power_w"))

    def savings(self, policies: Iterable[str]) -> dict[str, Curve]:
        """Return the savings of several policies."""
        self.make((FGD, *policies))
        return {policy: self.saving(policy) for policy in policies}

    def grar(self, policies: Iterable[str]) -> dict[str, Curve]:
        """Return GPU demand placed over GPU demand arrived."""
        self.make(policies)
        return {policy: self.curve(policy, "grar") for policy in policies}


def placed(problem: PlacementProblem, result: object) -> dict[str, FloatArray]:
    """Return power and GRAR of a run on the grid of loads."""
    solution = getattr(result, "solution", None)
    assert solution is not None
    series = replay(problem, solution)
    return {
        name: on_grid(series.arrived_gpu_milli, series.capacity_gpu_milli, getattr(series, name))
        for name in ("power_w", "power_gpu_w", "grar")
    }


def with_spread(claim: str, curves: Curves, load: float, digits: int = 1) -> Row:
    """Return every curve's mean and 95 % interval over seeds at one load."""
    parts = []
    for name, curve in curves.items():
        text = f"{NAMES[name]} {curve.at(load):.{digits}f}"
        if len(curve.runs) > 1:
            text += f" ± {curve.half[nearest(load)]:.{digits}f}"
        parts.append(text)
    return Row(claim, ", ".join(parts))


# -- Tables I and II, Section V-A -------------------------------------------------------------


def kinds(tasks: Tasks) -> dict[str, tuple[int, int]]:
    """Return (tasks, milli-GPU asked for) by the rows of Table I."""
    demand = np.asarray(tasks.demand_milli)
    chosen = {
        "no GPU": tasks.num_gpu == 0,
        "a share of a GPU": (tasks.num_gpu == 1) & (tasks.gpu_milli < 1000),
        "1 GPU": (tasks.num_gpu == 1) & (tasks.gpu_milli == 1000),
        **{f"{k} GPUs": tasks.num_gpu == k for k in (2, 4, 8)},
    }
    return {name: (int(rows.sum()), int(demand[rows].sum())) for name, rows in chosen.items()}


def _cluster(data: Path | None) -> Cluster:
    return making.cluster_of(NODE_TYPES) if data is None else read_nodes(data / NODES)


def table1(study: Study) -> Iterator[Row]:
    """The Default trace by GPU request."""
    data = study.files
    cluster = _cluster(data)
    tasks = (
        making.trace_of_classes() if data is None else read_tasks(data / pods("default"), cluster)
    )
    total, demand = len(tasks), int(tasks.demand_milli.sum())
    yield Row("tasks", f"{total:,}", total == 8152)
    for name, (count, milli) in kinds(tasks).items():
        claim = f"{name}: of the tasks, of the GPU demand"
        shares = (100 * count / total, 100 * milli / demand)
        yield Row(claim, f"{shares[0]:.2f} %, {shares[1]:.2f} %", shares)


def table2(study: Study) -> Iterator[Row]:
    """The cluster and its devices."""
    data = study.files
    cluster = _cluster(data)
    models = np.array(cluster.models)
    bare = int((cluster.gpus == 0).sum())
    words = f"{len(cluster):,}, {bare} without GPU"
    if data is not None and (data / ALL_NODES).is_file():
        everything = read_nodes(data / ALL_NODES)
        others = int((everything.gpus == 0).sum())
        words += f" (whole trace: {len(everything):,}, {others} without)"
    yield Row("nodes", words, bare == 310)
    package = PowerModel().cpu
    told = {
        "vCPUs": f"{int(cluster.cpu_milli.sum()) / 1000:,.0f}",
        "GPUs": f"{int(cluster.gpus.sum()):,}",
    }
    for name in GPU_IDLE_W:
        gpus = int(cluster.gpus[models == name].sum())
        words = f"{gpus:,}, {GPU_IDLE_W[name]:g} W, {GPU_FULL_W[name]:g} W"
        told[f"{name}: GPUs, idle power, TDP"] = words
        shapes = {
            (int(cluster.cpu_milli[n]) // 1000, int(cluster.memory_mib[n]))
            for n in np.flatnonzero(models == name)
        }
        words = "; ".join(f"{vcpu} vCPUs, {mib:,} MiB" for vcpu, mib in sorted(shapes))
        told[f"nodes with {name}"] = words
    watts = f"{package.idle_w:g} W, {package.full_w:g} W"
    told["CPU package: cores, idle power, TDP"] = f"{package.cores}, {watts}"
    for claim, stated in study.item.claims.items():
        if claim != "nodes":
            yield Row(claim, told[claim], told[claim] == stated)


def traces(study: Study) -> Iterator[Row]:
    """How far the other traces are what Section V-A says."""
    cluster = read_nodes(study.folder / NODES)

    def read(trace: str) -> Tasks:
        return read_tasks(study.folder / pods(trace), cluster)

    base = kinds(read("default"))
    whole = [key for key in base if key not in ("no GPU", "a share of a GPU")]
    for name, percent in (("multigpu20", 20), ("multigpu50", 50)):
        own = kinds(read(name))
        several = sum(own[f"{k} GPUs"][1] for k in (2, 4, 8)) / sum(m for _, m in own.values())
        grown = 100 * (sum(own[k][1] for k in whole) / sum(base[k][1] for k in whole) - 1)
        note = f"tasks with 2, 4 or 8 GPUs ask for {100 * several:.1f} % of all GPUs"
        claim = f"{name}: GPU demand of tasks with 1 or more whole GPUs"
        yield Row(claim, f"{grown:.1f} % more", agreement(f"{percent}", grown), note)
        kept = all(own[key] == base[key] for key in ("no GPU", "a share of a GPU"))
        words = f"{own['no GPU'][0]:,}, {own['a share of a GPU'][0]:,}"
        words += " as in Default" if kept else ""
        yield Row(f"{name}: CPU-only and sharing tasks", words, kept)
    for name, percent in (("gpushare40", 40), ("gpushare100", 100)):
        own = kinds(read(name))
        part = 100 * own["a share of a GPU"][1] / sum(milli for _, milli in own.values())
        claim = f"{name}: share of the GPU demand by sharing tasks"
        yield Row(claim, f"{part:.1f} %", agreement(f"{percent}", part))
    for name, percent in (("gpuspec10", 10), ("gpuspec33", 33)):
        tasks = read(name)
        gpu = tasks.num_gpu > 0
        named = sum(1 for spec, has in zip(tasks.gpu_specs, gpu, strict=True) if spec and has)
        part = 100 * named / int(gpu.sum())
        claim = f"{name}: GPU tasks that name GPU models"
        yield Row(claim, f"{part:.1f} %", agreement(f"{percent}", part))


# -- Fig. 1 to 3, the Default trace -----------------------------------------------------------


def fig1(study: Study) -> Iterator[Row]:
    """FGD's EOPC, and the share of it that GPUs draw."""
    runs = Runs(study, Trace())
    total, gpu = runs.curve(FGD, "power_w"), runs.curve(FGD, "power_gpu_w")
    share = 100 * gpu.mean / total.mean
    start, top = total.mean[0] / 1e3, total.mean.max() / 1e6
    note = f"before the first task {_idle_kw('packages'):.1f} kW; {_idle_kw('eq1'):.1f} kW by Eq. 1"
    near = 200 < start <= (1 + SLACK) * 200
    yield Row("EOPC of the idle cluster", f"{start:.1f} kW", holds(near, start > 200), note)
    words = f"{top:.2f} MW"
    if len(study.seeds) > 1:
        words += f", ± {total.half[-1] / 1e3:.1f} kW over seeds"
    yield Row("EOPC near saturation", words, (top,))
    words = f"{share.min():.1f} % to {share.max():.1f} %"
    ends = (float(share.min()), float(share.max()))
    yield Row("share of the GPUs in EOPC", words, ends)
    others = ("multigpu20", "multigpu50", "gpushare40", "gpushare100", "gpuspec10", "gpuspec33")
    if study.data is None or not all((study.data / pods(name)).is_file() for name in others):
        return
    tops, shares = [], []
    for trace in others:
        runs = Runs(study, Trace(trace))
        watts, of_gpus = runs.curve(FGD, "power_w").mean, runs.curve(FGD, "power_gpu_w").mean
        tops.append(float(watts.max()) / 1e6)
        shares += [100 * float((of_gpus / watts).min()), 100 * float((of_gpus / watts).max())]
    alike = [abs(x / top - 1) <= SLACK for x in tops]
    alike += [(1 - SLACK) * ends[0] <= x <= (1 + SLACK) * ends[1] for x in shares]
    claim = "the other traces: EOPC near saturation, share of the GPUs"
    words = f"{span(tops, 2)} MW, {span(shares, 1)} %"
    yield Row(claim, words, all(alike), "six of the eleven others")


def _idle_kw(rule: CpuRule) -> float:
    """Return the power of the idle cluster, kW, under one of the two CPU rules."""
    power = PowerModel(cpu_rule=rule)
    return (
        sum(
            count * (power.cpu_w(cpu, cpu) + power.gpu_w(model, [1000] * gpus))
            for model, gpus, cpu, _, count in NODE_TYPES
        )
        / 1e3
    )


def fig2(study: Study) -> Iterator[Row]:
    """PWR and its combinations with FGD: five phases of savings, and where tasks fail."""
    policies = (PWR, *OURS, HALF)
    runs = Runs(study, Trace()).make((FGD, *policies))
    saved = runs.savings(policies)
    yield from _phases(saved)
    grar = runs.grar((FGD, *policies))
    name, load = first_failure(grar)
    first = min(until(curve, 0.9995, 0.5) for curve in grar.values())
    words = f"{100 * first:.1f} %; first failed task in any run at {100 * load:.1f} %"
    yield Row("perfect GRAR of all until", f"{words} ({NAMES[name]})", (100 * first,))
    means = {policy: float(curve.between(RAMP, 0.8).mean()) for policy, curve in saved.items()}
    heavy = (PWR, HALF)
    yield Row(
        "savings of α > 0.2 against those of plain PWR, 15 to 80 %",
        f"α=0.5 {means[HALF]:.1f} %, PWR {means[PWR]:.1f} %",
        abs(means[HALF] / means[PWR] - 1) <= SLACK,
    )
    yield Row(
        "savings of α ≤ 0.2, 15 to 80 %",
        f"{span((means[p] for p in OURS), 1)} %",
        max(means[p] for p in OURS) < min(means[p] for p in heavy),
    )
    claim = "GRAR of α > 0.2 at 100 %"
    parts = (with_spread(claim, only(grar, group), 1.0, 3).ours for group in (heavy, OURS))
    worse = max(grar[p].at(1) for p in heavy) < min(grar[p].at(1) for p in OURS)
    yield Row(claim, "; ".join(parts), worse)


def _phases(saved: Curves) -> Iterator[Row]:
    """The five phases of VI-B."""
    curves = saved.values()

    def at(load: float) -> str:
        return span((curve.at(load) for curve in curves), 1)

    words = f"{at(0.02)} % at 2 %, {at(RAMP)} % at 15 %"
    yield Row("phase 1, 0 to 15 %", words, all(c.at(RAMP) > c.at(0.02) + 5 for c in curves))
    low = min(float(c.between(RAMP, 0.8).min()) for c in curves)
    high = max(float(c.between(RAMP, 0.8).max()) for c in curves)
    yield Row("phase 2, 15 to 80 %", f"{low:.1f} to {high:.1f} %", low > 0.75 * high)
    words = f"{at(0.8)} % at 80 %, {at(0.9)} % at 90 %"
    yield Row("phase 3, 80 to 90 %", words, all(c.at(0.8) > 2 * c.at(0.9) for c in curves))
    lowest = {p: int(np.argmin(np.where(LOADS >= 0.85, c.mean, np.inf))) for p, c in saved.items()}
    dips = {p: float(LOADS[k]) for p, k in lowest.items()}
    gains = [saved[p].at(1.0) - float(saved[p].mean[k]) for p, k in lowest.items()]
    words = f"by {span(gains, 1)} points, after lows at "
    words += ", ".join(f"{100 * x:.1f} % ({NAMES[p]})" for p, x in dips.items())
    near = min(dips.values()) >= 0.9 * (1 - SLACK) and max(dips.values()) <= 0.93 * (1 + SLACK)
    yield Row("phase 4, 90 to 93 %", words, min(gains) > 0 and near)
    last = [float(np.ptp(c.between(0.95, 1.0))) for c in curves]
    words = f"changes by {span(last, 1)} points from 95 to 100 %"
    yield Row("phase 5, 93 to 100 %", words, max(last) < 1)


def fig3(study: Study) -> Iterator[Row]:
    """Savings against competitors, and what the way of sampling does to them."""
    saved = Runs(study, Trace()).savings(TESTED)
    ours = only(saved, OURS)
    yield Row("saving of PWR+FGD above 13 %", *stays_above(ours, 13, 0.8))
    yield Row("saving of PWR+FGD above ~5 %", *stays_above(ours, 5, 0.9, 0.8))
    name, most, where = peak(only(saved, RIVALS))
    words = f"{most:.1f} % ({NAMES[name]}, at {100 * where:.1f} %)"
    yield Row("largest saving of a competitor", words, at_most(5, most))
    yield _ahead("", saved, 1.0)
    yield with_spread(SAVED_50, saved, 0.5)
    drawn = Runs(study, Trace(sampling="monte-carlo")).savings(OURS)
    claim = "the first row, tasks drawn with replacement from the start"
    note = f"V-A's words. At 50 %: {with_spread('', drawn, 0.5).ours}"
    yield Row(claim, stays_above(drawn, 13, 0.8)[0], note=note)


# -- Fig. 4 to 6, savings on the traces made from Default -------------------------------------


def _ahead(trace: str, saved: Curves, upto: float) -> Row:
    """Return up to which load every combination saves more than every competitor, from 5 % on."""
    load, name = lead(only(saved, OURS), only(saved, RIVALS))
    claim = f"{trace}PWR+FGD saves more than every competitor, from 5 % on"
    words = f"until {100 * load:.1f} %, then {NAMES[name]} saves more" if name else "everywhere"
    return Row(claim, words, load >= upto)


def fig4(study: Study) -> Iterator[Row]:
    """All GPU demand comes from tasks that share."""
    saved = Runs(study, Trace("gpushare100")).savings(TESTED)
    ours = only(saved, OURS)
    yield Row("saving of PWR+FGD above 13 %", *stays_above(ours, 13, 0.7))
    yield Row("saving of PWR+FGD above 5 %", *stays_above(ours, 5, 0.8, 0.7))
    fit = saved["bestfit"]
    k = int(np.argmax(np.where(LOADS <= 0.85, fit.mean, -np.inf)))
    most, half, load = float(fit.mean[k]), float(fit.half[k]), 100 * float(LOADS[k])
    words = f"{most:.1f} ± {half:.1f} %, at {load:.1f} %"
    claim = "largest saving of BestFit, the best competitor"
    yield Row(claim, words, (most, load), half=(half, 0.0))
    yield _ahead("", saved, 1.0)
    yield with_spread(SAVED_50, saved, 0.5)


def fig5(study: Study) -> Iterator[Row]:
    """Tasks with several GPUs take 20 and 50 % of the demand."""
    some, half = (Runs(study, Trace(t)).savings(TESTED) for t in ("multigpu20", "multigpu50"))
    for claim, saved, policies, level, load in (
        ("20 %: saving of α=0.1 and 0.2 above 12 %", some, (MIDDLE, HIGH), 12, 0.82),
        ("20 %: saving of α=0.05 above 7 %", some, (LOW,), 7, 0.82),
        ("50 %: saving of α=0.2 above 7 %", half, (HIGH,), 7, 0.9),
        ("50 %: saving of α=0.1 above 4 %", half, (MIDDLE,), 4, 0.9),
        ("50 %: saving of α=0.05 above 4 %", half, (LOW,), 4, 0.9),
    ):
        yield Row(claim, *stays_above(only(saved, policies), level, load))
    yield _ahead("20 %: ", some, 0.9)
    yield _ahead("50 %: ", half, 0.9)
    yield with_spread(f"20 %: {SAVED_50}", some, 0.5)
    yield with_spread(f"50 %: {SAVED_50}", half, 0.5)


def fig6(study: Study) -> Iterator[Row]:
    """10 and 33 % of the GPU tasks name the GPU models they accept."""
    few, many = (Runs(study, Trace(t)).savings(TESTED) for t in ("gpuspec10", "gpuspec33"))
    yield Row("10 %: saving of PWR+FGD above 10 %", *stays_above(only(few, OURS), 10, 0.9))
    name, most, where = peak(only(few, RIVALS))
    words = f"{most:.1f} % ({NAMES[name]}, at {100 * where:.1f} %)"
    worse = most < min(few[p].at(where) for p in OURS)
    yield Row("10 %: the best competitor", words, worse)
    drop = many[HIGH].at(0.2) - many[HIGH].at(0.8)
    words = f"α=0.2 falls by {drop:.1f} points from 20 to 80 %, without a plateau"
    yield Row("33 %: five phases", words, drop > 5)
    at10, at33 = (float(c[HIGH].between(RAMP, 0.9).mean()) for c in (few, many))
    claim = "33 %: saving of α=0.2 against the 10 % case, 15 to 90 %"
    yield Row(claim, f"{at33:.1f} %, {at10:.1f} %", abs(at33 / at10 - 1) <= SLACK)
    lower = [float(many[p].between(RAMP, 0.9).mean()) for p in (LOW, MIDDLE)]
    claim = "33 %: savings of α=0.05 and 0.1, 15 to 90 %"
    yield Row(claim, f"{lower[0]:.1f} %, {lower[1]:.1f} %", max(lower) < at33)
    rivals = only(many, RIVALS)
    behind = {p: lead(only(many, (p,)), rivals)[0] for p in OURS}
    words = "; ".join(f"{NAMES[p]} until {100 * load:.1f} %" for p, load in behind.items())
    words += f"; the best competitor reaches {peak(rivals, RAMP)[1]:.1f} %"
    claim = "33 %: they outperform every competitor"
    yield Row(claim, words, behind[LOW] < 1 and behind[MIDDLE] < 1)
    yield with_spread(f"10 %: {SAVED_50}", few, 0.5)
    yield with_spread(f"33 %: {SAVED_50}", many, 0.5)


# -- Fig. 7 to 10, the GPU resource allocation ratio ------------------------------------------

ALL = (FGD, *TESTED)
END = "GRAR at 100 %"


def _ends(curves: Curves, policies: Iterable[str]) -> list[float]:
    """Return GRAR at a load of 100 %."""
    return [curves[policy].at(1.0) for policy in policies]


def _best(prefix: str, curves: Curves) -> Row:
    """Return whether FGD has the best GRAR at 100 %."""
    own, others = curves[FGD].at(1.0), _ends(curves, TESTED)
    best = max(TESTED, key=lambda policy: curves[policy].at(1.0))
    words = f"FGD {own:.3f}; next {NAMES[best]}, {max(others):.3f}"
    return Row(f"{prefix}best GRAR at 100 %", words, own > max(others))


def _below(
    study: Study, claim: str, curves: Curves, upper: Iterable[str], lower: tuple[str, ...]
) -> Row:
    """Return how far below the worst of one group the next group ends."""
    base = min((curves[policy] for policy in upper), key=lambda curve: curve.at(1.0))
    gaps = [gap(base, curves[policy]) for policy in lower]
    ends = [(float(g.mean[-1]), float(g.half[-1])) for g in gaps]
    words = f"{span((end for end, _ in ends), 3)} ± {max(half for _, half in ends):.3f}"
    words += f" ({', '.join(NAMES[policy] for policy in lower)})"
    stated = study.item.claims[claim].removeprefix("around ")
    if stated.startswith("less than "):
        limits = (at_most(float(stated.split()[-1]), end) for end, _ in ends)
        return Row(claim, words, worst([*limits, holds(min(ends)[0] > 0)]))
    stated = "0.02" if stated == "2 %" else stated
    return Row(claim, words, worst(agreement(stated, *end, 0.0) for end in ends))


def _worsens(study: Study, prefix: str, curves: Curves) -> Row:
    """Return from where on tasks fail."""
    claim = f"{prefix}GRAR worsens only beyond"
    load = float(study.item.claims[claim].split()[0]) / 100
    first = min(until(curve, 0.995, 0.5) for curve in curves.values())
    name, failed = first_failure(curves)
    words = (
        f"at least 0.995 until {100 * first:.1f} %; first failed task in any run at "
        f"{100 * failed:.1f} % ({NAMES[name]})"
    )
    return Row(claim, words, first >= (1 - SLACK) * load)


def fig7(study: Study) -> Iterator[Row]:
    """Default."""
    curves = Runs(study, Trace()).grar(ALL)
    group, rest = ("bestfit", *OURS), ("gpuclustering", "gpupacking", "dotprod")
    yield _best("", curves)
    yield _below(study, "BestFit and PWR+FGD below FGD, at 100 %", curves, (FGD,), group)
    yield _below(study, "the remaining competitors below that group", curves, group, rest)
    yield _worsens(study, "", curves)
    yield with_spread(END, curves, 1.0, 3)


def fig8(study: Study) -> Iterator[Row]:
    """Sharing tasks take 40 and 100 % of the GPU demand."""
    some, full = (Runs(study, Trace(t)).grar(ALL) for t in ("gpushare40", "gpushare100"))
    rest, group = ("gpupacking", "gpuclustering", "dotprod"), ("bestfit", *OURS)
    fit = ("bestfit",)
    yield _best("40 %: ", some)
    yield _below(study, "40 %: BestFit and PWR+FGD below FGD", some, (FGD,), group)
    yield _below(study, "40 %: the remaining competitors below that group", some, group, rest)
    yield _best("100 %: ", full)
    yield _below(study, "100 %: BestFit below FGD", full, (FGD,), fit)
    yield _below(study, "100 %: PWR+FGD below BestFit", full, fit, OURS)
    yield _below(study, "100 %: the remaining competitors below that", full, OURS, rest)
    yield _worsens(study, "40 %: ", some)
    yield _worsens(study, "100 %: ", full)
    yield with_spread(f"40 %: {END}", some, 1.0, 3)
    yield with_spread(f"100 %: {END}", full, 1.0, 3)


def fig9(study: Study) -> Iterator[Row]:
    """Tasks with several GPUs take 20 and 50 % of the demand."""
    some, half = (Runs(study, Trace(t)).grar(ALL) for t in ("multigpu20", "multigpu50"))
    rest = ("bestfit", "gpupacking", "gpuclustering")
    yield _best("20 %: ", some)
    yield _below(study, "20 %: PWR+FGD below FGD", some, (FGD,), OURS)
    yield _below(study, "20 %: BestFit and two more below that", some, OURS, rest)
    last = min(ALL, key=lambda policy: some[policy].at(1.0))
    yield Row("20 %: last", NAMES[last], last == "dotprod")
    wide, narrow = (c[FGD].at(1) - min(_ends(c, TESTED)) for c in (some, half))
    claim = "50 %: gap from first to last against the 20 % case"
    yield Row(claim, f"{narrow:.3f}, {wide:.3f}", narrow < wide)
    means = [float(np.mean(_ends(half, group))) for group in (OURS, rest, ("dotprod",))]
    words = ", ".join(f"{mean:.3f}" for mean in means)
    first = half[FGD].at(1)
    same = first > means[0] > means[1] > means[2]
    yield Row("50 %: ranking", f"FGD {first:.3f}; means of the groups {words}", same)
    yield _worsens(study, "20 %: ", some)
    yield _worsens(study, "50 %: ", half)
    yield with_spread(f"20 %: {END}", some, 1.0, 3)
    yield with_spread(f"50 %: {END}", half, 1.0, 3)


def fig10(study: Study) -> Iterator[Row]:
    """10 and 33 % of the GPU tasks name the GPU models they accept."""
    few, many = (Runs(study, Trace(t)).grar(ALL) for t in ("gpuspec10", "gpuspec33"))
    at = [[curve.at(0.8) for curve in curves.values()] for curves in (few, many)]
    words = f"{span(at[0], 3)} (10 %), {span(at[1], 3)} (33 %)"
    yield Row("GRAR at 80 %", words, max(*at[0], *at[1]) < 0.98)
    for share, curves in ((10, few), (33, many)):
        best, others = _ends(curves, (FGD, *OURS)), _ends(curves, RIVALS)
        claim = f"{share} %: FGD and PWR+FGD have the best GRAR at 100 %"
        words = f"{span(best, 3)}; competitors {span(others, 3)}"
        yield Row(claim, words, min(best) > max(others))
    ahead = [gap(few[FGD], few[policy]) for policy in OURS]
    name, most, _ = peak(dict(zip(OURS, ahead, strict=True)))
    half = float(ahead[OURS.index(name)].half.max())
    level = 0.002  # a GRAR that much higher is no tie
    stretches = [_around_peak(curve.mean, level) for curve in ahead]
    low, high = min(LOADS[a] for a, _ in stretches), max(LOADS[b] for _, b in stretches)
    words = f"{most:.3f}; ahead by {level} or more from {100 * low:.1f} to {100 * high:.1f} %"
    yield Row("10 %: FGD's largest advantage over PWR+FGD", words, (most,), half=(half,))
    for policy, claim, sign in (
        (LOW, "33 %: α=0.05 over FGD, at most", 1),
        (MIDDLE, "33 %: α=0.1 below FGD, at most", -1),
        (HIGH, "33 %: α=0.2 below FGD, at most", -1),
    ):
        upper, lower = (many[policy], many[FGD])[::sign]
        apart = gap(upper, lower)
        k = int(np.argmax(apart.mean))
        most, half, least = float(apart.mean[k]), float(apart.half[k]), float(apart.mean.min())
        words = f"{most:.3f} ± {half:.3f}; never less than {least:.3f}"
        yield Row(claim, words, (most,), half=(half,))
    yield with_spread(f"10 %: {END}", few, 1.0, 3)
    yield with_spread(f"33 %: {END}", many, 1.0, 3)


def _around_peak(values: FloatArray, level: float) -> tuple[int, int]:
    """Return first and last index of the stretch above `level` that holds the largest value."""
    top = int(np.argmax(values))
    low, high = np.flatnonzero(values[:top] <= level), np.flatnonzero(values[top:] <= level)
    return (
        int(low[-1]) + 1 if low.size else 0,
        top + int(high[0]) - 1 if high.size else len(values) - 1,
    )


# -- what might be the reason, one change after another ---------------------------------------

Change = Callable[[Path, PlacementProblem, int], PlacementProblem]


def _first_name(data: Path, problem: PlacementProblem, seed: int) -> PlacementProblem:
    """Give ties to the node that stands first in the file."""
    return replace(problem, ranks=np.arange(len(problem.cluster)))


def _default_workload(data: Path, problem: PlacementProblem, seed: int) -> PlacementProblem:
    """Measure fragmentation against Default's tasks instead of the trace's own."""
    tasks = read_tasks(data / pods("default"), problem.cluster)
    return replace(problem, workload=TargetWorkload.from_tasks(tasks))


def with_share(tasks: Tasks, share: float) -> IntArray:
    """Return the tasks, those with several GPUs thinned to `share` of all GPU demand."""
    several = np.flatnonzero(tasks.num_gpu > 1)
    several = np.random.default_rng(0).permutation(several)
    other = float(tasks.demand_milli[tasks.num_gpu <= 1].sum())
    upto = np.cumsum(tasks.demand_milli[several]) <= other * share / (1 - share)
    kept: IntArray = np.sort(np.r_[np.flatnonzero(tasks.num_gpu <= 1), several[upto]])
    return kept


def _less_multi(share: float) -> Change:
    def change(data: Path, problem: PlacementProblem, seed: int) -> PlacementProblem:
        cluster = read_nodes(data / NODES)
        tasks = read_tasks(data / pods("multigpu50"), cluster)
        tasks = tasks.take(with_share(tasks, share).tolist())
        arrivals, ranks = np.random.default_rng(seed).spawn(2)
        chosen = inflate(
            tasks, cluster.gpu_capacity_milli, INFLATED, arrivals, sampling="trace-first"
        )
        workload = TargetWorkload.from_tasks(tasks)
        taken, order = tasks.take(chosen.tolist()), ranks.permutation(len(cluster))
        return PlacementProblem.of(cluster, taken, workload, order)

    return change


CHANGES: dict[str, Change] = {
    "ties to the first name": _first_name,
    "fragmentation against Default's tasks": _default_workload,
    "40 % of the demand by tasks with 2, 4 or 8 GPUs": _less_multi(0.4),
    "30 % of the demand by tasks with 2, 4 or 8 GPUs": _less_multi(0.3),
}


def causes(study: Study) -> Iterator[Row]:
    """Fig. 5 at 50 %, and DotProd's place in Fig. 7, with one thing changed at a time."""
    levels = dict(zip(OURS, (4, 4, 7), strict=True))  # Fig. 5: savings, %, until ~90 %
    half = "multigpu50"
    tried = [
        ("as it is", Trace(half), ")"),
        ("tasks drawn with replacement from the start", Trace(half, "monte-carlo"), ")"),
        ("exact scores, Eq. 5 as printed", Trace(half), ",score=exact)"),
        *((change, Trace(half, change=change), ")") for change in CHANGES),
    ]
    for title, trace, end in tried:
        named = {policy: policy.replace(")", end) for policy in OURS}
        saved = Runs(study, trace).savings(tuple(named.values()))
        curves = {policy: saved[call] for policy, call in named.items()}
        words = "; ".join(
            f"{NAMES[p]} above {levels[p]} % until {100 * until(curve, levels[p]):.1f} %"
            for p, curve in curves.items()
        )
        note = ", ".join(f"{curve.at(0.5):.1f}" for curve in curves.values())
        yield Row(f"Fig. 5, 50 %, {title}", words, note=f"at a load of 50 %: {note} %")
    base = min(curve.at(1.0) for curve in Runs(study, Trace()).grar(("bestfit", *OURS)).values())
    for form in FORMS:
        found = []
        for seed in study.seeds[:5]:  # the readings are not compiled
            study.proceed(f"DotProd, {form}, seed {seed}")
            problem = Trace().problem(study.files, seed)
            result = run(problem, dot_product, seed=seed, form=form)
            found.append(float(placed(problem, result)["grar"][-1]))
        mean = float(np.mean(found))
        claim = f"Fig. 7, DotProd {form}: GRAR below the group's, at 100 %"
        yield Row(claim, f"{base - mean:.3f}", note=f"GRAR {mean:.3f}; {len(found)} seeds")


Whole = FloatArray | float
Score = Callable[[Task, PlacementState, IntArray], FloatArray]
"""Of the feasible nodes; the least wins, the lowest rank of equals."""


def _shares(
    task: Task, state: PlacementState, nodes: IntArray, cpu: Whole, gpu: Whole
) -> FloatArray:
    """Return c·c_task/cpu² + g·g_task/gpu², in shares of `cpu` and `gpu`, which are per node."""
    free = np.maximum(state.gpu_free_milli[nodes], 0).sum(axis=1)
    of_cpu = (state.free_cpu_milli[nodes] / cpu) * (task.cpu_milli / cpu)
    found: FloatArray = of_cpu + (free / gpu) * (task.num_gpu * task.gpu_milli / gpu)
    return found


def _largest(task: Task, state: PlacementState, nodes: IntArray) -> FloatArray:
    return _shares(task, state, nodes, 128_000.0, 8000.0)


def _rounded(task: Task, state: PlacementState, nodes: IntArray) -> FloatArray:
    return -np.trunc(100 * (1 - _largest(task, state, nodes) / 2))


def _by_node(task: Task, state: PlacementState, nodes: IntArray) -> FloatArray:
    cluster = state.cluster
    gpu = np.maximum(cluster.gpus[nodes], 1).astype(np.float64) * 1000
    return _shares(task, state, nodes, cluster.cpu_milli[nodes].astype(np.float64), gpu)


def _cosine(task: Task, state: PlacementState, nodes: IntArray) -> FloatArray:
    free = np.maximum(state.gpu_free_milli[nodes], 0).sum(axis=1) / 8000
    length = np.maximum(np.hypot(state.free_cpu_milli[nodes] / 128_000, free), 1e-12)
    found: FloatArray = _largest(task, state, nodes) / length
    return found


def _per_gpu(task: Task, state: PlacementState, nodes: IntArray) -> FloatArray:
    """Take every GPU for a dimension: the task asks for the fullest ones that fit it."""
    free = state.gpu_free_milli[nodes] / 1000
    fitting = np.where(free * 1000 >= max(1, task.gpu_milli), free, np.inf)
    chosen = np.sort(fitting, axis=1)[:, : task.num_gpu]
    cpu = (state.free_cpu_milli[nodes] / 128_000) * (task.cpu_milli / 128_000)
    found: FloatArray = cpu + chosen.sum(axis=1) * task.gpu_milli / 1000
    return found


def _with_memory(task: Task, state: PlacementState, nodes: IntArray) -> FloatArray:
    most = float(state.cluster.memory_mib.max())
    memory = (state.free_memory_mib[nodes] / most) * (task.memory_mib / most)
    return _largest(task, state, nodes) + memory


FORMS: dict[str, tuple[Score, str]] = {
    "as in the simulator": (_rounded, "tight"),
    "not rounded": (_largest, "tight"),
    "in shares of each node": (_by_node, "tight"),
    "of vectors of length 1 (the cosine)": (_cosine, "tight"),
    "every GPU a dimension": (_per_gpu, "tight"),
    "memory, too": (_with_memory, "tight"),
    "the largest product": (lambda *given: -_largest(*given), "tight"),
    "shares on the emptiest GPU": (_rounded, "loose"),
    "shares on any GPU": (_rounded, "random"),
}
"""Other readings of DotProd's sentence, "the smallest dot product between the node's available
resources and the task's requirements"."""


def dot_product(
    task: Task, state: PlacementState, form: str = "as in the simulator"
) -> tuple[int, tuple[int, ...]] | None:
    """Place a task by a reading of DotProd."""
    score, share = FORMS[form]
    nodes = state.feasible(task)
    if not nodes.size:
        return None
    node = int(nodes[np.argmin(score(task, state, nodes))])
    gpus = state.gpus_for(task, node)
    if share != "tight" and task.num_gpu and task.gpu_milli < 1000:
        free = state.gpu_free_milli[node]
        fitting = np.flatnonzero(free >= task.gpu_milli)
        loose = share == "loose"
        gpus = (int(fitting[np.argmax(free[fitting])] if loose else state.rng.choice(fitting)),)
    return node, gpus
