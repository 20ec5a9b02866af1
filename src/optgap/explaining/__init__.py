"""A policy's gap in parts: unproven, the price of being online, the price of the heuristic.

>>> import optgap
>>> problem = optgap.generate("placement", "small", seed=1)  # doctest: +SKIP
>>> print(optgap.explain(problem, "pwr+fgd"))  # doctest: +SKIP
"""

from optgap.explaining.entry import explain
from optgap.explaining.result import SCHEMA, TITLES, TOP, Explanation, Part

__all__ = ["SCHEMA", "TITLES", "TOP", "Explanation", "Part", "explain"]
