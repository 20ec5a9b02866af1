"""Readers of monitors whose output is no CSV: dcgmi and tegrastats."""

from __future__ import annotations

import re
from collections.abc import Mapping

from optgap.fitting.profile import answered
from optgap.fitting.readers.samples import Samples, of_table
from optgap.fitting.readers.text import RawTable
from optgap.models.columns import Wanted
from optgap.models.errors import InputError, NoQuote

_DCGM = {
    "POWER": Wanted("power_w"),
    "SMCLK": Wanted("frequency_mhz"),
    "MMCLK": Wanted("memory_mhz"),
    "DRAMA": Wanted("dram_active"),
    "GPUTL": Wanted("util_percent"),
    "TOTEC": Wanted("energy_j", "mJ"),
}
"""Canonical columns by short names of ``dcgmi dmon``."""
_DMON = re.compile(r"\s*([^#\n]*\n)?#\s*Entity\b")
_TEGRA = re.compile(r"GR3D_FREQ (\d+)%(?:@\[?(\d+))?")
_RAIL = re.compile(r"(VDD_GPU\w*|VDD_SYS_GPU|POM_5V_GPU) (\d+)(?:mW)?/")


def read(
    text: str, source: str, interval_s: float | None, units: Mapping[str, str]
) -> Samples | None:
    """Read samples of a monitor, which the first lines identify; None for other text.

    Parameters
    ----------
    interval_s: time between samples of a log without times; 1 s by default.
    units: units that the user states.

    Raises
    ------
    InputError: for output that is cut, or has no power of a GPU.
    """
    if _TEGRA.search(text[:4000]):
        raw, named, kind = _tegrastats(text, source), {}, "tegrastats"
    elif _DMON.match(text):
        raw, named, kind = _dcgmi(text, source), _DCGM, "dcgmi"
    else:
        return None
    return of_table(raw, named, answered(units), interval_s or 1.0, kind)


def _dcgmi(text: str, source: str) -> RawTable:
    """Read ``dcgmi dmon``, which prints a line without times for each GPU and tick.

    Raises
    ------
    InputError: for a row that does not fit its header, or one that names no GPU.
    """
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    for line, content in enumerate(text.splitlines(), start=1):
        words = content.replace("#", " ", 1).split()
        if not words or words == ["ID"] or not (header or words[0] == "Entity"):
            continue
        if words[0] == "Entity":
            header = words[1:]
        elif words[0] == "GPU" and len(words) == len(header) + 2:
            rows.append(words[1:])
            lines.append(line)
        else:
            expected = f"GPU, its number and {len(header)} values"
            if words[0] == "GPU-I":
                expected += ": an instance of MIG has no power of its own (dcgmi dmon -i 0)"
            raise InputError(source, f"row {line}", content, expected)
    if not rows:
        raise InputError(source, "", NoQuote("no samples"), "lines of the form GPU 0 …")
    return RawTable.of(source, ["gpu", *header], rows, lines)


def _tegrastats(text: str, source: str) -> RawTable:
    """Read ``tegrastats``: the rail of the GPU in mW, its clock and its utilisation.

    Raises
    ------
    InputError: for a log without a power rail of the GPU.
    """
    read = [(k, line, _TEGRA.search(line)) for k, line in enumerate(text.splitlines(), start=1)]
    rows = [(k, line, gpu) for k, line, gpu in read if gpu]
    rails = [_RAIL.search(line) for _, line, _ in rows]
    name = next((rail[1] for rail in rails if rail), "")
    if not name:
        expected = "the power of the GPU's rail: VDD_GPU, VDD_SYS_GPU or POM_5V_GPU"
        raise InputError(source, f"row {rows[0][0]}", NoQuote("no rail of the GPU"), expected)
    timed = re.match(r"\d+-\d+-\d+ \d", rows[0][1]) is not None
    header = ["timestamp"] * timed + ["power_w [mW]", "frequency_mhz", "util_percent"]
    cells = [
        [line[:19]] * timed + [rail[2] if rail else "", gpu[2] or "", gpu[1]]
        for (_, line, gpu), rail in zip(rows, rails, strict=True)
    ]
    shared = ", shared with what else is on it" if re.match("VDD_GPU_", name) else ""
    notes = (f"power is {name}{shared}",)
    return RawTable.of(source, header, cells, [k for k, *_ in rows], notes=notes)
