"""Self-contained page of HTML from any result files.

>>> import optgap
>>> optgap.report(["gaps.json", "runs.csv"], "report.html")  # doctest: +SKIP
"""

from optgap.reporting.page import Page, Section, make, report

__all__ = ["Page", "Section", "make", "report"]
