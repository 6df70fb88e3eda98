"""What a context can be made of: one row a line, whatever it came from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from textwrap import shorten
from typing import Any

import polars as pl

from memlab.embed.text import turn_text
from memlab.errors import DataError
from memlab.knowledge.recall import search_facts, search_summaries
from memlab.language.calendar import written
from memlab.language.dating import dated
from memlab.records import TIMESTAMP, Run
from memlab.retrieve import Bench

ITEM = pl.Schema({
    "query_id": pl.String(), "ref": pl.String(), "place": pl.Int64(), "head": pl.String(), "text": pl.String(),
    "turns": pl.List(pl.String()), "at": TIMESTAMP, "confidence": pl.Float64(),
})  # fmt: skip
"""The columns of a source: the question; id of the turn, session, fact or node; place in the order of time; the line
that it stands under; the line itself; ids of the turns that it stands on; when it was said; how sure it is. Rows of a
question are in order of worth. The last two may be left out."""

_OPTIONAL = ("at", "confidence")
_TOPICS = 4
# A sentence is not cut to less than this.
_LEAST = 40
_FACTS, _SUMMARIES, _ROLLUPS = 20, 3, 2


@dataclass(frozen=True, eq=False)
class Sources:
    """What is at hand for some questions; each a frame of :data:`ITEM`, the most useful rows of a question first.

    :param recent: the last messages of the conversation in which the question is asked, newest first.
    :param relevant: messages that retrieval ranked.
    :param summaries: sentences of session summaries.
    :param facts: what is known, with how sure.
    :param rollups: sentences of summaries over weeks or themes.
    """

    recent: pl.DataFrame | None = None
    relevant: pl.DataFrame | None = None
    summaries: pl.DataFrame | None = None
    facts: pl.DataFrame | None = None
    rollups: pl.DataFrame | None = None

    def frames(self) -> dict[str, pl.DataFrame]:
        """Give each source as a frame; a ``DataError`` for one that lacks a column."""
        frames = {}
        for name in (field.name for field in fields(self)):
            rows = getattr(self, name)
            rows = pl.DataFrame(schema=ITEM) if rows is None else rows
            rows = rows.with_columns(pl.lit(None).alias(column) for column in _OPTIONAL if column not in rows.columns)
            missing = [column for column in ITEM if column not in rows.columns]
            if missing:
                raise DataError(f"source {name!r} has no column {missing[0]!r}; it needs {', '.join(ITEM)}")
            frames[name] = rows.select(ITEM.names()).cast(ITEM)
        return frames


def gather(
    run: Run,
    bench: Bench,
    *,
    summaries: pl.DataFrame | None = None,
    facts: pl.DataFrame | None = None,
    rollups: pl.DataFrame | None = None,
    recent: pl.DataFrame | None = None,
    dates: bool = True,
) -> Sources:
    """Find for every question of a bench what may stand in its context.

    :param run: a ranking of turns.
    :param summaries: rows of :class:`memlab.records.Summary`; the three most like the question are taken.
    :param facts: the facts of :func:`memlab.knowledge.resolve`, scored at the time of reading by
        :func:`memlab.knowledge.confidence.score`.
    :param rollups: rows of :class:`memlab.records.Node`; of those over several sessions (weeks, months, clusters)
        the two most like the question are taken.
    :param recent: what :func:`recent_messages` gave; ``dates``: see :func:`relevant_messages`.
    :raises DataError: with summaries, facts or rollups, when the bench has no encoder.

    >>> from memlab import context, datasets, retrieve, summaries
    >>> data = datasets.synthetic.generate(turns=60, seed=0)
    >>> bench = retrieve.Bench.of(data, encoder="hashing:64")
    >>> sources = context.gather(retrieve.bm25(bench), bench, summaries=summaries.summarize(data.turns))
    >>> context.assemble(sources).parts["source"].unique(maintain_order=True).to_list()
    ['relevant', 'summaries']
    """
    asked = bench.queries.select("query_id", "scope", "text")
    lines: dict[str, Any] = {}
    if summaries is not None:
        ranked = search_summaries(asked, summaries, encoder=bench.embedder(), k=_SUMMARIES)
        lines["summaries"] = summary_lines(ranked, summaries, most=_SUMMARIES)
    if rollups is not None:
        above = rollups.filter(~pl.col("kind").is_in(["turn", "session"]))
        named = above.with_columns(session_id="node_id", summary="text", participants=pl.lit([], pl.List(pl.String)))
        ranked = search_summaries(asked, named, encoder=bench.embedder(), k=_ROLLUPS).rename({"session_id": "node_id"})
        lines["rollups"] = summary_lines(ranked, above, by="node_id", most=_ROLLUPS)
    if facts is not None:
        lines["facts"] = known_facts(search_facts(asked, facts, encoder=bench.embedder(), k=_FACTS), facts)
    return Sources(recent=recent, relevant=relevant_messages(run, bench, dates=dates), **lines)


def messages(turns: pl.DataFrame, *columns: str, dates: bool) -> pl.DataFrame:
    """Write turns as messages: ``turn_id``, ``text`` with its speaker, ``at``, and other columns of the turns.

    :param dates: whether dates are written behind words that only mean them.
    """
    rows = turns.select(*columns, "turn_id", text=turn_text(), at="timestamp")
    if not dates:
        return rows
    texts = [text if at is None else dated(text, at.date()) for text, at in rows.select("text", "at").iter_rows()]
    return rows.with_columns(text=pl.Series(texts, dtype=pl.String))


def relevant_messages(run: Run, bench: Bench, *, k: int = 100, dates: bool = True) -> pl.DataFrame:
    """Give the first ``k`` turns of each question of a run of turns, each under its day, as :data:`ITEM`.

    :param dates: write dates behind words that only mean them, as :func:`memlab.context.dated` does.
    :raises DataError: when the run ranks sessions.

    >>> from memlab import context, datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder=None)
    >>> context.relevant_messages(retrieve.bm25(bench), bench, k=3)["at"].null_count()
    0
    """
    if run.level != "turn":
        raise DataError("a context quotes messages, and this run ranks sessions; give a run of turns")
    rows = run.frame.filter(pl.col("rank") <= k).select("query_id", turn_id="doc_id")
    rows = rows.with_columns(place=pl.Series(bench.documents("turn").at(rows["turn_id"]), dtype=pl.Int64))
    turns = bench.turns.filter(pl.col("turn_id").is_in(rows["turn_id"].unique().implode()))
    return _messages(rows.join(messages(turns, dates=dates), on="turn_id", how="left", maintain_order="left"))


def recent_messages(turns: pl.DataFrame, *, most: int = 6) -> pl.DataFrame:
    """Give the last messages of the conversation that a question stands in, newest first, as :data:`ITEM`.

    :param turns: ``query_id`` and rows of :class:`memlab.records.Turn`, in order of time within each question.
    """
    rows = messages(turns, "query_id", dates=False).with_columns(place=pl.int_range(pl.len()).over("query_id"))
    rows = rows.filter(pl.col("place") >= pl.col("place").max().over("query_id") - most + 1)
    return _messages(rows.sort("place", descending=True, maintain_order=True))


def _messages(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.with_columns(ref="turn_id", head=pl.lit(""), turns=pl.concat_list("turn_id"), confidence=pl.lit(None))
    return rows.select(ITEM.names()).cast(ITEM)


def known_facts(ranked: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Give facts, as :func:`memlab.knowledge.recall.search_facts` ranked them, as rows of :data:`ITEM`."""
    lines = facts.select(
        ref="fact_id",
        head=pl.lit(""),
        text=pl.concat_str("subject", "predicate", "object", separator=" ", ignore_nulls=True),
        turns="evidence",
        at=pl.coalesce("last_access", "asserted_at"),
    )
    rows = ranked.select("query_id", "confidence", place="rank", ref="fact_id").sort("query_id", "place")
    rows = rows.join(lines, on="ref", how="inner", maintain_order="left")
    return rows.select(ITEM.names()).cast(ITEM)


def summary_lines(
    ranked: pl.DataFrame, summaries: pl.DataFrame, *, by: str = "session_id", most: int = 3, max_chars: int = 420
) -> pl.DataFrame:
    """Give summaries of sessions, or nodes of a rollup, sentence by sentence under their time window and topics.

    A summary has at most ``max_chars`` characters, its window and topics included; a sentence that goes over is cut at
    a clause, and those after it are left out.

    :param ranked: ``query_id``, ``rank`` and the id, such as :func:`memlab.knowledge.recall.search_summaries` gives.
    :param summaries: rows of :class:`memlab.records.Summary`, or others with its id (``by``), ``sentences``,
        ``evidence``, ``topics``, ``start`` and ``end``.
    :param most: summaries of a question.
    """
    columns = (by, "sentences", "evidence", "topics", "start", "end")
    missing = [name for name in columns if name not in summaries.columns]
    if missing:
        raise DataError(f"the summaries have no column {missing[0]!r}; they need {', '.join(columns)}")
    order = pl.col("start").rank("ordinal").fill_null(summaries.height + 1)
    lines = {row[by]: _lines(row, max_chars) for row in summaries.select(columns).iter_rows(named=True)}
    places = dict(summaries.select(by, order).iter_rows())
    first = ranked.filter(pl.col("rank") <= most).sort("query_id", "rank", maintain_order=True)
    rows = [
        (query, ref, places[ref], head, text, turns, None, None)
        for query, ref in first.select("query_id", by).iter_rows()
        for head, text, turns in lines.get(ref, ())
    ]
    return pl.DataFrame(rows, schema=ITEM, orient="row")


def _lines(row: dict[str, Any], max_chars: int) -> list[tuple[str, str, list[str]]]:
    days = dict.fromkeys(written(day) for day in (row["start"], row["end"]) if day is not None)
    about = ", ".join((row["topics"] or [])[:_TOPICS])
    head = " | ".join(part for part in (" to ".join(days), about and f"topics: {about}") if part)
    head = shorten(f"[{head}]", max_chars // 2, placeholder="…") if head else ""
    room, rows = max_chars - len(head) - bool(head), []
    for sentence, turns in zip(row["sentences"], row["evidence"], strict=True):
        if room < min(len(sentence), _LEAST):
            break
        text = shorten(sentence, room, placeholder="…")
        rows.append((head, text, list(turns)))
        room -= len(text) + 1
    return rows
