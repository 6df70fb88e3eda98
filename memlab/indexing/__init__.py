"""The index of finished sessions: summaries, entities and facts, made once a session is closed."""

from memlab.errors import explain_arguments
from memlab.indexing.index_reports import (
    HELD,
    earlier_facts_note,
    empty_reason,
    report_lines,
    resolved_facts,
)
from memlab.indexing.session_indexing import EXTRACTIVE, index

__all__ = [
    "EXTRACTIVE",
    "HELD",
    "earlier_facts_note",
    "empty_reason",
    "index",
    "report_lines",
    "resolved_facts",
]

explain_arguments(globals())
