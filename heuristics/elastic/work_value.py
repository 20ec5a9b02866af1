"""Work value (ours): at every event, the GPUs and clocks that maximise the value of the work done.

The linear program of a known order of completions gives a value to each job's work, and its optimum
maximises the total value at every moment. Online the policy estimates the value: with A jobs
present, every second costs A job-seconds, and a job that holds the whole cluster delays all others.
One iteration of a job on n GPUs at clock f therefore costs

    c_j = min over (n, f) of T_iter(n, f) · (1 + A · (n/G + P(n, f)/L)/2)

job-seconds, from its own time and its share of GPUs and of the power limit L (of GPUs alone without
a limit). R iterations left are worth (R · c_j)^power, and each one (R · c_j)^power / R, so an
iteration of a short job is worth more. The policy knows lengths, as AFS-L does, and exact T_iter
and P.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.elastic.parameters import WorkValueParams
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.elastic.most_worth import EstimatedWorth, MostWorth
from optgap.solvers.elastic.snapshot import Choices


def work_value(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Maximise the worth of work at each event; `given` is as in `WorkValueParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(WorkValueParams, given, "work-value")
    choices = Choices.of(problem)
    worth = EstimatedWorth(problem, choices, options.power)
    policy = MostWorth(problem, choices, worth, spread_s=options.spread_s, gap=options.gap)
    return simulate(problem, policy, limits)
