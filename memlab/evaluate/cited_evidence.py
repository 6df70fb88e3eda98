"""How much of the evidence a set of summaries still cites, beside how much of all turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.evaluate.confidence_intervals import Unit, mean_intervals, scopes_if_they_are_the_unit
from memlab.question_source_labels import COLUMN
from memlab.records import Dataset, qrels
from memlab.records.dataset import describe_question_sources_or_empty


def cited_shares_by_summary_kind(
    nodes: pl.DataFrame, dataset: Dataset, *, unit: Unit = "auto"
) -> pl.DataFrame:
    """Give the share of questions whose every evidence item is cited, and of turns that are, by
    kind.

    A summary that cites every turn keeps all evidence and condenses nothing, so the two stand
    beside each other. The turns are all there are, so their share has no interval.

    :param nodes: summaries with ``kind``, ``scope`` and ``evidence``, the turns that each sentence
        stands on. Of each kind only the scopes count that have such summaries.
    :returns: two rows a kind, ``form`` is ``questions`` and ``turns``: ``kind``, ``n``,
        ``mean`` (null where there is nothing), ``low``, ``high``, ``level``, ``unit`` and
        ``units``.

    >>> import memlab, polars as pl
    >>> from memlab.evaluate.cited_evidence import cited_shares_by_summary_kind
    >>> data = memlab.sample(turns=200)
    >>> everything = data.turns.group_by("scope").agg(evidence="turn_id")
    >>> kind = pl.lit("all").alias("kind")
    >>> everything = everything.select("scope", kind, pl.concat_list("evidence"))
    >>> cited_shares_by_summary_kind(everything, data)["mean"].to_list()
    [1.0, 1.0]
    """
    share_rows = list[dict[str, Any]]()
    for (kind,), kind_nodes in nodes.group_by("kind", maintain_order=True):
        cited_turns = kind_nodes.select(
            pl.col("evidence").explode().explode().drop_nulls().unique()
        )["evidence"]
        summarised = dataset.take(kind_nodes["scope"].unique(maintain_order=True).to_list())
        question_share = _share_row_of_fully_cited_questions(cited_turns, summarised, unit)
        is_cited = summarised.turns["turn_id"].is_in(cited_turns.implode())
        share_rows.append({"kind": kind, "form": "questions", **question_share})
        share_rows.append(
            {"kind": kind, "form": "turns", "n": len(is_cited), "mean": is_cited.mean()}
        )
    return pl.DataFrame(share_rows)


def _share_row_of_fully_cited_questions(
    cited_turn_ids: pl.Series, dataset: Dataset, unit: Unit
) -> dict[str, Any]:
    """Give the share of questions whose every evidence item is cited, with its interval."""
    evidence = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    fully_cited = evidence.group_by("query_id", maintain_order=True).agg(
        hit=pl.col("doc_id").is_in(cited_turn_ids.implode()).all()
    )
    cited_questions = fully_cited.join(dataset.questions, on="query_id", maintain_order="left")
    hit_values = cited_questions["hit"].cast(pl.Float64).to_numpy().reshape(-1, 1)
    scopes = scopes_if_they_are_the_unit(cited_questions["scope"], unit)
    interval = mean_intervals(hit_values, scopes=scopes, shares=np.array([True])).drop("method")
    share_row = {
        "n": cited_questions.height,
        "mean": cited_questions["hit"].mean(),
        **interval.row(0, named=True),
    }
    source_text = describe_question_sources_or_empty(cited_questions)
    if source_text:
        share_row[COLUMN] = source_text
    return share_row


def count_summary_words_by_kind(nodes: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Count summaries and their words by kind, beside the turns of the memories that they
    summarise.

    :param nodes: summaries with ``kind``, ``scope`` and ``text``.
    :param turns: ``scope`` and ``text``.
    :returns: ``kind`` (``turn`` first), ``n``, ``words``, ``turns`` (of the scopes that have such
        summaries) and ``of_words``, the share of the words of these turns.

    >>> import polars as pl
    >>> from memlab.evaluate.cited_evidence import count_summary_words_by_kind
    >>> texts = ["six words are said in all", "two more"]
    >>> turns = pl.DataFrame({"scope": ["ann", "bo"], "text": texts})
    >>> nodes = pl.DataFrame({"kind": ["week"], "scope": ["ann"], "text": ["six words"]})
    >>> count_summary_words_by_kind(nodes, turns).row(1)
    ('week', 1, 2, 1, 0.3333333333333333)
    """
    columns = ["kind", "scope", "text"]
    kind_frames = [turns.with_columns(kind=pl.lit("turn")).select(columns), nodes.select(columns)]
    word_count = pl.col("text").str.count_matches(r"\w+").sum()
    by_scope = pl.concat(kind_frames).group_by("kind", "scope", maintain_order=True)
    scope_counts = by_scope.agg(n=pl.len(), words=word_count)
    turn_words = scope_counts.filter(kind="turn").select("scope", turns="n", said="words")
    counts_and_turns = scope_counts.join(turn_words, on="scope", how="left", maintain_order="left")
    totals = counts_and_turns.group_by("kind", maintain_order=True).agg(pl.exclude("scope").sum())
    return totals.select("kind", "n", "words", "turns", of_words=pl.col("words") / pl.col("said"))
