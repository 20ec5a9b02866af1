"""Grids of comparisons on many processes or machines, in one table that a later run continues.

>>> from optgap import sweeping
>>> done = sweeping.run(sweeping.load_spec("sweep.toml"), "results.csv")  # doctest: +SKIP
>>> done.to_frame().groupby("method")["gap_to_bound"].mean()  # doctest: +SKIP
"""

from optgap.sweeping.cells import COLUMNS, WALL, Cell, run_cell
from optgap.sweeping.driver import Done, run
from optgap.sweeping.engines import ENGINES, Engine
from optgap.sweeping.spec import Spec, load_spec, read_spec

__all__ = [
    "COLUMNS",
    "ENGINES",
    "WALL",
    "Cell",
    "Done",
    "Engine",
    "Spec",
    "load_spec",
    "read_spec",
    "run",
    "run_cell",
]
