"""How many held-out points lie in 90 % intervals, on public profiling data.

    python benchmarks/fitting_coverage.py [DATA/profiles] [--only TEXT]

*Applications*: all rows fitted as one, each application held out once (a workload with all its
power limits), its interval drawn from the others. *Rows*: applications fitted apart, ten folds
held out. Exits 1 when a share of applications is not between 80 and 97 %, or one of rows below
80 %: the few rows of an application leave its intervals wide.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from optgap.fitting import make_estimator
from optgap.fitting.estimator import Estimator
from optgap.fitting.groups import Split, fit_groups
from optgap.fitting.profile import Profile
from optgap.fitting.readers import read_profile
from optgap.fitting.uncertainty import NESTED, draw_from, interval, unknown
from optgap.fitting.workflow import report_of
from optgap.models.errors import InputError

BY_CLOCK = ("linear-power", "power-law-power", "power-law-jct", "powerflow-power",
            "powerflow-energy")  # fmt: skip
RTX = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
A100 = ("bert", "deepspeech2", "inception3", "resnet50", "vgg16")
BAR, DRAWS = (0.80, 0.97), 400


def cases(folder: Path) -> Iterator[tuple[str, str, Profile, dict[str, str]]]:
    """(board, model, table, settings)"""
    v100 = read_profile(folder / "nv-dvfs/v100_real.csv")
    sweeps = {
        "GTX 1080 Ti": read_profile(folder / "hkbu-dvfs/gtx1080ti_core_mem.csv"),
        # clocks of 405 MHz were not held
        "V100": v100.take(np.flatnonzero(v100["frequency_mhz"] >= 502)),
        "GV100": read_profile(folder / "nsfcac/gv100_spec15.csv"),
    }
    for board, table in sweeps.items():
        for model in BY_CLOCK:
            yield board, model, table, {}
    for board in ("v100", "rtx6000"):
        table = read_profile(folder / f"zeus/summary_power_{board}.csv")
        yield f"Zeus {board.upper()}", "batch-power", table, {}
    for board in ("h100", "v100"):
        table = read_profile(folder / f"ecosched/{board}_profiles.csv")
        yield f"EcoSched {board.upper()}", "dram-runtime", table, {}
        yield f"EcoSched {board.upper()}", "device-power", _samples(folder, board), {}
    rtx = [read_profile(folder / f"sia/{app}_scalability-rtx.csv") for app in RTX]
    yield "Sia RTX", "powerflow-throughput", _joined(rtx, RTX), {"sync": "ring"}
    found = [read_profile(folder / f"elasticflow/throughputs_A100/{app}.csv") for app in A100]
    yield "ElasticFlow A100", "powerflow-throughput", _joined(found, A100), {"sync": "ring"}


def _samples(folder: Path, board: str) -> Profile:
    """EcoSched's samples one by one: busy where a counter moved."""
    raw = pd.read_csv(folder / f"ecosched/{board}_gpu_samples.csv.gz")
    active = raw[["dram_active", "fp16_active", "fp32_active", "fp64_active"]].sum(axis=1) > 0
    columns = {
        "application": raw["app"].to_numpy(dtype=object),
        "busy": active.to_numpy(dtype=float),
        "power_w": raw["power_w"].to_numpy(dtype=float),
    }
    return Profile(columns, f"{board}_gpu_samples.csv.gz")


def _joined(tables: list[Profile], names: tuple[str, ...]) -> Profile:
    """Several tables as one, by application."""
    shared = set.intersection(*(set(t.columns) for t in tables)) - {"application"}
    columns = {name: np.concatenate([t[name] for t in tables]) for name in sorted(shared)}
    apps = [np.full(len(t), name, dtype=object) for t, name in zip(tables, names, strict=True)]
    return Profile({**columns, "application": np.concatenate(apps)}, ", ".join(names))


def covered(model: str, table: Profile, settings: dict[str, str]) -> tuple[float | None, ...]:
    """Shares of held-out applications' points, and of held-out rows, within their intervals."""
    estimator = make_estimator(model, **settings)
    others = None
    with suppress(InputError):  # of a model that says nothing of several applications together
        others = _of_applications(report_of(estimator, table, None, None).fit.fits[""], table)
    profile, hits, rng = estimator.prepare(table), [], np.random.default_rng(0)
    for train, held in Split(10).pairs(profile, "application"):
        fit = fit_groups(estimator, profile.take(train), "application")
        draw_from(fit, profile.take(train))
        hits += [_within(fit[title], profile.take(held).take(rows), rng)
                 for title, rows in profile.take(held).groups("application")
                 if title in fit.fits and not unknown(fit[title])]  # fmt: skip
    return others, float(np.concatenate(hits).mean())


def _within(fit: Estimator, table: Profile, rng: np.random.Generator) -> np.ndarray:
    """Tell which rows lie in their intervals; an exact prediction needs none."""
    low, high = interval(fit, DRAWS, rng, table)
    measured = table.numbers(fit.response)
    return (low * (1 - 1e-9) <= measured) & (measured <= high * (1 + 1e-9))


def _of_applications(fit: Any, table: Profile) -> float | None:
    """Mean share of the rows of each application in the interval drawn from the others."""
    over, table = fit.predictive_.over, fit.prepare(table)
    parts = [] if over is None else list(table.groups(over))
    if len(parts) < 4:
        return None
    return float(np.mean([_within(_without(fit, name), table.take(rows),
                                  np.random.default_rng(0)).mean()
                          for name, rows in parts]))  # fmt: skip


def _without(fit: Any, name: str) -> Any:
    """The fit with draws as if one application had not been measured."""
    copy = fit.with_theta(fit.theta_)
    members = tuple(m for m in fit.predictive_.members if m.name != name)
    copy.predictive_ = replace(fit.predictive_, members=members)
    if NESTED in fit.facts_:
        copy.facts_ = {**fit.facts_, NESTED: _without(fit.facts_[NESTED], name)}
    return copy


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("OPTGAP_DATA", "../shared/data")
    parser.add_argument("folder", nargs="?", default=f"{data}/profiles")
    parser.add_argument("--only", default="", metavar="TEXT")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'data':18}  {'model':22}  applications    rows")
    missed = 0
    for board, model, table, settings in cases(Path(args.folder)):
        if args.only.lower() not in f"{board} {model}".lower():
            continue
        shares = covered(model, table, settings)
        cells = ["—" if share is None else f"{100 * share:.0f} %" for share in shares]
        out = [s for s, most in zip(shares, (BAR[1], 1.0), strict=True)
               if s is not None and not BAR[0] <= s <= most]  # fmt: skip
        missed += len(out)
        print(f"{board:18}  {model:22}  {cells[0]:>12}  {cells[1]:>6}"
              + ("  missed" if out else ""), flush=True)  # fmt: skip
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
