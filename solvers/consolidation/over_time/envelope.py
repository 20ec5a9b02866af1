"""One convex power curve below those of all tasks on some GPUs, see the page of bounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.solvers.consolidation.numerics import FloatArray
from optgap.solvers.consolidation.over_time.energy import sample_times
from optgap.solvers.consolidation.over_time.parameters import TUNING


@dataclass(frozen=True)
class Envelope:
    """A piecewise linear curve P(φ) of power by pace, and how far above it each task stays.

    A GPU that holds task l at clock f draws, with a share of its server's static power, at least
    factor[l]·P(φ(f)), where φ(f) is no less than the progress per second of any resident. Where
    power follows utilisation, each task takes work_j[l] more in all.

    Parameters
    ----------
    pace, watts: (Q,) the vertices, ascending. factor: (L,). work_j: (L,) J, of all its GPUs.
    """

    pace: FloatArray
    watts: FloatArray
    factor: FloatArray
    work_j: FloatArray


@dataclass(frozen=True)
class _Curve:
    """What a GPU of a kind draws for a task: static + slope·f_max·x, x = f/f_max from low on.

    Less credit·x^β, and no more than at any higher x.
    """

    static: float
    slope: float
    beta: float
    low: float
    credit: float = 0.0

    @property
    def flat(self) -> float:
        """The x up to which it does not rise."""
        return self.beta ** (1 / (1 - self.beta)) if self.credit > 0 else 0.0

    def watts(self, x: FloatArray) -> FloatArray:
        y = np.maximum(x, self.flat)
        return np.asarray(self.static + self.slope * y - self.credit * y**self.beta)


def envelope(problem: ConsolidationProblem, tangents: int) -> Envelope:
    """Return the curve that most pairs of task and kind have, and the factors of all others.

    Parameters
    ----------
    tangents
        Number of paces at which the curve is supported from below.
    """
    shares: dict[int, float] = {}
    for k, i in zip(problem.gpu_kind.tolist(), problem.gpu_server.tolist(), strict=True):
        server = problem.servers[i]
        share = server.static_w / len(server.gpus)
        shares[k] = min(share, shares.get(k, share))
    kinds = [_curves(problem, k, share) for k, share in sorted(shares.items())]
    work_j = np.zeros(len(problem))
    if problem.rules.util_scaled:
        if problem.rules.contention >= 1:
            kinds, work_j = _following(problem, kinds)
        else:
            busy = [float(task.util_percent.min()) / 100 for task in problem.tasks]
            kinds = [
                [replace(c, slope=c.slope * b) for c, b in zip(each, busy, strict=True)]
                for each in kinds
            ]
    curves = list(zip(*kinds, strict=True))
    counted = Counter(curve for row in curves for curve in row)
    positive = {c: n for c, n in counted.items() if c.watts(np.array(c.low)) > 0}
    if not positive:
        return Envelope(np.ones(1), np.zeros(1), np.ones(len(problem)), work_j)
    ref = max(positive, key=lambda c: (positive[c], c.static, c.slope, c.low))
    least = min(c.low**c.beta for c in counted)
    lowest = min(c.low for c in counted if _same(c, ref))
    pace, watts = _below(replace(ref, low=lowest), least, tangents)
    ratio = {c: 1.0 if _same(c, ref) else _ratio(c, pace, watts) for c in counted}
    return Envelope(pace, watts, np.array([min(ratio[c] for c in row) for row in curves]), work_j)


def _curves(problem: ConsolidationProblem, k: int, share: float) -> list[_Curve]:
    """What a GPU of a kind draws for each task, with a share of its server's static power, W."""
    kind = problem.kinds[k]
    # the least exponent of any task: no resident is faster
    beta = min(kind.beta if t.beta is None else t.beta for t in problem.tasks)
    found = []
    for ell in range(len(problem)):
        line = problem.line(ell, k)
        slope = line.slope_w_per_mhz * kind.f_max_mhz
        low = problem.floors_mhz[k][ell] / kind.f_max_mhz
        found.append(_Curve(line.static_w + share, slope, beta, low))
    return found


def _following(
    problem: ConsolidationProblem, kinds: list[list[_Curve]]
) -> tuple[list[list[_Curve]], FloatArray]:
    """Curves of each kind, and (L,) J apart from them, where power follows utilisation and q ≥ 1.

    A second of progress takes x^−β s at least, and longer in proportion where utilisation is above
    100 %, so it costs slope·x^(1−β)·u or more: slope·u less slope·(x^β − x) in each of those s.
    Where that would leave less than nothing, x^(1−β) is at its least.
    """
    slope = min(curve.slope for each in kinds for curve in each)
    lasting = [sample_times(task, problem.period_s) for task in problem.tasks]
    work = [
        float((task.util_percent / 100 * each).sum()) * task.gpus
        for task, each in zip(problem.tasks, lasting, strict=True)
    ]
    tilted = [[replace(c, slope=slope, credit=slope) for c in each] for each in kinds]
    if all(c.beta < 1 and float(c.watts(np.zeros(1))[0]) > 0 for each in tilted for c in each):
        return tilted, slope * np.array(work)
    least = [[min(1.0, c.low ** (1 - c.beta)) for c in each] for each in kinds]
    flat = [[replace(c, slope=0.0) for c in each] for each in kinds]
    return flat, slope * np.min(least, axis=0) * np.array(work)


def _same(one: _Curve, other: _Curve) -> bool:
    return replace(one, low=other.low) == other


def _below(ref: _Curve, least: float, tangents: int) -> tuple[FloatArray, FloatArray]:
    """Vertices of a convex curve below `ref` as a function of pace, from `least` to 1."""
    if ref.beta == 0 or least >= 1:
        low = ref.low if ref.beta == 0 else 1.0
        return np.ones(1), ref.watts(np.array([low]))
    power = 1 / ref.beta
    if power < 1:  # concave: a chord is below it
        ends = np.array([least, 1.0])
        return ends, ref.watts(ends**power)
    at = np.linspace(max(least, ref.flat**ref.beta), 1.0, max(2, tangents))
    value, rise = ref.watts(at**power), ref.slope * power * at ** (power - 1) - ref.credit
    if power == 1 or ref.slope == 0:
        return at[[0, -1]], value[[0, -1]]
    meet = (value[1:] - value[:-1] + rise[:-1] * at[:-1] - rise[1:] * at[1:]) / (
        rise[:-1] - rise[1:]
    )
    pace = np.concatenate([[least], meet, at[-1:]])
    height = np.concatenate([value[:1], value[:-1] + rise[:-1] * (meet - at[:-1]), value[-1:]])
    return pace, height


def _ratio(curve: _Curve, pace: FloatArray, watts: FloatArray) -> float:
    """The least of `curve` over the vertices' curve: of each cell the ends that make it least."""
    x = np.linspace(curve.low, 1.0, TUNING.cells)
    below = np.interp(np.minimum(1.0, x[1:] ** curve.beta), pace, watts)
    return float(max(0.0, (curve.watts(x[:-1]) / below).min()))
