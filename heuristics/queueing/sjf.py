"""SJF: the fewest GPUs first, then by arrival (HPS/PBS/SBS, Sec. III-B).

The paper's Table I swaps SJF and Shortest. The text agrees with itself, and with the simulator that
the job fields come from, so the text is followed; ``sjf_key="time"`` is the table's. The first in
order is found in `fixed_order`.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.queueing.parameters import SjfParams
from optgap.heuristics.queueing.rule import SHORTEST, SJF, Rule, simulate
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen


def sjf(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """SJF; `given` as in `SjfParams`.

    Raises
    ------
    InputError: for an unknown `sjf_key`.
    """
    options = chosen(SjfParams, given, "sjf")
    rule = Rule(SJF if options.sjf_key == "gpus" else SHORTEST)
    return simulate(problem, rule, limits=limits, label="sjf")
