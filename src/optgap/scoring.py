"""Score of a policy on optgap-lib: its gaps to the best known solutions and to their bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from optgap.api import ahead, require_time_limit, serves
from optgap.best_known import LIBRARY, PREFIX, record, records
from optgap.comparing.comparison import Failure
from optgap.comparing.gaps import compare
from optgap.documents import load_problem
from optgap.models.errors import InputError, Said, one_of
from optgap.models.limits import Limits
from optgap.models.result import Result
from optgap.parameters import split_call
from optgap.registry import FAMILIES
from optgap.registry import family as family_of
from optgap.registry import policy as find_policy
from optgap.render import (
    GAP_TO_BEST,
    GAP_TO_BOUND,
    SECONDS,
    Answer,
    Table,
    duration,
    durations,
    number,
    percent,
    percents,
)

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "optgap.score/1"


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Result of a policy on one instance.

    Parameters
    ----------
    instance: name of the instance.
    result: the policy's result with the referee's objective.
    best_known, bound: best known objective and best bound of the instance.
    gap_to_best, gap_to_bound: gaps to these, as shares of them; below 0 if the policy is better.
    left_out: number of tasks or jobs that the policy did not serve. With any there is no gap,
        because the best known solution and the bound serve all.
    failure: reason for a missing result, as in `ComparisonRow`.
    """

    instance: str
    result: Result
    best_known: float
    bound: float
    gap_to_best: float | None
    gap_to_bound: float | None
    left_out: int = 0
    failure: Failure = ""

    @property
    def note(self) -> str:
        """Reason why the row has no gap, or a word that it beats the best known solution."""
        if self.left_out:
            return f"{self.left_out:,} left out"
        value = self.result.objective
        if value is not None and ahead(value, self.best_known, self.result.sense):
            return "better than the best known: CONTRIBUTING.md says how it gets in"
        return self.result.message

    def to_json(self) -> dict[str, Any]:
        """Return the row's numbers, and objective, status and message of the result."""
        one, own = self.result, ("instance", "best_known", "bound", "gap_to_best", "gap_to_bound")
        return {
            **{key: getattr(self, key) for key in (*own, "left_out")},
            **{key: getattr(one, key) for key in ("objective", "unit", "sense", "message")},
            "status": str(one.status),
            "seconds": one.seconds,
        }


@dataclass(frozen=True, repr=False)
class Score(Answer):
    """Table of a policy on all instances of its family, with mean and worst gap.

    Parameters
    ----------
    policy: name of the policy, with parameters.
    family: family of the instances.
    rows: a row for each instance, in the order of the library.

    Examples
    --------
    >>> score = optgap.score("marble", instances=["coscheduling-pool-8"])
    >>> round(score.mean, 3), score.worst == score.mean, list(score.to_frame().index)
    (0.208, True, ['coscheduling-pool-8'])
    """

    policy: str
    family: str
    rows: tuple[ScoreRow, ...]

    @property
    def gaps(self) -> list[float]:
        """Gaps to the best known solutions, of the rows that have one."""
        return [row.gap_to_best for row in self.rows if row.gap_to_best is not None]

    @property
    def mean(self) -> float | None:
        """Mean of the gaps to the best known solutions."""
        return fmean(self.gaps) if self.gaps else None

    @property
    def worst(self) -> float | None:
        """Largest gap to a best known solution."""
        return max(self.gaps, default=None)

    @property
    def mean_to_bound(self) -> float | None:
        """Mean of the gaps to the bounds."""
        found = [row.gap_to_bound for row in self.rows if row.gap_to_bound is not None]
        return fmean(found) if found else None

    @property
    def seconds(self) -> float:
        """Wall time of the policy on all instances, s."""
        return sum(row.result.seconds for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.score/1``."""
        own = ("policy", "family", "mean", "worst", "mean_to_bound", "seconds")
        return {
            "schema": SCHEMA,
            "library": LIBRARY,
            **{key: getattr(self, key) for key in own},
            "scored": len(self.gaps),
            "rows": [row.to_json() for row in self.rows],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with a row for each instance, indexed by its name."""
        import pandas as pd

        return pd.DataFrame([row.to_json() for row in self.rows]).set_index("instance")

    def head(self) -> list[str]:
        """Return the line that a paper can quote."""
        count = f"{len(self.gaps)} of {len(self.rows)} {self.family} instances of {LIBRARY}"
        gaps = f"mean gap {percent(self.mean)}, worst {percent(self.worst)}"
        last = f"{percent(self.mean_to_bound)} from the bounds, {duration(self.seconds)}"
        return [f"{self.policy}: {gaps} on {count}; {last}" if self.gaps else f"no gap: {count}"]

    def table(self) -> Table:
        """Return a line for each instance: objective, both gaps, time and notes."""
        found = [row.result for row in self.rows]
        units = [r.unit if r.objective is not None else "" for r in found]
        columns = {
            "": [row.instance for row in self.rows],
            "objective": [f"{number(r.objective)} {u}" for r, u in zip(found, units, strict=True)],
            GAP_TO_BEST: percents(row.gap_to_best for row in self.rows),
            GAP_TO_BOUND: percents(row.gap_to_bound for row in self.rows),
            SECONDS: durations([r.seconds for r in found]),
            "note": [row.note for row in self.rows],
        }
        if not any(columns["note"]):
            del columns["note"]
        return tuple(columns), list(zip(*columns.values(), strict=True)), (1, 2, 3, 4)

    def __repr__(self) -> str:
        return f"<Score {self.head()[0]}>"


def score(
    policy: str | Callable[..., Any],
    family: str | None = None,
    *,
    instances: Sequence[str] | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
) -> Score:
    """Run a policy on the instances of its family in optgap-lib.

    A policy that fails on one instance still has its rows of the others.

    Parameters
    ----------
    policy: a name, with parameters in parentheses, ``module:attribute`` or
        ``path/to/file.py:attribute`` for one of your own, or the function itself.
    family: the family of the instances. Default: the one family that has a policy of this name.
    instances: names of instances. Default: all of the family.
    time_limit: wall-clock seconds on each instance for a policy of your own. Default: none.
    seed: seed of the random number generator. Default 0.
    limits: limits that are shared with other work, in place of `time_limit`.

    Returns
    -------
    Score
        A row for each instance with its gaps, their mean and the worst, with `to_frame`.

    Raises
    ------
    InputError: for an unknown policy, family or instance, or if several families have the policy.

    Examples
    --------
    >>> import optgap
    >>> marble = optgap.score("marble", instances=["coscheduling-pool-8"])
    >>> [row.instance for row in marble.rows]
    ['coscheduling-pool-8']
    """
    require_time_limit(time_limit)
    spec = family_of(family or _home(policy), "--family")
    label = find_policy(spec, policy).label
    names = [name for name, known in records().items() if known["family"] == spec.name]
    rows = []
    for name in names if instances is None else [one.removeprefix(PREFIX) for one in instances]:
        known = record(name)
        problem = load_problem(PREFIX + name)
        made = compare(problem, [policy], (), time_limit=time_limit, seed=seed, limits=limits)
        result = made.rows[0].result
        left_out = 0 if result.solution is None else _left_out(problem, result)
        best, bound = known["best"]["value"], known["bound"]["value"]
        value = None if left_out else result.objective
        to_best, to_bound = (_worse(value, ref, result.sense) for ref in (best, bound))
        failure = made.rows[0].failure
        rows.append(ScoreRow(name, result, best, bound, to_best, to_bound, left_out, failure))
    return Score(label, spec.name, tuple(rows))


def _worse(value: float | None, reference: float, sense: str) -> float | None:
    """Return how much worse a value is than a reference, as a share of the reference."""
    if value is None or not reference:
        return None
    return (value - reference if sense == "min" else reference - value) / abs(reference)


def _left_out(problem: Any, result: Result) -> int:
    """Return the number of tasks or jobs that a solution does not serve."""
    try:
        kept = problem.subjects if serves(result) else problem.restrict(result.solution).subjects
    except InputError:  # nothing is served at all
        kept = ()
    return len(problem.subjects) - len(kept)


def _home(policy: str | Callable[..., Any]) -> str:
    """Return the one family that has a policy of this name."""
    name = split_call(policy, "policy")[0] if isinstance(policy, str) else ""
    homes = [kind for kind, spec in FAMILIES.items() if name in spec.policies]
    if len(homes) == 1:
        return homes[0]
    if not homes and name and ":" not in name:
        known = {policy for spec in FAMILIES.values() for policy in spec.policies}
        raise InputError("--policy", "", name, one_of(sorted(known)))
    said = f"{name} is a policy of {' and '.join(homes)}" if homes else "the policy is your own"
    raise InputError("--family", "", Said(said), one_of(homes or FAMILIES, "name one of {}"))
