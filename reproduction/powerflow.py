"""Gu et al., "Energy-Efficient GPU Clusters Scheduling for Deep Learning" (PowerFlow, arXiv
2304.06381).

The authors' profiles are not public, nor is it said which jobs of the public trace they took.
Everything runs on the synthetic V100 pool and a synthetic day from published statistics; nothing
here needs data. Fig. 2 to 5 have no numbers, and Table 2 is of measurements that are not at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optgap.api import run, solve
from optgap.models.elastic import ElasticProblem, JobClass, Jobs, Overhead, presets
from optgap.models.elastic.jobs import Kind
from optgap.models.elastic.referee import powers, step_function
from optgap.models.result import Result
from reproduction.claims import (
    FloatArray,
    Row,
    Study,
    Verdict,
    at_most,
    holds,
    spread,
    worst,
)

ETAS = (0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
CLOCKS = (1020.0, 1110.0, 1200.0, 1290.0, 1380.0)
"""MHz; below 1020 the paper finds both energy and JCT worse."""
NAMES = {
    "powerflow": "PowerFlow",
    "afs": "AFS",
    "tiresias": "Tiresias",
    "gandiva": "Gandiva",
    "tiresias+zeus": "Tiresias+Zeus",
    "gandiva+zeus": "Gandiva+Zeus",
}
RATED = ("gandiva", "tiresias", "gandiva+zeus", "tiresias+zeus", "afs")
"""Whose mean JCT over PowerFlow's Section 6.2 states."""
FREE = {"prerun_s": 0.0, "profile_s": 0.0}
"""Of PowerFlow: no pre-run, and windows of no length."""


@dataclass(frozen=True)
class Point:
    """One run: energy, J, mean JCT, s, and the knob that it was run with."""

    knob: float
    energy_j: float
    jct_s: float
    metrics: Mapping[str, Any]


def day(seed: int, **changes: Any) -> ElasticProblem:
    """Return the day without a limit on power: every scheduler's own knob sets its energy."""
    return presets.day(seed=seed, **{"pool": "v100", "cap": "none", "eta": 1.0, **changes})


def finished(problem: ElasticProblem, policy: str, **params: Any) -> Result:
    """Return a run that did everything asked for.

    Raises
    ------
    RuntimeError
        If it did not.
    """
    result = run(problem, policy, seed=0, **params)
    if result.solution is None or not problem.serves_all(result.solution):
        raise RuntimeError(f"{policy} left jobs undone")
    return result


def knobs(policy: str, knob: float) -> dict[str, Any]:
    """Return the parameters of a policy at its knob: η, a common clock, or none with Zeus."""
    if policy == "powerflow":
        return {"eta": knob}
    return {} if "zeus" in policy else {"frequency": knob}


def frontier(
    study: Study,
    problem: ElasticProblem,
    policy: str,
    values: Sequence[float] | None = None,
    **params: Any,
) -> list[Point]:
    """Return the points of a policy over its knob."""
    key = (problem.name, problem.gpus, policy, values, tuple(sorted(params.items())))
    if key not in study.shared:
        zeus = policy.endswith("+zeus")
        chosen = values or (ETAS if policy == "powerflow" else (0.5,) if zeus else CLOCKS)
        points = []
        for knob in chosen:
            study.proceed(f"{NAMES[policy]}, {knob:g}")
            result = finished(problem, policy, **knobs(policy, knob), **params)
            energy = float(result.metrics["energy_j"])
            points.append(Point(knob, energy, float(result.objective or 0.0), result.metrics))
        study.shared[key] = points
    found: list[Point] = study.shared[key]
    return found


def exceeds(differences: FloatArray) -> Verdict:
    """Return whether differences, one a seed, are above 0 beyond their interval, or in the mean."""
    found = spread(differences)
    return holds(found.mean > found.half, found.mean > 0)


def at_energy(points: Sequence[Point], energy_j: float) -> float | None:
    """Return the least mean JCT with at most that energy, between runs by interpolation."""
    xs: list[float] = []
    ys: list[float] = []
    for p in sorted(points, key=lambda p: (p.energy_j, p.jct_s)):
        if not ys or p.jct_s < ys[-1]:  # only those that more energy makes faster
            xs.append(p.energy_j)
            ys.append(p.jct_s)
    if not xs or energy_j < xs[0]:
        return None
    return float(np.interp(energy_j, xs, ys))


def best_ratio(baseline: Sequence[Point], powerflow: Sequence[Point]) -> tuple[float, float]:
    """Return the largest and smallest ratio of mean JCTs at equal energy; NaN without any."""
    ratios = [
        p.jct_s / ours
        for p in baseline
        if (ours := at_energy(powerflow, p.energy_j * (1 + 1e-9))) is not None
    ]
    return (max(ratios), min(ratios)) if ratios else (float("nan"), float("nan"))


# -- Fig. 1 -----------------------------------------------------------------------------------

IDLE_W = 55.0
STEPS_MHZ = (1050.0, 1170.0, 1290.0, 1410.0)
TIRESIAS_S, TIRESIAS_J = 180.4, 85_546.0
"""Mean JCT and energy of Tiresias, as stated."""
VGG16 = {1: (0.114, 27.0), 2: (0.112, 39.0)}
"""s and J per iteration at batch 64, as stated."""


def gpt2(speed_up: float) -> dict[int, tuple[float, float]]:
    """Return s and J per iteration of the second job, from what Tiresias's totals leave for it.

    The one-GPU job runs first and the other waits for both GPUs: the mean of 114 s and
    114 s + 1000·T is 180.4 s, and its energy is the total less the first job's and an idle GPU's.
    Nothing is said of its speed on two GPUs over one.
    """
    first = 1000 * VGG16[1][0]
    time_2 = (2 * TIRESIAS_S - 2 * first) / 1000
    energy_2 = (TIRESIAS_J - 1000 * VGG16[1][1] - IDLE_W * first) / 1000
    return {1: (speed_up * time_2, energy_2 / 2 * speed_up), 2: (time_2, energy_2)}


def two_jobs(speed_up: float, bound: float, clocks_mhz: Sequence[float]) -> ElasticProblem:
    """Return both jobs of Section 3.1, 1,000 iterations each.

    Parameters
    ----------
    bound
        Share of the run time that goes with the clock; power goes as on our boards.
    """
    clocks = np.array(clocks_mhz)
    slower = 1 - bound + bound * STEPS_MHZ[-1] / clocks
    less = 0.2 + 0.8 * (clocks / STEPS_MHZ[-1]) ** 2.5
    classes = [
        JobClass(
            name,
            batch,
            (1, 2),
            np.array([rows[n][0] * slower for n in (1, 2)]),
            np.array([rows[n][1] / rows[n][0] * less for n in (1, 2)]),
        )
        for name, batch, rows in (("vgg16", 64, VGG16), ("gpt2", 32, gpt2(speed_up)))
    ]
    iterations = np.array([1000.0, 1000.0])
    jobs = Jobs(("A", "B"), np.zeros(2), np.array([0, 1]), iterations, np.array([1, 2]))
    return ElasticProblem.of(
        classes,
        jobs,
        clocks_mhz,
        gpus=2,
        gpus_per_node=2,
        cap="none",
        idle_w=IDLE_W,
        overhead=Overhead(0, 0, 0),
        name="motivating example",
        origin="Section 3.1",
    )


def motivation(study: Study) -> Iterator[Row]:
    """Two jobs on two GPUs: Tiresias, and the least mean JCT by what GPT-2's profile may be."""
    tiresias = run(two_jobs(1.8, 0.85, STEPS_MHZ), "tiresias")
    jct, energy = float(tiresias.objective or 0), float(tiresias.metrics["energy_j"])
    note = "by construction: the second job's profile is what these totals leave for it"
    yield Row("Tiresias: mean JCT, energy", f"{jct:.1f} s, {energy:,.0f} J", note=note)
    for speed_up, bound in ((1.8, 0.85), (1.5, 0.85), (1.5, 0.05)):
        shown = []
        for clock in (STEPS_MHZ[-1], STEPS_MHZ[0]):
            best = solve(two_jobs(speed_up, bound, (clock,)), "exhaustive")
            shorter = 100 * (1 - float(best.objective or 0) / jct)
            saved = 100 * (1 - float(best.metrics["energy_j"]) / energy)
            shown.append(f"{shorter:.0f} %, {saved:.0f} % at {clock:g} MHz")
        claim = f"GPT-2 {speed_up:g} x as fast on two GPUs, {bound:.0%} of time by the clock"
        yield Row(f"shorter mean JCT, less energy: {claim}", "; ".join(shown))


# -- Fig. 7 to 9, a day of 1,901 jobs ---------------------------------------------------------


def fig7(study: Study) -> Iterator[Row]:
    """Mean JCT against energy, and the ratios of the abstract."""
    days = [day(seed) for seed in study.seeds]
    over = [{name: frontier(study, problem, name) for name in NAMES} for problem in days]
    longer = []
    for name in RATED:
        ratios = np.array([best_ratio(points[name], points["powerflow"]) for points in over])
        most, least = spread(ratios[:, 0]), ratios[:, 1].min()
        claim = f"{NAMES[name]}: mean JCT over PowerFlow's at equal energy, at most"
        yield Row(claim, f"{most.text(2)} x", (most.mean,), half=(most.half,))
        if least < 1:
            longer.append(f"{NAMES[name]} is the shorter, {least:.2f} x at its worst")
    words = "; ".join(longer) or "yes, where a baseline has a run"
    yield Row("PowerFlow has the shortest mean JCT at every energy", words, not longer)
    problem, points = days[0], over[0]
    better, shown = False, []
    for name in ("gandiva", "tiresias", "afs"):
        (below,), least_clock = frontier(study, problem, name, (930.0,)), points[name][0]
        better |= below.energy_j < least_clock.energy_j
        jct, energy = below.jct_s / least_clock.jct_s, below.energy_j / least_clock.energy_j
        shown.append(
            f"{NAMES[name]} {100 * (jct - 1):+.1f} % JCT, {100 * (energy - 1):+.1f} % energy"
        )
    yield Row("baselines at 930 MHz against 1,020", "; ".join(shown), not better)
    for name, found in points.items():
        knob = "η" if name == "powerflow" else "Zeus η" if "zeus" in name else "MHz"
        for p in found:
            words = f"{p.energy_j / 1e9:.2f} GJ, {p.jct_s:,.0f} s"
            yield Row(f"{NAMES[name]}, {knob} {p.knob:g}", words)


def fig8(study: Study) -> Iterator[Row]:
    """GPUs in use and power over time, each at about the energy of Gandiva+Zeus."""
    days = [day(seed) for seed in study.seeds]
    every: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
    for problem in days:
        target = frontier(study, problem, "gandiva+zeus")[0].energy_j
        for name, found in every.items():
            near = min(frontier(study, problem, name), key=lambda p: abs(p.energy_j - target))
            found.append(_in_use(problem, name, near.knob))
    busy, watts = ({name: np.array(found)[:, k] for name, found in every.items()} for k in range(2))
    most = np.max([busy[name] for name in RATED[:4]], axis=0)
    claim = "PowerFlow uses GPUs that schedulers without elasticity leave idle"
    words = f"{spread(busy['powerflow']).text(0)} against {spread(most).text(0)} at most"
    yield Row(claim, words, exceeds(busy["powerflow"] - most))
    taken = watts["powerflow"]
    words = ", ".join(f"{NAMES[name]} {spread(x).text()} kW" for name, x in watts.items())
    claim = "PowerFlow takes more energy than the baselines in the first few hours"
    yield Row(claim, f"in 4 h {words}", worst(exceeds(taken - watts[name]) for name in RATED))
    for name, gpus in busy.items():
        words = f"{spread(gpus).text(0)} of 256"
        yield Row(f"{NAMES[name]}: GPUs in use in the first 24 h, mean", words)


def _in_use(problem: ElasticProblem, name: str, knob: float) -> tuple[float, float]:
    """Return GPUs in use, mean of 24 h, and power, kW, mean of 4 h."""
    solution: Any = finished(problem, name, **knobs(name, knob)).solution
    inside = solution.kind != Kind.PRERUN
    grid = np.arange(0.0, 24 * 3600.0, 600.0)
    means = []
    for upto_h, shown, value in (
        (24, inside, solution.gpus.astype(float)),
        (4, np.ones_like(inside), powers(problem, solution) / 1000),
    ):
        spans = (solution.start_s[shown], solution.end_s[shown])
        times, level = step_function(*spans, value[shown])
        at = level[np.maximum(np.searchsorted(times, grid, side="right") - 1, 0)]
        means.append(float(np.mean(at[grid < upto_h * 3600])))
    return means[0], means[1]


def fig9(study: Study) -> Iterator[Row]:
    """Models learnt in the loop against profiles known beforehand."""
    modes: dict[str, dict[str, Any]] = {
        "online": {},
        "online, measuring free": FREE,
    }
    for label, params in modes.items():
        equal, longer, more = [], [], []
        for seed in study.seeds[: 1 if params else None]:  # the default's alone are judged
            problem = day(seed)
            known = frontier(study, problem, "powerflow", profiles="perfect")
            points = frontier(study, problem, "powerflow", **params)
            others = [(p, at_energy(known, p.energy_j)) for p in points]
            equal.append([100 * (p.jct_s / other - 1) for p, other in others if other])
            both = list(zip(points, known, strict=True))
            longer.append([100 * (p.jct_s / q.jct_s - 1) for p, q in both])
            more.append([100 * (p.energy_j / q.energy_j - 1) for p, q in both])
        at_every = spread(np.array([np.abs(each).max() for each in equal]))
        middle = spread(np.array([np.median(each) for each in equal]))
        within = at_most(2, at_every.mean - at_every.half)
        if within == "no" and at_most(2, abs(middle.mean) - middle.half) == "yes":
            within = "open"  # at every η, or of the whole curve
        claim = f"{label}: difference of mean JCT at equal energy"
        yield Row(claim, _apart(equal), "" if params else within)
        yield Row(f"{label}: longer mean JCT at the same η", _apart(longer))
        yield Row(f"{label}: more energy at the same η", _apart(more))
    for label, params in {"perfect": {"profiles": "perfect"}, **modes}.items():
        for p in frontier(study, day(study.seeds[0]), "powerflow", **params):
            words = f"{p.jct_s:,.0f} s, {p.energy_j / 1e9:.2f} GJ"
            yield Row(f"{label}, η = {p.knob:g}", words)


def _apart(percent: Sequence[Sequence[float]]) -> str:
    """Return least, median and largest of each seed's differences, %."""
    found = (spread(np.array([f(each) for each in percent])) for f in (min, np.median, max))
    return "{} % least, {} % in the median, {} % at most".format(*(one.text() for one in found))


# -- Fig. 10, traces of 100 jobs --------------------------------------------------------------

INTERVALS_S = (60, 120, 240, 480)
Factor = tuple[str, Sequence[float], Callable[[float], ElasticProblem]]


def small(
    seed: int, gpus: int = 64, interval_s: float = 120, scale: float = 1.0, requested: int = 0
) -> ElasticProblem:
    """Return 100 jobs, one every `interval_s` seconds on average."""
    hours = 100 * interval_s / 3600
    return day(seed, size=100, gpus=gpus, hours=hours, scale=scale, requested=requested)


def factors(seed: int) -> tuple[Factor, ...]:
    """Return what Fig. 10 varies; job size is GPUs requested by the text, or else durations."""
    return (
        ("arrival interval", INTERVALS_S, lambda v: small(seed, interval_s=v)),
        ("cluster size", (32, 64, 128), lambda v: small(seed, gpus=int(v))),
        ("job size", (1, 2, 4, 8), lambda v: small(seed, requested=int(v))),
        ("job size as duration", (0.25, 0.5, 1.0, 2.0), lambda v: small(seed, scale=v)),
    )


def compared(study: Study, problem: ElasticProblem, key: str, **powerflow: Any) -> dict[str, float]:
    """Return each mean JCT at the energy of Gandiva+Zeus, h; `powerflow` is what is set of it."""
    named = replace(problem, name=f"{problem.name} {key}")
    target = frontier(study, named, "gandiva+zeus")[0].energy_j
    found = {}
    for name in NAMES:
        points = frontier(study, named, name, **(powerflow if name == "powerflow" else {}))
        value = points[0].jct_s if name.endswith("+zeus") else at_energy(points, target)
        if value is None:  # it always takes more: the point of least energy
            value = min(points, key=lambda p: p.energy_j).jct_s
        found[name] = value / 3600
    return found


def gain(jct: Mapping[str, float], pick: Callable[..., float] = max) -> float:
    """Return how many times PowerFlow's mean JCT the longest of the others is, or another."""
    return pick(x for name, x in jct.items() if name != "powerflow") / jct["powerflow"]


def fig10(study: Study) -> Iterator[Row]:
    """Mean JCT at about equal energy over three factors, job size in two readings."""
    apart = []
    for number_of, (title, values, _) in enumerate(factors(0)):
        jct: list[list[dict[str, float]]] = []
        for seed in study.seeds:
            make = factors(seed)[number_of][2]
            jct.append([compared(study, make(v), f"{title} {v} {seed}") for v in values])
            for v in values:
                named = replace(make(v), name=f"{make(v).name} {title} {v} {seed}")
                zeus = [
                    frontier(study, named, f"{n}+zeus")[0].energy_j for n in ("gandiva", "tiresias")
                ]
                apart.append(100 * abs(zeus[1] / zeus[0] - 1))
        others = list(NAMES)[1:]
        gains = np.array([[[j[o] / j["powerflow"] for o in others] for j in row] for row in jct])
        means = gains.mean(axis=0)
        words = ", ".join(
            f"{row.min():.2f} to {row.max():.2f} x at {v}"
            for v, row in zip(values, means, strict=True)
        )
        short = at_most(1, 1 / means.min()) if title == "arrival interval" else ""
        if short == "no" and means.mean(axis=1).min() > 1:
            short = "open"  # "short", not "shortest": shorter than the mean of the baselines
        first, second = (c for c in study.item.claims if c.startswith(f"{title}: "))
        yield Row(first, f"over ours: {words}", short)
        against = {
            second: gains.mean(axis=2),
            f"{second}: AFS alone": gains[:, :, others.index("afs")],
            f"{second}: the slowest alone": gains.max(axis=2),
        }
        sign = 1 if title.startswith("job size") else -1
        rises = [exceeds(sign * (each[:, -1] - each[:, 0])) for each in against.values()]
        rising = "open" if rises[0] == "no" and "yes" in rises else rises[0]
        for claim, each in against.items():
            over = [spread(column) for column in each.T]
            words = ", ".join(f"{g.text(2)} x at {v}" for v, g in zip(values, over, strict=True))
            judged = claim == second and title != "job size as duration"
            yield Row(claim, words, rising if judged else "")
    claim = "Gandiva+Zeus and Tiresias+Zeus take about the same energy"
    found = spread(np.array(apart))
    words = f"{found.text()} % apart, {max(apart):.1f} % at most"
    yield Row(claim, words, at_most(5, found.mean))


# -- what decides where Fig. 7 and 10 come out otherwise --------------------------------------

MODES: dict[str, dict[str, Any]] = {
    "profiles=online": {},
    "profiles=online, measuring free": FREE,
    "profiles=perfect": {"profiles": "perfect"},
}
"""What PowerFlow believes of its jobs; the first is its default."""
TEN_TIMES = {"threshold_1": 32_500.0, "threshold_2": 72_000.0}
"""Of Tiresias's queues, GPU-s."""


def causes(study: Study) -> Iterator[Row]:
    """Ratios of mean JCTs as in Fig. 7 and 10, with and without what might be the reason."""
    seed = study.seeds[0]
    problem = day(seed)
    free = replace(problem, overhead=Overhead(0, 0, 0), name=f"{problem.name}, restarts free")
    labels = ", ".join(NAMES[name] for name in RATED)
    for mode, params in MODES.items():
        ours = frontier(study, problem, "powerflow", **params)
        most = [best_ratio(frontier(study, problem, name), ours)[0] for name in RATED]
        words = ", ".join(f"{value:.2f}" for value in most) + " x"
        yield Row(f"Fig. 7, {mode}: {labels} over PowerFlow, at most", words)
    for name, title, where, params in (
        ("gandiva", ", restarts free for both", free, {}),
        ("tiresias", ", restarts free for both", free, {}),
        ("tiresias", " by Gittins index", problem, {"discipline": "gittins"}),
        ("tiresias", " with queues ten times as long", problem, TEN_TIMES),
    ):
        ours = frontier(study, where, "powerflow")
        ratio, _ = best_ratio(frontier(study, where, name, **params), ours)
        claim = f"Fig. 7, {NAMES[name]}{title}: mean JCT over PowerFlow's at equal energy, at most"
        yield Row(claim, f"{ratio:.2f} x")
    for title, values, make in factors(seed):
        for mode, params in MODES.items():
            shown = []
            for v in values:
                jct = compared(study, make(v), f"{title} {v}", **params)
                shown.append(f"{v}: {gain(jct, min):.2f} to {gain(jct):.2f}")
            yield Row(f"Fig. 10, {title}, {mode}", ", ".join(shown))
    for title, shorten, params in (
        ("as it is", False, {}),
        ("no pre-run and windows of no length", False, FREE),
        ("without the longest job", True, {}),
        ("neither", True, FREE),
    ):
        gains = []
        for interval in INTERVALS_S:
            trace = small(seed, interval_s=interval)
            trace = without_longest(trace) if shorten else trace
            gains.append(gain(compared(study, trace, f"arrival interval {interval}", **params)))
        claim = f"Fig. 10, {title}: longest mean JCT over PowerFlow's, a job every "
        words = ", ".join(f"{value:.2f}" for value in gains)
        yield Row(f"{claim}{', '.join(map(str, INTERVALS_S))} s", words)


def without_longest(problem: ElasticProblem) -> ElasticProblem:
    """Return the problem without the job of most GPU-seconds on the GPUs it requests."""
    jobs = problem.jobs
    at = np.searchsorted(problem.counts, jobs.requested)
    work = jobs.iterations * problem.time_s[:, :, -1][jobs.of_class, at] * jobs.requested
    kept = np.flatnonzero(np.arange(len(jobs)) != int(np.argmax(work)))
    return replace(problem, jobs=jobs.only(kept), name=f"{problem.name}, without its longest job")
