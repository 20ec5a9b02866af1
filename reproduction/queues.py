"""A. Mamirov, "Reducing Fragmentation and Starvation in GPU Clusters through Dynamic
Multi-Objective Scheduling": HPS, PBS and SBS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm, t

from optgap.api import run
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.presets import mixed
from optgap.models.queueing.workload import DURATIONS_S, GPUS, KINDS, Corr, Patience
from reproduction.claims import Row, Study, Verdict, holds, numbers

JOBS = 1000
PATIENCE_S = 3600.0
STATIC = ("fifo", "sjf", "shortest", "shortest-gpu")
DYNAMIC = ("hps", "pbs", "sbs")
OTHERS = ("hps_fixed", "adaptive", "easy", "conservative")
NAMES = {
    "fifo": "FIFO",
    "sjf": "SJF",
    "shortest": "Shortest",
    "shortest-gpu": "Shortest-GPU",
    "hps": "HPS",
    "pbs": "PBS",
    "sbs": "SBS",
    "hps_fixed": "HPS repaired",
    "adaptive": "adaptive (ours)",
    "easy": "EASY",
    "conservative": "conservative",
}
Values = NDArray[np.float64]


class Spread(NamedTuple):
    """One metric over seeds: the mean and half the width of its 95 % confidence interval."""

    mean: float
    half: float

    def text(self, digits: int = 1) -> str:
        """Return ``mean ± half``."""
        shown = f"{self.mean:,.{digits}f}"
        return shown if math.isnan(self.half) else f"{shown} ± {self.half:,.{digits}f}"


def spread(values: Values) -> Spread:
    """Return the interval by Student's t; there is none for one seed."""
    count = len(values)
    if count < 2:
        return Spread(float(values.mean()), math.nan)
    half = float(t.ppf(0.975, count - 1)) * float(values.std(ddof=1)) / math.sqrt(count)
    return Spread(float(values.mean()), half)


def metric(study: Study, policy: str, name: str, patience: Patience = "const") -> Values:
    """Return one metric of a policy over the seeds, on streams that all items share."""
    found = []
    for seed in study.seeds:
        stream = ("stream", patience, seed)
        key = (*stream, policy)
        if key not in study.shared:
            study.proceed(f"{NAMES[policy]}, seed {seed}, patience {patience}")
            if stream not in study.shared:
                study.shared[stream] = mixed(
                    seed=seed,
                    size=JOBS,
                    patience=patience,
                    patience_s=PATIENCE_S,
                )
            metrics = run(study.shared[stream], policy).metrics
            study.shared[key] = with_long_waits(metrics, patience)
        found.append(study.shared[key][name])
    return np.array(found)


def with_long_waits(metrics: Mapping[str, Any], patience: Patience) -> dict[str, Any]:
    """Return metrics with ``waited_long``, the paper's starved jobs.

    It counts who waited over 30 minutes *before receiving GPUs*, without those who left, as the
    mean and the variance of waits do; our ``starved`` has these, too.
    """
    left = round(JOBS * (1 - metrics["success_rate"])) if patience == "const" else 0
    return {**metrics, "waited_long": metrics["starved"] - left}


# -- arithmetic -------------------------------------------------------------------------------


def workload(study: Study) -> Iterator[Row]:
    """Section IV-A: shares of types, GPU counts and durations over all seeds, with χ² tests."""
    level = 0.01
    streams = [mixed(seed=seed, size=JOBS).jobs for seed in study.seeds]
    kinds = [kind for jobs in streams for kind in jobs.kinds]
    gpus = np.concatenate([jobs.gpus for jobs in streams])
    hours = np.concatenate([jobs.duration_s for jobs in streams])
    ranges = [int(((hours >= a) & (hours < b)).sum()) for (a, b), _ in DURATIONS_S]
    drawn = (
        ([kinds.count(k) for k, _ in KINDS], [share for _, share in KINDS]),
        ([int((gpus == n).sum()) for n, _ in GPUS], [share for _, share in GPUS]),
        (ranges, [share for _, share in DURATIONS_S]),
    )
    for claim, (counts, shares) in zip(study.item.claims, drawn, strict=False):
        expected = [share * sum(counts) for share in shares]
        square = sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
        chance = float(chi2.sf(square, len(counts) - 1))
        words = " / ".join(f"{100 * c / sum(counts):.1f}" for c in counts) + " %"
        yield Row(claim, words, chance > level, f"χ² = {square:.1f}, p = {chance:.2f}")
    stated = sum(n * share for n, share in GPUS)
    within = norm.isf(level / 2) * gpus.std() / len(gpus) ** 0.5
    yield Row("mean GPUs per job", f"{gpus.mean():.2f}", bool(abs(gpus.mean() - stated) <= within))
    yield Row("mean work per job", f"{(gpus * hours).mean() / 3600:.2f} GPU-h")


MINUTES = {"least": (0, 30, 120, 480), "middle": (15, 75, 300, 480)}
"""Of each range of durations; the open one counts as 8 h, its least."""
SHARES = (0.40, 0.35, 0.20, 0.05)
CLUSTER = 64
TABLE2 = {
    # jobs/h, utilisation, mean wait (s), fairness variance, starved
    "HPS": (25.8, 0.782, 757, 457, 12),
    "PBS": (24.3, 0.761, 823, 524, 18),
    "SBS": (23.7, 0.746, 891, 679, 25),
}
FIFO = (12.5, 0.452)


def work_h(minutes: tuple[int, ...], coupled: bool = False) -> float:
    """Return mean GPU-h per job; `coupled` gives the most GPUs to the shortest jobs."""
    if not coupled:
        mean = sum(share * m for share, m in zip(SHARES, minutes, strict=True))
        return mean / 60 * sum(n * share for n, share in GPUS)
    gpus = np.repeat([n for n, _ in GPUS], [round(10_000 * s) for _, s in GPUS])
    lasts = np.repeat(minutes, [round(10_000 * s) for s in SHARES])[::-1]
    return float((gpus * lasts).mean()) / 60


def least_variance(mean: float, starved: int) -> float:
    """Return the least variance of `JOBS` waits with this mean, so many of at least 30 min, s²."""
    limit = 1800
    others = (JOBS * mean - starved * limit) / (JOBS - starved)
    return (starved * (limit - mean) ** 2 + (JOBS - starved) * (others - mean) ** 2) / JOBS


def impossible(study: Study) -> Iterator[Row]:
    """What the paper's own numbers say about one another: nothing is simulated."""
    rate, used = TABLE2["HPS"][:2]
    middle, least, coupled, coupled_least = (
        used * CLUSTER / work_h(MINUTES[which], together)
        for together in (False, True)
        for which in ("middle", "least")
    )
    claims = list(study.item.claims)
    yield Row(claims[0], f"{middle:.1f}", rate <= middle)
    yield Row(claims[1], f"{least:.1f}")
    yield Row(claims[2], f"{coupled_least:.0f} (least), {coupled:.1f} (middle)")
    work = {name: CLUSTER * row[1] / row[0] for name, row in TABLE2.items()}
    work["FIFO"] = CLUSTER * FIFO[1] / FIFO[0]
    words = ", ".join(f"{value:.2f} ({name})" for name, value in work.items()) + " GPU-h"
    apart = max(work.values()) / min(work.values()) - 1  # rigid jobs have the same work anywhere
    yield Row(claims[3], words, 100 * apart <= 5)
    for claim, (_, _, wait, variance, starved) in zip(claims[4:7], TABLE2.values(), strict=True):
        smallest = least_variance(wait, starved)
        note = f"as min² it would be possible (σ = {math.sqrt(variance):.1f} min)"
        yield Row(claim, f"at least {smallest:,.0f} s²", variance >= smallest, note)
    unfair = {name: row[3] for name, row in TABLE2.items()}
    words = "the largest" if unfair["SBS"] == max(unfair.values()) else "not the largest"
    yield Row(claims[7], words, unfair["SBS"] == min(unfair.values()))


def aging(study: Study) -> Iterator[Row]:
    """HPS's aging factor: what the printed rule does between 300 and 900 s."""
    base = 1 / 1.5 / 1.25  # of a job of 30 min on one GPU
    for wait in (300, 301, 600, 900, 1800):
        printed = 2 * min(wait / 1800, 1) if wait > 300 else 1.0
        repaired = 1 + min(max((wait - 300) / 1500, 0), 1)
        words = f"{base * printed:.4f} (repaired {base * repaired:.4f})"
        claim = f"score of a 1-GPU job of 30 min after {wait} s"
        yield Row(claim, words, printed > 1 if wait == 301 else "")  # one statement
    wide, narrow = 2 / (1 + 8) / (1 + 16 / 4), 1 / (1 + 1 / 60) / 1.25
    words = (
        f"a 16-GPU job of 8 h never scores above {wide:.4f}, a fresh 1-GPU job of 1 min "
        f"{narrow:.3f}"
    )
    yield Row("large jobs eventually get through", words, wide > narrow)
    for name, title, digits in (
        ("mean_wait_s", "mean wait (s)", 0),
        ("wait_p99_s", "99 % of waits below (s)", 0),
        ("starved", "jobs waiting over 30 min", 0),
    ):
        both = [metric(study, policy, name, "inf") for policy in ("hps", "hps_fixed")]
        words = " and ".join(spread(values).text(digits) for values in both)
        yield Row(f"{title}, as printed and repaired", words)


# -- Table II ---------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of Table II: title, our metric, what it is multiplied by, digits shown."""

    title: str
    metric: str
    factor: float
    digits: int


COLUMNS = {
    "rate": Column("jobs per hour", "throughput_per_h", 1.0, 2),
    "used": Column("GPU utilisation (%)", "utilisation", 100.0, 1),
    "wait": Column("mean wait (s)", "mean_wait_s", 1.0, 0),
    "variance": Column("variance of waits (min²)", "wait_variance_min2", 1.0, 0),
    "starved": Column("jobs waiting over 30 min", "waited_long", 1.0, 0),
}


def _stated(study: Study, claim: str) -> float | None:
    found = numbers(study.item.claims.get(claim, "–"))
    return found[0]


def _table(study: Study, policies: tuple[str, ...], low: float, high: float) -> Iterator[Row]:
    for title, name, factor, digits in COLUMNS.values():
        for policy in policies:
            claim = f"{NAMES[policy]}: {title}"
            found = spread(factor * metric(study, policy, name))
            endless = spread(factor * metric(study, policy, name, "inf")).text(digits)
            paper = _stated(study, claim)
            agrees: Verdict = ""
            if paper is not None:
                off = abs(found.mean - paper)
                agrees = holds(off <= found.half or off <= 0.1 * abs(found.mean))
            yield Row(claim, found.text(digits), agrees, f"endless: {endless}")
    for policy in policies:
        claim = f"{NAMES[policy]}: success rate (%)"
        found = spread(100 * metric(study, policy, "success_rate"))
        reaches = low <= found.mean + found.half and found.mean - found.half <= high
        agrees = holds(reaches) if claim in study.item.claims else ""
        yield Row(claim, found.text(1), agrees)


def table2(study: Study) -> Iterator[Row]:
    """The three dynamic schedulers, and ours that the paper has not."""
    return _table(study, (*DYNAMIC, *OTHERS), 94, 100)


def static(study: Study) -> Iterator[Row]:
    """The four static schedulers."""
    return _table(study, STATIC, 79, 87)


# -- other settings, orderings -----------------------------------------------------

LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ARRIVALS = ("Poisson", "regular", "in tens")
COUPLINGS: tuple[Corr, ...] = ("none", "negative")
"""Of GPUs and durations; with the negative one long jobs take few GPUs."""
PATIENCES: tuple[Patience, ...] = ("inf", "const")
WHAT = {"used": "used %", "wait": "wait s", "variance": "variance min²", "starved": "starved"}
"""Columns that a load can set; 25.8 jobs per hour are beyond any (``hps-impossible``)."""
PAPER = {
    "hps": {"used": 78.2, "wait": 757, "variance": 457, "starved": 12},
    "pbs": {"used": 76.1, "wait": 823, "variance": 524, "starved": 18},
    "sbs": {"used": 74.6, "wait": 891, "variance": 679, "starved": 25},
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What the paper does not say of its streams: one of `ARRIVALS`, `COUPLINGS` and so on."""

    arrivals: str
    coupling: Corr
    patience: Patience
    load: float

    def __str__(self) -> str:
        leaves = "nobody leaves" if self.patience == "inf" else "who has waited 1 h leaves"
        coupled = "" if self.coupling == "none" else ", long jobs take few GPUs"
        return f"{self.arrivals}, load {self.load:g}, {leaves}{coupled}"

    def stream(self, seed: int) -> QueueingProblem:
        """Return a stream at this setting: Poisson, at equal intervals, or ten jobs at a time."""
        problem = mixed(
            seed=seed,
            size=JOBS,
            load=self.load,
            corr=self.coupling,
            patience=self.patience,
            patience_s=PATIENCE_S,
        )
        submit = problem.jobs.arrival_s
        if self.arrivals == "regular":
            submit = np.linspace(submit[0], submit[-1], len(submit))
        elif self.arrivals == "in tens":
            submit = submit[np.arange(len(submit)) // 10 * 10]
        return replace(problem, jobs=replace(problem.jobs, arrival_s=submit))

    def means(self, seeds: tuple[int, ...]) -> dict[tuple[str, str], float]:
        """Return the columns of the dynamic schedulers, over seeds."""
        values: dict[tuple[str, str], list[float]] = {(p, k): [] for p in DYNAMIC for k in WHAT}
        for seed in seeds:
            problem = self.stream(seed)
            for policy in DYNAMIC:
                metrics = with_long_waits(run(problem, policy).metrics, self.patience)
                for key in WHAT:
                    column = COLUMNS[key]
                    values[policy, key].append(column.factor * float(metrics[column.metric]))
        return {which: float(np.mean(found)) for which, found in values.items()}


def loads(study: Study) -> Iterator[Row]:
    """HPS, PBS and SBS at 72 settings, and the setting that is nearest to all columns."""
    best: tuple[float, str] = (math.inf, "")
    settings = [Setting(*each) for each in product(ARRIVALS, COUPLINGS, PATIENCES, LOADS)]
    for setting in settings:
        study.proceed(str(setting))
        means = setting.means(study.seeds)
        apart = {
            (policy, key): 100 * abs(value - PAPER[policy][key]) / PAPER[policy][key]
            for (policy, key), value in means.items()
        }
        policy, key = max(apart, key=lambda which: apart[which])
        furthest = f"{NAMES[policy]}, {WHAT[key]}, by {apart[policy, key]:.0f} %"
        if apart[policy, key] < best[0]:
            best = (apart[policy, key], f"{setting}: {furthest}")
    claim = "the setting that explains all of these columns best"
    yield Row(claim, best[1], note=f"of {len(settings)} settings")


Pairs = tuple[tuple[str, str], ...]
EVERYONE = (*STATIC, *DYNAMIC)
CHAIN: Pairs = tuple(pairwise(DYNAMIC))
SHORTER: Pairs = tuple(pairwise(("shortest-gpu", "shortest", "sjf")))
ABOVE_FIFO: Pairs = tuple((other, "fifo") for other in EVERYONE[1:])
METRICS = {
    "utilisation": ("utilisation", True),
    "throughput": ("throughput_per_h", True),
    "success rate": ("success_rate", True),
    "mean wait": ("mean_wait_s", False),
    "variance": ("wait_variance_s2", False),
    "starved": ("waited_long", False),
}
"""Our metric of each, and whether more is better."""
BETTER: dict[str, Pairs] = {
    "HPS > PBS > SBS": CHAIN,
    "HPS < PBS < SBS": CHAIN,
    "every dynamic above every static one": tuple(product(DYNAMIC, STATIC)),
    "every dynamic below every static one": tuple(product(DYNAMIC, STATIC[1:])),
    "SJF is the highest": tuple((other, "sjf") for other in EVERYONE if other != "sjf"),
    "SJF > Shortest > Shortest-GPU": SHORTER,
}
"""Pairs of (better, worse) by the second half of the claim."""


def orderings(study: Study) -> Iterator[Row]:
    """The paper's comparisons between schedulers, pair by pair over the same streams."""
    for claim in study.item.claims:
        what, _, order = claim.partition(": ")
        name, more = METRICS[what]
        if order == "FIFO is the lowest":
            pairs = ABOVE_FIFO if more else tuple((b, a) for a, b in ABOVE_FIFO)
        else:
            pairs = BETTER[order]
        verdict, words = _judge(study, name, more, pairs, "const")
        again = ""
        if name != "success_rate":
            again = f"endless: {_judge(study, name, more, pairs, 'inf')[0]}"
        yield Row(claim, words, verdict, again)


def _judge(
    study: Study, name: str, more: bool, pairs: Pairs, patience: Patience
) -> tuple[Verdict, str]:
    """Return the verdict, and how many of the pairs hold."""
    sure = mean = 0
    worst: tuple[float, str] = (math.inf, "")
    for better, worse in pairs:
        lead = metric(study, better, name, patience) - metric(study, worse, name, patience)
        found = spread(lead if more else -lead)
        mean += found.mean > 0
        sure += found.mean > 0 and not found.mean <= found.half
        if found.mean < worst[0]:
            worst = (found.mean, f"{NAMES[better]} against {NAMES[worse]}")
    total = len(pairs)
    words = f"{sure} of {total} pairs hold"
    if mean > sure:
        words += f", {mean - sure} more in the mean"
    if mean < total:
        words += f"; furthest off: {worst[1]}"
    return holds(sure == total, mean == total), words
