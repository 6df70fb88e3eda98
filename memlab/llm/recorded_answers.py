"""Recorded answers: JSON lines of ``task``, ``version``, ``key``, ``answer`` and ``tokens``.

Where the server did not count the tokens, ``estimated`` is true.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import ChainMap
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

from memlab.atomic_files import digest, shipped_data
from memlab.errors import DataError, warn_user
from memlab.llm.response_bodies import JsonValue
from memlab.llm.service_addresses import Service, resolve_service
from memlab.llm.token_spending import TokensReadAndWritten

DEFAULT_RECORDINGS = (
    shipped_data("sample", "recorded.jsonl"),
    shipped_data("heldout", "recorded", "answers.jsonl"),
)
"""Recorded answers that come with memlab: of the sample, and in a checkout of held-out chats."""


class RecordedRow(TypedDict):
    """What is kept of a line of a recording."""

    answer: JsonValue
    tokens: JsonValue
    estimated: bool


def recording_key(task: str, version: int, about: Iterable[str]) -> str:
    """Name what was asked: 24 hex digits of the SHA-256 of the compact JSON of ``[task, version,
    *about]``.

    >>> from memlab.llm.recorded_answers import recording_key
    >>> recording_key("summary", 1, ["s1", "Hello"])
    'c8e09513a75ca3b0bdaa2727'
    """
    key_text = json.dumps([task, version, *about], separators=(",", ":"))
    return hashlib.sha256(key_text.encode("ascii")).hexdigest()[:24]


def digest_recordings() -> str:
    """Name what is recorded in the files that ``recorded`` stands for."""
    return " ".join(digest(path) for path in _list_recording_paths() if os.path.isfile(path))


def recorded_rows_by_key_or_warn(service: str | Service) -> Mapping[str, RecordedRow]:
    """Give the recorded rows by their keys: of the service's own file, or, for ``recorded``, of all
    recordings.

    The first file that has a key wins: those of the settings, then those that come with memlab.
    """
    model = resolve_service(service)
    if model is not None:
        return read_recorded_rows_or_empty(Path(model.record)) if model.record else {}
    recording_paths = _list_recording_paths()
    for path in recording_paths[: -len(DEFAULT_RECORDINGS)]:
        if not read_recorded_rows_or_empty(path):
            warn_user(f"{path} of llm.recordings is not there, or has no recorded answer")
    return ChainMap(*map(read_recorded_rows_or_empty, recording_paths))


def _list_recording_paths() -> list[Path]:
    from memlab.config import settings

    return [*map(Path, settings()[0].llm.recordings), *DEFAULT_RECORDINGS]


def read_recorded_rows_or_empty(recording_path: Path) -> dict[str, RecordedRow]:
    """Read recorded rows by their keys, of which the last line wins.

    :raises DataError: when the file cannot be read; one that is not there has no rows.
    """
    try:
        file_status = recording_path.stat()
        return _read_rows_of_file_state(
            recording_path, file_status.st_mtime_ns, file_status.st_size
        )
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(
            f"the recorded answers in {recording_path} cannot be read: {error.strerror}"
        ) from error


@lru_cache(maxsize=4)
def _read_rows_of_file_state(
    recording_path: Path, modified_ns: int, n_bytes: int
) -> dict[str, RecordedRow]:
    """Read one file; a line that is cut off or damaged is no row."""
    row_by_key = {}
    with recording_path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
                row_by_key[str(row["key"])] = RecordedRow(
                    answer=row["answer"],
                    tokens=row.get("tokens"),
                    estimated=row.get("estimated") is True,
                )
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
    return row_by_key


def append_to_recording_or_warn(
    service: Service,
    task_version_key: tuple[str, int, str],
    json_answer: JsonValue,
    tokens: TokensReadAndWritten,
    *,
    is_estimated: bool = False,
) -> None:
    """Append an answer to the service's file.

    A disk that is full costs the recording, not the answer.

    :param task_version_key: task, version and key.
    :param is_estimated: whether the server did not count the tokens.
    """
    if not service.record:
        return
    path = Path(service.record)
    recorded_row = dict(zip(("task", "version", "key"), task_version_key, strict=True))
    recorded_row |= {"answer": json_answer, "tokens": tokens}
    if is_estimated:
        recorded_row["estimated"] = True
    line_bytes = json.dumps(recorded_row).encode("ascii") + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as recording_file:
            # On a line of its own where the last write was broken off.
            is_broken_off = (
                recording_file.seek(0, os.SEEK_END)
                and recording_file.seek(-1, os.SEEK_END) >= 0
                and recording_file.read(1) != b"\n"
            )
            recording_file.write(b"\n" * bool(is_broken_off) + line_bytes)
    except OSError as error:
        failure_text = (
            f"{service.record} cannot be written ({error.strerror}): answers are not recorded"
        )
        warn_user(failure_text)
