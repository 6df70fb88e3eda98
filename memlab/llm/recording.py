"""Recorded answers: JSON lines of ``task``, ``version``, ``key``, ``answer`` and ``tokens``."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections import ChainMap
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from memlab.errors import DataError
from memlab.files import digest
from memlab.llm.service import Service, resolve_service

# Of the checkout; an installed package has none.
_DATA = Path(__file__).parents[2] / "data"
DEFAULT_RECORDINGS = (_DATA / "sample" / "recorded.jsonl", _DATA / "heldout" / "recorded" / "answers.jsonl")


def recording_key(task: str, version: int, about: Iterable[str]) -> str:
    """Name what was asked: 24 hex digits of the SHA-256 of the compact JSON of ``[task, version, *about]``.

    >>> from memlab.llm.recording import recording_key
    >>> recording_key("summary", 1, ["s1", "Hello"])
    'c8e09513a75ca3b0bdaa2727'
    """
    text = json.dumps([task, version, *about], separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:24]


def recording_files() -> list[Path]:
    """Give the files that recorded answers are read from: those of the settings, then those of the checkout."""
    from memlab.config import settings

    return [*map(Path, settings()[0].llm.recordings), *DEFAULT_RECORDINGS]


def recordings_digest() -> str:
    """Name what is recorded in those files."""
    return " ".join(digest(path) for path in recording_files() if os.path.isfile(path))


def recorded_rows(service: str | Service) -> Mapping[str, dict[str, Any]]:
    """Give the recorded rows by their keys: of the service's own file, or, for ``recorded``, of all recordings."""
    model = resolve_service(service)
    return read_recordings(recording_files() if model is None else [Path(model.record)] if model.record else [])


def read_recordings(paths: Iterable[Path]) -> Mapping[str, dict[str, Any]]:
    """Read recorded rows by their keys; the first file that has a key wins, the last line of a key within a file.

    :raises DataError: when a file cannot be read; one that is not there has no rows.
    """
    parts = []
    for path in paths:
        try:
            stat = path.stat()
            parts.append(_read_rows(path, stat.st_mtime_ns, stat.st_size))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DataError(f"the recorded answers in {path} cannot be read: {error.strerror}") from error
    return ChainMap(*parts)


@lru_cache(maxsize=4)
def _read_rows(path: Path, modified: int, size: int) -> dict[str, dict[str, Any]]:
    """Read one file; a line that is cut off or damaged is no row."""
    rows = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
                rows[str(row["key"])] = {"answer": row["answer"], "tokens": row.get("tokens")}
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
    return rows


def record(service: Service, named: tuple[str, int, str], answer: Any, tokens: tuple[int, int]) -> None:
    """Append an answer to the service's file; a disk that is full costs the recording, not the answer.

    :param named: task, version and key.
    """
    if service.record:
        row = {**dict(zip(("task", "version", "key"), named, strict=True)), "answer": answer, "tokens": tokens}
        try:
            append(Path(service.record), row)
        except OSError as error:
            what = f"{service.record} cannot be written ({error.strerror}): answers are not recorded"
            warnings.warn(what, stacklevel=2)


def append(path: Path, row: dict[str, Any]) -> None:
    """Append a row, on a line of its own where the last write was broken off.

    :raises OSError: when it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as out:
        broken = out.seek(0, os.SEEK_END) and out.seek(-1, os.SEEK_END) >= 0 and out.read(1) != b"\n"
        out.write(b"\n" * bool(broken) + json.dumps(row).encode("ascii") + b"\n")
