"""Turns as messages, with the days that they only mean written out."""

from __future__ import annotations

import polars as pl

from memlab.embed.text import turn_text
from memlab.language.dating import dated


def messages(turns: pl.DataFrame, *columns: str, dates: bool) -> pl.DataFrame:
    """Write turns as messages: ``turn_id``, ``text`` with its speaker, ``at``, and other columns of the turns.

    :param dates: whether dates are written behind words that only mean them.
    """
    rows = turns.select(*columns, "turn_id", text=turn_text(), at="timestamp")
    if not dates:
        return rows
    texts = [text if at is None else dated(text, at.date()) for text, at in rows.select("text", "at").iter_rows()]
    return rows.with_columns(text=pl.Series(texts, dtype=pl.String))
