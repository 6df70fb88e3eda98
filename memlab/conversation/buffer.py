"""A rolling buffer: the last four messages verbatim, what came before them in at most two hundred words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field

from memlab import llm
from memlab.conversation.messages import Message
from memlab.conversation.rewriting import content, is_name
from memlab.language.sentences import sentences

VERBATIM = 4
MAX_WORDS = 200
VERSION = 1
SYSTEM = (
    "You keep the running summary of a conversation. Write the summary so far anew so that it covers the next messages "
    "too, in at most 180 words, as short sentences that say who said what. Keep every date, amount and name that "
    "matters; add nothing, guess nothing; leave out greetings and thanks."
)


class Running(BaseModel, extra="forbid"):
    """What a model answers: the sentences of the summary."""

    sentences: Annotated[list[Annotated[str, Field(min_length=1, max_length=400)]], Field(min_length=1, max_length=24)]


@dataclass(frozen=True)
class RollingBuffer:
    """A conversation so far; a value: :func:`extend` gives a new one.

    :param messages: the last :data:`VERBATIM` messages, oldest first.
    :param summary: sentences over all messages before them, together at most :data:`MAX_WORDS` words.
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


def extend(buffer: RollingBuffer, new: Sequence[Message], *, service: str | llm.Service | None = None) -> RollingBuffer:
    """Add messages; those that are no longer among the last four are folded into the summary.

    :param service: a model that writes the summary, see :func:`memlab.llm.ask`. Without its answer, or where that is
        too long, sentences are taken as they are (:func:`extract`).

    >>> from memlab.conversation import Message, RollingBuffer, extend
    >>> said = [Message("user", f"My locker at the pool has the number {n}.") for n in range(1, 7)]
    >>> buffer = extend(RollingBuffer(), said)
    >>> len(buffer.messages), buffer.n_summarised, buffer.summary[0]
    (4, 2, 'user: My locker at the pool has the number 1.')
    """
    everything = (*buffer.messages, *new)
    older, last = everything[:-VERBATIM], everything[-VERBATIM:]
    if not older:
        return RollingBuffer(everything, buffer.summary, buffer.n_summarised)
    prompt = {"summary so far": buffer.summary, "next messages": [message._asdict() for message in older]}
    about = (*buffer.summary, *(text for message in older for text in message))
    request = llm.Request("buffer", VERSION, about, json.dumps(prompt, ensure_ascii=False), Running, SYSTEM)
    (answer,) = llm.ask([request], service)
    written = () if answer.value is None else tuple(" ".join(text.split()) for text in answer.value.sentences)
    if not written or sum(len(text.split()) for text in written) > MAX_WORDS:
        written = extract(buffer.summary, older)
    return RollingBuffer(last, written, buffer.n_summarised + len(older))


def extract(summary: Sequence[str], new: Sequence[Message]) -> tuple[str, ...]:
    """Keep, in their order, the sentences with the most names and numbers, then content words, that fit the length."""
    offered = list(summary)
    for message in new:
        offered += [f"{message.role}: {sentence}" for sentence in sentences(message.content)]
    kept: dict[str, None] = {}
    room = MAX_WORDS
    for text in sorted(dict.fromkeys(offered), key=_weight, reverse=True):
        if len(text.split()) <= room and _weight(text) > (0, 1):
            kept[text] = None
            room -= len(text.split())
    return tuple(text for text in dict.fromkeys(offered) if text in kept)


def _weight(text: str) -> tuple[int, int]:
    words = content(text.partition(": ")[2])
    telling = sum(word.text[0].isdigit() or is_name(word.text, opens=word.start == 0) for word in words)
    return min(telling, 3), min(len(words), 20)
