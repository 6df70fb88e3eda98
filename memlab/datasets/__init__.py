"""Conversations from files: one shape, whatever the format.

:func:`load` finds the format by itself and gives a :class:`memlab.records.Dataset`: a benchmark as it is published
(LoCoMo, LongMemEval, BEAM, REALTALK, ConvoMem, MemBench, retrieval folders of MTEB and LMEB), an export of a chat tool
(:mod:`memlab.datasets.importers`: ChatGPT, Claude, WhatsApp, Telegram, Slack, Discord …), or a JSON-lines chat log.
:func:`stream` gives the same data in batches of whole scopes, for files larger than memory. A format has a file of its
name, over ``_json`` (values out of files of any size), ``_fields`` (checks) and ``_read`` (bad records, rows);
``fetch`` downloads benchmarks; ``corrections`` mends their evidence; ``sample`` reads the conversations that the
repository ships.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars as pl

from memlab.datasets import (
    beam,
    chatlog,
    convomem,
    fetch,
    importers,
    locomo,
    longmemeval,
    membench,
    realtalk,
    retrieval,
)
from memlab.datasets._json import TOKEN
from memlab.datasets._read import QUARANTINE, Source, batches, matching
from memlab.datasets.corrections import corrected
from memlab.datasets.longmemeval import pool, pooled_batches
from memlab.errors import DataError
from memlab.language.analysis import check_language
from memlab.records import Dataset, concat, id_part
from memlab.registry import formats
from memlab.sessions import GAP

__all__ = [
    "FORMATS", "beam", "chatlog", "convomem", "corrected", "detect", "fetch", "importers", "load", "locomo",
    "longmemeval", "membench", "pool", "realtalk", "retrieval", "stream",
]  # fmt: skip

_log = logging.getLogger("memlab")

FORMATS = {
    "locomo": locomo,
    "longmemeval": longmemeval,
    "beam": beam,
    "realtalk": realtalk,
    "convomem": convomem,
    "membench": membench,
    "retrieval": retrieval,
    **importers.IMPORTERS,
    "chatlog": chatlog,
}
"""Format name to the module that reads it: memlab's own."""

for _name, _module in FORMATS.items():
    formats.register(_module.read, name=_name)

_HEAD = 1 << 16
_KEYS = {
    "realtalk": {"session_1", "session_1_date_time", "events_session_1"},
    "beam": {"batch_number", "plan-1", "probing_questions", "conversation_seed"},
    "convomem": {"evidence_items", "evidenceItems"},
    "membench": {
        "highlevel",
        "highlevel_rec",
        "simple",
        "conditional",
        "comparative",
        "aggregative",
        "post_processing",
    },
    "retrieval": {"_id"},
    "locomo": {"conversation", "qa", "sample_id", "session_summary", "event_summary", "observation"},
    "longmemeval": {"question_id", "question_type", "haystack_sessions", "haystack_session_ids", "haystack_dates"},
    "chatlog": {"scope", "text", "sender", "memlab"},
}
_FOLDERS = {"retrieval": retrieval.QUERIES, "beam": beam.FILES, "realtalk": realtalk.FILES}
_FOLDERS |= {"membench": membench.FILES, "convomem": convomem.FILES}


def detect(path: str | Path) -> str:
    """Find the format of a file from its first bytes, or of a folder from its files; none is read further.

    :param path: a file or folder, or the name of a fetched file, see :mod:`memlab.datasets.fetch`.
    :returns: a key of :data:`FORMATS`.
    :raises DataError: when the file cannot be read or looks like none of them.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.datasets import detect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "log.jsonl")
    ...     _ = file.write_text('{"scope": "me", "sender": "Ann", "text": "Hello"}')
    ...     detect(file)
    'chatlog'
    """
    source = Source(fetch.place(path))
    if source.path.is_dir():
        return _folder_format(source)
    if kind := importers.detect(source):
        return kind
    with source.open() as file:
        head = file.read(_HEAD)
    if head.startswith(b"PAR1"):
        keys = set(source.parquet(pl.read_parquet_schema))
    else:
        keys = _first_keys(head.decode("utf-8", "replace"))
    for format, marks in _KEYS.items():
        if marks & keys:
            return _header_format(head) if "memlab" in keys else format
    source.fail(
        f"is none of the formats {', '.join(FORMATS)}: it begins with {head[:40]!r} and its first record has the keys "
        f"{sorted(keys)[:8]}. Name the format with format=, or write it as a chat log (see memlab.datasets.chatlog)"
    )


def _folder_format(source: Source) -> str:
    for format, patterns in _FOLDERS.items():
        for path in matching(source.path, *patterns)[:1]:
            # A log of one's own may be called as the questions of a retrieval folder, but not have a corpus.
            with suppress(DataError):
                if format == "retrieval" or detect(path) == format:
                    return format
    if kind := importers.detect(source):
        return kind
    names = ", ".join(f"{patterns[0]} of {format}" for format, patterns in _FOLDERS.items())
    source.fail(
        "is a directory, expected a file, an export of a chat tool, or a folder of a benchmark with its files "
        f"({names}); name one of them"
    )


def _first_keys(text: str) -> set[str]:
    """Give the keys of the first object in a piece of JSON, as far as the piece goes."""
    depth, floor, keys = 0, 1 + text.lstrip().startswith("["), set()
    for token in TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
            if depth < floor:
                break
        elif token[1] and depth == floor:
            keys.add(token[0][1 : token[0].rindex('"')])
    return keys


def _header_format(head: bytes) -> str:
    try:
        return str(json.loads(head.lstrip().splitlines()[0])["memlab"].get("format", "chatlog"))
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return "chatlog"


def load(
    path: str | Path,
    *,
    format: str | None = None,
    on_error: str = "raise",
    pool: int | None = None,
    seed: int = 0,
    name: str | None = None,
    gap: timedelta = GAP,
    language: str | None = None,
    quarantine_dir: str | Path = QUARANTINE,
    tz: str | None = None,
    assistant: str | Sequence[str] = (),
    scope: str | None = None,
    date_order: str | None = None,
) -> Dataset:
    """Load conversations and the questions over them; what was seen is logged in one line (logger ``memlab``).

    :param path: a file; the folder of a benchmark that is published as one; or the name of a published file that was
        fetched to ``data/``, such as ``locomo`` (see :mod:`memlab.datasets.fetch`).
    :param format: a name of ``memlab.formats``; memlab's own are found from the file when not given. Another is a
        function of ``path`` under ``@memlab.formats.register`` that yields the records of a chat log, as dicts with the
        keys of :mod:`memlab.datasets.chatlog`.
    :param on_error: ``raise`` stops at the first bad record; ``quarantine`` writes bad records with their reasons to
        ``<file name>.quarantine.jsonl``, loads the rest and lists them in ``Dataset.issues``.
    :param pool: make every LongMemEval question a haystack of this many sessions, see :func:`pool`.
    :param name: the dataset's name; by default the file's, with ``-pool<n>-seed<seed>`` when pooled.
    :param gap: the silence that ends a session of a chat log that does not name its sessions.
    :param language: that people speak in it, a code of :data:`memlab.language.analysis.LANGUAGES`; by default what the
        header of a chat log says, else English.
    :param tz: the zone of times without one, such as ``Europe/Oslo``; UTC by default.
    :param assistant: who of the senders of a chat is the assistant, one or several; one called ChatGPT, Claude and the
        like is by itself.
    :param scope: of an export, the name of the memory where it has one; of several, the one to load.
    :param date_order: of a WhatsApp chat whose dates can be read in several ways: ``dmy``, ``mdy`` or ``ymd``.
    :raises DataError: naming file, record and field, when something cannot be used.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "log.jsonl")
    ...     _ = file.write_text('{"scope": "me", "sender": "Ann", "text": "Hello", "timestamp": "2026-03-01T09:00Z"}')
    ...     load(file).describe()
    'log (chatlog): 1 turns in 1 sessions of 1 scopes, 0 questions'
    """
    parts = stream(
        path,
        format=format,
        on_error=on_error,
        pool=pool,
        seed=seed,
        name=name,
        gap=gap,
        language=language,
        quarantine_dir=quarantine_dir,
        tz=tz,
        assistant=assistant,
        scope=scope,
        date_order=date_order,
    )
    data = concat(parts)
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

    Memory holds one batch and one scope. Two cases need more: a chat log that does not say in its header that it is
    grouped by scope is gathered first, and pooling holds the file that it draws from.

    :param batch_turns: a batch is given out once it has this many turns; other parameters as for :func:`load`.
    :param into: gives what is there of some scopes (``lambda scopes: store.dataset(name, scopes=scopes)``), where the
        file goes on a chat log: the batches are what its scopes are then, without the questions that were there.
    :raises DataError: as :func:`load`; wrong arguments at the call, bad records when they are reached.
    """
    if on_error not in ("raise", "quarantine"):
        raise DataError(f'on_error is {on_error!r}, expected "raise" or "quarantine"')
    if date_order not in (None, *importers.whatsapp.ORDERS):
        raise DataError(f"date_order is {date_order!r}, expected one of {', '.join(importers.whatsapp.ORDERS)}")
    if batch_turns < 1:
        raise DataError(f"batch_turns is {batch_turns}, expected at least 1")
    code = None if language is None else check_language(language)
    assistants = (assistant,) if isinstance(assistant, str) else tuple(assistant)
    place, aside = fetch.place(path), Path(quarantine_dir)
    source = Source(place, on_error, aside, gap, code, tz=importers.zone(tz), assistants=assistants)
    kind = format or detect(path)
    if kind not in formats:
        where = "format is" if format else f"{path}: line 1: memlab.format: found"
        raise DataError(f"{where} {kind!r}, expected one of {', '.join(formats)}")
    if pool is not None and kind != "longmemeval":
        raise DataError(f"{path}: pool={pool} is for LongMemEval files, this one is {kind}; leave pool out")
    read, called = formats[kind], kind
    if into is not None:
        there = into([])
        if not _chat(kind):
            raise DataError(f"{path} is {kind}; only chat logs go into a dataset that is there")
        if not _chat(there.format):
            raise DataError(f"dataset {there.name!r} is {there.format}; only a chat log takes more messages")
        source, called, name = replace(source, into=into, language=there.language), there.format, there.name
    if kind in importers.IMPORTERS:
        name = name or importers.dataset_name(source, kind)
        records = importers.records(kind, source, scope=scope, date_order=date_order)
        parts = chatlog.read(source, batch_turns=batch_turns, records=records, kind=called)
    elif "path" in inspect.signature(read).parameters:
        parts = chatlog.read(source, batch_turns=batch_turns, records=read(source.path), kind=called)
    elif read is chatlog.read:
        parts = chatlog.read(source, batch_turns=batch_turns)
    else:
        parts = batches(read(source), source, kind, batch_turns)
    if pool is not None:
        parts = pooled_batches(concat(parts), n_sessions=pool, seed=seed, batch_turns=batch_turns)
    if scope is not None and kind not in importers.IMPORTERS:
        parts = _only(parts, scope, path)
    return (replace(part, name=name) if name else part for part in parts)


def _only(parts: Iterable[Dataset], scope: str, path: str | Path) -> Iterator[Dataset]:
    """Take the scope of a name: as the file has it, or else as memlab prints it."""
    given, printed, known = id_part(scope), list[Dataset](), list[str]()
    for part in parts:
        known += part.scopes
        if given in part.scopes:
            yield part.take([given])
        elif scope in part.scopes:
            printed.append(part.take([scope]))
    if given not in known and not printed:
        raise DataError(f"{path} has no scope {scope!r}; it has {', '.join(known[:20])}: name one of them")
    yield from printed if given not in known else ()


def _chat(kind: str) -> bool:
    """Say whether a format's records are those of a chat log, which may go on one that is there."""
    return kind not in FORMATS or FORMATS[kind] is chatlog or kind in importers.IMPORTERS
