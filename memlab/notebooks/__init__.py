"""Execution of the notebooks, and the HTML pages of their results.

``execution`` runs them and makes a figure again from its sidecar, ``html_page`` writes the executed ones as HTML and
the page of all results.
"""

from __future__ import annotations

from memlab.notebooks.execution import remake, run_notebooks
from memlab.notebooks.html_page import findings, results_page

__all__ = ["findings", "remake", "results_page", "run_notebooks"]
