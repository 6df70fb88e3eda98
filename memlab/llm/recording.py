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
from typing import Any

from memlab.errors import DataError, warn_user
from memlab.files import digest, shipped_data
from memlab.llm.service import Service, resolve_service

DEFAULT_RECORDINGS = (
    shipped_data("sample", "recorded.jsonl"),
    shipped_data("heldout", "recorded", "answers.jsonl"),
)
"""Recorded answers that come with memlab: of the sample, and in a checkout of held-out chats."""


def recording_key(task: str, version: int, about: Iterable[str]) -> str:
    """Name what was asked: 24 hex digits of the SHA-256 of the compact JSON of ``[task, version,
    *about]``.

    >>> from memlab.llm.recording import recording_key
    >>> recording_key("summary", 1, ["s1", "Hello"])
    'c8e09513a75ca3b0bdaa2727'
    """
    text = json.dumps([task, version, *about], separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:24]


def recordings_digest() -> str:
    """Name what is recorded in the files that ``recorded`` stands for."""
    return " ".join(digest(path) for path in _recording_files() if os.path.isfile(path))


def recorded_rows(service: str | Service) -> Mapping[str, dict[str, Any]]:
    """Give the recorded rows by their keys: of the service's own file, or, for ``recorded``, of all
    recordings.

    The first file that has a key wins: those of the settings, then those that come with memlab.
    """
    model = resolve_service(service)
    if model is not None:
        return read_recording(Path(model.record)) if model.record else {}
    files = _recording_files()
    for path in files[: -len(DEFAULT_RECORDINGS)]:
        if not read_recording(path):
            warn_user(f"{path} of llm.recordings is not there, or has no recorded answer")
    return ChainMap(*map(read_recording, files))


def _recording_files() -> list[Path]:
    from memlab.config import settings

    return [*map(Path, settings()[0].llm.recordings), *DEFAULT_RECORDINGS]


def read_recording(path: Path) -> dict[str, dict[str, Any]]:
    """Read recorded rows by their keys, of which the last line wins.

    :raises DataError: when the file cannot be read; one that is not there has no rows.
    """
    try:
        stat = path.stat()
        return _read_rows(path, stat.st_mtime_ns, stat.st_size)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(
            f"the recorded answers in {path} cannot be read: {error.strerror}"
        ) from error


@lru_cache(maxsize=4)
def _read_rows(path: Path, modified: int, size: int) -> dict[str, dict[str, Any]]:
    """Read one file; a line that is cut off or damaged is no row."""
    rows = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
                kept = {"answer": row["answer"], "tokens": row.get("tokens")}
                kept["estimated"] = row.get("estimated") is True
                rows[str(row["key"])] = kept
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
    return rows


def record(
    service: Service,
    named: tuple[str, int, str],
    answer: Any,
    tokens: tuple[int, int],
    *,
    is_estimated: bool = False,
) -> None:
    """Append an answer to the service's file.

    A disk that is full costs the recording, not the answer.

    :param named: task, version and key.
    :param is_estimated: whether the server did not count the tokens.
    """
    if not service.record:
        return
    path, row = Path(service.record), dict(zip(("task", "version", "key"), named, strict=True))
    row |= {"answer": answer, "tokens": tokens}
    if is_estimated:
        row["estimated"] = True
    line = json.dumps(row).encode("ascii") + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as out:
            # On a line of its own where the last write was broken off.
            broken = (
                out.seek(0, os.SEEK_END) and out.seek(-1, os.SEEK_END) >= 0 and out.read(1) != b"\n"
            )
            out.write(b"\n" * bool(broken) + line)
    except OSError as error:
        what = f"{service.record} cannot be written ({error.strerror}): answers are not recorded"
        warn_user(what)
