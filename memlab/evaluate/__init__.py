"""Evaluation: in go a run and a dataset, out comes a :class:`Report`, and tables, tests and files of several.

``measures`` scores a run, ``bounds`` says what chance and a perfect ranking would reach, ``groups`` sorts questions,
``report`` puts them together. ``significance`` tests, ``comparison`` sets systems side by side, ``power`` judges what
that shows, ``printing`` writes tables down, ``publish`` and ``trec`` make files. ``views``, ``misses``, ``why``,
``exchange`` and ``kept`` look closer: at curves, at what was missed and why, at what a selection exchanged, at what a
budget left over; ``abstaining`` at which questions had better not be answered.

>>> import memlab
>>> memlab.evaluate.recall_all @ 10
recall_all@10
"""

from memlab.evaluate.abstaining import Abstention, abstention, risk_coverage, score_signals
from memlab.evaluate.bounds import ceiling, chance
from memlab.evaluate.comparison import Comparison, climb, compare, groups_table, results_table
from memlab.evaluate.groups import MULTI_SESSION, describe_questions
from memlab.evaluate.measures import (
    DEFAULT_MEASURES,
    Judged,
    Measure,
    alpha_ndcg,
    measure,
    mrr,
    ndcg,
    ndcg_longmemeval,
    precision,
    recall,
    recall_all,
    recall_any,
    score,
)
from memlab.evaluate.misses import CAUSES, by_cause, misses
from memlab.evaluate.power import count_verdicts, detectable, equivalence, least_agreeing, seen_from, verdicts
from memlab.evaluate.printing import show_tables, to_latex, to_markdown
from memlab.evaluate.publish import file_names, write_reports
from memlab.evaluate.report import GROUPS, Report, evaluate
from memlab.evaluate.significance import ENOUGH_SCOPES, against_null, bootstrap_interval, holm, randomisation_test
from memlab.evaluate.stale import stale_table
from memlab.evaluate.trec import read_qrels, read_run, write_qrels, write_run
from memlab.evaluate.views import curve, dissect, hard_group, independent_hits
from memlab.evaluate.why import Explanation, explain
from memlab.language.questions import FORMS, aggregation, question_form

__all__ = [
    "CAUSES", "DEFAULT_MEASURES", "ENOUGH_SCOPES", "FORMS", "GROUPS", "MULTI_SESSION", "Abstention", "Comparison",
    "Explanation", "Judged", "Measure", "Report", "abstention", "against_null", "aggregation", "alpha_ndcg",
    "bootstrap_interval", "by_cause", "ceiling", "chance", "climb", "compare", "count_verdicts", "curve",
    "describe_questions", "detectable", "dissect", "equivalence", "evaluate", "explain", "file_names",
    "groups_table", "hard_group", "holm", "independent_hits", "least_agreeing", "measure", "misses", "mrr", "ndcg",
    "ndcg_longmemeval", "precision", "question_form", "randomisation_test", "read_qrels", "read_run", "recall",
    "recall_all", "recall_any", "results_table", "risk_coverage", "score", "score_signals", "seen_from",
    "show_tables", "stale_table", "to_latex", "to_markdown", "verdicts", "write_qrels", "write_reports",
    "write_run",
]  # fmt: skip
