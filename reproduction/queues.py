"""A. Mamirov, "Reducing Fragmentation and Starvation in GPU Clusters through Dynamic
Multi-Objective Scheduling": HPS, PBS and SBS.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, norm

from optgap.api import run
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.presets import mixed
from optgap.models.queueing.workload import DURATIONS_S, GPUS, KINDS, Corr, Patience
from reproduction.claims import (
    SLACK,
    FloatArray,
    Row,
    Study,
    Verdict,
    agreement,
    holds,
    paper,
    ranked,
    spread,
)

JOBS = 1000
PATIENCE_S = 3600.0
STATIC = ("fifo", "sjf", "shortest", "shortest-gpu")
DYNAMIC = ("hps", "pbs", "sbs")
NAMES = {
    "fifo": "FIFO",
    "sjf": "SJF",
    "shortest": "Shortest",
    "shortest-gpu": "Shortest-GPU",
    "hps": "HPS",
    "pbs": "PBS",
    "sbs": "SBS",
}


def metric(study: Study, policy: str, name: str, patience: Patience = "const") -> FloatArray:
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
    used = TABLE2["HPS"][1]
    middle, least, coupled, coupled_least = (
        used * CLUSTER / work_h(MINUTES[which], together)
        for together in (False, True)
        for which in ("middle", "least")
    )
    claims = list(study.item.claims)
    yield Row(claims[0], f"{middle:.1f}")
    yield Row(claims[1], f"{least:.1f}")
    yield Row(claims[2], f"{coupled_least:.0f} (least), {coupled:.1f} (middle)")
    work = {name: CLUSTER * row[1] / row[0] for name, row in TABLE2.items()}
    work["FIFO"] = CLUSTER * FIFO[1] / FIFO[0]
    words = ", ".join(f"{value:.2f} ({name})" for name, value in work.items()) + " GPU-h"
    yield Row(claims[3], words)
    for claim, (_, _, wait, variance, starved) in zip(claims[4:], TABLE2.values(), strict=True):
        smallest = least_variance(wait, starved)
        note = f"as min² it would be possible (σ = {math.sqrt(variance):.1f} min)"
        yield Row(claim, f"at least {smallest:,.0f} s²", note=note)


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


def _stated(title: str) -> dict[str, str]:
    """Return the numbers that the paper states of a column, by policy."""
    items = paper("queues").items
    claims = items["hps-table2"].claims | items["hps-static"].claims
    names = {policy: f"{NAMES[policy]}: {title}" for policy in (*DYNAMIC, *STATIC)}
    return {policy: claims[claim] for policy, claim in names.items() if claim in claims}


def _table(study: Study, policies: tuple[str, ...]) -> Iterator[Row]:
    for title, name, factor, digits in COLUMNS.values():
        stated = _stated(title)
        order = {policy: float(text) for policy, text in stated.items()}
        every = dict.fromkeys((*policies, *stated))
        found = {policy: spread(factor * metric(study, policy, name)) for policy in every}
        means = {policy: each.mean for policy, each in found.items()}
        for policy in policies:
            endless = spread(factor * metric(study, policy, name, "inf")).text(digits)
            agrees: Verdict = ""
            if policy in stated:
                near = agreement(stated[policy], *found[policy])
                agrees = holds(near == "yes", ranked(order, means, policy))
            claim, words = f"{NAMES[policy]}: {title}", found[policy].text(digits)
            yield Row(claim, words, agrees, f"endless: {endless}")


def _success(study: Study, policies: tuple[str, ...]) -> tuple[str, list[float]]:
    found = {policy: spread(100 * metric(study, policy, "success_rate")) for policy in policies}
    words = ", ".join(f"{NAMES[policy]} {each.text()}" for policy, each in found.items())
    return words, [each.mean for each in found.values()]


def table2(study: Study) -> Iterator[Row]:
    """The three dynamic schedulers."""
    yield from _table(study, DYNAMIC)
    words, means = _success(study, DYNAMIC)
    yield Row("success rate of the dynamic schedulers (%)", words, min(means) >= (1 - SLACK) * 94)


def static(study: Study) -> Iterator[Row]:
    """The four static schedulers."""
    yield from _table(study, STATIC)
    words, means = _success(study, STATIC)
    note = "the paper names no way in which jobs fail; here they leave"
    lower = max(means) < min(_success(study, DYNAMIC)[1])
    yield Row("success rate of the static schedulers (%)", words, lower, note)


# -- other settings ---------------------------------------------------------------------------

LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ARRIVALS = ("Poisson", "regular", "in tens")
COUPLINGS: tuple[Corr, ...] = ("none", "negative")
"""Of GPUs and durations; with the negative one long jobs take few GPUs."""
PATIENCES: tuple[Patience, ...] = ("inf", "const")
SUCCESS = "success"


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
        """Return the columns of all schedulers, and % completed, over seeds."""
        values: dict[tuple[str, str], list[float]] = defaultdict(list)
        for seed in seeds:
            problem = self.stream(seed)
            for policy in (*DYNAMIC, *STATIC):
                metrics = with_long_waits(run(problem, policy).metrics, self.patience)
                for key, column in COLUMNS.items():
                    values[policy, key].append(column.factor * float(metrics[column.metric]))
                values[policy, SUCCESS].append(100 * float(metrics["success_rate"]))
        return {which: float(np.mean(found)) for which, found in values.items()}


def loads(study: Study) -> Iterator[Row]:
    """Least and most of each number at 72 settings, and how many of Table II one setting gives."""
    settings = [Setting(*each) for each in product(ARRIVALS, COUPLINGS, PATIENCES, LOADS)]
    found = {}
    for setting in settings:
        study.proceed(str(setting))
        found[str(setting)] = setting.means(study.seeds)
    stated = {
        (policy, key): float(text)
        for key, column in COLUMNS.items()
        for policy, text in _stated(column.title).items()
    }
    for (policy, key), number in stated.items():
        values = {setting: means[policy, key] for setting, means in found.items()}
        nearest = min(values, key=lambda setting: abs(values[setting] - number))
        words = f"{min(values.values()):,.1f} to {max(values.values()):,.1f}"
        note = f"the paper {number:g}, nearest {values[nearest]:,.1f}: {nearest}"
        yield Row(f"{NAMES[policy]}: {COLUMNS[key].title}", words, note=note)
    static = np.array([[means[policy, SUCCESS] for policy in STATIC] for means in found.values()])
    dynamic = np.array([[means[policy, SUCCESS] for policy in DYNAMIC] for means in found.values()])
    below = np.count_nonzero(static.max(axis=1) < dynamic.min(axis=1))
    note = f"below all dynamic at {below} of {len(settings)} settings"
    words = f"{static.min():.1f} to {static.max():.1f}"
    yield Row("success rate of the static schedulers (%)", words, note=note)
    table = [which for which in stated if which[0] in DYNAMIC and which[1] != "rate"]
    near = {
        setting: [w for w in table if abs(means[w] - stated[w]) <= SLACK * stated[w]]
        for setting, means in found.items()
    }
    best = max(near, key=lambda setting: len(near[setting]))
    words = f"{len(near[best])} of {len(table)}, {best}"
    yield Row("numbers of Table II within 10 % at one setting, at most", words)
