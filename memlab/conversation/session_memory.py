"""State of a running conversation: the sessions in play, a bias towards them, and a rolling buffer of messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

import polars as pl
from pydantic import BaseModel, Field

from memlab import llm
from memlab.conversation.messages import Message
from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.retrieve.ranking import rerank_by_scores
from memlab.summaries.extractive import extract_sentences
from memlab.summaries.summary_prompts import Item
from memlab.text.tokens import sentences

BIAS_FACTOR = 1.15
"""The factor by which scores of sessions in play are multiplied."""

MAX_IN_PLAY = 64
TTL = timedelta(minutes=30)

VERBATIM_MESSAGES = 4
MAX_WORDS, MAX_SENTENCES = 200, 12  # words and sentences of a summary
VERSION = 1
SYSTEM = (
    "You keep the running summary of a conversation. Write the summary so far anew so that it covers the next messages "
    "too, in at most 180 words, as short sentences that say who said what. Keep every date, amount and name that "
    "matters; add nothing, guess nothing; leave out greetings and thanks."
)


@dataclass(frozen=True)
class SessionMemory:
    """The turns or sessions in play in a conversation; immutable: :func:`remember` gives a new one.

    :param last_access: when the last turn was noted.
    :param in_play: ids of turns or sessions, each once; the newest first.
    """

    session_id: str
    last_access: datetime | None = None
    in_play: tuple[str, ...] = ()


def remember(
    memory: SessionMemory, *, now: datetime, in_play: Iterable[str] = (), ttl: timedelta = TTL
) -> SessionMemory:
    """Add one turn to the memory of a conversation; after a pause longer than ``ttl`` it begins anew.

    :param in_play: ids of what was retrieved or used for it, the most useful first.
    :returns: the memory after the turn, with at most :data:`MAX_IN_PLAY` ids; what was out of use
        for longest is forgotten first.
    :raises DataError: when ``now`` lies before the last access, or only one of the two has a time
        zone.

    >>> from datetime import datetime
    >>> from memlab.conversation import SessionMemory, remember
    >>> noon = datetime(2026, 5, 1, 12)
    >>> memory = remember(SessionMemory("chat"), now=noon, in_play=["u/s1"])
    >>> memory.in_play, remember(memory, now=noon.replace(hour=13)).in_play
    (('u/s1',), ())
    """
    last = memory.last_access or now
    if (now.tzinfo is None) != (last.tzinfo is None) or now < last:
        raise DataError(
            f"now is {now.isoformat()}, and conversation {memory.session_id!r} was last used at {last.isoformat()}; "
            "give turns in order of time, all with a time zone or none"
        )
    if now - last > ttl:
        memory = SessionMemory(memory.session_id)
    newest = dict.fromkeys([*in_play, *memory.in_play])
    return replace(memory, last_access=now, in_play=tuple(newest)[:MAX_IN_PLAY])


def bias(
    run: Run, bench: Bench, *, in_play: pl.DataFrame | Sequence[str], factor: float = BIAS_FACTOR
) -> Run:
    """Multiply the scores of sessions in play by a factor and rank anew; every document stays.

    A product needs positive scores: where a question's lowest is not above 0 (sums of standardised
    scores), its scores are first raised so that the lowest is 0.

    :param in_play: ids of sessions, for every question; or a frame of ``query_id`` and ``id``.
    :param factor: at least 1; 1 leaves the ranking as it is.
    :raises DataError: for a factor below 1.

    >>> from memlab import conversation, datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.load("data/sample/sample.jsonl"), encoder=None)
    >>> run = retrieve.bm25(bench, k=5)
    >>> raised = conversation.bias(run, bench, in_play=[bench.sessions["session_id"][0]])
    >>> sorted(raised.frame["doc_id"]) == sorted(run.frame["doc_id"])
    True
    """
    if not 1 <= factor < float("inf"):
        raise DataError(f"factor is {factor}; a bias is 1 or more, so that it hides nothing")
    if not isinstance(in_play, pl.DataFrame):
        ids = pl.DataFrame({"id": [*in_play]}, {"id": pl.String})
        in_play = run.frame.select(pl.col("query_id").unique()).join(ids, how="cross")
    session_ids = run.frame["doc_id"]
    if run.level == "turn":
        turns, sessions = bench.documents("turn"), bench.documents("session")
        session_ids = pl.Series(sessions.ids[turns.session[turns.at(session_ids)]], dtype=pl.String)
    used = in_play.select("query_id", "id", used=pl.lit(True)).unique()
    rows = run.frame.with_columns(id=session_ids).join(
        used, on=["query_id", "id"], how="left", maintain_order="left"
    )
    lowest = pl.col("score").min().over("query_id")
    raised = pl.col("score") - pl.when(lowest > 0).then(0.0).otherwise(lowest)
    score = raised * pl.when("used").then(factor).otherwise(1.0)
    return rerank_by_scores(run, bench, rows.select("query_id", "doc_id", score=score))


class Running(BaseModel, extra="forbid"):
    """The answer of a model: the sentences of the summary."""

    sentences: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=400)]],
        Field(min_length=1, max_length=24),
    ]


@dataclass(frozen=True)
class RollingBuffer:
    """The last messages of a conversation, and a summary of the earlier ones; immutable, see :func:`extend_buffer`.

    :param messages: the last :data:`VERBATIM_MESSAGES` messages, oldest first.
    :param summary: sentences over all messages before them, together at most :data:`MAX_WORDS`
        words.
    :param n_summarised: messages that the summary covers.
    """

    messages: tuple[Message, ...] = ()
    summary: tuple[str, ...] = ()
    n_summarised: int = 0

    @property
    def text(self) -> str:
        """The summary, then the messages."""
        said = [f"{message.role}: {message.content}" for message in self.messages]
        return "\n".join([" ".join(self.summary), *said] if self.summary else said)


def extend_buffer(
    buffer: RollingBuffer, new: Sequence[Message], *, service: str | llm.Service | None = None
) -> RollingBuffer:
    """Add messages to a buffer; those that are no longer among the last four go into the summary.

    :param service: a model that writes the summary, see :func:`memlab.llm.ask`. Without its answer,
        or where that is too long, sentences are taken as they are
        (:func:`memlab.summaries.extractive.extract_sentences`).

    >>> from memlab.conversation import Message, RollingBuffer, extend_buffer
    >>> said = [Message("user", f"My locker at the pool has the number {n}.") for n in range(1, 7)]
    >>> buffer = extend_buffer(RollingBuffer(), said)
    >>> len(buffer.messages), buffer.n_summarised, buffer.summary[0]
    (4, 2, 'user: My locker at the pool has the number 1.')
    """
    messages = (*buffer.messages, *new)
    older, last = messages[:-VERBATIM_MESSAGES], messages[-VERBATIM_MESSAGES:]
    if not older:
        return RollingBuffer(messages, buffer.summary, buffer.n_summarised)
    prompt = {
        "summary so far": buffer.summary,
        "next messages": [message._asdict() for message in older],
    }
    about = (*buffer.summary, *(text for message in older for text in message))
    request = llm.Request(
        "buffer", VERSION, about, json.dumps(prompt, ensure_ascii=False), Running, SYSTEM
    )
    (answer,) = llm.ask([request], service)
    written = (
        ()
        if answer.value is None
        else tuple(" ".join(text.split()) for text in answer.value.sentences)
    )
    if not written or sum(len(text.split()) for text in written) > MAX_WORDS:
        written = _extractive_summary(buffer.summary, older)
    return RollingBuffer(last, written, buffer.n_summarised + len(older))


def _extractive_summary(summary: Sequence[str], new: Sequence[Message]) -> tuple[str, ...]:
    """Pick representative sentences of the summary and of messages, up to the length, in order."""
    texts = [
        *summary,
        *(f"{each.role}: {sentence}" for each in new for sentence in sentences(each.content)),
    ]
    picked, room = list[str](), MAX_WORDS
    for text, _ in extract_sentences(
        [Item("", sentence, []) for sentence in texts], most=MAX_SENTENCES
    ):
        if len(text.split()) <= room:
            picked.append(text)
            room -= len(text.split())
    return tuple(picked)
