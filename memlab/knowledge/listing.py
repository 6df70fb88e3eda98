"""What the index made of the sessions of a scope, one kind at a time, in order of time."""

from __future__ import annotations

import polars as pl

from memlab.knowledge.recall import statements
from memlab.knowledge.supersession import Resolved

KINDS = {
    "summaries": ("summary", "evidence"), "topics": ("topics", None), "decisions": ("decisions", "decision_evidence"),
    "actions": ("action_items", "action_item_evidence"), "questions": ("open_questions", "open_question_evidence"),
    "entities": ("name", "evidence"), "timeline": ("", None),
}  # fmt: skip
"""Kinds, and the columns of summaries (entities: of entities) with their texts and the turns of each."""


def listed(kind: str, *, summaries: pl.DataFrame, entities: pl.DataFrame, resolved: Resolved | None) -> pl.DataFrame:
    """List one of :data:`KINDS`, the latest first.

    :param summaries: rows of :class:`memlab.records.Summary`; ``entities``: of :class:`memlab.records.Entity`.
    :param resolved: the facts; read for the timeline alone, which has summaries, facts and supersessions.
    :returns: ``at``, ``session_id``, ``type``, ``text`` and ``evidence`` (ids of turns).
    """
    if kind == "timeline":
        parts = [listed("summaries", summaries=summaries, entities=entities, resolved=None)]
        if resolved is not None:
            facts = resolved.facts.with_columns(text=statements(resolved.facts)).filter(pl.col("status") != "repeat")
            parts.append(_rows(facts, "fact", at="said_at", text="text"))
            over = pl.format("{} {}: {} → {} ({})", "subject", "predicate", "old_object", "new_object", "rule")
            sessions = resolved.facts.select("session_id", new="fact_id")
            log = resolved.log.join(sessions, on="new", how="left").with_columns(text=over)
            parts.append(_rows(log, "supersession", at="at", text="text"))
        rows = pl.concat(parts)
    elif kind == "entities":
        starts = summaries.select("session_id", "start")
        named = entities.join(starts, on="session_id", how="left", maintain_order="left").sort(
            "start", nulls_last=False
        )
        n, since = pl.col("session_id").n_unique(), pl.col("start").min().dt.date()
        rows = named.group_by("name", "type", maintain_order=True).agg(
            pl.col("session_id").last(), start=pl.col("start").max(), evidence=pl.col("evidence").explode().unique(),
            more=pl.when(n > 1).then(pl.format(", {} sessions since {}", n, since)).otherwise(pl.lit("")),
        )  # fmt: skip
        rows = rows.with_columns(text=pl.format("{} ({}){}", "name", "type", pl.col("more").fill_null("")))
        rows = _rows(rows, "entity", at="start", text="text")
    else:
        texts, evidence = KINDS[kind]
        rows = summaries.rename({texts: "text"})
        rows = rows.with_columns(evidence=pl.col(evidence) if evidence else pl.lit([], pl.List(pl.String)))
        if kind == "topics":
            rows = rows.with_columns(pl.col("text").list.join(", "))
        elif kind == "summaries":
            rows = rows.with_columns(pl.col("evidence").list.eval(pl.element().explode()))
        else:
            rows = rows.explode("text", "evidence")
        rows = _rows(rows.filter(pl.col("text").fill_null("") != ""), kind.rstrip("s"), at="start", text="text")
    return rows.sort("at", descending=True, nulls_last=True, maintain_order=True)


def _rows(rows: pl.DataFrame, kind: str, *, at: str, text: str) -> pl.DataFrame:
    return rows.select(pl.col(at).alias("at"), "session_id", pl.lit(kind).alias("type"), pl.col(text).alias("text"),
                       pl.col("evidence").fill_null([]))  # fmt: skip
