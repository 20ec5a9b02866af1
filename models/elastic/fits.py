"""Fitted models (``optgap.fit/1``) in a problem: iteration time and power of every class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.jobs import JobClass, Jobs
from optgap.models.elastic.problem import ElasticProblem
from optgap.models.elastic.tables import Maker, counts_up_to, maker_of
from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.fitted import (
    BY_BATCH,
    BY_CLOCK,
    ENERGY,
    TIME,
    Iterations,
    energies,
    group_for,
    iterations,
    power_of,
    shared_clocks,
)
from optgap.models.performance.saved import FittedParameters

STRETCH = "power-law-jct"
"""Model of slowing with the frequency, for iteration times measured at a single one."""
POWERS = (*BY_CLOCK, BY_BATCH)
SERVES: Mapping[str, tuple[str, ...]] = {TIME: (), ENERGY: (), STRETCH: ("beta",),
                                         **dict.fromkeys(POWERS, ())}  # fmt: skip
"""The models that a problem takes, and the parameters that it needs of them."""
MOST_CLOCKS = 30
MOST_BATCHES = 3
"""Largest number of batches of each model when jobs are dealt out."""
ONE_CLOCK_MHZ = 1000.0
"""Frequency if none is known; nothing depends on the number."""


@dataclass(frozen=True)
class Fitted:
    """Joint content of fits: a maker of classes by model, and the frequencies they hold at."""

    makers: Mapping[str, Maker]
    times: Mapping[str, Iterations]
    clocks: Floats
    used: tuple[str, ...]
    """Use of each fit, in words."""


def together(fits: Sequence[FittedParameters]) -> Fitted:
    """Return one fit of powerflow-energy; or one of powerflow-throughput and one of power.

    Raises
    ------
    InputError: for another model, a time without a power or a power without a time, and a power
        by clock beside a time at one clock: what is missing, and what to measure.
    """
    kinds: dict[str, FittedParameters] = {}
    for fit in fits:
        fit.require(SERVES)
        kind = "power" if fit.model in POWERS else fit.model
        if kind in kinds:
            raise InputError(fit.source, "field model", fit.model, f"one fit of {kind}")
        kinds[kind] = fit
    if ENERGY in kinds:
        if len(kinds) > 1:
            found = NoQuote(", ".join(fit.model for fit in fits))
            raise InputError(kinds[ENERGY].source, "models", found, f"{ENERGY} alone: it has both")
        return _energy(kinds[ENERGY])
    if TIME not in kinds or "power" not in kinds:
        have = ", ".join(fit.model for fit in fits)
        need = f"{ENERGY}, or {TIME} and one of {', '.join(POWERS)}"
        expected = f"{need}; measure time_s and power_w over gpus, local_batch and frequency_mhz"
        raise InputError("models", "", NoQuote(have), expected)
    return _joined(kinds[TIME], kinds["power"], kinds.get(STRETCH))


def _energy(fit: FittedParameters) -> Fitted:
    times, powers = iterations(fit), energies(fit)
    clocks = shared_clocks([fit], list(times), MOST_CLOCKS)

    makers = {name: _told(item, maker_of(name, item.model, powers[name]))
              for name, item in times.items()}  # fmt: skip
    found = np.array([ONE_CLOCK_MHZ]) if clocks is None else clocks
    return Fitted(makers, times, found, ("T_iter and E_iter of Eq. 1-15",))


def _counts(item: Iterations, counts: Sequence[int], batch: int, per_node: int) -> list[int]:
    """Return the GPU counts of which the rows tell; raise InputError if there are none."""
    found = [n for n in counts if item.told(n, batch, per_node)]
    if not found:
        raise item.untold("any", batch, per_node)
    return found


def _told(item: Iterations, make: Maker) -> Maker:
    """Return a maker of classes on the GPU counts of which the rows tell something."""

    def made(batch: int, clocks: Floats, gpus: int, per_node: int) -> JobClass:
        found = make(batch, clocks, gpus, per_node)
        return _only(found, _counts(item, found.counts, batch, per_node))

    return made


def _joined(
    time: FittedParameters, power: FittedParameters, stretch: FittedParameters | None
) -> Fitted:
    times = iterations(time)
    clocked = all(item.clocked for item in times.values())
    clocks = shared_clocks([f for f in (power, stretch) if f], list(times), MOST_CLOCKS)
    if clocks is not None and clocked:
        clocks = shared_clocks([f for f in (time, power, stretch) if f], list(times), MOST_CLOCKS)
    if clocks is not None and len(clocks) > 1 and not clocked and stretch is None:
        found = NoQuote(f"iteration times at one clock, {power.model} at {len(clocks)}")
        expected = "time_s at two clocks, or a fit of power-law-jct beside it"
        raise InputError(time.source, "", found, expected)
    if clocks is None:
        known = [item.top_mhz for item in times.values() if item.top_mhz]
        clocks = np.array([max(known, default=ONE_CLOCK_MHZ)])

    def maker(name: str) -> Maker:
        watts = power_of(power, group_for(power, name))
        beta = 0.0 if stretch is None else stretch.groups[group_for(stretch, name)]["beta"]
        item = times[name]

        def make(batch: int, clock: Floats, gpus: int, per_node: int) -> JobClass:
            counts = _counts(item, counts_up_to(min(gpus, batch)), batch, per_node)
            n = np.array(counts, dtype=float)[:, None]
            f = np.broadcast_to(np.asarray(clock, dtype=float)[None, :], (len(counts), len(clock)))
            seconds = item.seconds(n, batch, f, per_node) * (clock[-1] / f) ** beta
            draws = n * watts(np.array(f), np.broadcast_to(batch / n, f.shape))
            return JobClass(name, batch, tuple(counts), np.array(seconds), np.array(draws))

        return make

    used = ["T_iter of Eq. 1-5", "power of a busy GPU, whatever it waits for"]
    return Fitted({name: maker(name) for name in times}, times, clocks,
                  (*used, "T_iter over the clock")[: 2 + (stretch is not None)])  # fmt: skip


def noted(
    problem: ElasticProblem, fits: Sequence[FittedParameters], fitted: Fitted
) -> ElasticProblem:
    """Return the problem with its fits, and what became of each."""
    order = {TIME: 0, ENERGY: 0, STRETCH: 2}
    kept = tuple(fit.using(fitted.used[order.get(fit.model, 1)]) for fit in fits)
    return replace(problem, fits=kept)


def refit(
    problem: ElasticProblem, fits: Sequence[FittedParameters], seed: int = 0
) -> ElasticProblem:
    """Return the problem with classes as fitted; P_max and the limit follow.

    Where a class is of no group, jobs are dealt out anew: a model and a batch from `seed`, on as
    many GPUs as were asked for where that was measured, with as much to do as before.

    Raises
    ------
    InputError: as `together`, and where nothing measured fits the cluster.
    """
    fitted = together(fits)
    known = all(c.model in fitted.makers for c in problem.classes)
    clocks = problem.frequencies_mhz if problem.fits else fitted.clocks
    if known:
        classes = [
            _only(fitted.makers[c.model](c.batch, clocks, problem.gpus, problem.gpus_per_node),
                  c.counts) for c in problem.classes
        ]  # fmt: skip
        jobs = problem.jobs
    else:
        classes = _classes(fitted, clocks, problem)
        jobs = _dealt(problem, classes, seed)
    share = problem.idle_w / problem.p_max_w
    made = ElasticProblem.of(
        classes,
        jobs,
        clocks.tolist(),
        gpus=problem.gpus,
        gpus_per_node=problem.gpus_per_node,
        eta=problem.eta,
        cap=problem.cap,
        overhead=problem.overhead,
        name=problem.name,
        origin=problem.origin,
        notes=problem.notes,
        source=", ".join(fit.source for fit in fits),
    )
    idle = replace(made, idle_w=share * made.p_max_w)
    return noted(idle, fits, fitted)


def _only(item: JobClass, counts: Sequence[int]) -> JobClass:
    """Return the class on those of its GPU counts that are among `counts`."""
    rows = [k for k, n in enumerate(item.counts) if n in counts]
    kept = tuple(item.counts[k] for k in rows)
    return replace(item, counts=kept, time_s=item.time_s[rows], power_w=item.power_w[rows])


def _classes(fitted: Fitted, clocks: Floats, problem: ElasticProblem) -> list[JobClass]:
    """Return every model at the batches that may run on most GPU counts, where it was measured."""
    found = []
    for name, item in fitted.times.items():
        for batch in _batches(item, problem.gpus, problem.gpus_per_node):
            made = fitted.makers[name](batch, clocks, problem.gpus, problem.gpus_per_node)
            allowed = [n for n in made.counts if item.allows(n, batch, problem.gpus_per_node)]
            if allowed:
                found.append(_only(made, allowed))
    if not found:
        expected = f"a model measured on at most {problem.gpus} GPUs, a power of two of them"
        raise InputError("models", "", NoQuote("none on such GPU counts"), expected)
    return found


def _batches(item: Iterations, most: int, per_node: int) -> list[int]:
    """Up to `MOST_BATCHES` global batches, those that may run on most GPU counts first."""
    levels = item.batches or item.local_batch
    counts = [n for n in counts_up_to(most) if item.gpus[0] <= n <= item.gpus[1]]
    whole = {round(n * b) for n in counts for b in levels if abs(n * b - round(n * b)) < 1e-9}
    ways = {b: sum(item.allows(n, b, per_node) for n in counts) for b in whole if b >= 1}
    best = sorted(filter(ways.get, ways), key=lambda b: (-ways[b], b))
    return sorted(best[:MOST_BATCHES])


def _dealt(problem: ElasticProblem, classes: Sequence[JobClass], seed: int) -> Jobs:
    """Return the jobs with new classes: the same arrivals, and as long on the GPUs they ask for."""
    old, rng = problem.jobs, np.random.default_rng(seed)
    of_class = np.zeros(len(old), dtype=np.int64)
    asked = np.zeros(len(old), dtype=np.int64)
    iterations = np.zeros(len(old))
    for k in range(len(old)):
        was = problem.classes[int(old.of_class[k])]
        wanted = int(old.requested[k])
        lasts = old.iterations[k] * was.time_s[was.counts.index(wanted), -1]
        able = [c for c, item in enumerate(classes) if wanted in item.counts]
        c = int(rng.choice(able if able else len(classes)))
        near = min(classes[c].counts, key=lambda n: (abs(np.log2(n / wanted)), n))
        of_class[k], asked[k] = c, near
        iterations[k] = classes[c].iterations_in(lasts, near)
    return replace(old, of_class=of_class, iterations=iterations, requested=asked)
