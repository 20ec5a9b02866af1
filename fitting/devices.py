"""Idle and full power by device, which PWR's node power needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import stdtrit

from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.groups import GroupedFit
from optgap.fitting.optimise import Floats, Loss, Parameter, Spread
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

NAME = "device-power"
IDLE_PERCENT = 1.0
"""Largest utilisation of an idle row."""
DRAWS = 200
"""Number of resamples for a standard error."""
LEAST_ROWS = 19
"""Least number of rows whose quantiles are taken directly."""


@dataclass(kw_only=True, eq=False)
class DevicePower(Estimator):
    """Power P_idle of a device at rest and P_full of a device in use (PWR, Eq. 1 and 2), in W.

    P_idle is the median power of idle rows. P_full is the power limit if it was sampled, else the
    99th percentile of busy rows. Errors come from resampling rows; a limit has no error. Busy rows
    lie below full power, so draws are quantiles of the rows.

    A table needs ``power_w``, and marks idle power by ``idle_w`` (as runs cut from raw samples do)
    or by rows at 0 in ``util_percent``. Groups are by ``gpu_model``; a group named CPU is the CPU
    package.
    """

    name = NAME
    response = "power_w"
    needs = ("busy",)
    uses = ("power_limit_w", "idle_w", "util_percent")
    loss: Loss = "linear"
    loss_scale: float = 0.05
    starts: int = 1

    def prepare(self, table: object) -> Profile:
        """Return the table with rows marked busy (1) or idle (0)."""
        profile = self.table(table)
        if "busy" not in profile:
            profile = _marked(profile)
        return super().prepare(profile)

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        return (
            Parameter("idle_w", "W", 0.0, np.inf, "power at rest", "rows of an idle device"),
            Parameter("full_w", "W", 0.0, np.inf, "power in use", "rows of a busy device"),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        busy, power = table.numbers("busy") > 0, table.numbers("power_w")
        limit = table.numbers("power_limit_w") if "power_limit_w" in table else np.zeros(0)
        known = limit[np.isfinite(limit)]
        full = np.max(known) if known.size else np.percentile(power[busy], 99)
        return np.array([np.median(power[~busy]), full])

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        busy = design["busy"] > 0
        power = np.maximum(np.where(busy, theta[1], theta[0]), 1e-300)
        return np.log(power), np.stack([~busy / power, busy / power], axis=1)

    def _solve(
        self, profile: Profile, facts: Design, params: tuple[Parameter, ...], starts: Floats
    ) -> Self:
        theta, rng = self.guess(profile, facts), np.random.default_rng(self.seed)
        busy = profile.numbers("busy") > 0
        parts = [np.flatnonzero(~busy), np.flatnonzero(busy)]
        picks = [np.concatenate([rng.choice(p, len(p)) for p in parts]) for _ in range(DRAWS)]
        draws = [self.guess(profile.take(rows), facts) for rows in picks]
        covariance = np.diag(np.var(draws, axis=0))
        log, _ = self.curve(theta, self.design(profile, facts))
        self.start_, self.residuals_ = theta, log - self.target(profile)
        free = np.zeros(2, dtype=bool)
        return self._found(
            profile, facts, params, theta, at_bound=free, scatter=Spread.of(theta, covariance)
        )

    def own_draws(self, table: Profile, count: int) -> Floats:
        """Return random pairs of a quantile of idle rows' power and one of busy rows'."""
        busy, power = table.numbers("busy") > 0, table.numbers("power_w")
        at = (np.arange(count) + 0.5) / count
        idle, used = (_not_yet_seen(power[rows], at) for rows in (~busy, busy))
        rest = np.random.default_rng(self.seed).permutation(idle)
        return np.stack([rest, np.maximum(rest, used)], axis=1)

    def remarks(self, table: Profile) -> list[str]:
        busy, power = table.numbers("busy") > 0, table.numbers("power_w")
        mean, idle, full = float(np.mean(power[busy])), *self.theta_
        if idle > mean:
            return [f"rows at rest draw {idle:.3g} W, more than rows at work ({mean:.3g} W)"]
        if mean < 0.95 * full:
            return [f"busy rows draw {mean:.0f} W on average: Eq. 2 counts {full:.0f} W for them"]
        return []

    def _warnings(self, profile: Profile) -> list[str]:
        # that a mean is not reached is Eq. 2's own: `remarks` says by how much
        return [note for note in super()._warnings(profile) if not note.startswith("mean error")]


def _not_yet_seen(power: Floats, at: Floats) -> Floats:
    """Return quantiles of one further row; it lies beyond the last of n rows once in n + 1.

    Fewer than `LEAST_ROWS` do not reach the ends of a 90 % interval; a log-normal then serves.
    """
    n = len(power)
    if n >= LEAST_ROWS or n < 2:
        return np.quantile(power, at, method="weibull")
    logs = np.log(np.maximum(power, 1e-300))
    scale = float(logs.std(ddof=1)) * np.sqrt(1 + 1 / n)
    return np.asarray(np.exp(logs.mean() + scale * stdtrit(n - 1, at)))


def _marked(profile: Profile) -> Profile:
    """Return the profile with a column ``busy``; idle power gets rows of its own."""
    power = profile.numbers("power_w")
    if "idle_w" in profile:
        idle = profile.numbers("idle_w")
        rows = np.flatnonzero(np.isfinite(idle))
        if not len(rows):
            where = profile.where(0, "idle_w")
            raise InputError(profile.source, where, NoQuote("never idle"), "some idle samples")
        busy = np.concatenate([np.ones(len(profile)), np.zeros(len(rows))])
        both = profile.take(np.concatenate([np.arange(len(profile)), rows]))
        return both.with_columns(power_w=np.concatenate([power, idle[rows]]), busy=busy)
    if "util_percent" in profile:
        util = profile.numbers("util_percent")
        return profile.take(np.isfinite(util)).with_columns(
            busy=(util[np.isfinite(util)] > IDLE_PERCENT).astype(float)
        )
    found = NoQuote(", ".join(profile.columns))
    expected = "a column idle_w, or util_percent with rows at 0; measure the device at rest, too"
    raise InputError(profile.source, "columns", found, expected)


def device_csv(fit: GroupedFit[Any]) -> str:
    """Return the CSV that placement problems read: ``model,idle_w,full_w``."""
    rows = [
        f"{json.dumps(name) if ',' in name else name or 'GPU'},{idle:g},{full:g}"
        for name, (idle, full) in ((name, one.theta_) for name, one in fit.fits.items())
    ]
    return "\n".join(["model,idle_w,full_w", *rows]) + "\n"
