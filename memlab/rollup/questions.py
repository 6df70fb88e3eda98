"""Questions that stay open from one session to the next, until something answers them."""

from __future__ import annotations

import polars as pl

from memlab.language.cues import ASKS
from memlab.summarize import open_questions, words

# Of a question's telling words, the share and the number that a later sentence needs to count as its answer.
_COVERED = 0.5
_FEWEST = 2


def asked_and_closed(sentences: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """List the questions that a session leaves open, and which later session answers each, if any does.

    A statement of a later session answers a question when it holds half of its telling words, and at least two: content
    alone decides, since who speaks next does not reply to a question of another day.

    :param sentences: as :func:`memlab.summarize.split`, of all sessions.
    :param places: ``session_id``, ``scope`` and ``place``, ascending in order of time.
    :returns: ``line`` (of the sentence, in order of time), ``scope``, ``turn_id``, ``spoken``, ``asked`` (place of its
        session) and ``closed`` (place of the session that answers it; null where none does).

    >>> import memlab, polars as pl
    >>> from memlab.rollup.questions import asked_and_closed
    >>> said = [("a", "Ann", "Which adoption agency did you pick?"), ("b", "Mel", "I picked the agency for adoption.")]
    >>> turns = [memlab.Turn(f"u/{s}/1", "u", f"u/{s}", 1, who, "user", text) for s, who, text in said]
    >>> sentences = memlab.summarize.split(memlab.records.frame(memlab.Turn, turns))
    >>> places = pl.DataFrame({"session_id": ["u/a", "u/b"], "scope": "u", "place": [0, 1]})
    >>> asked_and_closed(sentences, places).select("asked", "closed").rows()
    [(0, 1)]
    """
    placed = sentences.join(places.select("session_id", "place"), on="session_id", maintain_order="left")
    placed = placed.with_row_index("line")
    asked = open_questions(placed).select("line", "scope", "turn_id", "spoken", asked="place")
    stems = words(placed).filter("content").select("stem", line="row").unique()
    wanted = asked.select("line", "scope", "asked").join(stems, on="line").with_columns(total=pl.len().over("line"))
    states = placed.filter(~pl.col("text").str.contains(ASKS)).select("line", "scope", "place")
    stated = states.join(stems, on="line").rename({"line": "later"})
    answers = (
        wanted.join(stated, on=["scope", "stem"])
        .filter(pl.col("place") > pl.col("asked"))
        .group_by("line", "later")
        .agg(pl.col("place", "total").first(), shared=pl.len())
        .filter((pl.col("shared") >= _FEWEST) & (pl.col("shared") >= _COVERED * pl.col("total")))
        .group_by("line")
        .agg(closed=pl.col("place").min())
    )
    return asked.join(answers, on="line", how="left").sort("line")
