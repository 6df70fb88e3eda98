"""How a person goes through questions that a model proposed, in their file: accept, mend or drop.

A model's proposals are lines of JSON with ``"source": "proposed"``. To accept one, a person writes
``"accepted"`` there; to drop it, they delete the line. :class:`ProposalFile` does the same for
tools. All other lines of the file stay as they are, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memlab.atomic_files import make_absolute, open_atomically
from memlab.datasets.record_fields import (
    BadField,
    JsonObject,
    Record,
    check_name,
    check_question_source,
)
from memlab.errors import DataError
from memlab.records.dataset import ACCEPTED, PROPOSED

_OF_EVIDENCE = ("evidence", "evidence_sessions", "reasons")
"""What is about other evidence, once a person names the evidence anew."""


class ProposalFile:
    """The questions of a file that a model proposed, for a person to accept, mend or drop.

    :param path: of JSON lines, perhaps with messages and other questions between them. A file that
        does not exist has no proposals.
    :raises DataError: where a proposal has no id of its own, or a source that is none.

    >>> import tempfile
    >>> from memlab.datasets.reviewing_proposals import ProposalFile
    >>> line = '{"scope": "ann", "question": "Where?", "query_id": "p1", "source": "proposed"}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "proposed.jsonl")
    ...     _ = path.write_text(line)
    ...     ProposalFile(path).accept(["p1"])
    ...     path.read_text()
    '{"scope": "ann", "question": "Where?", "query_id": "p1", "source": "accepted"}'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = make_absolute(path)
        self.read()

    def read(self) -> None:
        """Read the file anew, as after somebody else changed it."""
        content = _read_bytes_or_empty(self.path)
        self._digest = hashlib.sha256(content).hexdigest()
        self._lines = content.splitlines(keepends=True)
        self._places = dict[str, int]()
        self._records = dict[str, dict[str, Any]]()
        for line_number, line in enumerate(self._lines):
            record = _parse_proposal_line(line, f"{self.path.name}: line {line_number + 1}")
            if record is None:
                continue
            query_id = str(record["query_id"])
            if query_id in self._places:
                first_line = self._places[query_id] + 1
                raise DataError(
                    f"{self.path.name}: line {line_number + 1}: query_id: found {query_id!r} again "
                    f"(first on line {first_line}); give each proposal an id of its own"
                )
            self._places[query_id] = line_number
            self._records[query_id] = record

    @property
    def records(self) -> list[JsonObject]:
        """The questions that are proposed or accepted, as their lines have them."""
        return list(self._records.values())

    def accept(self, query_ids: Iterable[str]) -> None:
        """Note that a person has read these and finds them right, evidence and answer included.

        :raises DataError: for an unknown id, and where the file was changed after it was read.
        """
        changed = {}
        for query_id in query_ids:
            changed[query_id] = self._get_proposal_or_refuse(query_id) | {"source": ACCEPTED}
        self._write_changed_lines_and_reread(changed)

    def drop(self, query_ids: Iterable[str]) -> None:
        """Remove the lines of these questions; :raises DataError: as :meth:`accept`."""
        changed = dict[str, dict[str, Any] | None]()
        for query_id in query_ids:
            self._get_proposal_or_refuse(query_id)
            changed[query_id] = None
        self._write_changed_lines_and_reread(changed)

    def mend(
        self,
        query_id: str,
        *,
        question: str | None = None,
        answer: str | None = None,
        evidence: Sequence[str] | None = None,
    ) -> None:
        """Change a proposal, which accepts it; what the model had proposed is kept in its
        ``checks``.

        :param question: other words; ``None`` leaves what is there, as with the others.
        :param evidence: ids of the turns that the answer needs; reasons for other ones are dropped.
        :raises DataError: as :meth:`accept`; for a question without words or without evidence.
        """
        old_record = self._get_proposal_or_refuse(query_id)
        given_fields = {"question": question, "answer": answer, "evidence": evidence}
        new_fields = {
            field_name: value for field_name, value in given_fields.items() if value is not None
        }
        if "evidence" in new_fields:
            new_fields["evidence"] = list(new_fields["evidence"])
        changed_fields = {
            field_name: value
            for field_name, value in new_fields.items()
            if value != old_record.get(field_name)
        }
        if not str(new_fields.get("question", old_record["question"])).strip():
            raise DataError(f"proposal {query_id!r} would have no words; drop it instead")
        record = old_record | changed_fields | {"source": ACCEPTED}
        replaced_names = set(changed_fields)
        if "evidence" in changed_fields:
            _check_evidence_and_trim_distractors(query_id, record)
            replaced_names |= old_record.keys() & {*_OF_EVIDENCE}
            for field_name in replaced_names - {"evidence"} & {*_OF_EVIDENCE}:
                record.pop(field_name, None)
        if changed_fields:
            former_fields = {
                field_name: old_record[field_name]
                for field_name in old_record
                if field_name in replaced_names
            }
            record["checks"] = {"before_mending": former_fields, "checks": old_record.get("checks")}
        self._write_changed_lines_and_reread({query_id: record})

    def _get_proposal_or_refuse(self, query_id: str) -> JsonObject:
        if query_id not in self._records:
            known_ids = ", ".join(list(self._records)[:3]) or "none"
            raise DataError(
                f"{self.path.name} has no proposal {query_id!r}; its proposals are called "
                f"{known_ids}"
            )
        return self._records[query_id]

    def _write_changed_lines_and_reread(
        self, new_record_by_id: Mapping[str, JsonObject | None]
    ) -> None:
        """Write the file with some lines changed or, for ``None``, removed; whole or not at all."""
        content = _read_bytes_or_empty(self.path)
        if hashlib.sha256(content).hexdigest() != self._digest:
            raise DataError(
                f"{self.path.name} was changed after it was read, and nothing was written; it is "
                "read again by ProposalFile.read(), and by the explorer where it says this"
            )
        file_lines = list(self._lines)
        for query_id, record in new_record_by_id.items():
            line_number = self._places[query_id]
            line_ending = file_lines[line_number][len(file_lines[line_number].rstrip(b"\r\n")) :]
            file_lines[line_number] = b""
            if record is not None:
                file_lines[line_number] = (
                    json.dumps(record, ensure_ascii=False).encode() + line_ending
                )
        with open_atomically(self.path) as stream:
            stream.write(b"".join(file_lines))
        self.read()


def _read_bytes_or_empty(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise DataError(f"{path.name} cannot be read: {error.strerror or error}") from error


def _parse_proposal_line(raw_line: bytes, line_label: str) -> JsonObject | None:
    """Read a line that is a proposal; what is wrong with others the reader of chat logs says."""
    try:
        raw_proposal = json.loads(raw_line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw_proposal, dict) or "question" not in raw_proposal:
        return None
    record = Record(raw_proposal)
    try:
        if record.read_field("source", check_question_source, None) not in (PROPOSED, ACCEPTED):
            return None
        record.read_field("query_id", check_name)
        record.read_field("question", check_name)
        record.read_field("scope", check_name)
    except BadField as error:
        raise DataError(f"{line_label}: {error}") from None
    return raw_proposal


def _check_evidence_and_trim_distractors(query_id: str, proposal: JsonObject) -> None:
    """Check evidence that a person named; a distractor that is evidence now is a distractor no
    more."""
    evidence = proposal["evidence"]
    if not evidence and not proposal.get("abstention"):
        raise DataError(f"proposal {query_id!r} would have no evidence; name some, or drop it")
    for turn in evidence:
        if turn in proposal.get("stale", []):
            raise DataError(
                f"proposal {query_id!r} names {turn!r} as stale; it cannot be evidence too"
            )
    if "distractors" in proposal:
        proposal["distractors"] = [turn for turn in proposal["distractors"] if turn not in evidence]
