"""Evaluation: in go a run and a dataset, out comes a :class:`Report`; and tables, tests and files of several.

``measures`` scores a run, ``groups`` sorts questions, and ``report`` puts them beside chance and
what could be reached. ``confidence_intervals`` has every interval, ``significance`` every test and
verdict, ``comparison`` sets systems side by side, ``tables`` writes tables, ``report_files`` and
``trec`` make files, ``misses`` looks closer at what was missed. ``gold_facts`` and
``fact_measures`` measure extracted facts, ``changed_values`` those that have changed, and
``cited_evidence`` summaries. ``conclusions`` makes sentences of tables. What is not exported here is
imported from its module. Nothing here runs a pipeline, :mod:`memlab.explanation` does.

>>> import memlab
>>> memlab.evaluate.read_measure("recall_all@10")
recall_all@10
"""

from memlab.evaluate.comparison import compare_reports, cutoff_curve, results_table, stale_table
from memlab.evaluate.measures import Measure, kendall_tau, read_measure
from memlab.evaluate.misses import count_by_cause, misses
from memlab.evaluate.report import Report, evaluate
from memlab.evaluate.significance import verdicts
from memlab.evaluate.tables import Table, show_tables
from memlab.evaluate.trec import read_run

__all__ = [
    "Measure",
    "Report",
    "Table",
    "compare_reports",
    "count_by_cause",
    "cutoff_curve",
    "evaluate",
    "kendall_tau",
    "misses",
    "read_measure",
    "read_run",
    "results_table",
    "show_tables",
    "stale_table",
    "verdicts",
]  # fmt: skip
