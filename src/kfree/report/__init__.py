"""One page of HTML about a table and what kfree learns from it.

`held_out` is what a report needs from a classifier. `comparison` measures kfree beside simple
rivals, `importance` what each column is worth, `findings` gathers all numbers; `headline` and
`chapters` put them into words, pictures and tables, and `make` makes the page.
"""

from kfree.report.findings import Findings
from kfree.report.make import Report, make_report

__all__ = ["Findings", "Report", "make_report"]
