"""Execution of the notebooks, and the HTML pages of their results.

``execution`` runs them, ``html_page`` writes the executed ones as HTML and the page of all results.
"""

from __future__ import annotations

from memlab.notebooks.execution import run_notebooks
from memlab.notebooks.html_page import findings, notebook_dataset, write_results_page

__all__ = ["findings", "notebook_dataset", "run_notebooks", "write_results_page"]
