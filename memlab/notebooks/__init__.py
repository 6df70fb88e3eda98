"""Execution of the notebooks, and the HTML pages of their results.

``running`` executes them and makes a figure again from its sidecar, ``page`` writes the executed ones as HTML and the
page of all results.
"""

from __future__ import annotations

from memlab.notebooks.page import findings, results_page
from memlab.notebooks.running import remake, run_notebooks

__all__ = ["findings", "remake", "results_page", "run_notebooks"]
