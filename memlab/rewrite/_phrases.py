"""Chosen words, put together to phrases as they stand in the context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memlab.language.words import NAME_JOINERS
from memlab.rewrite._context import Context, Text
from memlab.rewrite._words import bare

_JOINED_BY = 2
# A full stop after so few letters is that of an initial or a title, not the end of a sentence.
INITIAL = 2
_BRIDGES = NAME_JOINERS - {"and", "to", "on", "at", "with"}


@dataclass(frozen=True)
class Phrase:
    """Words that stand together.

    :param text: as written.
    :param keys: the chosen words in it.
    :param weight: the mean of their probabilities.
    :param age: of the message it stands in; 0 for a topic.
    :param name: whether it is capitalised or a topic's.
    :param title: whether it is of the first topic.
    :param before: the word before it, in lower case.
    """

    text: str
    keys: tuple[str, ...]
    weight: float
    age: int
    name: bool
    title: bool
    before: str


def phrases(context: Context, chosen: Mapping[str, float]) -> list[Phrase]:
    """Group chosen words by where they stand; each word once, in the first topic or the newest text that has it."""
    left, found = set(chosen), []
    order = [*context.topics[:1], *context.messages, *context.topics[1:]]
    for text in order:
        runs = _whole(text, left) if text is context.topic(0) else _runs(text, left)
        for run in runs:
            keys = tuple(dict.fromkeys(text.words[i].key for i in run if text.words[i].key in left))
            if not keys:
                continue
            left -= set(keys)
            first = run[0]
            article = _has_article(text, run)
            found.append(
                Phrase(
                    text=_slice(text, run, article),
                    keys=keys,
                    weight=sum(chosen[key] for key in keys) / len(keys),
                    age=text.age,
                    name=text.age == 0 or all(text.words[i].capital for i in (first, run[-1])),
                    title=text is context.topic(0),
                    before=text.words[first - 1 - article].key if first > article else "",
                )
            )
    return found


def _whole(title: Text, chosen: set[str]) -> list[list[int]]:
    """Take the whole title, with its article, when all its content words are chosen; brackets are apart."""
    bracket = title.text.find("(")
    main = [i for i, word in enumerate(title.words) if bracket < 0 or word.start < bracket]
    keys = {title.words[i].key for i in main if title.words[i].content}
    if not keys or not keys <= chosen:
        return _runs(title, chosen)
    return [main, *_runs(title, chosen - keys)]


def _runs(text: Text, chosen: set[str]) -> list[list[int]]:
    """Find ranges of chosen words, where connectors such as *of the* may stand between two."""
    runs: list[list[int]] = []
    for i, word in enumerate(text.words):
        if word.key not in chosen:
            continue
        if runs and _joined(text, runs[-1][-1], i):
            runs[-1] += range(runs[-1][-1] + 1, i + 1)
        else:
            runs.append([i])
    return runs


def _joined(text: Text, one: int, other: int) -> bool:
    between = text.words[one + 1 : other]
    gap = text.text[text.words[one].end : text.words[other].start]
    if "." in gap and len(text.words[one].text) > INITIAL:
        return False
    near = len(between) <= _JOINED_BY and all(word.key in _BRIDGES for word in between)
    return near and not set(gap) & set(',;:!?"()[]“”\n')


def _has_article(text: Text, run: list[int]) -> bool:
    return run[0] > 0 and text.words[run[0] - 1].key == "the" and text.words[run[0]].capital


def _slice(text: Text, run: list[int], article: bool) -> str:
    """Copy the words of a run, with the article before it."""
    phrase = bare(text.text[text.words[run[0]].start : text.words[run[-1]].end])
    if not article:
        return phrase
    # The article of a title is a part of it; that of a name in a sentence has a capital only where it begins one.
    return f"{text.words[run[0] - 1].text if text.age == 0 else 'the'} {phrase}"
