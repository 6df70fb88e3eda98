"""What a memory returned, written down for a model within a budget of tokens."""

from __future__ import annotations

import polars as pl

from memlab.conversation.token_counts import add_token_counts
from memlab.memories.collecting import ReturnedTexts


def dated_lines(returned: ReturnedTexts) -> pl.DataFrame:
    """Write each returned text under its day, and count the tokens up to it.

    :returns: the rows with ``line``, its ``n_tokens``, and ``after``: tokens of the question's lines so far.
    """
    day = pl.col("time").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False).dt.strftime("%-d %B %Y")
    head = pl.format("[{}]\n", pl.coalesce(day, "time")).fill_null("")
    rows = add_token_counts(returned.rows.with_columns(line=head + pl.col("text")), "line").sort("query_id", "rank")
    return rows.with_columns(after=pl.col("n_tokens").cum_sum().over("query_id"))


def fit_to_budget(lines: pl.DataFrame, questions: pl.DataFrame, budget: int) -> pl.DataFrame:
    """Give each question the first texts that fit into a budget: ``query_id``, ``text`` (empty for none), ``n_tokens``.

    :param lines: what :func:`dated_lines` gave.
    """
    fitting = lines.filter(pl.col("after") <= budget).group_by("query_id", maintain_order=True)
    made = fitting.agg(pl.col("line").str.join("\n").alias("text"), pl.col("n_tokens").sum())
    contexts = questions.select("query_id").join(made, on="query_id", how="left", maintain_order="left")
    return contexts.with_columns(pl.col("text").fill_null(""), pl.col("n_tokens").fill_null(0))
