"""Execution of the notebooks, and the HTML pages of their results.

``shipped`` puts them where somebody works, ``execution`` runs them, ``executed`` reads what one
found, ``html_page`` writes it as a page (its charts: ``page_charts``), and ``results_page`` writes
the page of all results.
"""

from __future__ import annotations

from memlab.errors import require_extra

# What is not installed is named before figures are missed, which are a part of it.
with require_extra("lab", "running notebooks"):
    import papermill  # noqa: F401

from memlab.notebooks.executed import findings, notebook_dataset
from memlab.notebooks.execution import run_notebooks
from memlab.notebooks.results_page import write_results_page
from memlab.notebooks.shipped import copy_shipped_notebooks

__all__ = [
    "copy_shipped_notebooks",
    "findings",
    "notebook_dataset",
    "run_notebooks",
    "write_results_page",
]
