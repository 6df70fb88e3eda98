"""What a question is read against: its topics and the last messages, cut into words and names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from memlab.language.leaning import FUNCTION_WORDS, leaning, pattern
from memlab.language.names import Case, cases, spans, starts
from memlab.language.tokens import base, stem, tokens

MESSAGES = 6

_NO_ANSWER = pattern("no_answer")
_HEADING = re.compile(r"[^\s?!]+(\s+[^\s?!]+){0,9}")
_ASKS = leaning("headings_ask")


class Word(NamedTuple):
    """A word as written, as compared (:func:`memlab.language.tokens.base`), and its place in the text."""

    text: str
    key: str
    start: int
    end: int

    @property
    def content(self) -> bool:
        return self.key not in FUNCTION_WORDS

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()


def words(text: str) -> list[Word]:
    """Cut a text into words."""
    return [Word(token.text, base(token.text), token.start, token.end) for token in tokens(text)]


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
    def of(cls, text: str, age: int = 0, case: Case | None = None) -> Text:
        its, runs = words(text), []
        for start, end in spans(text, case or cases([text]), set()):
            inside = [i for i, word in enumerate(its) if word.start < end and word.end > start]
            if any(its[i].content for i in inside):
                runs.append((inside[0], inside[-1] + 1))
        return cls(text, its, runs, age)

    @cached_property
    def names(self) -> list[set[str]]:
        """The content words of each name."""
        return [{word.key for word in self.words[i:j] if word.content} for i, j in self.runs]

    @cached_property
    def keys(self) -> set[str]:
        """The content words."""
        return {word.key for word in self.words if word.content}

    @cached_property
    def stems(self) -> set[str]:
        """The stems of the content words."""
        return set(stem(self.keys))

    def gap(self, number: int) -> str:
        """Give what stands between a word and the one before it."""
        inside = 0 < number < len(self.words)
        return self.text[self.words[number - 1].end : self.words[number].start] if inside else ""

    def quoted(self, number: int) -> bool:
        """Say whether a word stands inside double quotes."""
        return len(re.findall('["“”]', self.text[: self.words[number].start])) % 2 == 1

    def opens(self, number: int) -> bool:
        """Say whether a sentence begins with a word, so that its capital says nothing."""
        return starts(self.text, self.words[number].start)


@dataclass(frozen=True)
class Context:
    """A question and what stands before it; ``messages`` newest first."""

    question: Text
    topics: list[Text]
    messages: list[Text]

    @classmethod
    def of(cls, question: str, history: Sequence[str], topics: Sequence[str] = ()) -> Context:
        """Read the last six messages; a heading that opens the history is a topic when none was given."""
        if not topics:
            heads = _headings(history)
            topics, history = history[:heads], history[heads:]
        recent = ["" if _NO_ANSWER.fullmatch(message) else message for message in reversed(history[-MESSAGES:])]
        case = cases([question, *topics, *recent])
        messages = [Text.of(message, age, case) for age, message in enumerate(recent, start=1)]
        return cls(Text.of(question, case=case), [Text.of(topic, case=case) for topic in topics], messages)

    def message(self, age: int) -> Text:
        """Give the message of an age; an empty one where there is none."""
        return self.messages[age - 1] if age <= len(self.messages) else _EMPTY

    def topic(self, number: int) -> Text:
        return self.topics[number] if number < len(self.topics) else _EMPTY


_EMPTY = Text.of("")


def _headings(history: Sequence[str]) -> int:
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
    its = words(text)
    opens = bool(its) and (its[0].capital or its[0].text[0].isdigit())
    whole = _HEADING.fullmatch(text.strip()) and not re.search(r"[^\W_]{3}[.,;]\W*$", text)
    return bool(opens and whole and its[0].key not in _ASKS)
