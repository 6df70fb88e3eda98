"""What a context can be made of: one row a line, whatever it came from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

import polars as pl

from memlab.context.dating import dated
from memlab.embed.text import turn_texts
from memlab.errors import DataError
from memlab.language.calendar import written
from memlab.records import TIMESTAMP, Run
from memlab.retrieve import Bench
from memlab.summarize.extractive import shorten

ITEM = pl.Schema(
    {
        "query_id": pl.String(),
        "ref": pl.String(),
        "place": pl.Int64(),
        "head": pl.String(),
        "text": pl.String(),
        "turns": pl.List(pl.String()),
        "at": TIMESTAMP,
        "confidence": pl.Float64(),
    }
)
"""The columns of a source: the question; id of the turn, session, fact or node; place in the order of time; the line
that it stands under; the line itself; ids of the turns that it stands on; when it was said; how sure it is. Rows of a
question are in order of worth. The last two may be left out."""

_OPTIONAL = ("at", "confidence")
_TOPICS = 4


def _none() -> pl.DataFrame:
    return pl.DataFrame(schema=ITEM)


@dataclass(frozen=True, eq=False)
class Sources:
    """What is at hand for some questions; each a frame of :data:`ITEM`, the most useful rows of a question first.

    :param recent: the last messages of the conversation in which the question is asked, newest first.
    :param relevant: messages that retrieval found.
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
        """Give each source as a frame.

        :raises DataError: for a frame that lacks a column.
        """
        found = {}
        for each in fields(self):
            rows = getattr(self, each.name)
            rows = _none() if rows is None else rows
            rows = rows.with_columns(pl.lit(None).alias(name) for name in _OPTIONAL if name not in rows.columns)
            missing = [name for name in ITEM if name not in rows.columns]
            if missing:
                raise DataError(f"source {each.name!r} has no column {missing[0]!r}; it needs {', '.join(ITEM)}")
            found[each.name] = rows.select(pl.col(name).cast(kind) for name, kind in ITEM.items())
        return found


def relevant_messages(run: Run, bench: Bench, *, k: int = 100, dates: bool = True) -> pl.DataFrame:
    """Give the first ``k`` turns of each question of a run, each under its day.

    :param run: a ranking of turns, at the end of any pipeline.
    :param dates: write dates behind words that only mean them, as :func:`memlab.context.dated` does; otherwise
        messages stand as they were said.
    :returns: a frame of :data:`ITEM`.
    :raises DataError: when the run ranks sessions.

    >>> from memlab import context, datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder=None)
    >>> context.relevant_messages(retrieve.bm25(bench), bench, k=3)["at"].null_count()
    0
    """
    if run.level != "turn":
        raise DataError("a context quotes messages, and this run ranks sessions; give a run of turns")
    documents = bench.documents("turn")
    rows = run.frame.filter(pl.col("rank") <= k).select("query_id", turn_id="doc_id")
    at = documents.at(rows["turn_id"])
    texts = pl.Series("said", [documents.texts[i] for i in at], dtype=pl.String)
    days = bench.turns.select("turn_id", "timestamp")
    placed = rows.with_columns(texts, place=pl.Series(at, dtype=pl.Int64))
    rows = placed.join(days, on="turn_id", how="left", maintain_order="left")
    return _messages(_with_dates(rows) if dates else rows)


def recent_messages(turns: pl.DataFrame, *, most: int = 6) -> pl.DataFrame:
    """Give the last messages of the conversation that a question stands in, newest first.

    :param turns: ``query_id`` and rows of :class:`memlab.records.Turn`, in order of time within each question.
    :param most: of each question.
    :returns: a frame of :data:`ITEM`.
    """
    place = pl.int_range(pl.len()).over("query_id")
    rows = turns.with_columns(said=pl.Series(turn_texts(turns), dtype=pl.String), place=place)
    rows = rows.filter(pl.col("place") >= pl.col("place").max().over("query_id") - most + 1)
    return _messages(rows.sort("place", descending=True, maintain_order=True))


def _with_dates(rows: pl.DataFrame) -> pl.DataFrame:
    each = rows.select("turn_id", "said", "timestamp").unique("turn_id", maintain_order=True)
    written = [text if when is None else dated(text, when.date()) for _, text, when in each.iter_rows()]
    known = each.select("turn_id", said=pl.Series(written, dtype=pl.String))
    return rows.drop("said").join(known, on="turn_id", how="left", maintain_order="left")


def _messages(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        "query_id", ref="turn_id", place="place", head=pl.lit(""), text="said", turns=pl.concat_list("turn_id"),
        at="timestamp", confidence=pl.lit(None),
    ).cast(ITEM)  # fmt: skip


def known_facts(found: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Give facts as lines, with how sure they are and when they were last said.

    :param found: what :func:`memlab.knowledge.search.search_facts` gave, with ``confidence``.
    :param facts: the facts that it ranked.
    :returns: a frame of :data:`ITEM`.
    """
    said = pl.concat_str("subject", "predicate", "object", separator=" ", ignore_nulls=True)
    known = facts.select("fact_id", "evidence", said=said, at=pl.coalesce("last_access", "asserted_at"))
    rows = found.select("query_id", "rank", "fact_id", "confidence").join(
        known, on="fact_id", how="inner", maintain_order="left"
    )
    return rows.sort("query_id", "rank", maintain_order=True).select(
        "query_id",
        ref="fact_id",
        place="rank",
        head=pl.lit(""),
        text="said",
        turns="evidence",
        at="at",
        confidence="confidence",
    ).cast(ITEM)  # fmt: skip


def summary_lines(
    found: pl.DataFrame, summaries: pl.DataFrame, *, by: str = "session_id", most: int = 3, max_chars: int = 420
) -> pl.DataFrame:
    """Give summaries of sessions, or nodes of a rollup, sentence by sentence under their time window and topics.

    A summary has at most ``max_chars`` characters, its window and topics included; a sentence that goes over is cut at
    a clause, and those after it are left out.

    :param found: ``query_id``, ``rank`` and the id, such as :func:`memlab.knowledge.search.search_summaries` gives.
    :param summaries: rows of :class:`memlab.records.Summary`, or others with its id, ``sentences``, ``evidence``,
        ``topics``, ``start`` and ``end``.
    :param by: the column that holds the id.
    :param most: summaries of a question.
    :returns: a frame of :data:`ITEM`.
    """
    columns = (by, "sentences", "evidence", "topics", "start", "end")
    missing = [name for name in columns if name not in summaries.columns]
    if missing:
        raise DataError(f"the summaries have no column {missing[0]!r}; they need {', '.join(columns)}")
    order = summaries.select(by, place=pl.col("start").rank("ordinal").fill_null(summaries.height + 1))
    lines = {row[0]: _lines(*row[1:], max_chars=max_chars) for row in summaries.select(columns).iter_rows()}
    places = dict(order.iter_rows())
    first = found.filter(pl.col("rank") <= most).sort("query_id", "rank", maintain_order=True)
    rows = [
        (query, ref, places[ref], head, text, turns)
        for query, ref in first.select("query_id", by).iter_rows()
        for head, text, turns in lines.get(ref, ())
    ]
    needed = {name: kind for name, kind in ITEM.items() if name not in _OPTIONAL}
    made = pl.DataFrame(rows, schema=needed, orient="row")
    return made.with_columns(pl.lit(None).cast(ITEM[name]).alias(name) for name in _OPTIONAL)


def _lines(
    sentences: list[str], evidence: list[list[str]], topics: list[str] | None,
    start: datetime | None, end: datetime | None, *, max_chars: int,
) -> list[tuple[str, str, list[str]]]:  # fmt: skip
    about = ", ".join((topics or [])[:_TOPICS])
    head = " | ".join(part for part in (window(start, end), about and f"topics: {about}") if part)
    head = shorten(f"[{head}]", max_chars // 2) if head else ""
    room, rows = max_chars - len(head) - bool(head), []
    for sentence, turns in zip(sentences, evidence, strict=True):
        text = shorten(sentence, max(room, 1))
        if room < min(len(sentence), _LEAST):
            break
        rows.append((head, text, list(turns)))
        room -= len(text) + 1
    return rows


_LEAST = 40


def window(start: datetime | None, end: datetime | None) -> str:
    """Write a span of time by its days.

    >>> from datetime import datetime
    >>> from memlab.context.items import window
    >>> window(datetime(2023, 5, 8, 13), datetime(2023, 5, 9, 0))
    '8 May 2023 to 9 May 2023'
    """
    days = [written(day) for day in (start, end) if day is not None]
    return " to ".join(dict.fromkeys(days))
