"""Reading conversations from files of any format into one shape.

:func:`load` finds the format by itself and gives a :class:`memlab.records.Dataset`: a benchmark as
it is published
(:mod:`memlab.datasets.benchmarks`), an export of a chat tool (:mod:`memlab.datasets.importers`), or
a JSON-lines chat log (:mod:`memlab.datasets.chatlog`). :func:`stream` gives the same data in
batches of whole scopes, for files larger than memory. A format is ``records(source)``, a generator
of chat-log records over ``reading`` (files, bad records), ``streams`` (JSON of any size) and
``fields`` (checks).
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tqdm import tqdm

from memlab.datasets import benchmarks, chatlog, fetch, importers, pooling
from memlab.datasets.benchmarks import BENCHMARKS
from memlab.datasets.corrections import apply_corrections
from memlab.datasets.importers import IMPORTERS
from memlab.datasets.reading import QUARANTINE, Source
from memlab.datasets.streams import key_paths
from memlab.errors import DataError, check_at_least
from memlab.records import Dataset, concat, encode_id_part
from memlab.registry import formats
from memlab.sessions import GAP
from memlab.terminal import escape_line
from memlab.text.analysis import check_language

__all__ = [
    "FORMATS",
    "apply_corrections",
    "benchmarks",
    "chatlog",
    "detect",
    "fetch",
    "importers",
    "load",
    "stream",
]  # fmt: skip

_log = logging.getLogger("memlab")
FORMATS: dict[str, Any] = {**IMPORTERS, **BENCHMARKS, "chatlog": chatlog}
"""Format name to the module that reads it: memlab's own."""
_PROBED = 400  # files of a folder or archive whose beginnings are looked at
_GENERIC = re.compile(
    r"(?i)_?chat|conversations(?:[-_]?\d+)?|result|messages|export"
)  # as every export is called
_KEYED: dict[str, Any] = {
    **BENCHMARKS,
    "chatlog": chatlog,
}  # what knows a file by the keys of its first record
_ON_ERROR, _ORDERS = ("raise", "quarantine"), (None, "dmy", "mdy", "ymd")

for _name, _module in FORMATS.items():
    formats.register(_module.records, name=_name)


def detect(path: str | Path) -> str:
    """Find the format of a file from its beginning, or of a folder or ZIP archive from its files.

    :param path: a file or folder, or the name of a fetched file, see :mod:`memlab.datasets.fetch`.
    :returns: a key of :data:`FORMATS`.
    :raises DataError: when it cannot be read, looks like none of them, or holds exports of several
        tools.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.datasets import detect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "log.jsonl")
    ...     _ = file.write_text('{"scope": "me", "sender": "Ann", "text": "Hello"}')
    ...     detect(file)
    'chatlog'
    """
    source = Source(fetch.locate_file(path))
    if not source.holds_files:
        return _detect_file_format(source)
    for kind, module in BENCHMARKS.items() if source.path.is_dir() else ():
        for file in source.files(*module.FILES)[:1] if hasattr(module, "FILES") else ():
            # A log of one's own may be called as the questions of a retrieval folder, but not have
            # a corpus.
            with suppress(DataError):
                if kind == "retrieval" or detect(file.path) == kind:
                    return kind
    return _detect_export_format(source)


def _detect_file_format(file: Source) -> str:
    if kind := importers.detect_tool(file):
        return kind
    if refusal := importers.explain_refusal(file):
        file.fail(refusal)
    first = key_paths(file.head, first=True) | file.columns  # of the first record, or of a table
    for kind, keys in (
        ("chatlog", {"memlab"}),
        *((kind, module.KEYS) for kind, module in _KEYED.items()),
    ):
        if first & keys:
            return kind
    if file.look_further():
        return _detect_file_format(file)
    file.fail(
        f"is none of the formats {', '.join(FORMATS)}: it begins with {file.head[:40]!r} and its first record has the "
        f"keys {sorted(first)[:8]}. Name it with format=, or write it as a chat log (docs/conversations.md)"
    )


def _detect_export_format(source: Source) -> str:
    """Find the tool of a folder or an archive; of many files the first are looked at, and some out of the rest."""
    files, found, refusals = (
        importers.without_sent_files(source.files()),
        dict[str, str](),
        list[str](),
    )
    for file in (*files[:_PROBED], *files[_PROBED :: max(1, len(files) // _PROBED)]):
        if file.size and (
            kind := importers.detect_tool(file)
            or (file.look_further() and importers.detect_tool(file))
        ):
            found.setdefault(kind, file.name)
        elif file.size and (refusal := importers.explain_refusal(file)):
            refusals.append(refusal)
        file.forget()
    if len(found) == 1:
        return next(iter(found))
    refusals += filter(
        None, map(importers.explain_refusal, source.files(unread=True) if not found else ())
    )
    if found:
        what = "; ".join(f"{kind} ({name})" for kind, name in found.items())
        source.fail(
            f"holds exports of several tools: {what}. Give one of the files, or name the format with --format"
        )
    names = (
        ", ".join(file.name for file in files[:5]) or "none that may hold text (unpack a ZIP in it)"
    )
    kind = (
        "a directory, expected a file, an export"
        if source.path.is_dir()
        else "a ZIP archive without a chat"
    )
    refusals.sort(key=lambda refusal: "a web page" in refusal)  # which says least
    source.fail(
        refusals[0]
        if refusals
        else f"is {kind} of a tool that is known; its first files are {names}"
    )


def load(path: str | Path, *, name: str | None = None, **options: Any) -> Dataset:
    """Load conversations and their questions from a file, an export or a benchmark; the format is detected.

    :param path: a file; the folder of a benchmark or of an export; a ZIP archive; or the name of a
        published file that was fetched to ``data/``, such as ``locomo`` (see
        :mod:`memlab.datasets.fetch`).
    :param name: the dataset's name; by default the file's, with ``-pool<n>-seed<seed>`` when
        pooled.
    :param options: as for :func:`stream`.
    :raises DataError: naming file, record and field, when something cannot be used.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "log.jsonl")
    ...     _ = file.write_text('{"scope": "me", "sender": "Ann", "text": "Hello", "timestamp": "2026-03-01T09:00Z"}')
    ...     load(file).describe()
    'log (chatlog): 1 turn in 1 session of 1 scope, 0 questions'
    """
    data = concat(stream(path, name=name, **options))
    _log.info("%s", data.describe())
    return data


def stream(
    path: str | Path,
    *,
    format: str | None = None,
    on_error: str = "raise",
    batch_turns: int = 50_000,
    pool: int | None = None,
    seed: int = 0,
    name: str | None = None,
    gap: timedelta = GAP,
    language: str | None = None,
    quarantine_dir: str | Path = QUARANTINE,
    into: Callable[[list[str]], Dataset] | None = None,
    tz: str | None = None,
    assistant: str | Sequence[str] = (),
    scope: str | None = None,
    date_order: str | None = None,
) -> Iterator[Dataset]:
    """Load a file in batches of whole scopes; joined by :func:`memlab.records.concat` they are what :func:`load` gives.

    Memory holds one batch and one scope. Two cases need more: a chat log that does not say in its
    header that it is grouped by scope is gathered first, and pooling holds the file that it draws
    from.

    :param format: a name of ``memlab.formats``; memlab's own are found from the file when not
        given. Another is a function of ``path`` under ``@memlab.formats.register`` that yields the
        records of a chat log, as dicts with the keys of :mod:`memlab.datasets.chatlog`.
    :param on_error: ``raise`` stops at the first bad record; ``quarantine`` writes bad records with
        their reasons to ``<file name>.quarantine.jsonl``, loads the rest and lists them in
        ``Dataset.issues``.
    :param batch_turns: a batch is given out once it has this many turns.
    :param pool: make every LongMemEval question a haystack of this many sessions, see
        :mod:`memlab.datasets.pooling`.
    :param gap: the silence that ends a session of a chat log that does not name its sessions.
    :param language: that people speak in it, a code of :data:`memlab.text.analysis.LANGUAGES`; by
        default what the header of a chat log says, else English.
    :param into: gives what is there of some scopes
        (``lambda scopes: store.dataset(name, scopes=scopes)``), where the file goes on a chat log:
        the batches are what its scopes are then, without the questions that were there.
    :param tz: the zone of times without one, such as ``Europe/Oslo``; UTC by default.
    :param assistant: who of the senders of a chat is the assistant, one or several; one called
        ChatGPT, Claude and the like is by itself.
    :param scope: the scope to load, where there are several; of an export that has one memory, its
        name.
    :param date_order: of a WhatsApp chat whose dates can be read in several ways: ``dmy``, ``mdy``
        or ``ymd``.
    :raises DataError: wrong arguments at the call, bad records when they are reached.
    """
    for option, given, known in (
        ("on_error", on_error, _ON_ERROR),
        ("date_order", date_order, _ORDERS),
    ):
        if given not in known:
            raise DataError(f"{option} is {given!r}, expected {' or '.join(filter(None, known))}")
    check_at_least(1, batch_turns=batch_turns)
    source = Source(
        fetch.locate_file(path),
        on_error,
        Path(quarantine_dir),
        gap,
        language and check_language(language),
    )
    source.tz, source.into, source.date_order = _find_time_zone(tz), into, date_order
    source.assistants = (assistant,) if isinstance(assistant, str) else tuple(assistant)
    kind = called = format or detect(path)
    if kind not in formats:
        raise DataError(f"format is {kind!r}, expected one of {', '.join(formats)}")
    if pool is not None and kind != "longmemeval":
        raise DataError(
            f"{path}: pool={pool} is for LongMemEval files, this one is {kind}; leave pool out"
        )
    if into is not None:
        there = into([])
        if kind in BENCHMARKS or there.format in BENCHMARKS:
            raise DataError(
                f"{path} is {kind}, {there.name!r} is {there.format}; only a chat log takes more messages"
            )
        source.language, called, name = there.language, there.format, there.name
    if kind in IMPORTERS and _GENERIC.fullmatch(source.path.stem):
        name = name or kind
    bar = {"desc": escape_line(source.path.name), "unit": " records", "delay": 2, "leave": False}
    records, by_place = tqdm(_read_records(kind, source, scope), **bar), kind in BENCHMARKS
    parts = chatlog.read(source, records, batch_turns=batch_turns, kind=called, by_place=by_place)
    if pool is not None:
        parts = pooling.pool_haystacks(
            concat(parts), n_sessions=pool, seed=seed, batch_turns=batch_turns
        )
    if scope is not None and kind not in IMPORTERS:
        parts = _select_scope(parts, scope, path)
    return (replace(part, name=name) if name else part for part in parts)


def _find_time_zone(name: str | None) -> ZoneInfo | None:
    try:
        return None if name is None else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise DataError(
            f"tz is {name!r}, expected the name of a time zone such as Europe/Oslo"
        ) from error


def _read_records(kind: str, source: Source, scope: str | None) -> Iterable[tuple[str, Any]]:
    """Give the records of a source, with what messages call them."""
    if kind in IMPORTERS:
        return chatlog.number_records(importers.read_export(kind, source, scope=scope))
    if kind == "chatlog":
        return chatlog.records(source)
    if kind in BENCHMARKS:
        patterns = getattr(BENCHMARKS[kind], "FILES", ())
        source.members = source.files(*patterns)
        if not source.members:
            source.fail(
                f"holds no file of {kind} {' or '.join(patterns)}; name the folder that does"
            )
    read = formats[kind]
    given = source.path if "path" in inspect.signature(read).parameters else source
    return chatlog.number_records(read(given))


def _select_scope(parts: Iterable[Dataset], scope: str, path: str | Path) -> Iterator[Dataset]:
    """Take the scope of a name: as the file has it, or else as memlab prints it."""
    given, printed, known = encode_id_part(scope), list[Dataset](), list[str]()
    for part in parts:
        known += part.scopes
        if given in part.scopes:
            yield part.take([given])
        elif scope in part.scopes:
            printed.append(part.take([scope]))
    if given not in known and not printed:
        raise DataError(
            f"{path} has no scope {scope!r}; it has {', '.join(known[:20])}: name one of them"
        )
    yield from printed if given not in known else ()
