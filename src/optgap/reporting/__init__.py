"""One page of HTML from any result files, which needs nothing but itself.

>>> import optgap
>>> optgap.report(["gaps.json", "runs.parquet"], "report.html")  # doctest: +SKIP
"""

from optgap.reporting.page import Page, make, report

__all__ = ["Page", "make", "report"]
