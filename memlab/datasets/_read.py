"""Reading records of unknown quality: a place for what is wrong, and the way into a dataset.

A check of ``_fields`` raises :class:`Bad`; :meth:`Source.record` around it stops the load, or sets the record aside.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

import polars as pl
from tqdm import tqdm

from memlab.datasets._fields import Bad
from memlab.errors import DataError
from memlab.records import TIMESTAMP, Annotation, Dataset, Issue, Question, Turn, frame, schema
from memlab.sessions import GAP, sessions_of
from memlab.terminal import one_line

T = TypeVar("T")
_PARTS = re.compile(r"\d+|\D+")
QUARANTINE = Path(".memlab") / "quarantine"
_MOST = 20_000  # bad records of a file that are set aside


@dataclass
class Source:
    """A file being read, what to do with its bad records (``raise`` or ``quarantine``), and what was odd in it so far.

    :param quarantine_dir: where the side file goes; it is only ever added to, and a line that it holds already is
        not written again, so that a second load neither loses nor repeats a record.
    :param language: of the conversations; ``None`` for what the file says, English where it says nothing.
    :param into: gives what is there of some scopes, where a chat log goes to one that is there.
    :param tz: the zone of times without one; UTC where it is left out.
    :param assistants: senders of a chat log who are the assistant where no role is given.
    """

    path: Path
    on_error: str = "raise"
    quarantine_dir: Path = QUARANTINE
    gap: timedelta = GAP
    language: str | None = None
    into: Callable[[list[str]], Dataset] | None = None
    tz: tzinfo | None = None
    assistants: tuple[str, ...] = ()
    issues: list[Issue] = field(default_factory=list)
    _aside: set[str] | None = None
    _rejected: int = 0

    def note(self, where: str, found: str, action: str) -> None:
        """Record something odd that did not stop the load."""
        self.issues.append(Issue(_printable(f"{self.path.name}: {where}"), _printable(found), action))

    def take_issues(self) -> pl.DataFrame:
        """Give the issues since the last call."""
        taken = frame(Issue, self.issues)
        self.issues.clear()
        return taken

    def files(self, *patterns: str) -> Iterator[Source]:
        """Give the file itself, or those of the folder that match the first pattern that any does, by their names.

        They share the issues; 2 stands before 10.
        """
        paths = matching(self.path, *patterns) if self.path.is_dir() else [self.path]
        if not paths:
            self.fail(f"holds no file named {' or '.join(patterns)}; name the folder that does")
        few = len(paths) == 1
        for path in tqdm(paths, desc=one_line(self.path.name), unit=" files", delay=2, leave=False, disable=few):
            yield replace(self, path=path)

    def named(self, file: Source) -> str:
        """Call one of the files by its place in the folder, without its ending."""
        place = file.path.relative_to(self.path) if file.path != self.path else Path(file.path.name)
        return place.with_suffix("").as_posix()

    def fail(self, message: str, cause: BaseException | None = None) -> NoReturn:
        raise DataError(_printable(f"{self.path}: {message}")) from cause

    def record(self, label: str, raw: Any) -> _Record:
        """Read a record in a ``with`` block, which ends where the record is bad.

        :param raw: the record as it was read, or as much of it as could be.
        """
        return _Record(self, label, raw)

    def reject(self, record: str, bad: Bad, raw: Any) -> None:
        """Stop at a bad record, or write it to the side file with its reason."""
        if self.on_error == "raise":
            self.fail(f'{record}: {bad}. Correct it, or load with on_error="quarantine" to set it aside', bad)
        about = {"source": str(self.path), "record": record, "reason": str(bad)}
        try:
            line = json.dumps({**about, "raw": raw})
        except RecursionError:
            line = json.dumps({**about, "raw": None})
        target = self.quarantine_dir / f"{self.path.name}.quarantine.jsonl"
        try:
            if self._aside is None:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._aside = set(target.read_text("utf-8").splitlines()) if target.exists() else set()
            self._rejected += 1
            if self._rejected > _MOST:
                self.fail(
                    f"{record}: {bad}; {_MOST:,} records before it are bad too: is this its format (format=)?", bad
                )
            if line not in self._aside:
                with target.open("a", encoding="utf-8") as side:
                    side.write(line + "\n")
                self._aside.add(line)
        except OSError as error:
            self.fail(
                f"{record}: {bad}; and it could not be set aside in {target} ({error}): give quarantine_dir=", error
            )
        self.note(record, str(bad), "quarantined")

    def open(self) -> BinaryIO:
        """Open the file, past a byte order mark; a missing, unreadable or empty one is a :class:`DataError`."""
        if self.path.is_dir():
            self.fail("is a directory, expected a file; name one of the files in it")
        try:
            file = self.path.open("rb")
            start = file.read(4)
        except OSError as error:
            self.fail(f"cannot be read ({error.strerror}); check the path and its permissions", error)
        if start in (b"", codecs.BOM_UTF8):
            file.close()
            self.fail("is empty, expected conversations; check that it was written or downloaded whole")
        file.seek(3 if start.startswith(codecs.BOM_UTF8) else 0)
        return file

    def parquet(self, read: Callable[[Path], T]) -> T:
        """Read a Parquet file with a function of polars."""
        try:
            return read(self.path)
        except (OSError, pl.exceptions.PolarsError) as error:
            self.fail(f"cannot be read as Parquet ({error}); was it downloaded whole?", error)

    def progress(self) -> Any:
        """Give a progress bar over the bytes of the file, shown from two seconds on."""
        return tqdm(
            total=self.path.stat().st_size,
            unit="B",
            unit_scale=True,
            desc=one_line(self.path.name),
            delay=2,
            leave=False,
        )


@dataclass
class _Record:
    source: Source
    label: str
    raw: Any

    def __enter__(self) -> _Record:
        self.noted = len(self.source.issues)
        return self

    def __exit__(self, kind: Any, bad: BaseException | None, trace: Any) -> bool:
        if isinstance(bad, Bad):
            # What was noted of it goes with it, but not what was set aside.
            since = self.source.issues[self.noted :]
            self.source.issues[self.noted :] = [issue for issue in since if issue.action == "quarantined"]
            self.source.reject(self.label, bad, self.raw)
        return isinstance(bad, Bad)


def matching(folder: Path, *patterns: str) -> list[Path]:
    """Give the files of a folder that match the first pattern that any does, 2 before 10."""
    for pattern in patterns:
        if paths := [path for path in folder.glob(pattern) if path.is_file()]:
            return sorted(paths, key=lambda path: natural(str(path)))
    return []


def natural(name: str) -> list[str]:
    """Give a key to sort names by, in which 2 stands before 10."""
    return [part.zfill(20) if part.isdecimal() else part for part in _PARTS.findall(name)]


def _printable(text: str) -> str:
    """Escape lone surrogates, which a key or a file name may hold and no terminal, frame or log can take."""
    return text.encode("utf-8", "backslashreplace").decode()


def frame_of(rows: list[tuple[Any, ...]], schema: dict[str, Any]) -> pl.DataFrame:
    """Make a frame of rows by way of their columns, which polars takes twice as fast."""
    return pl.DataFrame(dict(zip(schema, zip(*rows, strict=True), strict=False)), schema=schema)


_COLUMNS = {f.name: schema(Turn)[f.name] for f in fields(Turn) if f.name != "turn_id"} | {"timestamp": pl.Int64()}


@dataclass
class Rows:
    """The records of some whole scopes, on their way into a dataset.

    :param turns: the columns of :class:`~memlab.records.Turn` but ``turn_id``; ``timestamp`` in microseconds.
    :param summaries: session id to summary.
    :param named: turn ids that a source brings, by what they would be called.
    """

    turns: list[tuple[Any, ...]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    summaries: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)

    def dataset(self, source: Source, format: str) -> Dataset:
        stamped = frame_of(self.turns, _COLUMNS).with_columns(
            pl.col("timestamp").cast(TIMESTAMP), turn_id=pl.format("{}/{}", "session_id", "n").replace(self.named)
        )
        return assemble(stamped, self, source, format)


def assemble(turns: pl.DataFrame, rows: Rows, source: Source, format: str) -> Dataset:
    """Put turns into order, derive their sessions and join what belongs to them; the name is the file's."""
    sessions = sessions_of(turns, summaries=rows.summaries)
    order = sessions.select("session_id").with_row_index("place")
    ordered = turns.join(order, on="session_id", how="left").sort("place", "n").select(*schema(Turn))
    questions, annotations = frame(Question, rows.questions), frame(Annotation, rows.annotations)
    issues, language = source.take_issues(), source.language or "en"
    return Dataset(source.path.stem, format, ordered, sessions, questions, annotations, issues, language)


def batches(parts: Iterable[Rows], source: Source, format: str, batch_turns: int) -> Iterator[Dataset]:
    """Join parts (whole scopes) into datasets of at least ``batch_turns`` turns, the last of what is left.

    A batch is given out when the next part is there, so that issues found behind the last part are in the last batch.
    """
    batch = Rows()
    for part in parts:
        if len(batch.turns) >= batch_turns:
            yield batch.dataset(source, format)
            batch = Rows()
        batch.turns += part.turns
        batch.questions += part.questions
        batch.annotations += part.annotations
        batch.summaries |= part.summaries
        batch.named |= part.named
    if not batch.turns:
        source.fail(f"holds no usable conversation ({len(source.issues)} issues); expected {format} records")
    yield batch.dataset(source, format)
