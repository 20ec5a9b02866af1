"""One convex power curve below those of all tasks on some GPUs, see the page of bounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.solvers.consolidation.numerics import FloatArray
from optgap.solvers.consolidation.over_time.parameters import TUNING


@dataclass(frozen=True)
class Envelope:
    """A piecewise linear curve P(φ) of power by pace, and how far above it each task stays.

    A GPU that holds task l at clock f draws, with a share of its server's static power, at least
    factor[l]·P(φ(f)), where φ(f) is no less than the progress per second of any resident.

    Parameters
    ----------
    pace, watts: (Q,) the vertices, ascending. factor: (L,).
    """

    pace: FloatArray
    watts: FloatArray
    factor: FloatArray


@dataclass(frozen=True)
class _Curve:
    """Power of a GPU of a kind for a task: static + slope·f_max·x, x = f/f_max from low on."""

    static: float
    slope: float
    beta: float
    low: float

    def watts(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.static + self.slope * x)


def envelope(problem: ConsolidationProblem) -> Envelope:
    """Return the curve that most pairs of task and kind have, and the factors of all others."""
    shares: dict[int, float] = {}
    for k, i in zip(problem.gpu_kind.tolist(), problem.gpu_server.tolist(), strict=True):
        server = problem.servers[i]
        share = server.static_w / len(server.gpus)
        shares[k] = min(share, shares.get(k, share))
    kinds = [_curves(problem, k, share) for k, share in sorted(shares.items())]
    curves = list(zip(*kinds, strict=True))
    counted = Counter(curve for row in curves for curve in row)
    positive = {c: n for c, n in counted.items() if c.watts(np.array(c.low)) > 0}
    if not positive:
        return Envelope(np.ones(1), np.zeros(1), np.ones(len(problem)))
    ref = max(positive, key=lambda c: (positive[c], c.static, c.slope, c.low))
    least = min(c.low**c.beta for c in counted)
    lowest = min(c.low for c in counted if _same(c, ref))
    pace, watts = _below(replace(ref, low=lowest), least)
    ratio = {c: 1.0 if _same(c, ref) else _ratio(c, pace, watts) for c in counted}
    return Envelope(pace, watts, np.array([min(ratio[c] for c in row) for row in curves]))


def _curves(problem: ConsolidationProblem, k: int, share: float) -> list[_Curve]:
    """Return a GPU's power for each task, with a share of its server's static power, W."""
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


def _same(one: _Curve, other: _Curve) -> bool:
    return replace(one, low=other.low) == other


def _below(ref: _Curve, least: float) -> tuple[FloatArray, FloatArray]:
    """Vertices of a convex curve below `ref` as a function of pace, from `least` to 1."""
    if ref.beta == 0 or least >= 1:
        low = ref.low if ref.beta == 0 else 1.0
        return np.ones(1), ref.watts(np.array([low]))
    power, ends = 1 / ref.beta, np.array([least, 1.0])
    value = ref.watts(ends**power)
    if power <= 1 or ref.slope == 0:  # concave: a chord is below it
        return ends, value
    rise = ref.slope * power * ends ** (power - 1)  # the tangents at both ends meet
    meet = (value[1] - value[0] + rise[0] * least - rise[1]) / (rise[0] - rise[1])
    height = value[0] + rise[0] * (meet - least)
    return np.array([least, meet, 1.0]), np.array([value[0], height, value[1]])


def _ratio(curve: _Curve, pace: FloatArray, watts: FloatArray) -> float:
    """Return the least of `curve` over the vertices' curve, at the ends of each cell."""
    x = np.linspace(curve.low, 1.0, TUNING.cells)
    below = np.interp(np.minimum(1.0, x[1:] ** curve.beta), pace, watts)
    return float(max(0.0, (curve.watts(x[:-1]) / below).min()))
