"""Model of an iteration's energy (PowerFlow, Eq. 6-15), on top of a fitted iteration time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optgap.fitting.estimator import Design
from optgap.fitting.optimise import Floats, Parameter
from optgap.fitting.powerflow_power import Curves, Shaped, lower_bounds, started
from optgap.fitting.profile import Profile
from optgap.fitting.throughput import IoForm, PowerFlowThroughput, layout
from optgap.models.performance.energy import (
    COLUMN_NAMES,
    EnergyModel,
    log_power,
    power_columns,
    static_factor,
)
from optgap.models.performance.priors import FLOOR
from optgap.models.performance.throughput import SyncForm


@dataclass(kw_only=True, eq=False)
class PowerFlowEnergy(Shaped):
    """E_iter = n·(P_grad·T_grad + P_sync·T_sync + P_static·T_iter) in J (PowerFlow, Eq. 6-15).

    The times come from a `PowerFlowThroughput` fitted to the same rows; the powers are fitted
    to the mean power E / (n·T_iter), so errors in time do not distort the powers.

    Parameters
    ----------
    form, f0_mhz, kappa: shape of φ (Eq. 13) and P_sync (Eq. 14), see `Shaped`.
    sync, io: forms of the iteration time.

    A table needs ``frequency_mhz``, ``time_s`` and ``energy_j`` (or ``power_w``, per GPU, from
    which the energy follows); ``gpus``, ``nodes``, ``gpus_on_node`` and ``local_batch`` default
    to one GPU at one batch. Parameters that the rows cannot determine are fixed, with a note: the
    growth of power with the batch if there is one batch, P_sync on one GPU, and P_static if T_grad
    fills every iteration alike. No prediction is below a quarter of the least measured power.
    """

    name = "powerflow-energy"
    response = "energy_j"
    needs = ("frequency_mhz",)
    uses = (
        "gpus", "local_batch", "nodes", "gpus_on_node", "time_s", "power_w",
    )  # fmt: skip

    sync: SyncForm = "paper"
    io: IoForm = "full"

    # --- the table -----------------------------------------------------------------------

    def prepare(self, table: object) -> Profile:
        """Return the table with its energy, and by default with one GPU at one batch."""
        profile = _filled(Profile.of(table, self.name))
        self._columns(profile, ("time_s",))
        if "energy_j" not in profile:
            energy = profile.numbers("power_w") * profile.numbers("time_s") * profile["gpus"]
            profile = profile.with_columns(energy_j=energy)
        return super().prepare(profile)

    def predict(self, table: object) -> Floats:
        """Return E_iter of each row over all GPUs, J."""
        return super().predict(_filled(Profile.of(table, self.name)))

    def target(self, table: Profile) -> Floats:
        """Return ln of the mean power per GPU, E / (n·T_iter)."""
        return np.log(_mean_power(table))

    def output(self, log: Floats, design: Design) -> Floats:
        return np.asarray(np.exp(log) * design["gpus"] * design["time"])

    def sweeps(self, table: Profile, by: str | None) -> Curves:
        power, clock = _mean_power(table), table.numbers("frequency_mhz")
        names = [name for name in ("gpus", "nodes", "gpus_on_node", "local_batch") if name in table]
        return [
            (clock[rows], power[rows]) for _, rows in table.groups([*filter(None, [by]), *names])
        ]

    # --- the model -----------------------------------------------------------------------

    def settle(self, table: Profile) -> Design:
        """Return the fitted iteration time, the board's shape, and what the rows can separate."""
        power, shape = _mean_power(table), self.shape(table)
        near = None if self.near_ is None else self.near_.facts_["time"]
        time = PowerFlowThroughput(sync=self.sync, io=self.io, seed=self.seed)
        time.fit(table, near=near)
        _, t_grad, t_sync, t_iter = _times(time, table)
        batch = table.numbers("local_batch")
        share = t_grad / t_iter
        several = len(np.unique(batch)) > 1 or len(np.unique(table.numbers("gpus"))) > 1
        return {
            **shape,
            "time": time,
            "batches": len(np.unique(batch)),
            "sync": bool(np.any(t_sync > 1e-3 * t_iter)),
            "static": bool(several and np.ptp(share) > 0.02),
            "floor_w": FLOOR * float(power.min()),
        }

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        names, lower = COLUMN_NAMES[facts["form"]], lower_bounds(facts["form"]).tolist()
        shift = slope = (1.0, 1.0)
        if facts["batches"] > 1:
            shift, slope = (0.0, np.inf), (-5.0, np.inf)
        batches, clocks = "at least three batches per GPU", "more clocks on either side of f0"
        rest, top = (np.inf if facts[told] else 0.0 for told in ("static", "sync"))
        floor, static = facts["floor_w"], "runs of which computing fills different shares"
        return (
            *self.held(facts),
            Parameter("theta", "samples", *shift, "θ of Eq. 12", batches),
            Parameter("beta", "", *slope, "β of Eq. 12, α being 1", batches),
            Parameter("static_w", "W", 0.0, rest, "S_l of Eq. 15", static),
            Parameter("wait_share", "", 0.0, 0.0, "P_sync over P_grad, on top of Eq. 14"),
            *(
                Parameter(f"grad_{name}", "W", low, np.inf, "φ of Eq. 13", clocks)
                for name, low in zip(names, lower, strict=True)
            ),
            *(
                Parameter(f"sync_{name}", "W", low if top else 0.0, top, "P_sync, Eq. 14")
                for name, low in zip(names, lower, strict=True)
            ),
            Parameter("floor_w", "W", floor, floor, "the least that a GPU in training draws"),
        )  # fmt: skip

    def guess(self, table: Profile, facts: Design) -> Floats:
        design = self.design(table, facts)
        power = _mean_power(table)
        level = float(np.mean(np.log(design["batch"] + 1) + 1))
        static, scale = (0.2 * float(power.min()), 0.7) if facts["static"] else (0.0, 1.0)
        grad = started(facts["form"], design["columns"], power / level)
        sync = 0.3 * grad if facts["sync"] else np.zeros(len(grad))
        head = [facts["f0_mhz"], facts["kappa"], 1.0, 1.0, static, 0.0]
        return np.concatenate([head, scale * grad, sync, [facts["floor_w"]]])

    def design(self, table: Profile, facts: Design) -> Design:
        clock = table.numbers("frequency_mhz")
        _, t_grad, t_sync, t_iter = _times(facts["time"], table)
        form, f0 = facts["form"], facts["f0_mhz"]
        return {
            "columns": power_columns(form, clock, f0, facts["kappa"]),
            "static": static_factor(clock, f0),
            "grad_share": t_grad / t_iter,
            "sync_share": t_sync / t_iter,
            "batch": table.numbers("local_batch"),
            "gpus": table.numbers("gpus"),
            "time": t_iter,
        }

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        log, slope = log_power(theta[2:-1], {**design, "floor_w": theta[-1]})
        jacobian = np.zeros((len(log), len(theta)))
        jacobian[:, 2:-1] = slope
        return log, jacobian

    def remarks(self, table: Profile) -> list[str]:
        facts = self.facts_
        found = [f"time: {note}" for note in facts["time"].warnings_ if note not in table.notes]
        if facts["batches"] < 2:
            found.append("one batch only: how power grows with it is not in these rows")
        if not facts["sync"]:
            found.append("no synchronisation in these rows: P_sync is not identifiable")
        if not facts["static"]:
            found.append("computing fills every iteration alike: P_static is not identifiable")
        return found

    @property
    def model_(self) -> EnergyModel:
        """Fitted powers, for solvers and policies."""
        return EnergyModel(self.params_, self.facts_["form"])


def _filled(profile: Profile) -> Profile:
    """Return the profile with one GPU at one batch as defaults."""
    ones = np.ones(len(profile))
    missing = {name: ones for name in ("gpus", "local_batch") if name not in profile}
    return profile.with_columns(**missing) if missing else profile


def _mean_power(table: Profile) -> Floats:
    gpus, time = table.numbers("gpus"), table.numbers("time_s")
    return np.asarray(table.numbers("energy_j") / (gpus * time))


def _times(time: PowerFlowThroughput, table: Profile) -> tuple[Floats, Floats, Floats, Floats]:
    gpus, batch, nodes, on_node, clock = layout(table)
    model = time.model_
    parts = model.parts(gpus, batch, clock, nodes, on_node)
    return (*parts, model.iteration_time(gpus, batch, clock, nodes, on_node))
