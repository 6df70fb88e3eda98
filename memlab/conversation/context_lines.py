"""Lines that may enter the context of a question: messages, summaries, facts and rollups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.turn_texts import turn_text_expr
from memlab.errors import DataError
from memlab.records import TIMESTAMP, Run
from memlab.retrieve import Bench
from memlab.text.date_expressions import annotate_dates, format_day

LINE_SCHEMA = pl.Schema(
    {
        "query_id": pl.String(),
        "source": pl.String(),
        "ref": pl.String(),
        "head": pl.String(),
        "text": pl.String(),
        "turns": pl.List(pl.String()),
        "at": TIMESTAMP,
        "confidence": pl.Float64(),
    }
)
"""The columns of a line.

The question; its source, a key of :data:`memlab.conversation.contexts.TITLES`; id of the turn,
session, fact or node; the heading that it stands under; the line itself; the turns that it stands
on; when it was said; how sure it is.
"""

LineRow = tuple[Any, ...]
"""The values of a line, in the order of :data:`LINE_SCHEMA`."""

NODE_KINDS = ("cluster", "week", "month")
"""Kinds of nodes of rollups that are read."""

# The most lines of each source for a question; of summaries and rollups the most documents.
MAX_RELEVANT = 100
MAX_RECENT = 6
MAX_FACTS = 20
MAX_SUMMARIES = 3
MAX_ROLLUPS = 2
MAX_TOPICS = 4


def gather_lines(
    run: Run,
    bench: Bench,
    *,
    recent: pl.DataFrame | None = None,
    summaries: pl.DataFrame | None = None,
    facts: pl.DataFrame | None = None,
    rollups: pl.DataFrame | None = None,
    dates: bool = True,
) -> pl.DataFrame:
    """Gather the lines that may enter the context of each question, the most relevant first.

    :param run: a ranking of turns.
    :param recent: ``query_id`` and rows of :class:`memlab.records.Turn`: the conversation in which
        it is asked.
    :param summaries: rows of :class:`memlab.records.Summary`.
    :param facts: resolved facts with their confidence at the time of reading.
    :param rollups: rows of :class:`memlab.records.Node`; those over several sessions are read.
    :param dates: write the date behind words that only mean it: "yesterday (7 May 2023)".
    :returns: rows of :data:`LINE_SCHEMA`.
    :raises DataError: for a ranking of sessions, or with summaries, facts or rollups when the bench
        has no encoder.

    >>> from memlab import conversation, datasets, retrieve
    >>> data = datasets.load("data/sample/sample.jsonl")
    >>> bench = retrieve.Bench.of(data, encoder=None)
    >>> lines = conversation.gather_lines(retrieve.bm25(bench, k=3), bench)
    >>> lines["source"].unique().to_list(), lines["at"].null_count()
    (['relevant'], 0)
    """
    if run.level != "turn":
        raise DataError(
            "a context quotes messages, and this run ranks sessions; give a run of turns"
        )
    ranked_turns = run.top(MAX_RELEVANT).frame.select("query_id", turn_id="doc_id")
    relevant_turns = ranked_turns.join(bench.turns, on="turn_id", maintain_order="left")
    line_tables = [write_turns_as_lines(relevant_turns, "relevant", dates=dates)]
    if recent is not None:
        newest_turns = recent.reverse().group_by("query_id", maintain_order=True).head(MAX_RECENT)
        line_tables.append(write_turns_as_lines(newest_turns, "recent", dates=False))
    if summaries is not None:
        sessions = summaries.rename({"session_id": "ref"})
        line_tables.append(_lines_of_similar_summaries(bench, sessions, "summaries", MAX_SUMMARIES))
    if rollups is not None:
        rollup_nodes = rollups.filter(pl.col("kind").is_in(NODE_KINDS)).rename({"node_id": "ref"})
        line_tables.append(_lines_of_similar_summaries(bench, rollup_nodes, "rollups", MAX_ROLLUPS))
    if facts is not None:
        line_tables.append(_lines_of_relevant_facts(bench, facts))
    return pl.concat(line_tables)


def write_turns_as_lines(turns: pl.DataFrame, source: str, *, dates: bool) -> pl.DataFrame:
    """Write turns, each with its ``query_id``, as lines of a context.

    A line is the speaker and the text, under the day.
    """
    turn_rows = turns.select(
        "query_id", "turn_id", text=turn_text_expr(), at=pl.col("timestamp").cast(TIMESTAMP)
    )
    line_heads = []
    line_texts = []
    for text, moment in turn_rows.select("text", "at").iter_rows():
        if moment is None:
            line_heads.append("")
            line_texts.append(text)
            continue
        line_heads.append(f"[{format_day(moment)}]")
        line_texts.append(annotate_dates(text, moment.date()) if dates else text)
    line_rows = turn_rows.with_columns(
        text=pl.Series(line_texts, dtype=pl.String),
        head=pl.Series(line_heads, dtype=pl.String),
        source=pl.lit(source),
        ref="turn_id",
        turns=pl.concat_list("turn_id"),
        confidence=pl.lit(None),
    )
    return line_rows.select(LINE_SCHEMA.names()).cast(LINE_SCHEMA)


def _lines_of_similar_summaries(
    bench: Bench, summary_rows: pl.DataFrame, source: str, max_summaries: int
) -> pl.DataFrame:
    """Write the sentences of the summaries most similar to each question as lines."""
    question_vectors = bench.query_vectors
    if question_vectors is None:
        raise DataError(f"{source} are found by similarity: make the bench with an encoder")
    summary_texts = summary_rows["sentences"].list.join(" ").to_list()
    summary_vectors = bench.embedder().encode(summary_texts, kind="document", progress=False)
    summary_scopes = summary_rows["scope"].to_numpy()

    line_rows: list[LineRow] = []
    questions = bench.queries.select("query_id", "scope").iter_rows()
    for (query_id, scope), question_vector in zip(questions, question_vectors, strict=True):
        in_scope = np.flatnonzero(summary_scopes == scope)
        similarity = summary_vectors[in_scope] @ question_vector
        most_similar = in_scope[np.argsort(-similarity, kind="stable")[:max_summaries]]
        for summary_place in most_similar.tolist():
            summary = summary_rows.row(summary_place, named=True)
            line_rows += _line_rows_of_summary(summary, query_id, source)
    return pl.DataFrame(line_rows, LINE_SCHEMA, orient="row")


def _line_rows_of_summary(
    summary_row: dict[str, Any], query_id: str, source: str
) -> Iterator[LineRow]:
    """Write each sentence of a summary as a row of :data:`LINE_SCHEMA`."""
    summary_head = _heading_of_summary_or_empty(summary_row)
    for text, turns in zip(summary_row["sentences"], summary_row["evidence"], strict=True):
        yield (
            query_id,
            source,
            summary_row["ref"],
            summary_head,
            text,
            turns,
            summary_row["start"],
            None,
        )


def _heading_of_summary_or_empty(summary_row: dict[str, Any]) -> str:
    """Write the heading of a summary: its first and last day, and its topics."""
    moments = [summary_row["start"], summary_row["end"]]
    day_texts = dict.fromkeys(format_day(moment) for moment in moments if moment is not None)
    topics = summary_row["topics"] or []
    head_parts = [" to ".join(day_texts), ", ".join(topics[:MAX_TOPICS])]
    head_text = " | ".join(filter(None, head_parts))
    if not head_text:
        return ""
    return f"[{head_text}]"


def _lines_of_relevant_facts(bench: Bench, facts: pl.DataFrame) -> pl.DataFrame:
    """Write the facts that rank first for each question as lines."""
    from memlab.knowledge.fact_search import search_facts, write_fact_sentences_or_statements

    questions = bench.queries.select("query_id", "scope", "text")
    fact_hits = search_facts(questions, facts, encoder=bench.embedder(), k=MAX_FACTS)
    ranked_facts = fact_hits.select("query_id", "rank", "fact_id")
    fact_rows = ranked_facts.join(facts, on="fact_id", maintain_order="left")
    line_rows = fact_rows.with_columns(
        ref="fact_id",
        text=write_fact_sentences_or_statements(fact_rows),
        turns="evidence",
        at="asserted_at",
        source=pl.lit("facts"),
        head=pl.lit(""),
    )
    return line_rows.select(LINE_SCHEMA.names()).cast(LINE_SCHEMA)
