"""What is known of each word of the context: whether the question lacks it, in numbers."""

from __future__ import annotations

import math
from collections import Counter

from memlab.language.leaning import FUNCTION_WORDS, JOINING, leaning, pattern
from memlab.rewrite._context import Context, Text
from memlab.rewrite._questions import question_features, stems
from memlab.rewrite._words import opens_sentence, stem

_YEAR = pattern("year")
_BEFORE, _BEFORE_NAMES = leaning("before_content"), leaning("before_names")

Features = dict[str, float]


def features(context: Context) -> dict[str, Features]:
    """Describe every content word of topics and messages that the question lacks; absent features are zero.

    The features of the question are the same for all of its words and are named ``q.``; a model that has both can
    learn that a question with *she* lacks a name, and one with *else* lacks what was just answered.
    """
    asked = {word.key for word in context.question.words}
    about = {f"q.{name}": float(value) for name, value in question_features(context).items()}
    near = stems(context.question)
    described: dict[str, Features] = {}
    for number, topic in enumerate(context.topics[:2]):
        _topic(described, topic, "section" if number else "title")
    for text in context.messages:
        _message(described, text, near)
    _names(described, context, near)
    nouns, asked_nouns = _nouns_pointed_at(context.question), _nouns_asked_for(context.message(2))
    earlier = {word.key for text in context.messages[1::2] for word in text.words}
    return {
        word: about
        | values
        | _form(word, near)
        | {
            "count": math.log1p(values.get("count", 0.0)),
            "pointed_at": float(stem(word) in nouns),
            "asked_for": float(stem(word) in asked_nouns),
            "asked_before": float(word in earlier),
        }
        for word, values in described.items()
        if word not in asked and word not in FUNCTION_WORDS
    }


def _most(values: Features, name: str, value: float) -> None:
    values[name] = max(values.get(name, 0.0), float(value))


def _topic(described: dict[str, Features], topic: Text, kind: str) -> None:
    content = [i for i, word in enumerate(topic.words) if word.content]
    for i in content:
        word = topic.words[i]
        values = described.setdefault(word.key, {})
        values[kind] = 1.0
        values[f"{kind}.length"] = min(len(content), 8) / 4
        _most(values, f"{kind}.first", i == 0)
        _most(values, f"{kind}.last", i == content[-1])
        _most(values, f"{kind}.capital", word.capital)
        _most(values, f"{kind}.bracket", "(" in topic.text[: word.start])


def _message(described: dict[str, Features], message: Text, near: set[str]) -> None:
    """Note where and how words stand in a message."""
    if message.age == 1:
        size = len(message.words)
    shared = [i for i, word in enumerate(message.words) if word.content and stem(word.key) in near]
    side = "questions" if message.age % 2 == 0 else "answers"
    for i, word in enumerate(message.words):
        if not word.content:
            continue
        values = described.setdefault(word.key, {})
        values[f"age{message.age}"] = 1.0
        values["count"] = values.get("count", 0.0) + 1.0
        values[side] = values.get(side, 0.0) + 1 / 3
        first = opens_sentence(message.text, word)
        _most(values, "capital", word.capital)
        _most(values, "lower", word.text[0].islower())
        _most(values, "capital.inside", word.capital and not first)
        _most(values, "capital.asked", word.capital and not first and message.age % 2 == 0)
        _most(values, "quoted", message.quoted(i))
        if message.age == 1:
            values["place"] = i / size
            values["early"], values["late"], values["short"] = float(i < 3), float(i >= size - 2), float(size <= 5)
        if message.age <= 2:
            _neighbours(values, message, i)
        if shared:
            distance = min(abs(i - j) for j in shared)
            _most(values, "near", 1 / (1 + distance))
            _most(values, "near.capital", word.capital / (1 + distance))


def _neighbours(values: Features, message: Text, i: int) -> None:
    before = message.words[i - 1] if i else None
    after = message.words[i + 1] if i + 1 < len(message.words) else None
    if before and before.key in _BEFORE:
        values[f"after.{before.key}"] = 1.0
    follows = message.text[message.words[i].end : message.words[i].end + 1]
    _most(values, "after.function", before is not None and not before.content)
    _most(values, "before.function", after is None or not after.content or follows in ',.;:!?")')
    _most(values, "after.capital", before is not None and before.capital and message.words[i].capital)
    _most(values, "before.capital", after is not None and after.capital and message.words[i].capital)


def _names(described: dict[str, Features], context: Context, near: set[str]) -> None:
    """Note of each word the newest name that it is part of."""
    title = context.topic(0).keys
    counts = Counter(_run(text, run) for text in context.messages for run in text.runs)
    newest = context.message(1)
    fresh = [run for run in newest.runs if not set(_run(newest, run)) <= title | FUNCTION_WORDS]
    for text in context.messages:
        for rank, (start, end) in enumerate(text.runs):
            keys = _run(text, (start, end))
            shared = {
                "name": 1 / text.age,
                "name.length": min(end - start, 6) / 3,
                "name.opens": float(opens_sentence(text.text, text.words[start])),
                "name.quoted": float(text.quoted(start)),
                "name.rank": rank / 3,
                "name.last": float(rank == len(text.runs) - 1),
                "name.count": min(counts[keys], 4) / 2,
                "name.title": float(bool(title & set(keys))),
                "name.only": float(text.age == 1 and fresh == [(start, end)]),
            }
            before = text.words[start - 1].key if start else ""
            if before in _BEFORE_NAMES:
                shared[f"name.after.{before}"] = 1.0
            shared["name.noun_before"] = float(stem(before) in near)
            shared["name.noun_after"] = float(end < len(text.words) and stem(text.words[end].key) in near)
            for i in range(start, end):
                values = described.setdefault(text.words[i].key, {})
                if "name" not in values:
                    values.update(shared)
                    values["name.offset"], values["name.end"] = (i - start) / 3, float(i == end - 1)


def _run(text: Text, run: tuple[int, int]) -> tuple[str, ...]:
    return tuple(word.key for word in text.words[slice(*run)])


def _form(word: str, near: set[str]) -> Features:
    return {
        "digits": float(word.isdigit()),
        "year": float(bool(_YEAR.fullmatch(word))),
        "length": min(len(word), 12) / 8,
        "ing": float(word.endswith("ing")),
        "ed": float(word.endswith("ed")),
        "ly": float(word.endswith("ly")),
        "plural": float(word.endswith("s")),
        "other_form": float(stem(word) in near),
    }


def _nouns_pointed_at(question: Text) -> set[str]:
    """Stems of the words after *this*, *that*, *the*, *same* …, with one between at most."""
    keys = [word.key for word in question.words]
    pointing = [i for i, k in enumerate(keys) if k in ("this", "that", "these", "those", "the", "same")]
    return {stem(k) for i in pointing for k in keys[i + 1 : i + 3] if k not in FUNCTION_WORDS}


def _nouns_asked_for(question: Text) -> set[str]:
    """Stems of the first content words after *what*, *which*, *how many*."""
    nouns = set()
    for i, word in enumerate(question.words):
        if word.key in ("what", "which", "whose", "many"):
            after = (w.key for w in question.words[i + 1 :] if w.content or w.key in JOINING)
            nouns |= {stem(k) for k in list(after)[:2] if k not in JOINING}
    return nouns
