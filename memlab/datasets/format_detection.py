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
_BINARY_PROBED = 400  # characters of a beginning by which it is known as binary
_NO_TEXT = frozenset(
    {*map(chr, range(32)), "\x7f", "\ufffd"} - {"\t", "\n", "\r", "\v", "\f", "\x1b"}
)
_BINARY_KINDS = (
    (r"\ufffdPNG", "a picture (PNG)"),
    (r"(?s)\ufffd{3}.{1,9}(?:JFIF|Exif)", "a picture (JPEG)"),
    (r"GIF8|BM|(?s:RIFF.{4,12}WEBP)|(?s:.{4}ftyp(?:heic|mif1|avif))", "a picture"),
    (r"ID3|OggS|fLaC|(?s:RIFF.{4,12}WAVE)|(?s:.{4}ftypM4A)", "sound"),
    (r"(?s).{4}ftyp|\x1aE\ufffd\ufffd|RIFF", "a film"),
    (r"\x7fELF|MZ", "a program"),
)
"""How files begin that hold no text, as far as they can be decoded."""
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
    source = Source(fetch.resolve_path_or_benchmark_name(path))
    if not source.is_folder_or_archive:
        return _detect_format_of_file(source)
    detected = None
    if source.path.is_dir():
        detected = _detect_format_by_file_names(source)
    if detected is None:
        detected = _detect_export_format(source)
    return detected


def list_formats() -> list[str]:
    """List the names of all formats in the order in which they are asked."""
    return sorted(formats, key=_is_builtin_and_place_of_kind)


def choose_export_files(format_name: str, source: Source, files: list[Source]) -> list[Source]:
    """Choose the files that the reader of an export reads.

    One that is given alone it reads in any case.

    :raises DataError: when there is none.
    """
    recognised_files = []
    for file in without_files_sent_in_chats(files):
        if file.n_bytes and _find_format_with_second_look(file, [format_name], heed_refusal=False):
            recognised_files.append(file)
        file.forget_cached_beginning()
    if not recognised_files:
        for file in filter(_is_not_empty, files):
            if _find_guessing_format(file, [format_name]) is not None:
                recognised_files.append(file)
            file.forget_cached_beginning()
    if recognised_files:
        return recognised_files
    if len(files) != 1:
        source.fail(f"holds no file that looks like {format_name}")
    other_format = _find_recognising_format(files[0], _formats_asked_before_refusal())
    if other_format is not None:
        source.fail(
            f"looks like {other_format}, not {format_name}: leave the format out, or name that one"
        )
    return files


def without_files_sent_in_chats(files: list[Source]) -> list[Source]:
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


def _is_builtin_and_place_of_kind(format_name: str) -> tuple[bool, int]:
    """Give the place of a format in the order: plug-ins first, then by kind."""
    is_own = formats[format_name].__module__.startswith("memlab.")
    return is_own, _KINDS.index(formats.describe(format_name).kind)


def _formats_asked_before_refusal() -> list[str]:
    """List the formats that are asked before a file may be refused: those of plug-ins, and
    exports.
    """
    last_order = True, _KINDS.index("export")
    return [
        format_name
        for format_name in list_formats()
        if _is_builtin_and_place_of_kind(format_name) <= last_order
    ]


def _is_recognised_by(format_name: str, file: Source) -> bool:
    """Say whether a file is recognised as of a format."""
    format_description = formats.describe(format_name)
    if format_description.detect is not None and format_description.detect(file):
        return True
    if not format_description.keys:
        return False
    return not file.first_keys.isdisjoint(format_description.keys)


def _find_recognising_format(
    file: Source, format_names: Iterable[str], *, heed_refusal: bool = True
) -> str | None:
    """Find the first of some formats that recognises a file.

    :param heed_refusal: give ``None`` where that format refuses it.
    """
    for format_name in format_names:
        if not _is_recognised_by(format_name, file):
            continue
        refuses = formats.describe(format_name).refuse
        if heed_refusal and refuses is not None and refuses(file):
            return None
        return format_name
    return None


def _is_not_empty(file: Source) -> bool:
    return file.n_bytes > 0


def _find_guessing_format(file: Source, format_names: Iterable[str]) -> str | None:
    """Find the first of some formats that a file may be of, where none recognises it."""
    for format_name in format_names:
        guess_format = formats.describe(format_name).guess
        if guess_format is not None and guess_format(file):
            return format_name
    return None


def _find_format_with_second_look(
    file: Source, format_names: list[str], *, heed_refusal: bool = True
) -> str | None:
    """Find the first of some formats that recognises a file, whose first record may be
    longer than its beginning.
    """
    detected = _find_recognising_format(file, format_names, heed_refusal=heed_refusal)
    if detected is None and file.extend_beginning_if_json():
        detected = _find_recognising_format(file, format_names, heed_refusal=heed_refusal)
    return detected


def _reason_to_refuse(file: Source) -> str | None:
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


def _detect_format_of_file(file: Source) -> str:
    format_names = list_formats()
    asked_first = _formats_asked_before_refusal()
    detected = _find_recognising_format(file, asked_first)
    if detected is None:
        reason = _reason_to_refuse(file)
        if reason is not None:
            file.fail(reason)
        if "memlab" in file.first_keys:
            return "chatlog"
        detected = _find_recognising_format(file, format_names[len(asked_first) :])
        if detected == "chatlog" and (file.columns or file.head.lstrip()[:1] == "["):
            detected = None  # its records are lines of JSON
    if detected is not None:
        return detected
    if file.extend_beginning_if_json():
        return _detect_format_of_file(file)
    guessed = _find_guessing_format(file, format_names)
    if guessed is not None:
        return guessed
    missing_text = ""
    if _may_hold_texts_without_speakers(file):
        missing_text = "It holds texts without who says them: give each a role or a sender. "
    beginning_text = f"it begins with {file.head[:40]!r}"
    if file.is_parquet:
        beginning_text = "it is a Parquet table"
    elif _is_binary(file.head):
        file.fail(
            f"is {_name_binary_kind(file.head)}: give an export of a chat tool, or a chat log in "
            "UTF-8 (docs/conversations.md)"
        )
    first_keys = sorted(file.first_keys)[:8]
    if first_keys:
        beginning_text += f" and its first record has the keys {first_keys}"
    file.fail(
        f"is none of the formats {', '.join(format_names)}: {beginning_text}. {missing_text}Name "
        "its format (format=, --format on the command line), or write it as a chat log "
        "(docs/conversations.md)"
    )


def _is_binary(beginning: str) -> bool:
    """Say whether the decoded beginning of a file is no text, which no error should print."""
    looked_at = beginning[:_BINARY_PROBED]
    n_strange = sum(map(_NO_TEXT.__contains__, looked_at))
    return "\0" in looked_at or n_strange > len(looked_at) / 10


def _name_binary_kind(beginning: str) -> str:
    for pattern, kind in _BINARY_KINDS:
        if re.match(pattern, beginning):
            return kind
    return "a binary file, or text in another encoding"


def _may_hold_texts_without_speakers(file: Source) -> bool:
    """Say whether the beginning of a file of JSON holds messages that name nobody."""
    if re.match(r'\s*\[\s*"', file.head):
        return True
    return any(path.rpartition(".")[2] in _TEXTS for path in file.keys | file.columns)


def _detect_format_by_file_names(folder: Source) -> str | None:
    """Find the format whose files are called as those of a folder."""
    for format_name in list_formats():
        format_description = formats.describe(format_name)
        if not format_description.files:
            continue
        for file in folder.files(*format_description.files)[:1]:
            if format_description.by_name:
                return format_name
            with suppress(DataError):
                if detect(file.path) == format_name:
                    return format_name
    return None


@dataclass
class _FolderFindings:
    """What the files of a folder or an archive are.

    :param exports: the first file of each export; ``refusals``: why files that are known are not
        read; ``alone``: files that are read one by one, by their formats.
    """

    exports: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    alone: dict[str, str] = field(default_factory=dict)

    def classify_and_add_file(
        self, file: Source, export_formats: list[str], other_formats: list[str]
    ) -> None:
        """Take up a file: as one of an export, else as one that is refused, else as one
        of another format.
        """
        export_format = _find_format_with_second_look(file, export_formats)
        if export_format is not None:
            self.exports.setdefault(export_format, file.name)
            return
        reason = _reason_to_refuse(file)
        if reason is not None:
            self.refusals[file.name] = reason
            return
        other_format = _find_recognising_format(file, other_formats)
        if other_format is not None:
            self.alone.setdefault(other_format, file.name)


def _detect_export_format(folder_or_archive: Source) -> str:
    """Find the tool of a folder or an archive.

    Of many files the first are looked at, and some out of the rest.
    """
    files = without_files_sent_in_chats(folder_or_archive.files())
    format_names = list_formats()
    exports = [
        format_name
        for format_name in format_names
        if formats.describe(format_name).kind == "export"
    ]
    other_formats = [format_name for format_name in format_names if format_name not in exports]
    findings = _FolderFindings()
    probing_step = max(1, len(files) // _PROBED)
    for file in (*files[:_PROBED], *files[_PROBED::probing_step]):
        if file.n_bytes:
            findings.classify_and_add_file(file, exports, other_formats)
        file.forget_cached_beginning()
    exports_found = findings.exports
    if not exports_found:
        for file in folder_or_archive.files(of_unread_kinds=True):
            reason = _reason_to_refuse(file)
            if reason is not None:
                findings.refusals[file.name] = reason
        if not findings.alone and not findings.refusals:
            guessed = _guess_export_format(files, exports)
            if guessed is not None:
                return guessed
        _fail_without_export(folder_or_archive, files, findings)
    if len(exports_found) > 1:
        folder_or_archive.fail(
            f"holds exports of several tools: {_write_formats_with_files(exports_found)}. "
            "Give one of the files, or name the format with --format"
        )
    return next(iter(exports_found))


def _guess_export_format(files: list[Source], export_formats: list[str]) -> str | None:
    """Find a format that one of the files may be of, where none recognises any."""
    for file in filter(_is_not_empty, files[:_PROBED]):
        guessed = _find_guessing_format(file, export_formats)
        file.forget_cached_beginning()
        if guessed is not None:
            return guessed
    return None


def _write_formats_with_files(file_name_by_format: dict[str, str]) -> str:
    return "; ".join(starmap("{} ({})".format, file_name_by_format.items()))


def _fail_without_export(
    folder_or_archive: Source, files: list[Source], findings: _FolderFindings
) -> NoReturn:
    """Say what there is in a folder or an archive without an export, and what to do."""
    if findings.alone:
        file_list = _write_formats_with_files(findings.alone)
        folder_or_archive.fail(
            f"holds no export of a tool, but files that are read one by one: {file_list}. "
            "Give one of them"
        )
    refusals = findings.refusals.items()
    for name, reason in sorted(refusals, key=lambda refusal: "a web page" in refusal[1]):
        folder_or_archive.fail(f"holds {name}, which {reason}")
    nature = "a ZIP archive without a chat"
    if folder_or_archive.path.is_dir():
        nature = "a directory, expected a file, an export"
        if not any(folder_or_archive.path.iterdir()):
            folder_or_archive.fail(
                "is a directory, expected a file or the folder of an export; it is empty"
            )
    file_list = "none that may hold text (unpack a ZIP in it)"
    if files:
        file_list = ", ".join(file.name for file in files[:5])
    folder_or_archive.fail(f"is {nature} of a tool that is known; its first files are {file_list}")
