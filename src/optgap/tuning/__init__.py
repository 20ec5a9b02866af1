"""Choose a policy's parameters against the bound, and see whether they hold elsewhere.

The parameters are chosen on training instances and reported on instances that had no part in
the choice. Every instance is bounded once; a setting's score is its mean gap to these bounds.

>>> from optgap import tuning
>>> found = tuning.tune("placement", "pwr+fgd", {"alpha": "0..1"})  # doctest: +SKIP
>>> print(found)  # doctest: +SKIP
"""

from optgap.tuning.entry import tune
from optgap.tuning.ranges import Range, read_range
from optgap.tuning.result import SCHEMA, Scores, Trial, Tuned
from optgap.tuning.searches import SEARCHES

__all__ = ["SCHEMA", "SEARCHES", "Range", "Scores", "Trial", "Tuned", "read_range", "tune"]
