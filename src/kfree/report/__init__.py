"""One page of HTML about a table and what kfree learns from it.

`comparison` measures kfree beside simple rivals, `findings` gathers all numbers, `chapters` puts
them into words, tables and pictures, and `make` makes the page.
"""

from kfree.report.findings import Findings
from kfree.report.make import Report, make_report

__all__ = ["Findings", "Report", "make_report"]
