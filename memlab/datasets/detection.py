"""Finding the format of a file from its beginning, and of a folder or a ZIP archive from its files.

Every format of :data:`memlab.formats` says how it is recognised (:class:`memlab.registry.Format`).
Those of plug-ins are asked first, then exports, benchmarks and the chat log.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memlab.datasets import fetch
from memlab.datasets.source import Source
from memlab.errors import DataError
from memlab.registry import formats

_PROBED = 400  # files of a folder or archive whose beginnings are looked at
_ORDER = ("export", "benchmark", "log")


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
    kind = _detect_folder(source) if source.path.is_dir() else None
    return kind or _detect_export(source)


def list_formats() -> list[str]:
    """List the names of all formats in the order in which they are asked."""
    names = sorted(formats, key=lambda name: _ORDER.index(formats.describe(name).kind))
    return sorted(names, key=_is_own)


def choose_export_files(kind: str, source: Source, files: list[Source]) -> list[Source]:
    """Choose the files that the reader of an export reads; one that is given alone it reads in any case.

    :raises DataError: when there is none.
    """
    known: list[Source] = []
    for file in without_sent_files(files):
        if file.size and (_fits(kind, file) or (file.look_further() and _fits(kind, file))):
            known.append(file)
        file.forget()
    if known:
        return known
    if len(files) != 1:
        source.fail(f"holds no file that looks like {kind}")
    if other := _recognise(files[0], _split_formats()[0]):
        source.fail(f"looks like {other}, not {kind}: leave the format out, or name that one")
    return files


def without_sent_files(files: list[Source]) -> list[Source]:
    """Leave out the files that people sent in a chat, which may be chats too, unless there is nothing else."""
    sent: set[int] = set()
    for find in {formats.describe(name).sent for name in formats}:
        if find is not None:
            sent.update(map(id, find(files)))
    return [file for file in files if id(file) not in sent] or files


def _is_own(name: str) -> bool:
    return formats[name].__module__.partition(".")[0] == "memlab"


def _split_formats() -> tuple[list[str], list[str]]:
    """List the formats that are asked before a file may be refused, of plug-ins and exports, and the others."""
    names = list_formats()
    first = [name for name in names if _is_export(name) or not _is_own(name)]
    return first, [name for name in names if name not in first]


def _is_export(name: str) -> bool:
    return formats.describe(name).kind == "export"


def _fits(name: str, file: Source) -> bool:
    """Say whether a file is recognised as of a format."""
    about = formats.describe(name)
    if about.detect is not None and about.detect(file):
        return True
    return bool(about.keys) and not file.first_keys.isdisjoint(about.keys)


def _recognise(file: Source, names: Iterable[str]) -> str | None:
    """Find the first of some formats that recognises a file; ``None`` where that one refuses it."""
    for name in names:
        if _fits(name, file):
            refuse = formats.describe(name).refuse
            return None if refuse is not None and refuse(file) else name
    return None


def _refusal(file: Source) -> str | None:
    """Say what a file is that is known and cannot be read, and what to do; ``None`` for any other."""
    asked = dict.fromkeys(formats.describe(name).refuse for name in formats)
    for refuse in asked:
        if refuse is not None and (why := refuse(file)):
            return why
    return None


def _detect_file(file: Source) -> str:
    first, rest = _split_formats()
    if kind := _recognise(file, first):
        return kind
    if why := _refusal(file):
        file.fail(why)
    if "memlab" in file.first_keys:
        return "chatlog"
    if kind := _recognise(file, rest):
        return kind
    if file.look_further():
        return _detect_file(file)
    file.fail(
        f"is none of the formats {', '.join(first + rest)}: it begins with {file.head[:40]!r} and its "
        f"first record has the keys {sorted(file.first_keys)[:8]}. Name it with format=, or write "
        "it as a chat log (docs/conversations.md)"
    )


def _detect_folder(source: Source) -> str | None:
    """Find the format whose files are called as those of a folder."""
    for name in list_formats():
        about = formats.describe(name)
        for file in source.files(*about.files)[:1] if about.files else ():
            with suppress(DataError):
                if about.by_name or detect(file.path) == name:
                    return name
    return None


def _detect_export(source: Source) -> str:
    """Find the tool of a folder or an archive; of many files the first are looked at, and some out of the rest."""
    files = without_sent_files(source.files())
    exports = [name for name in list_formats() if _is_export(name)]
    found: dict[str, str] = {}
    refusals: list[str] = []
    for file in (*files[:_PROBED], *files[_PROBED :: max(1, len(files) // _PROBED)]):
        if file.size:
            kind = _recognise(file, exports)
            if kind is None and file.look_further():
                kind = _recognise(file, exports)
            if kind is not None:
                found.setdefault(kind, file.name)
            elif why := _refusal(file):
                refusals.append(why)
        file.forget()
    if len(found) == 1:
        return next(iter(found))
    if found:
        what = "; ".join(f"{kind} ({name})" for kind, name in found.items())
        source.fail(
            f"holds exports of several tools: {what}. Give one of the files, or name the format with --format"
        )
    refusals += filter(None, map(_refusal, source.files(unread=True)))
    if refusals:
        refusals.sort(key=lambda refusal: "a web page" in refusal)  # which says least
        source.fail(refusals[0])
    names = ", ".join(file.name for file in files[:5])
    what = "a ZIP archive without a chat"
    if source.path.is_dir():
        what = "a directory, expected a file, an export"
    listed = names or "none that may hold text (unpack a ZIP in it)"
    source.fail(f"is {what} of a tool that is known; its first files are {listed}")
