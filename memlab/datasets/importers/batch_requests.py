"""Batches of requests whose answers stand in other lines, mostly of another file.

Layouts: OpenAI's and Anthropic's batches, where ``custom_id`` joins the two, and Gemini's, where
``key`` does. Such an id is unique in its batch alone: the next batch may begin with ``request-1``
again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from memlab.datasets.importers.loose_json import JsonValue, first_field_text, get_nested
from memlab.datasets.importers.user_and_thread_fields import ScopeAndSession


def read_custom_id_or_key_or_empty(raw_record: JsonValue) -> str:
    """Give the id that joins a request of a batch and its answer; empty without one.

    Beside a request with its answer ``key`` is something else.

    >>> read_custom_id_or_key_or_empty({"id": "batch_req_7", "custom_id": "request-1"})
    'request-1'
    """
    custom_id = first_field_text(raw_record, "custom_id")
    if custom_id:
        return custom_id
    holds_request = isinstance(get_nested(raw_record, "request"), dict)
    holds_answer = isinstance(get_nested(raw_record, "response"), dict)
    if holds_request == holds_answer:
        return ""
    return first_field_text(raw_record, "key")


@dataclass(eq=False)
class Batch:
    """Requests or answers of a file that follow each other, in which no id comes twice.

    :param ids: the ids; of requests with their places, which an answer takes away.
    :param partner: the requests that answers belong to; of requests whether there are such answers.
    """

    file: str
    ids: dict[str, ScopeAndSession | None] = field(default_factory=dict)
    partner: Batch | None = None


class RequestBatches:
    """The requests of a load that no answer was found for yet, and the answers that wait."""

    def __init__(self) -> None:
        self.asking = Batch("")
        self.answering = Batch("")
        self.open: dict[tuple[str, str], deque[Batch]] = {}

    def add_request_to_batch(
        self, file_name: str, custom_id: str, scope_and_session: ScopeAndSession
    ) -> None:
        """Take up a request of a file, which stands at a place."""
        self.answering = Batch("")
        if self.asking.file != file_name or custom_id in self.asking.ids:
            self.asking = Batch(file_name)
        self.asking.ids[custom_id] = scope_and_session
        for surrounding in _lookup_keys_of_file_folder_and_all(file_name):
            self.open.setdefault((custom_id, surrounding), deque()).append(self.asking)

    def add_answer_to_batch(self, file_name: str, custom_id: str) -> Batch:
        """Take up an answer of a file, and give the answers that it is one of."""
        self.asking = Batch("")
        if self.answering.file != file_name or custom_id in self.answering.ids:
            self.answering = Batch(file_name)
        self.answering.ids[custom_id] = None
        return self.answering

    def take_scope_and_session_of_request(
        self, custom_id: str, answer_batch: Batch
    ) -> ScopeAndSession | None:
        """Give the place of the request that an answer belongs to; no other answer gets it.

        That is a request of the batch which the answers with it belong to. Else it is one of the
        same file, or of the same folder, or any, and first of a batch without answers.

        :returns: ``None`` without such a request.
        """
        request_batch = answer_batch.partner
        if request_batch is None or custom_id not in request_batch.ids:
            request_batch = self._find_nearest_request_batch(custom_id, answer_batch.file)
        if request_batch is None:
            return None
        if answer_batch.partner is None:
            answer_batch.partner = request_batch
        request_batch.partner = answer_batch
        for surrounding in _lookup_keys_of_file_folder_and_all(request_batch.file):
            self.open[custom_id, surrounding].remove(request_batch)
        return request_batch.ids.pop(custom_id)

    def _find_nearest_request_batch(self, custom_id: str, answer_file_name: str) -> Batch | None:
        """Find a batch with an open request of an id, the nearest to the file of its answer."""
        nearest_batch = None
        for surrounding in _lookup_keys_of_file_folder_and_all(answer_file_name):
            for batch in self.open.get((custom_id, surrounding), ()):
                if batch.partner is None:
                    return batch
                if nearest_batch is None:
                    nearest_batch = batch
        return nearest_batch


def _lookup_keys_of_file_folder_and_all(file_name: str) -> tuple[str, str, str]:
    """Give what a file stands in, the narrowest first: the file, its folder, all that is read."""
    return f"file {file_name}", f"folder {PurePosixPath(file_name).parent}", ""
