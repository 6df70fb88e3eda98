"""Finding the format of a file from its beginning, and of a folder or a ZIP archive from its files.

Every format of :data:`memlab.formats` says how it is recognised (:class:`memlab.registry.Format`).
Those of plug-ins are asked first, then exports, benchmarks and the chat log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path
from typing import NoReturn

from memlab.datasets import fetch
from memlab.datasets.record_sources import Source
from memlab.errors import DataError
from memlab.registry import formats

_PROBED = 400  # files of a folder or archive whose beginnings are looked at
_TEXTS = frozenset(("content", "text", "message", "messages", "body", "utterance"))
"""Keys of what somebody says."""
_KINDS = ("export", "benchmark", "log")
"""In the order in which their formats are asked."""


def detect(path: str | Path) -> str:
    """Find the format of a file from its beginning, or of a folder or ZIP archive from its files.

    :param path: a file or folder, or the name of a fetched file, see :mod:`memlab.datasets.fetch`.
    :returns: a name of :data:`memlab.formats`.
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
        return _detect_file(source)
    detected = None
    if source.path.is_dir():
        detected = _detect_by_names(source)
    if detected is None:
        detected = _detect_export(source)
    return detected


def list_formats() -> list[str]:
    """List the names of all formats in the order in which they are asked."""
    return sorted(formats, key=_asked_at)


def choose_export_files(kind: str, source: Source, files: list[Source]) -> list[Source]:
    """Choose the files that the reader of an export reads.

    One that is given alone it reads in any case.

    :raises DataError: when there is none.
    """
    recognised_files = []
    for file in without_sent_files(files):
        if file.size and _recognise(file, [kind], refuse=False):
            recognised_files.append(file)
        file.forget()
    if not recognised_files:
        for file in filter(_has_content, files):
            if _guess(file, [kind]) is not None:
                recognised_files.append(file)
            file.forget()
    if recognised_files:
        return recognised_files
    if len(files) != 1:
        source.fail(f"holds no file that looks like {kind}")
    other_format = _first_that_fits(files[0], _asked_before_refusal())
    if other_format is not None:
        source.fail(
            f"looks like {other_format}, not {kind}: leave the format out, or name that one"
        )
    return files


def without_sent_files(files: list[Source]) -> list[Source]:
    """Leave out the files that people sent in a chat, which may be chats too, unless there
    is nothing else.
    """
    sent_ids: set[int] = set()
    for find_sent in dict.fromkeys(formats.describe(format_name).sent for format_name in formats):
        if find_sent is not None:
            sent_ids.update(map(id, find_sent(files)))
    kept_files = [file for file in files if id(file) not in sent_ids]
    if not kept_files:
        return files
    return kept_files


def _asked_at(name: str) -> tuple[bool, int]:
    """Give the place of a format in the order: plug-ins first, then by kind."""
    is_own = formats[name].__module__.startswith("memlab.")
    return is_own, _KINDS.index(formats.describe(name).kind)


def _asked_before_refusal() -> list[str]:
    """List the formats that are asked before a file may be refused: those of plug-ins, and
    exports.
    """
    last_order = True, _KINDS.index("export")
    return [format_name for format_name in list_formats() if _asked_at(format_name) <= last_order]


def _fits(name: str, file: Source) -> bool:
    """Say whether a file is recognised as of a format."""
    format_description = formats.describe(name)
    if format_description.detect is not None and format_description.detect(file):
        return True
    if not format_description.keys:
        return False
    return not file.first_keys.isdisjoint(format_description.keys)


def _first_that_fits(file: Source, names: Iterable[str], *, refuse: bool = True) -> str | None:
    """Find the first of some formats that recognises a file.

    :param refuse: give ``None`` where that format refuses it.
    """
    for format_name in names:
        if not _fits(format_name, file):
            continue
        refuses = formats.describe(format_name).refuse
        if refuse and refuses is not None and refuses(file):
            return None
        return format_name
    return None


def _has_content(file: Source) -> bool:
    return file.size > 0


def _guess(file: Source, names: Iterable[str]) -> str | None:
    """Find the first of some formats that a file may be of, where none recognises it."""
    for format_name in names:
        guess_format = formats.describe(format_name).guess
        if guess_format is not None and guess_format(file):
            return format_name
    return None


def _recognise(file: Source, names: list[str], *, refuse: bool = True) -> str | None:
    """Find the first of some formats that recognises a file, whose first record may be
    longer than its beginning.
    """
    detected = _first_that_fits(file, names, refuse=refuse)
    if detected is None and file.look_further():
        detected = _first_that_fits(file, names, refuse=refuse)
    return detected


def _refusal(file: Source) -> str | None:
    """Say what a file is that is known and cannot be read, and what to do.

    ``None`` for any other.
    """
    for refuse in dict.fromkeys(formats.describe(format_name).refuse for format_name in formats):
        if refuse is None:
            continue
        reason = refuse(file)
        if reason is not None:
            return reason
    return None


def _detect_file(file: Source) -> str:
    format_names = list_formats()
    asked_first = _asked_before_refusal()
    detected = _first_that_fits(file, asked_first)
    if detected is None:
        reason = _refusal(file)
        if reason is not None:
            file.fail(reason)
        if "memlab" in file.first_keys:
            return "chatlog"
        detected = _first_that_fits(file, format_names[len(asked_first) :])
        if detected == "chatlog" and (file.columns or file.head.lstrip()[:1] == "["):
            detected = None  # its records are lines of JSON
    if detected is not None:
        return detected
    if file.look_further():
        return _detect_file(file)
    guessed = _guess(file, format_names)
    if guessed is not None:
        return guessed
    missing_text = ""
    if _lacks_speakers(file):
        missing_text = "It holds texts without who says them: give each a role or a sender. "
    file.fail(
        f"is none of the formats {', '.join(format_names)}: it begins with {file.head[:40]!r} and "
        f"its first record has the keys {sorted(file.first_keys)[:8]}. {missing_text}Name it with "
        "format=, or write it as a chat log (docs/conversations.md)"
    )


def _lacks_speakers(file: Source) -> bool:
    """Say whether the beginning of a file of JSON holds messages that name nobody."""
    if re.match(r'\s*\[\s*"', file.head):
        return True
    return any(path.rpartition(".")[2] in _TEXTS for path in file.keys | file.columns)


def _detect_by_names(source: Source) -> str | None:
    """Find the format whose files are called as those of a folder."""
    for format_name in list_formats():
        format_description = formats.describe(format_name)
        if not format_description.files:
            continue
        for file in source.files(*format_description.files)[:1]:
            if format_description.by_name:
                return format_name
            with suppress(DataError):
                if detect(file.path) == format_name:
                    return format_name
    return None


@dataclass
class _Findings:
    """What the files of a folder or an archive are.

    :param exports: the first file of each export; ``refusals``: why files that are known are not
        read; ``alone``: files that are read one by one, by their formats.
    """

    exports: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    alone: dict[str, str] = field(default_factory=dict)

    def add(self, file: Source, exports: list[str], others: list[str]) -> None:
        """Take up a file: as one of an export, else as one that is refused, else as one
        of another format.
        """
        export_format = _recognise(file, exports)
        if export_format is not None:
            self.exports.setdefault(export_format, file.name)
            return
        reason = _refusal(file)
        if reason is not None:
            self.refusals[file.name] = reason
            return
        other_format = _first_that_fits(file, others)
        if other_format is not None:
            self.alone.setdefault(other_format, file.name)


def _detect_export(source: Source) -> str:
    """Find the tool of a folder or an archive.

    Of many files the first are looked at, and some out of the rest.
    """
    files = without_sent_files(source.files())
    format_names = list_formats()
    exports = [
        format_name
        for format_name in format_names
        if formats.describe(format_name).kind == "export"
    ]
    other_formats = [format_name for format_name in format_names if format_name not in exports]
    findings = _Findings()
    probing_step = max(1, len(files) // _PROBED)
    for file in (*files[:_PROBED], *files[_PROBED::probing_step]):
        if file.size:
            findings.add(file, exports, other_formats)
        file.forget()
    exports_found = findings.exports
    if not exports_found:
        for file in source.files(unread=True):
            reason = _refusal(file)
            if reason is not None:
                findings.refusals[file.name] = reason
        if not findings.alone and not findings.refusals:
            guessed = _guess_export(files, exports)
            if guessed is not None:
                return guessed
        _fail_without_export(source, files, findings)
    if len(exports_found) > 1:
        source.fail(
            f"holds exports of several tools: {_list_files(exports_found)}. Give one of the files, "
            "or name the format with --format"
        )
    return next(iter(exports_found))


def _guess_export(files: list[Source], names: list[str]) -> str | None:
    """Find a format that one of the files may be of, where none recognises any."""
    for file in filter(_has_content, files[:_PROBED]):
        guessed = _guess(file, names)
        file.forget()
        if guessed is not None:
            return guessed
    return None


def _list_files(files_by_format: dict[str, str]) -> str:
    return "; ".join(starmap("{} ({})".format, files_by_format.items()))


def _fail_without_export(source: Source, files: list[Source], findings: _Findings) -> NoReturn:
    """Say what there is in a folder or an archive without an export, and what to do."""
    if findings.alone:
        file_list = _list_files(findings.alone)
        source.fail(
            f"holds no export of a tool, but files that are read one by one: {file_list}. "
            "Give one of them"
        )
    refusals = findings.refusals.items()
    for name, reason in sorted(refusals, key=lambda refusal: "a web page" in refusal[1]):
        source.fail(f"holds {name}, which {reason}")
    nature = "a ZIP archive without a chat"
    if source.path.is_dir():
        nature = "a directory, expected a file, an export"
        if not any(source.path.iterdir()):
            source.fail("is a directory, expected a file or the folder of an export; it is empty")
    file_list = "none that may hold text (unpack a ZIP in it)"
    if files:
        file_list = ", ".join(file.name for file in files[:5])
    source.fail(f"is {nature} of a tool that is known; its first files are {file_list}")
