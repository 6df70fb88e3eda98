"""Lists of the index of a scope, one kind at a time: summaries, topics, decisions, entities …"""

from __future__ import annotations

import polars as pl

from memlab.knowledge.fact_search import write_fact_sentences_or_statements
from memlab.knowledge.supersession import Resolved
from memlab.terminal_text import count_noun

KINDS = {
    "summaries": ("summary", "evidence"),
    "topics": ("topics", None),
    "decisions": ("decisions", "decision_evidence"),
    "actions": ("action_items", "action_item_evidence"),
    "questions": ("open_questions", "open_question_evidence"),
    "entities": ("name", "evidence"),
    "timeline": ("", None),
    "weeks": ("text", "evidence"),
    "months": ("text", "evidence"),
    "clusters": ("text", "evidence"),
}
"""Kinds, and the columns with their texts and the turns of each.

They are columns of summaries; for entities of entities; for weeks, months and clusters of the nodes
of trees.
"""
NODE_KINDS = {"weeks": "week", "months": "month", "clusters": "cluster"}
"""The kinds that are listed of the nodes of trees, and how nodes name them."""


def list_records(
    kind: str,
    *,
    summaries: pl.DataFrame,
    entities: pl.DataFrame,
    resolved: Resolved | None,
    nodes: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """List the records of one of :data:`KINDS`, the latest first.

    :param summaries: rows of :class:`memlab.records.Summary`; ``entities``: of
        :class:`memlab.records.Entity`.
    :param resolved: the facts; read for the timeline alone, which has summaries, facts and
        supersessions.
    :param nodes: rows of :class:`memlab.records.Node`; read for weeks, months and clusters alone,
        which have no session.
    :returns: ``at``, ``session_id``, ``type``, ``text`` and ``evidence`` (ids of turns).
    """
    if kind == "timeline" and resolved is not None:
        record_rows = pl.concat(
            [_list_texts_of_kind("summaries", summaries), *_list_facts_and_supersessions(resolved)]
        )
    elif kind in NODE_KINDS and nodes is not None:
        kind_nodes = nodes.filter(kind=NODE_KINDS[kind]).with_columns(
            session_id=pl.lit(None, pl.String)
        )
        record_rows = _list_texts_of_kind(kind, kind_nodes)
    elif kind == "entities":
        session_starts = summaries.select("session_id", at="start")
        record_rows = _list_distinct_entities(
            entities.join(session_starts, on="session_id", how="left", maintain_order="left")
        )
    else:
        record_rows = _list_texts_of_kind(kind, summaries)
    return record_rows.sort("at", descending=True, nulls_last=True, maintain_order=True)


def _list_facts_and_supersessions(resolved: Resolved) -> list[pl.DataFrame]:
    """List the facts, each where it was stated first, and what superseded what."""
    facts = resolved.facts.with_columns(text=write_fact_sentences_or_statements(resolved.facts))
    facts = facts.filter(pl.col("status") != "repeat")
    session_of_fact = resolved.facts.select("session_id", new="fact_id")
    supersession_log = resolved.log.join(
        session_of_fact, on="new", how="left", maintain_order="left"
    )
    log_columns = ("about", "slot", "old_value", "new_value", "rule")
    supersession_log = supersession_log.with_columns(
        text=pl.format("{}, {}: {} → {} ({})", *log_columns)
    )
    return [
        _select_listing_columns(facts, "fact", "said_at"),
        _select_listing_columns(supersession_log, "supersession"),
    ]


def _list_texts_of_kind(kind: str, summaries_or_nodes: pl.DataFrame) -> pl.DataFrame:
    text_column, evidence_column = KINDS[kind]
    cited_turns = (
        pl.lit([], pl.List(pl.String)) if evidence_column is None else pl.col(evidence_column)
    )
    text_rows = summaries_or_nodes.with_columns(text=text_column, evidence=cited_turns)
    if kind == "topics":
        text_rows = text_rows.with_columns(pl.col("text").list.join(", "))
    elif kind == "summaries" or kind in NODE_KINDS:
        text_rows = text_rows.with_columns(pl.col("evidence").list.eval(pl.element().explode()))
    else:
        text_rows = text_rows.explode("text", "evidence")
    written_rows = text_rows.filter(pl.col("text").fill_null("") != "")
    return _select_listing_columns(written_rows, count_noun(1, kind)[2:], "start")


def _list_distinct_entities(dated_entities: pl.DataFrame) -> pl.DataFrame:
    """Give each entity once, with its last session and the day of its first."""
    n_sessions = pl.col("session_id").n_unique()
    first_day = pl.col("at").min().dt.date()
    sessions_since = pl.when(n_sessions > 1).then(
        pl.format(", {} sessions since {}", n_sessions, first_day)
    )
    oldest_first = dated_entities.sort("at", nulls_last=False, maintain_order=True)
    entity_rows = oldest_first.group_by("name", "type", maintain_order=True).agg(
        pl.col("session_id").last(),
        pl.col("at").max(),
        pl.col("evidence").explode().unique(),
        more=sessions_since.otherwise(pl.lit("")),
    )
    text = pl.format("{} ({}){}", "name", "type", pl.col("more").fill_null(""))
    return _select_listing_columns(entity_rows.with_columns(text=text), "entity")


def _select_listing_columns(
    text_rows: pl.DataFrame, record_type: str, time_column: str = "at"
) -> pl.DataFrame:
    evidence = pl.col("evidence").fill_null([])
    return text_rows.select(
        pl.col(time_column).alias("at"),
        "session_id",
        pl.lit(record_type).alias("type"),
        "text",
        evidence,
    )
