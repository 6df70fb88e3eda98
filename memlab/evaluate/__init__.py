"""Evaluation: in go a run and a dataset, out comes a :class:`Report`.

And tables, tests and files of several.

``ranking_measures`` scores a run, ``groups_of_questions`` sorts questions, and
``evaluation_report`` puts them beside chance and what could be reached. ``confidence_intervals``
has every interval, ``significance_tests`` every test and verdict, ``system_comparison`` sets
systems side by side, ``printed_tables`` writes tables, ``report_files`` and ``trec_files`` make
files, ``causes_of_misses`` looks closer at what was missed. ``conclusions`` makes sentences of
tables. What is not exported here is imported from its module. Nothing here runs a pipeline,
:mod:`memlab.explanation` does.

Extracted facts are measured by ``knowledge_scores``, those that have changed by ``changed_values``,
and summaries by ``cited_evidence``. ``gold_facts`` reads the annotations of a chat, its
``gold_entries``; these are compared with facts by their ``fact_words`` and ``fact_polarity``, and
by their ``gold_entry_owner``. ``annotated_chats`` gives what is known of each chat. By
``fact_verdicts``, and what readers said (``reader_verdicts``), a fact becomes one of the
``fact_outcomes``.

>>> import memlab
>>> memlab.evaluate.read_measure("recall_all@10")
recall_all@10
"""

from memlab.errors import explain_arguments
from memlab.evaluate.causes_of_misses import count_by_cause, misses
from memlab.evaluate.evaluation_report import Report, evaluate
from memlab.evaluate.printed_tables import Table, show_tables
from memlab.evaluate.ranking_measures import Measure, kendall_tau, read_measure
from memlab.evaluate.significance_tests import verdicts
from memlab.evaluate.system_comparison import (
    compare_reports,
    cutoff_curve,
    results_table,
    stale_table,
)
from memlab.evaluate.trec_files import read_run

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
]

explain_arguments(globals())
