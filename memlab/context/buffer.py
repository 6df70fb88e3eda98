"""A rolling summary of a conversation: the last turns verbatim, what came before them in two hundred words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from memlab.embed.text import ROLES
from memlab.language.mentions import LOOSE, mentions
from memlab.language.sentences import sentences
from memlab.language.tokens import words
from memlab.language.words import COURTESY, STOP_WORDS
from memlab.llm import Service, answers
from memlab.records import Turn

VERBATIM = 4
AT_ONCE = 2
MAX_WORDS = 200
MAX_PENDING = 64

_LONGEST = 220
_SPEAKER = re.compile(r"^[^\W\d_][^\d:]{0,40}: ")

Summariser = Callable[[tuple[str, ...], Sequence[Turn]], tuple[str, ...]]
"""The sentences of a summary and the turns that follow in, the sentences of the new summary out."""


@dataclass(frozen=True)
class RollingBuffer:
    """A conversation so far; a value: :func:`add` and :func:`read` give new ones.

    :param turns: those that are not in the summary, oldest first: the last :data:`VERBATIM`, and what was not read yet.
    :param summary: sentences over all turns before; together at most :data:`MAX_WORDS` words.
    :param n_summarised: turns in the summary.
    :param calls: how often the summariser was called.
    """

    turns: tuple[Turn, ...] = ()
    summary: tuple[str, ...] = ()
    n_summarised: int = 0
    calls: int = 0

    @property
    def text(self) -> str:
        """The summary, then the turns."""
        turns = [turn.text if turn.speaker in ROLES else f"{turn.speaker}: {turn.text}" for turn in self.turns]
        return "\n".join([*([" ".join(self.summary)] if self.summary else []), *turns])


def append_turns(
    buffer: RollingBuffer, turns: Sequence[Turn], *, summarise: Summariser | None = None, pending: int = MAX_PENDING
) -> RollingBuffer:
    """Add turns. Nothing is summarised before the buffer is read, or more than ``pending`` turns wait.

    >>> from memlab import Turn
    >>> from memlab.context import RollingBuffer, append_turns, update_summary
    >>> turns = [Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", f"I paid ${n}0 on {n} May.") for n in range(1, 8)]
    >>> buffer = append_turns(RollingBuffer(), turns)
    >>> buffer.calls, update_summary(buffer).calls, update_summary(buffer).summary
    (0, 1, ('Mel: I paid $10 on 1 May.', 'Mel: I paid $20 on 2 May.'))
    """
    buffer = replace(buffer, turns=(*buffer.turns, *turns))
    full = len(buffer.turns) > max(pending, VERBATIM + AT_ONCE)
    return update_summary(buffer, summarise=summarise) if full else buffer


def update_summary(buffer: RollingBuffer, *, summarise: Summariser | None = None) -> RollingBuffer:
    """Summarise what is older than the last turns, two turns at a time; an odd one waits for the next.

    Each pair is folded into the summary in order, so that turns added one by one, read in between or not, come to the
    same summary as turns added at once.

    :param summarise: :func:`extractive` by default; :class:`ByModel` for a language model.
    """
    pairs = max(0, len(buffer.turns) - VERBATIM) // AT_ONCE
    if not pairs:
        return buffer
    summary = buffer.summary
    for n in range(pairs):
        summary = bounded((summarise or extractive)(summary, buffer.turns[n * AT_ONCE : (n + 1) * AT_ONCE]))
    done = pairs * AT_ONCE
    return RollingBuffer(buffer.turns[done:], summary, buffer.n_summarised + done, buffer.calls + pairs)


def extractive(summary: tuple[str, ...], turns: Sequence[Turn]) -> tuple[str, ...]:
    """Keep whole sentences, those with dates, amounts and names first.

    Sentences that say nothing ("Wow, thanks!") are left out. While the summary is too long, the sentence that keeps the
    fewest values a word is given up; a value that another sentence keeps counts for neither, and of equal sentences
    questions go first, then the oldest.
    """
    clean = [replace(turn, text=turn.text.encode("utf-8", "replace").decode()) for turn in turns]
    heads = ["" if turn.speaker in ROLES else f"{turn.speaker}: " for turn in clean]
    said = [head + text for head, turn in zip(heads, clean, strict=True) for text in sentences(turn.text)]
    who = _speakers((*summary, *said))
    fresh = [shorten(text, _LONGEST, placeholder="…") for text in said if _tells(text, who)]
    return bounded((*summary, *(text for text in dict.fromkeys(fresh) if text not in summary)))


def bounded(sentences: Sequence[str]) -> tuple[str, ...]:
    """Give up sentences until they have at most :data:`MAX_WORDS` words."""
    who = _speakers(sentences)
    rows = [(text, _values(text, who), len(text.split())) for text in sentences]
    while sum(size for *_, size in rows) > MAX_WORDS:
        often = Counter(value for _, values, _ in rows for value in values)
        worth = [
            (sum(often[value] == 1 for value in values) / max(size, 1), not text.endswith("?"), at)
            for at, (text, values, size) in enumerate(rows)
        ]
        del rows[min(worth)[-1]]
    return tuple(text for text, *_ in rows)


def _speakers(sentences: Sequence[str]) -> tuple[str, ...]:
    heads = (match[0] for text in sentences if (match := _SPEAKER.match(text)))
    return tuple(sorted({word for head in heads for word in head.casefold().rstrip(": ").split()}))


def _values(text: str, speakers: Sequence[str] = ()) -> frozenset[str]:
    """The dates, amounts and names of a sentence; not the names of those who talk to each other, in full or short."""
    values = (m.value for m in mentions(_SPEAKER.sub("", text)) if not m.opens and m.value not in LOOSE)
    return frozenset(value for value in values if not any(name.startswith(value) for name in speakers))


def _tells(text: str, speakers: Sequence[str]) -> bool:
    told = set(words(_SPEAKER.sub("", text))) - STOP_WORDS - COURTESY - set(speakers)
    return bool(_values(text, speakers)) or sum(len(word) > 2 for word in told) > 1


_Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]
SYSTEM = (
    "You keep the running summary of a conversation. You are given the summary so far and the next turns. Write the "
    "summary anew so that it covers both, in at most 180 words, as short sentences with the speakers' names. Keep "
    "every date, amount and name that matters; add nothing, guess nothing; leave out greetings and thanks."
)


class Running(BaseModel, extra="forbid"):
    """What a model answers: the sentences of the summary."""

    sentences: Annotated[list[_Sentence], Field(min_length=1, max_length=24)]


@dataclass
class ByModel:
    """Summarise by a language model; by extraction where it fails or writes too much (``failures`` says why)."""

    service: Service
    failures: list[str] = field(default_factory=list)

    def __call__(self, summary: tuple[str, ...], turns: Sequence[Turn]) -> tuple[str, ...]:
        """Fold turns into a summary."""
        lines = "\n".join(f"{turn.speaker}: {' '.join(turn.text.split())}" for turn in turns)
        prompt = f"Summary so far:\n{' '.join(summary) or '(nothing yet)'}\n\nNext turns:\n{lines}"
        (outcome,) = answers(self.service, [prompt], Running, system=SYSTEM)
        if outcome.answer is None:
            self.failures.append(outcome.failure)
            return extractive(summary, turns)
        made = tuple(" ".join(text.split()) for text in outcome.answer.sentences)
        n_words = sum(len(text.split()) for text in made)
        if n_words > MAX_WORDS:
            self.failures.append(f"the summary has {n_words} words; {MAX_WORDS} are the most")
            return extractive(summary, turns)
        return made
