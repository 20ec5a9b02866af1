"""Grids of runs that survive: many processes or machines, a row per run, and resuming.

>>> from optgap import sweeping
>>> spec = sweeping.load_spec("sweep.toml")  # doctest: +SKIP
>>> done = sweeping.run(spec, "results.parquet", resume=True)  # doctest: +SKIP
>>> done.to_frame().groupby("method")["gap_to_bound"].mean()  # doctest: +SKIP
"""

from optgap.sweeping.cell import Cell, run_cell
from optgap.sweeping.driver import Done, run
from optgap.sweeping.engines import Engine
from optgap.sweeping.formats import read_rows
from optgap.sweeping.spec import Spec, load_spec, read_spec
from optgap.sweeping.table import COLUMNS, WALL

__all__ = [
    "COLUMNS",
    "WALL",
    "Cell",
    "Done",
    "Engine",
    "Spec",
    "load_spec",
    "read_rows",
    "read_spec",
    "run",
    "run_cell",
]
