"""Work value: at every event the GPUs and clocks that do most worth of work (a policy of our own).

The linear program of a known order of completions says what a job's work is worth, and its
optimum does at every moment what is worth most together. Online the worth is estimated: with A
jobs there, every second costs A job-seconds, and whoever holds the whole cluster makes the others
wait for it. One iteration of a job on n GPUs at clock f therefore costs

    c_j = min over (n, f) of T_iter(n, f) · (1 + A · (n/G + P(n, f)/L)/2)

job-seconds, its own time and its share of GPUs and of the power limit L (of GPUs alone where
there is none). R iterations left are worth (R · c_j)^power, which makes short jobs' iterations
dearer, and each (R · c_j)^power / R. Like AFS-L the policy knows lengths, and T_iter and P exactly.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.elastic.parameters import STATES, WorkValueParams
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.most_worth import EstimatedWorth, MostWorth
from optgap.models.elastic.snapshot import Choices
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.elastic.snapshot import solve


def work_value(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Maximise the worth of work at each event; `given` is as in `WorkValueParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(WorkValueParams, given, "work-value")
    choices = Choices.of(problem)
    worth = EstimatedWorth(problem, choices, options.power)
    policy = MostWorth(problem, choices, worth, solve, options.spread_s, options.gap, STATES)
    return simulate(problem, policy, limits)
