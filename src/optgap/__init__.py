"""optgap: how far is a GPU-cluster scheduler from optimal?

>>> import optgap
>>> problem = optgap.generate("coscheduling", size=4)
>>> round(optgap.compare(problem, "marble").gap, 6)
0.0

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optgap.api import Verdict, bound, check, run, solve
    from optgap.auditing import Audit, audit
    from optgap.best_known import library
    from optgap.comparing.comparison import Comparison, ComparisonSet
    from optgap.comparing.gaps import sweep
    from optgap.comparing.overview import Overview, compare_all
    from optgap.comparing.uncertain import UncertainComparison, compare
    from optgap.contract import Problem
    from optgap.documents import load, save
    from optgap.exchange.export import export, formulation
    from optgap.exchange.reading import read_solution
    from optgap.explaining import Explanation, explain
    from optgap.explaining.conflicts import Conflict, conflict
    from optgap.fitting.readers import read_profile
    from optgap.fitting.report import FitReport
    from optgap.fitting.workflow import fit
    from optgap.listing import families, methods, policies, presets
    from optgap.making import generate, problem
    from optgap.models.errors import InputError, RefereeError
    from optgap.models.limits import Limits
    from optgap.models.result import Result, Status, Termination
    from optgap.reporting import report
    from optgap.scoring import Score, score
    from optgap.versions import show_versions
    from optgap.views import plot_solution

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Comparison",
    "ComparisonSet",
    "Conflict",
    "Explanation",
    "FitReport",
    "InputError",
    "Limits",
    "Overview",
    "Problem",
    "RefereeError",
    "Result",
    "Score",
    "Status",
    "Termination",
    "UncertainComparison",
    "Verdict",
    "__version__",
    "audit",
    "bound",
    "check",
    "compare",
    "compare_all",
    "conflict",
    "explain",
    "export",
    "families",
    "fit",
    "formulation",
    "generate",
    "library",
    "load",
    "methods",
    "plot_solution",
    "policies",
    "presets",
    "problem",
    "read_profile",
    "read_solution",
    "report",
    "run",
    "save",
    "score",
    "show_versions",
    "solve",
    "sweep",
]

_HOME = {
    name: module
    for module, names in {
        "api": "Verdict bound check run solve",
        "auditing": "Audit audit",
        "best_known": "library",
        "comparing.comparison": "Comparison ComparisonSet",
        "comparing.gaps": "sweep",
        "comparing.overview": "Overview compare_all",
        "comparing.uncertain": "UncertainComparison compare",
        "contract": "Problem",
        "documents": "load save",
        "exchange.export": "export formulation",
        "exchange.reading": "read_solution",
        "explaining": "Explanation explain",
        "explaining.conflicts": "Conflict conflict",
        "fitting.readers": "read_profile",
        "fitting.report": "FitReport",
        "fitting.workflow": "fit",
        "listing": "families methods policies presets",
        "making": "generate problem",
        "models.errors": "InputError RefereeError",
        "models.limits": "Limits",
        "models.result": "Result Status Termination",
        "reporting": "report",
        "scoring": "Score score",
        "versions": "show_versions",
        "views": "plot_solution",
    }.items()
    for name in names.split()
}
"""Module of each name in `__all__`."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'optgap' has no attribute {name!r}")
    value = getattr(import_module(f"optgap.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
