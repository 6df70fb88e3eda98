"""Reading conversations from files of any format into one shape.

:func:`load` finds the format by itself and gives a :class:`memlab.records.Dataset`; :func:`stream`
gives the same data in batches of whole scopes, for files larger than memory.

- ``chatlog``: the format of a person's own conversations, JSON lines; records become datasets.
- ``format_detection``: finds the format of a file, a folder or an archive.
- ``record_sources``: a file with its folder or archive, and what was odd or bad in it.
  ``zip_archives``: ZIP. ``json_streaming``: JSON of any size. ``record_fields``: checks of fields.
- ``message_identity``: ids of messages, sessions and questions. ``time_forms``: times in other
  forms than ISO 8601. ``thinking_tags``: those of a model in the text of its answer.
  ``unread_texts``: what stands under keys that nobody knows.
- ``question_files``: questions as lines. ``reviewing_proposals``: a person accepts, mends or drops
  those of a model. ``fetch``: downloads published benchmarks. ``sample``: the sample.
- ``importers``, ``benchmarks``: exports of chat tools and published benchmarks. They hang on the
  registry :data:`memlab.formats`, as formats of plug-ins do, and are imported when a format is
  first looked for.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memlab.datasets import chatlog, fetch
from memlab.datasets.format_detection import choose_export_files, detect, list_formats
from memlab.datasets.record_fields import JsonObject
from memlab.datasets.record_sources import QUARANTINE, Source
from memlab.errors import DataError, check_at_least, explain_arguments
from memlab.records import Dataset, concat, decode_id_part, encode_id_part, resolve_scope_name
from memlab.records.dataset import keep_questions_of_sources
from memlab.registry import formats
from memlab.sessions import GAP
from memlab.text.languages import check_language

__all__ = [
    "FORMATS",
    "apply_corrections",
    "benchmarks",
    "chatlog",
    "detect",
    "fetch",
    "importers",
    "load",
    "propose_questions",
    "stream",
]

_log = logging.getLogger("memlab")
_GENERIC_NAME = re.compile(
    r"(?i)_?chat|conversations(?:[-_]?\d+)?|result|messages|export|myactivity"
)
"""As every export is called."""
_ON_ERROR = ("raise", "quarantine")
_ORDERS = (None, "dmy", "mdy", "ymd")
_LAZY = {
    "apply_corrections": "memlab.datasets.benchmarks.locomo_corrections",
    "propose_questions": "memlab.questions",
}
_LAZY_MODULES = ("benchmarks", "importers")


def __getattr__(name: str) -> Any:
    """Give what hangs on the registry, or is seldom used, when it is first asked for."""
    if name == "FORMATS":
        return {name: formats[name] for name in list_formats()}
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(
    path: str | Path,
    *,
    name: str | None = None,
    scopes: int | Sequence[str] | None = None,
    sources: str | Sequence[str] | None = None,
    questions: str | Path | None = None,
    **options: Any,
) -> Dataset:
    """Load conversations and their questions from a file, an export or a benchmark.

    The format is detected.

    :param path: a file; the folder of a benchmark or of an export; a ZIP archive; or the name of a
        published file that was fetched to ``data/``, such as ``locomo`` (see
        :mod:`memlab.datasets.fetch`).
    :param name: the dataset's name; by default the file's, with ``-pool<n>-seed<seed>`` when
        pooled.
    :param scopes: take only these memories, or so many that ``seed`` draws; all by default.
    :param sources: keep only the questions that are ``written``, ``proposed`` or ``accepted``, see
        :class:`memlab.records.Question`; all by default.
    :param questions: a file of questions about these conversations, such as a model's proposals;
        they come beside those that ``path`` has.
    :param options: as for :func:`stream`.
    :raises DataError: naming file, record and field, when something cannot be used; for a scope
        that is not there, or more of them than there are; and where no question is of ``sources``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "log.jsonl")
    ...     line = '{"scope": "me", "sender": "Ann", "text": "Hello", '
    ...     line += '"timestamp": "2026-03-01T09:00Z"}'
    ...     _ = file.write_text(line)
    ...     load(file).describe()
    'log (chatlog): 1 turn in 1 session of 1 scope, 0 questions'
    """
    data = concat(stream(path, name=name, **options))
    if questions is not None:
        data = _add_questions_of_other_file(Path(questions), data, options)
    if scopes is not None:
        data = data.take(_resolve_or_draw_scopes(data, scopes, seed=options.get("seed", 0)))
    if sources is not None:
        source_names = [sources] if isinstance(sources, str) else sources
        data = keep_questions_of_sources(data, source_names)
    _log.info("%s", data.describe())
    return data


def _add_questions_of_other_file(
    question_path: Path, data: Dataset, load_options: Mapping[str, Any]
) -> Dataset:
    """Read a file of questions with the options of the load."""
    from memlab.atomic_files import make_absolute
    from memlab.datasets.question_files import add_questions_of_file

    quarantine_folder = make_absolute(load_options.get("quarantine_dir", QUARANTINE))
    source = Source(question_path, load_options.get("on_error", "raise"), quarantine_folder)
    source.tz = _time_zone_of_name_or_refuse(load_options.get("tz"))
    return add_questions_of_file(source, data)


def dataset_name(path: str | Path, *, pool: int | None = None, seed: int = 0) -> str:
    """Give the name that :func:`load` gives a file, without reading it to its end.

    :param pool: and ``seed``, as for :func:`stream`.
    :raises DataError: when the format is not known.

    >>> from memlab.datasets import dataset_name
    >>> dataset_name("sample"), dataset_name("log of mine.jsonl")
    ('sample', 'log of mine')
    """
    located_path = fetch.resolve_path_or_benchmark_name(path)
    name = located_path.stem
    if _GENERIC_NAME.fullmatch(name):
        format_name = detect(path)
        if formats.describe(format_name).kind == "export":
            name = format_name
    if pool is None:
        return name
    return f"{name}-pool{pool}-seed{seed}"


def _resolve_or_draw_scopes(
    data: Dataset, wanted_scopes: int | Sequence[str], *, seed: int
) -> list[str]:
    """Give the scopes of these names, or so many that are drawn, in the order of the dataset."""
    known_scopes = data.scopes
    if isinstance(wanted_scopes, str):
        wanted_scopes = [wanted_scopes]
    if not isinstance(wanted_scopes, int):
        return [resolve_scope_name(wanted_scope, known_scopes) for wanted_scope in wanted_scopes]
    if not 1 <= wanted_scopes <= len(known_scopes):
        raise DataError(
            f"{wanted_scopes:,} scopes of {data.name!r} are asked for, it has "
            f"{len(known_scopes):,}; ask for 1 to {len(known_scopes):,}, or leave it out for all"
        )
    drawn_scopes = set(random.Random(seed).sample(known_scopes, wanted_scopes))
    return [scope for scope in known_scopes if scope in drawn_scopes]


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
    person: str | Sequence[str] = (),
    scope: str | None = None,
    date_order: str | None = None,
) -> Iterator[Dataset]:
    """Load a file in batches of whole scopes.

    Joined by :func:`memlab.records.concat` they are what :func:`load` gives.

    Memory holds one batch and one scope. Two cases need more: a chat log that does not say in its
    header that it is grouped by scope is gathered first, and pooling holds the file that it draws
    from.

    :param format: a name of ``memlab.formats``; found from the file when not given. One of your own
        is a function of ``path`` under ``@memlab.formats.register`` that yields the records of a
        chat log, as dicts with the keys of :mod:`memlab.datasets.chatlog`; it is found too where it
        says how it is recognised (:class:`memlab.registry.Format`).
    :param on_error: ``raise`` stops at the first bad record; ``quarantine`` writes bad records with
        their reasons to ``<file name>.quarantine.jsonl``, loads the rest and lists them in
        ``Dataset.issues``.
    :param batch_turns: a batch is given out once it has this many turns.
    :param pool: make every LongMemEval question a haystack of this many sessions, see
        :mod:`memlab.datasets.benchmarks.longmemeval_haystacks`.
    :param gap: the silence that ends a session of a chat log that does not name its sessions.
    :param language: that people speak in it, a code of :data:`memlab.text.languages.LANGUAGES`; by
        default what the header of a chat log says, else English.
    :param into: gives what is there of some scopes
        (``lambda scopes: store.dataset(name, scopes=scopes)``), where the file goes on a chat log:
        the batches are what its scopes are then, without the questions that were there.
    :param tz: the zone of times without one, such as ``Europe/Oslo``; UTC by default.
    :param assistant: who of the senders of a chat is the assistant, one or several. Where people
        talk to an assistant, one called ChatGPT, Claude and the like is by itself, which an issue
        says; in a messenger only where no person is called so, as Meta AI.
    :param person: who of the senders is a person, one or several, whatever the name says.
    :param scope: the scope to load, where there are several; of an export that has one memory, its
        name.
    :param date_order: of dates that can be read in several ways, such as 2/1/2026: ``dmy``,
        ``mdy``, or ``ymd`` in WhatsApp; by default it is decided over the whole file.
    :raises DataError: wrong arguments at the call, bad records when they are reached.
    """
    for option_name, given_value, known_values in (
        ("on_error", on_error, _ON_ERROR),
        ("date_order", date_order, _ORDERS),
    ):
        if given_value not in known_values:
            raise DataError(
                f"{option_name} is {given_value!r}, expected "
                f"{' or '.join(filter(None, known_values))}"
            )
    check_at_least(1, batch_turns=batch_turns)
    from memlab.atomic_files import make_absolute

    source = Source(
        fetch.resolve_path_or_benchmark_name(path),
        on_error,
        make_absolute(quarantine_dir),
        gap,
    )
    if language:
        source.language = check_language(language)
    source.tz = _time_zone_of_name_or_refuse(tz)
    source.into = into
    source.date_order = date_order
    source.assistants = _as_name_tuple(assistant)
    source.people = _as_name_tuple(person)
    twice_named = set(source.assistants).intersection(source.people)
    if twice_named:
        raise DataError(
            f"{min(twice_named)!r} is named as assistant and as person; expected one of them"
        )
    format_name = dataset_format = format or detect(path)
    if format_name not in formats:
        raise DataError(f"format is {format_name!r}, expected one of {', '.join(list_formats())}")
    format_description = formats.describe(format_name)
    if pool is not None and format_description.pool is None:
        raise DataError(
            f"{path}: pool={pool} is for LongMemEval files, this one is {format_name}; leave pool "
            "out"
        )
    if into is not None:
        stored_dataset = into([])
        if "benchmark" in (format_description.kind, formats.describe(stored_dataset.format).kind):
            raise DataError(
                f"{path} is {format_name}, {stored_dataset.name!r} is {stored_dataset.format}; "
                "only a chat log takes more messages"
            )
        source.language = stored_dataset.language
        dataset_format = stored_dataset.format
        name = stored_dataset.name
    is_export = format_description.kind == "export"
    if not name and is_export and _GENERIC_NAME.fullmatch(source.path.stem):
        name = format_name
    shown_name = repr(source.path.name)[1:-1]  # a name may hold control characters
    dataset_parts = chatlog.make_dataset_batches(
        source,
        _yield_chunks_with_progress(_read_chunks_of_format(format_name, source, scope), shown_name),
        batch_turns=batch_turns,
        format_name=dataset_format,
        is_benchmark=format_description.kind == "benchmark",
        is_ordered=is_export and format_name != "table",
    )
    if pool is not None and format_description.pool is not None:
        dataset_parts = format_description.pool(
            concat(dataset_parts), n_sessions=pool, seed=seed, batch_turns=batch_turns
        )
    if scope is not None and not is_export:
        dataset_parts = _select_scope_of_batches(dataset_parts, scope, path)
    if not name:
        return iter(dataset_parts)
    return map(partial(replace, name=name), dataset_parts)


def _as_name_tuple(name_or_names: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(name_or_names, str):
        return (name_or_names,)
    return tuple(name_or_names)


def _time_zone_of_name_or_refuse(zone_name: str | None) -> ZoneInfo | None:
    if zone_name is None:
        return None
    try:
        return ZoneInfo(zone_name)
    except (KeyError, ValueError, OSError) as error:
        raise DataError(
            f"tz is {zone_name!r}, expected the name of a time zone such as Europe/Oslo"
        ) from error


def _yield_chunks_with_progress(
    chunks: Iterable[chatlog.Chunk], progress_label: str
) -> Iterator[chatlog.Chunk]:
    from memlab.progress_bars import progress_bar

    with progress_bar(what=progress_label, unit="records", delay=2, leave=False) as bar:
        for chunk in chunks:
            yield chunk
            bar.update(chunk.n_records)


def _read_chunks_of_format(
    format_name: str, source: Source, export_scope: str | None
) -> Iterable[chatlog.Chunk]:
    """Give the records of a source in chunks."""
    if format_name == "chatlog":
        return chatlog.read_line_chunks_with_header_apart(source)
    read_format = formats[format_name]
    format_description = formats.describe(format_name)
    if format_description.kind == "export":
        return _read_export_chunks_and_note_counts(format_name, source, export_scope)
    if format_description.kind == "benchmark" or format_description.files:
        source.members = source.files(*format_description.files)
        if not source.members:
            patterns = " or ".join(format_description.files)
            source.fail(f"holds no file of {format_name} {patterns}; name the folder that does")
    reader_input: Any = source
    if "path" in inspect.signature(read_format).parameters:
        reader_input = source.path
    if format_description.kind == "benchmark":
        # A session of a benchmark may be long, and its messages are read one by one anyway.
        return chatlog.records_in_chunks(read_format(reader_input), chunk_size=1)
    return chatlog.records_in_chunks(read_format(reader_input))


def _read_export_chunks_and_note_counts(
    format_name: str, source: Source, wanted_scope: str | None
) -> Iterator[chatlog.Chunk]:
    """Read an export; at its end, what was left out or changed is in the issues of the source.

    :param wanted_scope: names the memory of an export that has one; of several it chooses the one
        called so.
    :raises DataError: for a scope that is none of several, and as the importer of the tool does.
    """
    member_files = source.files()
    source = replace(source, members=choose_export_files(format_name, source, member_files))
    _note_unread_files_as_issue(source, member_files)
    records: Iterable[dict[str, Any]] = formats[format_name](source)
    renamed_scopes: dict[str, str] = {}
    if wanted_scope is not None:
        record_list = [*records]
        renamed_scopes = _new_name_by_chosen_scope(source, record_list, wanted_scope)
        records = _keep_and_rename_scopes(record_list, renamed_scopes)
    n_records = 0
    for chunk in chatlog.records_in_chunks(records):
        n_records += chunk.n_records
        yield chunk
    counted_kinds = _note_counts_as_issues_and_list_them(source, renamed_scopes)
    if not n_records:
        left_out_text = "and nothing else that it knows"
        if counted_kinds:
            left_out_text = f"left out: {', '.join(counted_kinds)}"
        source.fail(f"holds no message that memlab keeps ({format_name}); {left_out_text}")


def _keep_and_rename_scopes(
    records: Iterable[JsonObject], new_name_by_scope: dict[str, str]
) -> Iterator[JsonObject]:
    """Give the records of some scopes, with the names that these get."""
    for record in records:
        own_scope = str(record.get("scope"))
        if own_scope in new_name_by_scope:
            yield {**record, "scope": new_name_by_scope[own_scope]}


def _note_unread_files_as_issue(source: Source, all_files: list[Source]) -> None:
    """Name the files of an export that are not read, but for those that are empty or that a reader
    looks up.
    """
    read_names = {file.name for file in source.members}
    ignored_names = set[str]()
    for format_name in formats:
        ignored_names.update(formats.describe(format_name).beside)
    other_names = []
    for file in (*all_files, *source.files(of_unread_kinds=True)):
        is_empty = file.n_bytes == len("[]")
        if not is_empty and file.name not in read_names and file.path.name not in ignored_names:
            other_names.append(file.name)
    if other_names:
        first_names = ", ".join(other_names[:5])
        if len(other_names) > 5:
            first_names += ", …"
        other_files_text = (
            "1 other file" if len(other_names) == 1 else f"{len(other_names):,} other files"
        )
        source.note("export", f"{other_files_text}: {first_names}", "left out")


def _new_name_by_chosen_scope(
    source: Source, records: list[JsonObject], wanted_name: str
) -> dict[str, str]:
    """Give the scope that is taken, with the name that it gets."""
    known_scopes = list(dict.fromkeys(str(record.get("scope")) for record in records))
    if wanted_name not in known_scopes and decode_id_part(wanted_name) in known_scopes:
        wanted_name = decode_id_part(wanted_name)
    if not known_scopes or wanted_name in known_scopes:
        return {wanted_name: wanted_name}
    if len(known_scopes) > 1:
        scope_list = ", ".join(known_scopes[:20])
        source.fail(
            f"holds {len(known_scopes)} chats or people, none is {wanted_name!r}: {scope_list}"
        )
    return {known_scopes[0]: wanted_name}


def _note_counts_as_issues_and_list_them(source: Source, kept_scopes: Collection[str]) -> list[str]:
    """Note what was left out or changed, of some scopes where there are any, and give it back."""
    count_by_kind = Counter[tuple[str, str]]()
    for (action, counted_kind, scope), count in source.report.counts.items():
        if not kept_scopes or scope in {"", *kept_scopes}:
            count_by_kind[action, counted_kind] += count
    noted_counts = []
    for (action, counted_kind), count in sorted(count_by_kind.items()):
        if count:
            kind_name = counted_kind
            if count == 1:
                kind_name = re.sub("s$|s(?= )", "", counted_kind, count=1)
            noted_counts.append(f"{count:,} {kind_name}")
            source.note("export", noted_counts[-1], action)
    return noted_counts


def _select_scope_of_batches(
    batches: Iterable[Dataset], wanted_scope: str, path: str | Path
) -> Iterator[Dataset]:
    """Take the scope of a name: as the file has it, or else as memlab prints it."""
    encoded_scope = encode_id_part(wanted_scope)
    decoded_parts = list[Dataset]()
    known_scopes = list[str]()
    for dataset_part in batches:
        known_scopes += dataset_part.scopes
        if encoded_scope in dataset_part.scopes:
            yield dataset_part.take([encoded_scope])
        elif wanted_scope in dataset_part.scopes:
            decoded_parts.append(dataset_part.take([wanted_scope]))
    if encoded_scope in known_scopes:
        return
    if not decoded_parts:
        raise DataError(
            f"{path} has no scope {wanted_scope!r}; it has {', '.join(known_scopes[:20])}: name "
            "one of them"
        )
    yield from decoded_parts


explain_arguments(globals())
