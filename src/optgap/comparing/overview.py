"""Overview of every family on its default preset: gap tables and one picture."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from optgap.api import require_effort, require_time_limit
from optgap.comparing.comparison import Comparison
from optgap.comparing.gaps import compare
from optgap.making import generate
from optgap.models.figures import delivered
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.models.spec import imported
from optgap.processes import side_by_side
from optgap.progress import in_notebook
from optgap.registry import families, family
from optgap.render import filled
from optgap.versions import versions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMA = "optgap.overview/1"
FIRST = ("placement", "elastic", "queueing")
"""Families with the most work, which start first."""


@dataclass(frozen=True, repr=False)
class Overview:
    """Comparisons of all families on their default presets.

    Parameters
    ----------
    comparisons: in the order of the registry; families that failed are left out.
    failures: error messages, by family.
    seconds: wall time of all comparisons.
    termination: whether the whole was interrupted, or stopped by a limit that the caller set.

    Examples
    --------
    >>> overview = optgap.compare_all(["coscheduling"])
    >>> round(overview.comparison("coscheduling").row("marble").gap_to_bound, 3), overview.failures
    (0.179, {})
    """

    comparisons: tuple[Comparison, ...]
    failures: Mapping[str, str]
    seconds: float
    termination: Termination = Termination.COMPLETED

    def comparison(self, family: str) -> Comparison:
        """Return the comparison of this family; raise KeyError if there is none."""
        for comparison in self.comparisons:
            if comparison.family == family:
                return comparison
        raise KeyError(family)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.overview/1``; ``families`` are ``optgap.compare/1``."""
        return {
            "schema": SCHEMA,
            "seconds": self.seconds,
            "termination": str(self.termination),
            "failures": dict(self.failures),
            "versions": versions(),
            "families": [comparison.to_json() for comparison in self.comparisons],
        }

    def __str__(self) -> str:
        blocks = [*map(titled, self.comparisons), filled(self.notes())]
        return "\n\n".join(filter(None, blocks))

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{c.family}</h4>{c._repr_html_()}" for c in self.comparisons)

    def to_frame(self, full: bool = False) -> pd.DataFrame:
        """Return the frames of all comparisons, indexed by family and by name.

        Parameters
        ----------
        full
            As for `Comparison.to_frame`.
        """
        import pandas as pd

        frames = {c.family: c.to_frame(full) for c in self.comparisons}
        return pd.concat(frames, names=["family", "name"])

    def __repr__(self) -> str:
        return f"<Overview {', '.join(c.family for c in self.comparisons)}: {self.seconds:.0f} s>"

    def notes(self) -> list[str]:
        """Return a line for each family that failed."""
        return [f"{name}: {message}" for name, message in self.failures.items()]

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Return a picture with a panel for each family, and write it to `path`.

        Parameters
        ----------
        path
            A file that ends in .png, .svg or .pdf. Default: none is written.

        Raises
        ------
        InputError
            For another ending, or a place that cannot be written to.
        """
        figure: Figure = imported("optgap.plotting.gaps:overview_figure")(self.comparisons)
        return delivered(figure, path)


def compare_all(
    names: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    processes: int | None = None,
    limits: Limits | None = None,
) -> Overview:
    """Compare every family's policies on its default preset, families side by side.

    Parameters
    ----------
    names
        The families. Default: all.
    time_limit
        Wall-clock seconds after which each single method is cut. Default: none.
    effort
        Factor by which all budgets of work are multiplied. Default 1.
    seed
        Seed of the random number generator. Default 0.
    processes
        Number of families that are compared at a time. Default: one for each core.
    limits
        Limits that can be interrupted and report progress. Default: show progress in a notebook.

    Returns
    -------
    Overview
        A comparison for each family, with `to_frame` and `plot`.

    Raises
    ------
    InputError
        For an unknown family. The failure of one family is told and does not stop the others.

    Examples
    --------
    >>> import optgap
    >>> list(optgap.compare_all(["coscheduling"]).to_frame().loc["coscheduling"].index[:2])
    ['oracle', 'exact-window']
    """
    limits = limits or Limits(progress=in_notebook)
    begun = time.monotonic()
    wanted = [names] if isinstance(names, str) else list(families() if names is None else names)
    for name in wanted:
        family(name)
    require_time_limit(time_limit)
    require_effort(effort)
    order = sorted(wanted, key=lambda name: name not in FIRST)
    asked = {"time_limit": time_limit, "effort": effort, "seed": seed}
    works = [partial(_compared, n, f"{n} {order.index(n) + 1}/{len(order)}", asked) for n in order]
    found = {order[k]: one for k, one in side_by_side(works, limits, processes=processes)}
    outcomes = {name: found[name] for name in wanted}
    done = tuple(o.answer for o in outcomes.values() if o.answer is not None)
    errors = {name: o.error for name, o in outcomes.items() if o.error is not None}
    return Overview(
        done,
        {name: f"{type(error).__name__}: {error}" for name, error in errors.items()},
        time.monotonic() - begun,
        _termination(limits, done, time_limit),
    )


def _compared(name: str, label: str, asked: Mapping[str, Any], limits: Limits) -> Comparison:
    problem = generate(name, seed=asked["seed"])
    return compare(problem, methods=family(name).overview, limits=limits.part(label), **asked)


def _termination(
    limits: Limits, done: Sequence[Comparison], time_limit: float | None
) -> Termination:
    if limits.interrupted.is_set():
        return Termination.INTERRUPTED
    if time_limit is not None and any(c.termination is Termination.TIME_LIMIT for c in done):
        return Termination.TIME_LIMIT
    return Termination.COMPLETED


def titled(comparison: Comparison) -> str:
    """Return the table of one family under the family's name, with its notes."""
    return f"{comparison.family}\n{comparison}"
