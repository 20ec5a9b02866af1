"""A policy's score on optgap-lib: its gaps to the best known solutions and to their bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from optgap.api import ahead, require_time_limit, serves
from optgap.best_known import LIBRARY, PREFIX, record, records
from optgap.comparing.gaps import compare
from optgap.documents import load_problem
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.limits import Limits
from optgap.models.result import Result, Termination
from optgap.parameters import split_call
from optgap.registry import FAMILIES, installed_policies
from optgap.registry import family as family_of
from optgap.registry import policy as find_policy
from optgap.render import Answer, Row, Table, duration, number, percent, plural

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "optgap.score/1"
BETTER = "better than the best known: `optgap check --against-best` and CONTRIBUTING say what next"


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A policy on one instance.

    Parameters
    ----------
    instance: its name.
    result: of the policy, as the referee saw it.
    best_known, bound: of the instance.
    left_out: tasks or jobs that the policy did not serve. With any there is no gap, because best
        known solution and bound serve all.
    """

    instance: str
    result: Result
    best_known: float
    bound: float
    left_out: int = 0

    @property
    def gap_to_best(self) -> float | None:
        """How much worse than the best known solution, as a share of it; below 0 for better."""
        return self._gap(self.best_known)

    @property
    def gap_to_bound(self) -> float | None:
        """How much worse than the bound, as a share of it: the true gap is no larger."""
        return self._gap(self.bound)

    @property
    def better(self) -> bool:
        """Whether the policy beats the best known solution, rounding apart."""
        value = self.result.objective
        return self.gap_to_best is not None and ahead(value or 0.0, self.best_known, self._sense)

    @property
    def _sense(self) -> Any:
        return self.result.sense

    def _gap(self, reference: float) -> float | None:
        if self.result.objective is None or self.left_out or not reference:
            return None
        lost = self.result.objective - reference
        return (lost if self._sense == "min" else -lost) / abs(reference)

    @property
    def note(self) -> str:
        """What keeps the row from having a gap, or what is special about it."""
        said = [f"{plural(self.left_out, 'task or job')} left out".replace("jobs", "job")]
        found = (said if self.left_out else []) + ([BETTER] if self.better else [])
        return "; ".join(filter(None, [*found, "" if found else self.result.message]))

    def to_json(self) -> dict[str, Any]:
        """Its fields and gaps, with those of the result that a score needs."""
        one = self.result
        return {
            "instance": self.instance,
            "objective": one.objective,
            "unit": one.unit,
            "sense": one.sense,
            "best_known": self.best_known,
            "bound": self.bound,
            "gap_to_best": self.gap_to_best,
            "gap_to_bound": self.gap_to_bound,
            "left_out": self.left_out,
            "status": str(one.status),
            "message": one.message,
            "seconds": one.seconds,
        }


@dataclass(frozen=True, repr=False)
class Score(Answer):
    """A policy on all instances of its family, as a table with mean and worst gap.

    Parameters
    ----------
    policy: its name, with parameters.
    family: the family of the instances.
    rows: one for each instance, in the order of the library.
    """

    policy: str
    family: str
    rows: tuple[ScoreRow, ...]

    def gaps(self, key: str = "gap_to_best") -> list[float]:
        """The gaps that there are, ``gap_to_best`` or ``gap_to_bound``."""
        return [gap for row in self.rows if (gap := getattr(row, key)) is not None]

    @property
    def mean(self) -> float | None:
        """The mean gap to the best known solutions, over the instances that have a gap."""
        return fmean(self.gaps()) if self.gaps() else None

    @property
    def worst(self) -> float | None:
        """The largest gap to a best known solution."""
        return max(self.gaps(), default=None)

    @property
    def mean_to_bound(self) -> float | None:
        """The mean gap to the bounds."""
        found = self.gaps("gap_to_bound")
        return fmean(found) if found else None

    @property
    def seconds(self) -> float:
        """Wall time of the policy on all instances."""
        return sum(row.result.seconds for row in self.rows)

    @property
    def terminations(self) -> set[Termination]:
        """How the runs ended."""
        return {row.result.termination for row in self.rows}

    def to_json(self) -> dict[str, Any]:
        """JSON form, ``optgap.score/1``."""
        return {
            "schema": SCHEMA,
            "library": LIBRARY,
            "policy": self.policy,
            "family": self.family,
            "mean": self.mean,
            "worst": self.worst,
            "mean_to_bound": self.mean_to_bound,
            "scored": len(self.gaps()),
            "seconds": self.seconds,
            "rows": [row.to_json() for row in self.rows],
        }

    def to_frame(self) -> pd.DataFrame:
        """One line per instance."""
        import pandas as pd

        return pd.DataFrame([row.to_json() for row in self.rows])

    def head(self) -> list[str]:
        """The line that a paper can quote."""
        count = f"{len(self.gaps())} of {len(self.rows)} {self.family} instances of {LIBRARY}"
        if self.mean is None:
            return [f"{self.policy}: no gap on any, {count}"]
        gaps = f"mean gap {percent(self.mean)}, worst {percent(self.worst)}"
        return [
            f"{self.policy}: {gaps} on {count}, {percent(self.mean_to_bound)} from the bounds; "
            f"{duration(self.seconds)}"
        ]

    def table(self) -> Table:
        """Instance, objective, both gaps, time and notes."""
        header = ("", "objective", "gap to best known", "gap to bound", "time", "note")
        rows: list[Row] = [
            (
                row.instance,
                f"{number(row.result.objective)} {row.result.unit}",
                percent(row.gap_to_best),
                percent(row.gap_to_bound),
                duration(row.result.seconds),
                row.note,
            )
            for row in self.rows
        ]
        return header, rows, (1, 2, 3, 4)

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
    family: the family of its instances, which the name of a policy of a single family tells.
    instances: only those of these names.
    time_limit: wall-clock seconds on each instance for a policy of your own.

    Raises
    ------
    InputError: for an unknown policy, family or instance, or a policy whose family is open.
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
        left_out = 0
        if result.solution is not None and not serves(result):
            left_out = _left_out(problem, result.solution)
        rows.append(
            ScoreRow(name, result, known["best"]["value"], known["bound"]["value"], left_out)
        )
    return Score(label, spec.name, tuple(rows))


def _left_out(problem: Any, solution: Any) -> int:
    """How many tasks or jobs a solution does not serve."""
    try:
        return len(problem.subjects) - len(problem.restrict(solution).subjects)
    except InputError:  # nothing is served at all
        return len(problem.subjects)


def _home(policy: str | Callable[..., Any]) -> str:
    """The one family that has a policy of this name."""
    name = split_call(policy, "policy")[0] if isinstance(policy, str) else ""
    there = {
        spec.name: (*spec.policies, *installed_policies(spec.name)) for spec in FAMILIES.values()
    }
    homes = [key for key, names in there.items() if name in names]
    if len(homes) == 1:
        return homes[0]
    if not homes and name and ":" not in name:
        raise InputError(
            "--policy", "", name, one_of(sorted({n for ns in there.values() for n in ns}))
        )
    found = f"{name}, a policy of {' and '.join(homes)}" if homes else "a policy of your own"
    raise InputError(
        "--family", "", NoQuote(found), one_of(homes or FAMILIES, "its family, one of {}")
    )
