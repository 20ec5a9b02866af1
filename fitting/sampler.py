"""Sample GPUs at a steady interval into the CSV that `read_profile` cuts into runs."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence

from optgap.fitting.nvml import Gpus
from optgap.models.errors import InputError

HEADER = (
    "sample_s",
    "gpu",
    "gpu_model",
    "power_w",
    "frequency_mhz",
    "memory_mhz",
    "util_percent",
    "power_limit_w",
)


def sample(
    gpus: Gpus,
    stop: Callable[[float], bool],
    *,
    interval_s: float = 0.1,
    indices: Sequence[int] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Look at the GPUs every `interval_s` until ``stop(elapsed)``; returns the CSV's text.

    Parameters
    ----------
    gpus: the machine.
    stop: told the seconds since the start after every look.
    indices: which GPUs (default: all).
    clock, sleep: time itself, replaceable in tests.

    Raises
    ------
    InputError: for a GPU that is not there, or an interval that is not positive.
    """
    names = gpus.names
    chosen = list(range(len(names))) if indices is None else list(indices)
    for index in chosen:
        if not 0 <= index < len(names):
            raise InputError("--gpus", "", index, f"GPUs from 0 to {len(names) - 1}")
    if not interval_s > 0:
        raise InputError("--interval", "", interval_s, "a positive number of seconds")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    start = clock()
    looks = 0
    while True:
        now = clock() - start
        for index in chosen:
            look = gpus.read(index)
            values = (
                look.power_w,
                look.frequency_mhz,
                look.memory_mhz,
                look.util_percent,
                look.power_limit_w,
            )
            cells = ["" if value is None else f"{value:g}" for value in values]
            writer.writerow([f"{now:.4f}", index, names[index], *cells])
        looks += 1
        if stop(clock() - start):
            return text.getvalue()
        sleep(max(0.0, looks * interval_s - (clock() - start)))
