"""Rewriting by a language model, which may fail, ramble or answer: then the question stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from memlab.language.tokens import base, tokens
from memlab.language.words import QUESTION_WORDS
from memlab.llm import Service, answers
from memlab.rewrite._context import MESSAGES
from memlab.rewrite.measure import content_words

MAX_OUTPUT = 150
LONGEST_MESSAGE = 1_000

# A rewrite may be this many times as long as its question, and this many words longer.
TIMES, MORE = 2, 30

SYSTEM = """You rewrite the last question of a conversation so that it can be understood without the conversation.
Replace words such as he, it, that, there, the other one by what they stand for, and add what is left out, such as the
name of what is spoken of. Keep the rest of the question word for word. Change nothing when it can be understood alone.
Never answer the question. Give JSON with the rewritten question and nothing else."""


class Rewritten(BaseModel):
    """What the model is asked for."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=1_000)


def asked(
    questions: Sequence[str],
    histories: Sequence[Sequence[str]],
    topics: Sequence[Sequence[str]],
    *,
    service: Service,
) -> list[str | None]:
    """Ask for rewrites of at most 150 tokens: a text for each question, or ``None`` where none is of use.

    :raises ModelError: when the service cannot be asked at all: no client, no address, no key.
    """
    room = service.max_input
    parts = zip(questions, histories, topics, strict=True)
    prompts = [_prompt(question, history, about, room) for question, history, about in parts]
    short = replace(service, max_output=min(MAX_OUTPUT, service.max_output or MAX_OUTPUT))
    outcomes = answers(short, prompts, Rewritten, system=SYSTEM) if prompts else []
    texts = [one.answer.question.strip() if one.answer is not None else "" for one in outcomes]
    return [text if is_rewrite(text, of=question) else None for text, question in zip(texts, questions, strict=True)]


def is_rewrite(text: str, *, of: str) -> bool:
    """Say whether a text can be a rewrite of a question: not empty, not much longer, not its answer.

    >>> from memlab.rewrite.asking import is_rewrite
    >>> is_rewrite("When was Ada born?", of="When was she born?")
    True
    >>> is_rewrite("Ada was born in 1815.", of="When was she born?")
    False
    """
    if not text.strip() or "\n" in text.strip():
        return False
    if len(tokens(text)) > TIMES * len(tokens(of)) + MORE:
        return False
    if _asks(of) and not _asks(text):
        return False
    has, had = set(content_words(text)), set(content_words(of))
    return 2 * len(has & had) >= len(had)


def _asks(text: str) -> bool:
    first = text.split(maxsplit=1)[:1]
    return text.rstrip().endswith("?") or bool(first and base(first[0]) in QUESTION_WORDS)


def _prompt(question: str, history: Sequence[str], topics: Sequence[str], room: int | None) -> str:
    """Show topics, the last six messages and the question, each message cut so that the question is never."""
    recent = list(history)[-MESSAGES:]
    head = f"Topic: {' · '.join(topics)[:LONGEST_MESSAGE]}\n\n" if topics else ""
    tail = f"\n\nQuestion to rewrite: {question}"
    free = (
        LONGEST_MESSAGE if room is None else (room - len(head) - len(tail)) // max(1, len(recent)) - len("Question: \n")
    )
    longest = max(0, min(LONGEST_MESSAGE, free))
    # The newest message is an answer, the one before it a question.
    sides = ["Question" if (len(recent) - i) % 2 == 0 else "Answer" for i in range(len(recent))]
    return head + "\n".join(f"{side}: {text[:longest]}" for side, text in zip(sides, recent, strict=True)) + tail
