"""What a question is read against: its topics and the last messages, cut into words and names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memlab.language.leaning import leaning, pattern
from memlab.rewrite._words import Word, names, quoted, words

MESSAGES = 6

_NO_ANSWER = pattern("no_answer")
_HEADING = re.compile(r"[^\s?!]+(\s+[^\s?!]+){0,9}")
_ASKS = leaning("headings_ask")


@dataclass(frozen=True)
class Text:
    """A topic or message.

    :param age: 1 for the newest message, 2 for the one before; 0 for a topic.
    :param runs: the names in it, as ranges of word numbers.
    """

    text: str
    words: list[Word]
    runs: list[tuple[int, int]]
    age: int = 0

    @classmethod
    def of(cls, text: str, age: int = 0) -> Text:
        found = words(text)
        return cls(text, found, names(text, found), age)

    @property
    def keys(self) -> set[str]:
        """The content words."""
        return {word.key for word in self.words if word.content}

    def quoted(self, number: int) -> bool:
        return quoted(self.text, self.words[number].start)


@dataclass(frozen=True)
class Context:
    """A question and what stands before it; ``messages`` newest first."""

    question: Text
    topics: list[Text]
    messages: list[Text]

    @classmethod
    def of(cls, question: str, history: Sequence[str], topics: Sequence[str] = ()) -> Context:
        """Read the last six messages; a heading that opens the history is a topic when none was given."""
        said = list(history)
        if not topics:
            heads = _headings(said)
            topics, said = said[:heads], said[heads:]
        recent = said[-MESSAGES:]
        spoken = ["" if _NO_ANSWER.fullmatch(message) else message for message in reversed(recent)]
        messages = [Text.of(message, age) for age, message in enumerate(spoken, start=1)]
        return cls(Text.of(question), [Text.of(topic) for topic in topics], messages)

    def message(self, age: int) -> Text:
        """Give the message of an age; an empty one where there is none."""
        return self.messages[age - 1] if age <= len(self.messages) else _EMPTY

    def topic(self, number: int) -> Text:
        return self.topics[number] if number < len(self.topics) else _EMPTY

    @property
    def texts(self) -> list[Text]:
        """Topics, then messages from the newest."""
        return [*self.topics, *self.messages]

    def names(self) -> list[set[str]]:
        """Give the content words of each name in messages and topics."""
        return [{word.key for word in text.words[i:j] if word.content} for text in self.texts for i, j in text.runs]


_EMPTY = Text.of("")


def _headings(history: list[str]) -> int:
    """Count the titles at the beginning: two at most, before messages that alternate."""
    count = 0
    while count < min(2, len(history)) and _is_heading(history[count]):
        count += 1
    # What is left begins with a question, and ends with the answer to the last one.
    if not count or (len(history) - count) % 2:
        return 0
    # Far back, it is one only where it is spoken of: a greeting is none.
    spoken_of = Text.of(history[0]).keys & Text.of("\n".join(history[count:])).keys
    return count if len(history) <= MESSAGES or spoken_of else 0


def _is_heading(text: str) -> bool:
    found = words(text)
    opens = bool(found) and (found[0].capital or found[0].text[0].isdigit())
    whole = _HEADING.fullmatch(text.strip()) and not re.search(r"[^\W_]{3}[.,;]\W*$", text)
    return bool(opens and whole and found[0].key not in _ASKS)
