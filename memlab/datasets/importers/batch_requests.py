"""Batches of requests whose answers stand in other lines, mostly of another file.

Layouts: OpenAI's and Anthropic's batches, where ``custom_id`` joins the two, and Gemini's, where
``key`` does. Such an id is unique in its batch alone: the next batch may begin with ``request-1``
again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.importers.loose_json import first_field, get_nested

Place = tuple[str, str]
"""The scope and the session of a request."""


def read_custom_id(raw: Any) -> str:
    """Give the id that joins a request of a batch and its answer; empty without one.

    Beside a request with its answer ``key`` is something else.

    >>> read_custom_id({"id": "batch_req_7", "custom_id": "request-1"})
    'request-1'
    """
    custom_id = first_field(raw, "custom_id")
    if custom_id:
        return custom_id
    holds_request = isinstance(get_nested(raw, "request"), dict)
    holds_answer = isinstance(get_nested(raw, "response"), dict)
    if holds_request == holds_answer:
        return ""
    return first_field(raw, "key")


@dataclass(eq=False)
class Batch:
    """Requests or answers of a file that follow each other, in which no id comes twice.

    :param ids: the ids; of requests with their places, which an answer takes away.
    :param partner: the requests that answers belong to; of requests whether there are such answers.
    """

    file: str
    ids: dict[str, Place | None] = field(default_factory=dict)
    partner: Batch | None = None


class Batches:
    """The requests of a load that no answer was found for yet, and the answers that wait."""

    def __init__(self) -> None:
        self.asking = Batch("")
        self.answering = Batch("")
        self.open: dict[tuple[str, str], deque[Batch]] = {}

    def add_request(self, file: str, own: str, place: Place) -> None:
        """Take up a request of a file, which stands at a place."""
        self.answering = Batch("")
        if self.asking.file != file or own in self.asking.ids:
            self.asking = Batch(file)
        self.asking.ids[own] = place
        for surrounding in _list_surroundings(file):
            self.open.setdefault((own, surrounding), deque()).append(self.asking)

    def add_answer(self, file: str, own: str) -> Batch:
        """Take up an answer of a file, and give the answers that it is one of."""
        self.asking = Batch("")
        if self.answering.file != file or own in self.answering.ids:
            self.answering = Batch(file)
        self.answering.ids[own] = None
        return self.answering

    def take_request(self, own: str, answers: Batch) -> Place | None:
        """Give the place of the request that an answer belongs to; no other answer gets it.

        That is a request of the batch which the answers with it belong to. Else it is one of the
        same file, or of the same folder, or any, and first of a batch without answers.

        :returns: ``None`` without such a request.
        """
        request_batch = answers.partner
        if request_batch is None or own not in request_batch.ids:
            request_batch = self._find_batch(own, answers.file)
        if request_batch is None:
            return None
        if answers.partner is None:
            answers.partner = request_batch
        request_batch.partner = answers
        for surrounding in _list_surroundings(request_batch.file):
            self.open[own, surrounding].remove(request_batch)
        return request_batch.ids.pop(own)

    def _find_batch(self, custom_id: str, file: str) -> Batch | None:
        """Find a batch with an open request of an id, the nearest to the file of its answer."""
        nearest_batch = None
        for surrounding in _list_surroundings(file):
            for batch in self.open.get((custom_id, surrounding), ()):
                if batch.partner is None:
                    return batch
                if nearest_batch is None:
                    nearest_batch = batch
        return nearest_batch


def _list_surroundings(file: str) -> tuple[str, str, str]:
    """Give what a file stands in, the narrowest first: the file, its folder, all that is read."""
    return f"file {file}", f"folder {PurePosixPath(file).parent}", ""
