"""Summaries of sessions: what was said, decided, is to be done and is open, each with its turns."""

from __future__ import annotations

import polars as pl

from memlab.records import Summary, schema
from memlab.summaries.asking import SESSION, Group
from memlab.summaries.writing import Writer, items, leaves, with_topics, write


def summarize(turns: pl.DataFrame, *, service: Writer = None, language: str = "en") -> pl.DataFrame:
    """Summarise sessions: two to six sentences, topics, decisions, action items, open questions and entities.

    Without a model, and where it gives no answer that stands on the session's turns, the sentences are those of the
    session itself, and there are topics, but no decisions, action items, open questions or entities.

    :param turns: rows of :class:`memlab.records.Turn`, whole sessions, in order of time.
    :param service: see :func:`memlab.llm.ask`; ``None`` for no model.
    :param language: of the turns, ISO 639-1; the topics are found by it.
    :returns: rows of :class:`memlab.records.Summary` in the order of the sessions, with ``dropped`` (sentences of the
        model that name turns that are not there) and ``reason`` (why a row is extractive though a model was asked;
        empty otherwise).
    :raises ModelError: when the service cannot be asked at all.

    >>> import memlab
    >>> said = ["I moved to Oslo in May.", "How nice! Do you like it there?", "The harbour is lovely, the rent is not."]
    >>> turns = [memlab.Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", text) for n, text in enumerate(said)]
    >>> memlab.summaries.summarize(memlab.records.frame(memlab.Turn, turns)).select("summary", "evidence").row(0)
    ('Mel: I moved to Oslo in May. Mel: The harbour is lovely, the rent is not.', [['u/s/0'], ['u/s/2']])
    """
    about = turns.group_by("session_id", maintain_order=True).agg(
        pl.col("scope").first(),
        start=pl.col("timestamp").min(),
        end=pl.col("timestamp").max(),
        participants=pl.col("speaker").unique(maintain_order=True),
        n_turns=pl.len(),
        turns="turn_id",
    )
    entries = {row["node_id"]: row for row in leaves(turns)}
    groups = [Group(items([entries[turn] for turn in ids])) for ids in about["turns"]]
    written = zip(about.to_dicts(), write(SESSION, groups, service), strict=True)
    rows = [{"version": "", **row, **session, "summary": row["text"]} for session, row in written]
    columns = schema(Summary) | {"dropped": pl.Int64(), "reason": pl.String()}
    made = pl.DataFrame(rows, schema={**columns, "turns": pl.List(pl.String())})
    return with_topics(made, turns, language).select(*columns)
