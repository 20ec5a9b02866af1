"""Constrained robust fits by convex programs (CVXPY) beside ours and least squares.

    python benchmarks/fitting_robust.py [DATA/profiles]

Power over the clock, where the model is linear in its coefficients given f0 and κ: the convex
program has Huber's loss on relative errors, power above 0 and no power falls with the clock. Error
held out by five folds, mean over applications of each one's MAPE on rows as measured; with
outliers, a tenth of the rows that are fitted to draw half as much again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from optgap.fitting import make_estimator
from optgap.fitting.profile import Profile, where
from optgap.fitting.readers import read_profile
from optgap.models.errors import InputError

FOLDS, SHARE, FACTOR = 5, 0.1, 1.5


def tables(folder: Path) -> dict[str, Profile]:
    gv100 = read_profile(folder / "nsfcac/gv100_spec15.csv")
    return {
        "GTX 1080 Ti": read_profile(folder / "hkbu-dvfs/gtx1080ti_core_mem.csv"),
        "V100": where(read_profile(folder / "nv-dvfs/v100_real.csv"), "frequency_mhz>=502"),
        "GV100, every 5th clock": gv100.take(np.arange(0, len(gv100), 5)),
    }


def error(table: Profile, model: str, how: str, outliers: bool) -> tuple[float, float]:
    """Held-out error, and seconds of CPU."""
    began, rng, errors = time.process_time(), np.random.default_rng(0), []
    loss = "linear" if how == "least squares" else "soft_l1"
    base = make_estimator(model, loss=loss, robust=how == "convex")
    for _, rows in table.groups("application"):
        place = rng.permutation(len(rows)) % FOLDS
        off = np.where(rng.random(len(rows)) < SHARE, FACTOR, 1.0) if outliers else 1.0
        part, own = table.take(rows), []
        power = part.numbers("power_w")
        spoilt = part.with_columns(power_w=power * off)
        for k in range(FOLDS):
            train, held = spoilt.take(place != k), part.take(place == k)
            try:
                found = base.clone().fit(train).predict(held)
            except InputError:
                continue
            own += np.abs(found / held.numbers("power_w") - 1).tolist()
        if own:
            errors.append(np.mean(own))
    return float(np.mean(errors)), time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("OPTGAP_DATA", "../shared/data")
    parser.add_argument("folder", nargs="?", default=f"{data}/profiles")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'data':24} {'model':18} {'fit':16} {'as measured':>12} {'outliers':>10} {'CPU':>8}")
    for name, table in tables(Path(args.folder)).items():
        for model in ("linear-power", "powerflow-power"):
            for how in ("least squares", "ours (soft_l1)", "convex"):
                clean, spent = error(table, model, how, False)
                spoilt, more = error(table, model, how, True)
                cells = f"{100 * clean:11.2f}% {100 * spoilt:9.2f}% {spent + more:6.1f} s"
                print(f"{name:24} {model:18} {how:16} {cells}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
