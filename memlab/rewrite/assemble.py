"""Chosen words as phrases, as they stand in the context, and the question with these put in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from memlab.language.leaning import FUNCTION_WORDS, leaning
from memlab.language.words import HE, NAME_JOINERS, SHE
from memlab.rewrite._context import Context, Text
from memlab.rewrite.signals import demonstratives, is_possessive, open_pronouns

_JOINED_BY = 2
# A full stop after so few letters is that of an initial or a title, not the end of a sentence.
_INITIAL = 2
_BRIDGES = NAME_JOINERS - {"and", "to", "on", "at", "with"}
_WITH_PREPOSITION = leaning("appended")
_PERSON = HE | SHE

Change = tuple[int, int, str]


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
    left, rows = set(chosen), []
    for text in [*context.topics[:1], *context.messages, *context.topics[1:]]:
        title = text is context.topic(0)
        for run in _whole(text, left) if title else _runs(text, left):
            keys = tuple(dict.fromkeys(text.words[i].key for i in run if text.words[i].key in left))
            if not keys:
                continue
            left -= set(keys)
            first, last = (text.words[i] for i in (run[0], run[-1]))
            # The article of a title is part of it; that of a name in a sentence has a capital only where it begins one.
            article = first.capital and run[0] > 0 and text.words[run[0] - 1].key == "the"
            the = f"{'the' if text.age else text.words[run[0] - 1].text} " if article else ""
            rows.append(
                Phrase(
                    text=the + re.sub(r"['’]s?$", "", text.text[first.start : last.end]),
                    keys=keys,
                    weight=sum(chosen[key] for key in keys) / len(keys),
                    age=text.age,
                    name=text.age == 0 or (first.capital and last.capital),
                    title=title,
                    before=text.words[run[0] - 1 - article].key if run[0] > article else "",
                )
            )
    return rows


def _whole(title: Text, chosen: set[str]) -> list[list[int]]:
    """Take the whole title, with its article, when all its content words are chosen; brackets are apart."""
    bracket = title.text.find("(")
    main = [i for i, word in enumerate(title.words) if bracket < 0 or word.start < bracket]
    keys = {title.words[i].key for i in main if title.words[i].content}
    return [main, *_runs(title, chosen - keys)] if keys and keys <= chosen else _runs(title, chosen)


def _runs(text: Text, chosen: set[str]) -> list[list[int]]:
    """Find ranges of chosen words, where connectors such as *of the* may stand between two."""
    runs: list[list[int]] = []
    for i, word in enumerate(text.words):
        if word.key in chosen and runs and _joined(text, runs[-1][-1], i):
            runs[-1] += range(runs[-1][-1] + 1, i + 1)
        elif word.key in chosen:
            runs.append([i])
    return runs


def _joined(text: Text, left: int, right: int) -> bool:
    between = text.words[left + 1 : right]
    gap = text.text[text.words[left].end : text.words[right].start]
    if "." in gap and len(text.words[left].text) > _INITIAL:
        return False
    near = len(between) <= _JOINED_BY and all(word.key in _BRIDGES for word in between)
    return near and not set(gap) & set(',;:!?"()[]“”\n')


def assemble(context: Context, chosen: list[Phrase], signals: list[str]) -> str:
    """Put phrases into a question: in the place of pronouns, with the rest of a name, or after its end.

    The first pronoun gives way to the name that is most likely meant. A part of the topic's name becomes the whole.
    What is left is appended: after *besides* for a question that asks for something else, with the preposition it had
    where it had one, and in brackets otherwise, as are the things to choose from.
    """
    left = list(chosen)
    changes = [*_complete_name(context, left), *_replace_pronouns(context, left), *_replace_that(context, left)]
    text = context.question.text
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return _append(text, left, signals)


def _complete_name(context: Context, left: list[Phrase]) -> list[Change]:
    """Write the whole title where the question has a part of it."""
    part = next((phrase for phrase in left if phrase.title), None)
    title, question = context.topic(0), context.question
    if part is None:
        return []
    wanted = set(part.keys) | title.keys & question.keys
    span = [i for i, word in enumerate(title.words) if word.key in wanted]
    have = [word for word in question.words if word.key in title.keys and word.content]
    if not have or span != list(range(span[0], span[-1] + 1)) or have[-1].end - have[0].start > 60:
        return []
    inside = {word.key for word in question.words if have[0].start <= word.start < have[-1].end}
    if not inside <= {word.key for word in title.words}:
        return []
    left.remove(part)
    ending = have[-1].text[-2:] if have[-1].text.endswith(("'s", "’s")) else ""
    whole = title.text[title.words[span[0]].start : title.words[span[-1]].end]
    return [(have[0].start, have[-1].end, whole + ending)]


def _replace_pronouns(context: Context, left: list[Phrase]) -> list[Change]:
    """Replace the first pronoun of each kind by the name that is most likely meant."""
    changes, seen = [], set()
    people = any(word.key in _PERSON for text in [context.question, *context.messages] for word in text.words)
    for word in open_pronouns(context):
        kind = "person" if word.key in _PERSON else "thing"
        fitting = [phrase for phrase in left if phrase.name and not phrase.keys[0].isdigit()]
        if kind not in seen and fitting:
            # Where people are spoken of, a title is a person's name more often than a thing's.
            doubt = 0.5 if kind == "thing" and people else 0.0
            best = max(fitting, key=lambda phrase: phrase.weight - doubt * phrase.title)
            left.remove(best)
            new = possessive(best.text) if is_possessive(context.question.words, word) else best.text
            changes.append((word.start, word.end, new + word.text[len(word.key) :]))
        seen.add(kind)
    return changes


def _replace_that(context: Context, left: list[Phrase]) -> list[Change]:
    """Replace *that* where it stands alone by what the last answer named."""
    its = context.question.words
    spoken = [phrase for phrase in left if phrase.age == 1 and not phrase.title]
    for word in demonstratives(its) if spoken else []:
        after = its[its.index(word) + 1 :]
        if not after or after[0].key in FUNCTION_WORDS:
            best = max(spoken, key=lambda phrase: phrase.weight)
            left.remove(best)
            return [(word.start, word.end, best.text)]
    return []


def possessive(text: str) -> str:
    """Make *X's* of a phrase, and *the Kinks'* of a plural."""
    if text.endswith(("'s", "’s")):
        return text
    return f"{text}'" if text.endswith("s") else f"{text}'s"


def _append(text: str, left: list[Phrase], signals: list[str]) -> str:
    """Put what is left behind the question."""
    if not left:
        return text
    body = text.rstrip()
    stem = body.rstrip("?!. ")
    mark = body[len(stem) :].strip() or "?"
    choice = "choice" in signals
    answered = [p for p in left if p.age > 0 and "other" in signals and not choice]
    placed = [p for p in left if p not in answered and p.before in _WITH_PREPOSITION and not choice]
    named = [p.text for p in left if p not in answered and p not in placed]
    parts = [stem, *(f"{p.before} {p.text}" for p in placed)]
    if named:
        parts.append(f"({', '.join(named)})")
    if answered:
        parts.append(f"besides {', '.join(p.text for p in answered)}")
    return " ".join(parts) + mark
