"""The shapes that conversations, questions and rankings have everywhere in memlab.

A row type is a frozen dataclass that documents its columns once; many rows are one polars frame
with the schema that :func:`schema` reads off the dataclass. Ids are strings and opaque to every
scorer.

========  ==========================  ==============================================================
row       id                          example
========  ==========================  ==============================================================
turn      ``<scope>/<session>/<n>``   ``conv-26/session_1/3``; in a chat log ``<scope>/<message>``
session   ``<scope>/<session>``       ``conv-26/session_1``
question  ``<scope>/q<i>`` or native  ``conv-26/q0``
========  ==========================  ==============================================================
"""

from memlab.errors import explain_arguments
from memlab.records.dataset import (
    TIMESTAMP,
    Annotation,
    Dataset,
    Issue,
    Question,
    Session,
    Turn,
    concat,
    decode_id_part,
    encode_id_part,
    frame,
    resolve_scope_name,
    schema,
)
from memlab.records.facts import Entity, Fact, IndexEvent, IndexState, Node, Summary
from memlab.records.rankings import (
    LEVELS,
    RUN_SCHEMA,
    Level,
    Qrels,
    Run,
    make_strictly_decreasing,
    qrels,
    run_from_scores,
    session_id_expr,
    top_columns,
)

__all__ = [
    "LEVELS",
    "RUN_SCHEMA",
    "TIMESTAMP",
    "Annotation",
    "Dataset",
    "Entity",
    "Fact",
    "IndexEvent",
    "IndexState",
    "Issue",
    "Level",
    "Node",
    "Qrels",
    "Question",
    "Run",
    "Session",
    "Summary",
    "Turn",
    "concat",
    "decode_id_part",
    "encode_id_part",
    "frame",
    "make_strictly_decreasing",
    "qrels",
    "resolve_scope_name",
    "run_from_scores",
    "schema",
    "session_id_expr",
    "top_columns",
]

explain_arguments(globals())
