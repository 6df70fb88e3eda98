"""Execution of the notebooks, and the HTML pages of their results.

``shipped_notebooks`` puts them where somebody works, ``notebook_execution`` runs them,
``executed_notebook`` reads what one found, ``notebook_pages`` writes it as a page (its charts:
``charts_on_pages``), and ``results_page`` writes the page of all results.
"""

from __future__ import annotations

from memlab.errors import require_extra

# What is not installed is named before figures are missed, which are a part of it.
with require_extra("lab", "running notebooks"):
    import papermill  # noqa: F401

from memlab.notebooks.executed_notebook import findings, notebook_dataset
from memlab.notebooks.notebook_execution import run_notebooks
from memlab.notebooks.results_page import write_results_page
from memlab.notebooks.shipped_notebooks import copy_shipped_notebooks

__all__ = [
    "copy_shipped_notebooks",
    "findings",
    "notebook_dataset",
    "run_notebooks",
    "write_results_page",
]
