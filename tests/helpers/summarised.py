"""Short conversations with dates, and a model of summaries that is a function of what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from memlab.llm import Answer, Request
from memlab.records import Turn, frame
from memlab.summaries import GROUPS


def chat(*sessions: tuple[str, str | None, list[str]], scope: str = "u") -> pl.DataFrame:
    """Write sessions, ``(name, ISO time or None, lines)``, as turns of one scope; a line is ``Speaker: text``."""
    rows = []
    for name, day, lines in sessions:
        when = None if day is None else datetime.fromisoformat(f"{day}+00:00")
        for n, (who, text) in enumerate((line.split(": ", 1) for line in lines), 1):
            role = "assistant" if who == "assistant" else "user"
            rows.append(
                Turn(
                    f"{scope}/{name}/{n}", scope, f"{scope}/{name}", n, who, role, text, None, when
                )
            )
    return frame(Turn, rows)


class Model:
    """Answers each request with one sentence on all its entries, and remembers what it was asked.

    :param change: makes another answer of that.
    """

    __name__ = "lab"

    def __init__(self, change: Callable[[dict[str, Any]], Any] = lambda answer: answer) -> None:
        self.asked: list[Request] = []
        self.change = change

    def __call__(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked += requests
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Answer:
        if request.task == GROUPS:  # computed, and only to be recorded
            return Answer(request.shape.model_validate_json(request.prompt))
        asked = json.loads(request.prompt)
        now = asked["now"] if isinstance(asked, dict) else asked
        sentence = {
            "text": f"Of {len(now)}: {now[0]['text'][:40]}",
            "ids": [entry["id"] for entry in now],
        }
        empty = {name: [] for name in request.shape.model_fields}
        value = self.change(empty | {"sentences": [sentence], "topics": ["boats"]})
        return (
            Answer(None, "timed out")
            if value is None
            else Answer(request.shape.model_validate(value))
        )
