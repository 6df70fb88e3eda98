"""Short conversations with dates, and a model that is a function of what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab import llm
from memlab.llm import Answer, Request, recording
from memlab.records import Turn, frame
from memlab.summaries import GROUPS


@pytest.fixture(scope="session")
def talk() -> Callable[..., pl.DataFrame]:
    """Write sessions, ``(name, ISO time or None, lines)``, as turns of one scope; a line is ``Speaker: text``."""

    def make(*sessions: tuple[str, str | None, list[str]], scope: str = "u") -> pl.DataFrame:
        rows = []
        for name, day, lines in sessions:
            when = None if day is None else datetime.fromisoformat(f"{day}+00:00")
            for n, line in enumerate(lines, 1):
                who, text = line.split(": ", 1)
                role = "assistant" if who == "assistant" else "user"
                rows.append(Turn(f"{scope}/{name}/{n}", scope, f"{scope}/{name}", n, who, role, text, None, when))
        return frame(Turn, rows)

    return make


class Model:
    """Answers each request with one sentence on all its entries, and remembers what it was asked.

    :param change: makes another answer of that.
    """

    def __init__(self, change: Callable[[dict[str, Any]], Any] = lambda answer: answer) -> None:
        self.asked: list[Request] = []
        self.change = change
        self.__name__ = "lab"

    def __call__(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked += requests
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Answer:
        if request.task == GROUPS:
            return Answer(None, "not recorded")
        asked = json.loads(request.prompt)
        now = asked["now"] if isinstance(asked, dict) else asked
        about = {name: [] for name in request.shape.model_fields}
        sentence = {"text": f"Of {len(now)}: {now[0]['text'][:40]}", "ids": [entry["id"] for entry in now]}
        value = self.change({**about, "sentences": [sentence], "topics": ["boats"]})
        return Answer(None, "timed out") if value is None else Answer(request.shape.model_validate(value))


@pytest.fixture
def model() -> type[Model]:
    return Model


class _Lacking(Exception):
    """Ends a round: what follows stands on answers that are not there yet."""


def recorded_in_rounds(make: Callable[..., Any], lab: Model, path: Path) -> list[list[Request]]:
    """Record what a function asks for, round by round, as one who cannot be called does; give the rounds."""
    rounds = []
    while True:
        lacking = list[Request]()

        def reads(requests: Sequence[Request], lacking: list[Request] = lacking) -> list[Answer]:
            answers = llm.ask(requests, llm.RECORDED)
            new = [each for each, answer in zip(requests, answers, strict=True) if answer.value is None]
            lacking += new
            if any(each.task != GROUPS for each in new):
                raise _Lacking
            return answers

        with suppress(_Lacking):
            make(service=reads)
        if not lacking:
            return rounds
        rounds.append(lacking)
        for each in lacking:
            value = each.shape.model_validate_json(each.prompt) if each.task == GROUPS else lab.answer(each).value
            row = {"task": each.task, "version": each.version, "key": each.key}
            recording.append(path, row | {"answer": value.model_dump(), "tokens": [1, 1]})


@pytest.fixture
def record_rounds() -> Callable[..., list[list[Request]]]:
    return recorded_in_rounds
