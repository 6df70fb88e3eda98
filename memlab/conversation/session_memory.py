"""State of a running conversation.

The sessions in play, a bias towards them, and a rolling buffer of messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated

import polars as pl
from pydantic import BaseModel, Field

from memlab import llm
from memlab.conversation.conversation_histories import Message
from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.retrieve.rankings_from_scores import rerank_by_scores
from memlab.summaries.extractive_summaries import extract_sentences
from memlab.summaries.summary_prompts import SourceItem
from memlab.text.tokens_and_sentences import sentences

BIAS_FACTOR = 1.15
"""The factor by which scores of sessions in play are multiplied."""

MAX_IN_PLAY = 64
TTL = timedelta(minutes=30)

VERBATIM_MESSAGES = 4
# Of a summary.
MAX_WORDS = 200
MAX_SENTENCES = 12
VERSION = 1
SYSTEM = (
    "You keep the running summary of a conversation. Write the summary so far anew so that it "
    "covers the next messages too, in at most 180 words, as short sentences that say who said "
    "what. Keep every date, amount and name that matters; add nothing, guess nothing; leave out "
    "greetings and thanks."
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
    """Add one turn to the memory of a conversation.

    After a pause longer than ``ttl`` it begins anew.

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
    last_access = memory.last_access or now
    both_or_no_zone = (now.tzinfo is None) == (last_access.tzinfo is None)
    if not both_or_no_zone or now < last_access:
        raise DataError(
            f"now is {now.isoformat()}, and conversation {memory.session_id!r} was last used at "
            f"{last_access.isoformat()}; give turns in order of time, all with a time zone or none"
        )
    if now - last_access > ttl:
        memory = SessionMemory(memory.session_id)
    newest_sessions = dict.fromkeys([*in_play, *memory.in_play])
    return replace(memory, last_access=now, in_play=tuple(newest_sessions)[:MAX_IN_PLAY])


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
        id_frame = pl.DataFrame({"id": [*in_play]}, {"id": pl.String})
        in_play = run.frame.select(pl.col("query_id").unique()).join(id_frame, how="cross")
    session_ids = run.frame["doc_id"]
    if run.level == "turn":
        turns = bench.documents("turn")
        session_places = turns.session[turns.at(session_ids)]
        session_ids = pl.Series(bench.documents("session").ids[session_places], dtype=pl.String)
    used_sessions = in_play.select("query_id", "id", used=pl.lit(True)).unique()
    joined_rows = run.frame.with_columns(id=session_ids).join(
        used_sessions, on=["query_id", "id"], how="left", maintain_order="left"
    )
    lowest_score = pl.col("score").min().over("query_id")
    raised_score = pl.col("score") - pl.when(lowest_score > 0).then(0.0).otherwise(lowest_score)
    biased_score = raised_score * pl.when("used").then(factor).otherwise(1.0)
    return rerank_by_scores(
        run, bench, joined_rows.select("query_id", "doc_id", score=biased_score)
    )


class Running(BaseModel, extra="forbid"):
    """The answer of a model: the sentences of the summary."""

    sentences: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=400)]],
        Field(min_length=1, max_length=24),
    ]


@dataclass(frozen=True)
class RollingBuffer:
    """The last messages of a conversation, and a summary of the earlier ones.

    Immutable: :func:`extend_buffer` gives a new one.

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
        buffer_lines = [f"{message.role}: {message.content}" for message in self.messages]
        if self.summary:
            buffer_lines.insert(0, " ".join(self.summary))
        return "\n".join(buffer_lines)


def extend_buffer(
    buffer: RollingBuffer, new: Sequence[Message], *, service: str | llm.Service | None = None
) -> RollingBuffer:
    """Add messages to a buffer.

    Those that are no longer among the last four go into the summary.

    :param service: a model that writes the summary, see :func:`memlab.llm.ask`. Without its answer,
        or where that is too long, sentences are taken as they are
        (:func:`memlab.summaries.extractive_summaries.extract_sentences`).

    >>> from memlab.conversation import Message, RollingBuffer, extend_buffer
    >>> texts = [f"My locker at the pool has the number {n}." for n in range(1, 7)]
    >>> buffer = extend_buffer(RollingBuffer(), [Message("user", text) for text in texts])
    >>> len(buffer.messages), buffer.n_summarised, buffer.summary[0]
    (4, 2, 'user: My locker at the pool has the number 1.')
    """
    messages = (*buffer.messages, *new)
    older_messages = messages[:-VERBATIM_MESSAGES]
    newest_messages = messages[-VERBATIM_MESSAGES:]
    if not older_messages:
        return RollingBuffer(messages, buffer.summary, buffer.n_summarised)
    new_summary = _ask_for_summary_or_empty(buffer.summary, older_messages, service)
    if not new_summary:
        new_summary = _extractive_summary(buffer.summary, older_messages)
    return RollingBuffer(newest_messages, new_summary, buffer.n_summarised + len(older_messages))


def _ask_for_summary_or_empty(
    summary_sentences: tuple[str, ...],
    older_messages: Sequence[Message],
    service: str | llm.Service | None,
) -> tuple[str, ...]:
    """Ask a model for the summary; nothing without its answer, or where that is too long."""
    messages = [message._asdict() for message in older_messages]
    prompt = json.dumps(
        {"summary so far": summary_sentences, "next messages": messages}, ensure_ascii=False
    )
    asked_about = (*summary_sentences, *chain.from_iterable(older_messages))
    request = llm.Request("buffer", VERSION, asked_about, prompt, Running, SYSTEM)
    (answer,) = llm.ask([request], service)
    if answer.value is None:
        return ()
    written_sentences = tuple(" ".join(text.split()) for text in answer.value.sentences)
    if sum(_count_words(text) for text in written_sentences) > MAX_WORDS:
        return ()
    return written_sentences


def _extractive_summary(
    summary_sentences: Sequence[str], older_messages: Sequence[Message]
) -> tuple[str, ...]:
    """Pick representative sentences of the summary and of messages, up to the length, in order."""
    summary_texts = [*summary_sentences]
    for message in older_messages:
        summary_texts += [f"{message.role}: {sentence}" for sentence in sentences(message.content)]
    text_items = [SourceItem("", summary_text, []) for summary_text in summary_texts]
    picked_texts = []
    words_left = MAX_WORDS
    for summary_text, _ in extract_sentences(text_items, max_sentences=MAX_SENTENCES):
        n_words = _count_words(summary_text)
        if n_words <= words_left:
            picked_texts.append(summary_text)
            words_left -= n_words
    return tuple(picked_texts)


def _count_words(text: str) -> int:
    return len(text.split())
