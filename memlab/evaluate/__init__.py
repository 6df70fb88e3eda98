"""Evaluation: in go a run and a dataset, out comes a :class:`Report`.

And tables, tests and files of several.

``measures`` scores a run, ``groups`` sorts questions, and ``report`` puts them beside chance and
what could be reached. ``confidence_intervals`` has every interval, ``significance`` every test and
verdict, ``comparison`` sets systems side by side, ``tables`` writes tables, ``report_files`` and
``trec`` make files, ``misses`` looks closer at what was missed. ``conclusions`` makes sentences of
tables. What is not exported here is imported from its module. Nothing here runs a pipeline,
:mod:`memlab.explanation` does.

Extracted facts are measured by ``fact_measures``, those that have changed by ``changed_values``,
and summaries by ``cited_evidence``. ``gold_facts`` reads the annotations of a chat, its
``gold_entries``; these are compared with facts by their ``row_words`` and ``row_polarity``, and by
their ``entry_owner``. ``known_chats`` gives what is known of each chat. By ``fact_verdicts``, and
what readers said (``reader_verdicts``), a fact becomes one of the ``fact_outcomes``.

>>> import memlab
>>> memlab.evaluate.read_measure("recall_all@10")
recall_all@10
"""

from memlab.errors import explain_arguments
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
]

explain_arguments(globals())
