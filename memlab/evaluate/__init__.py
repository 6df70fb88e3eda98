"""Evaluation: in go a run and a dataset, out comes a :class:`Report`, and tables, tests and files of several.

``measures`` scores a run, ``bounds`` says what chance and a perfect ranking would reach, ``groups`` sorts questions,
``report`` puts them together. ``significance`` has every interval and test, ``comparison`` sets systems side by side,
``printing`` writes tables down, ``publish`` and ``trec`` make files. ``why``, ``misses``, ``stale`` and ``views`` look
closer: at one question, at what was missed, at what must not come back, at curves; ``orders`` at orders of events.
``gold`` and ``knowledge`` measure extracted facts.

>>> import memlab
>>> memlab.evaluate.recall_all @ 10
recall_all@10
"""

from memlab.evaluate.bounds import ceiling, chance
from memlab.evaluate.comparison import compare, groups_table, results_table
from memlab.evaluate.groups import MULTI_SESSION, describe_questions, hard_group
from memlab.evaluate.measures import (
    DEFAULT_MEASURES,
    Judged,
    Measure,
    alpha_ndcg,
    f1,
    measure,
    mrr,
    ndcg,
    ndcg_longmemeval,
    precision,
    precision_returned,
    recall,
    recall_all,
    recall_any,
    score,
)
from memlab.evaluate.misses import CAUSES, by_cause, misses
from memlab.evaluate.orders import kendall_tau
from memlab.evaluate.printing import Table, short_names, show_tables, titled, to_html, to_latex, to_markdown
from memlab.evaluate.publish import file_names, latex_tables, main_tables, report_tables, write_files, write_reports
from memlab.evaluate.report import GROUPS, Report, evaluate
from memlab.evaluate.significance import (
    ENOUGH_SCOPES,
    against_null,
    bootstrap_interval,
    detectable,
    equivalence,
    holm,
    paired,
    randomisation_test,
    verdicts,
    wilson,
)
from memlab.evaluate.stale import stale_table
from memlab.evaluate.trec import read_qrels, read_run, write_qrels, write_run
from memlab.evaluate.views import curve, dissect, independent_hits
from memlab.evaluate.why import Explanation, explain

__all__ = [
    "CAUSES", "DEFAULT_MEASURES", "ENOUGH_SCOPES", "GROUPS", "MULTI_SESSION", "Explanation", "Judged", "Measure",
    "Report", "Table", "against_null", "alpha_ndcg", "bootstrap_interval", "by_cause", "ceiling", "chance", "compare",
    "curve", "describe_questions", "detectable", "dissect", "equivalence", "evaluate", "explain", "f1", "file_names",
    "groups_table", "hard_group", "holm", "independent_hits", "kendall_tau", "latex_tables", "main_tables", "measure",
    "misses", "mrr", "ndcg", "ndcg_longmemeval", "paired", "precision", "precision_returned", "randomisation_test",
    "read_qrels", "read_run", "recall", "recall_all", "recall_any", "report_tables", "results_table", "score",
    "short_names", "show_tables", "stale_table", "titled", "to_html", "to_latex", "to_markdown", "verdicts", "wilson",
    "write_files", "write_qrels", "write_reports", "write_run",
]  # fmt: skip
