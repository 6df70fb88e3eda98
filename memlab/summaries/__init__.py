"""Summaries of sessions, weeks, months and clusters of turns, and retrieval through them.

``period_rollups`` summarises sessions, weeks and months, ``raptor_trees`` clusters of turns, layer
by layer. ``stored_trees`` keeps them in a store and makes anew what changed, ``tree_pages`` writes
them as pages. ``summary_prompts`` has the requests and the check of citations, ``summary_rows``
asks a model and makes the rows, and ``extractive_summaries`` picks sentences where it does not
answer. ``tree`` searches through them, and ``second_keys`` finds turns by them.
"""

from memlab.errors import explain_arguments
from memlab.summaries.period_rollups import (
    period_name,
    rollup,
    summarize_period,
    summarize_sessions,
    to_markdown,
)
from memlab.summaries.raptor_trees import GROUPS, Tree, build_raptor_tree
from memlab.summaries.second_keys import second_keys
from memlab.summaries.summary_rows import EXTRACTIVE, fallback_note
from memlab.summaries.tree_retrieval import nearest_summaries, summary_tree, tree

__all__ = [
    "EXTRACTIVE",
    "GROUPS",
    "Tree",
    "build_raptor_tree",
    "fallback_note",
    "nearest_summaries",
    "period_name",
    "rollup",
    "second_keys",
    "summarize_period",
    "summarize_sessions",
    "summary_tree",
    "to_markdown",
    "tree",
]

explain_arguments(globals())
