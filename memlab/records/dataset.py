"""Conversations and the questions over them, as frames."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import polars as pl

from memlab.errors import DataError
from memlab.records.row_types import Annotation, Issue, Question, frame


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Conversations and the questions over them.

    :param format: the name of the reader that made it, such as ``locomo`` or ``chatlog``.
    :param turns: rows of :class:`Turn`, in order of scope, session and place; ``sessions``, ``questions`` and
        ``annotations`` are rows of those types.
    :param issues: rows of :class:`Issue`: what was odd in the source and what was done.
    :param language: that people speak in it, as ISO 639-1 has it; tokens, stems and stop words are this language's.
    """

    name: str
    format: str
    turns: pl.DataFrame
    sessions: pl.DataFrame
    questions: pl.DataFrame = field(default_factory=lambda: frame(Question))
    annotations: pl.DataFrame = field(default_factory=lambda: frame(Annotation))
    issues: pl.DataFrame = field(default_factory=lambda: frame(Issue))
    language: str = "en"

    @property
    def scopes(self) -> list[str]:
        """The scopes, in the order in which they first appear."""
        return self.turns["scope"].unique(maintain_order=True).to_list()

    def fingerprint(self) -> str:
        """Give a hash of everything that a result can depend on: 16 hex digits, the same for the same content."""
        digest = hashlib.sha256()
        asked = self.questions[[c.name for c in self.questions if c.name not in ("rubric", "stale") or c.count()]]
        for table in (self.turns, self.sessions.drop("status"), asked, self.annotations):
            digest.update(",".join(table.columns).encode())
            digest.update(table.write_ndjson().encode())
        if self.language != "en":
            digest.update(self.language.encode())
        return digest.hexdigest()[:16]

    def take(self, scopes: Iterable[str]) -> Dataset:
        """Give the part of the dataset that belongs to some scopes."""
        wanted = list(scopes)
        unknown = set(wanted) - set(self.scopes)
        if unknown:
            raise DataError(f"no scope {sorted(unknown)[0]!r} in dataset {self.name!r}; it has {self.scopes[:5]} …")
        parts = {t: getattr(self, t).filter(pl.col("scope").is_in(wanted)) for t in _SCOPED}
        return replace(self, **parts)

    def describe(self) -> str:
        """Say in a line what the dataset holds.

        >>> import memlab
        >>> memlab.sample(turns=200).describe()
        'sample (chatlog): ... turns in ... sessions of 4 scopes, ... questions...'
        """
        text = (
            f"{self.name} ({self.format}): {_counted(self.turns.height, 'turn')} in "
            f"{_counted(self.sessions.height, 'session')} of {_counted(self.turns['scope'].n_unique(), 'scope')}, "
            f"{_counted(self.questions.height, 'question')}"
        )
        if self.annotations.height:
            text += f", {self.annotations.height:,} annotations"
        if self.issues.height:
            text += f"; {self.issues.height:,} issues, see .issues"
        return text

    def __repr__(self) -> str:
        return f"<Dataset {self.describe()}>"

    def _repr_html_(self) -> str:
        asked = self.questions.head(5).select("text", "question_type").iter_rows()
        shown = "".join(f"<li>{html.escape(text)} <i>{html.escape(kind or '')}</i></li>" for text, kind in asked)
        return f"<p>{html.escape(self.describe())}</p>" + (f"<p>Such as:</p><ul>{shown}</ul>" if shown else "")


_SCOPED = ("turns", "sessions", "questions", "annotations")


def concat(parts: Iterable[Dataset]) -> Dataset:
    """Join datasets of one stream into one; the name and format are the first part's."""
    listed = list(parts)
    if not listed:
        raise DataError("no records to join: the source holds no conversation")
    frames = {t: pl.concat([getattr(p, t) for p in listed], rechunk=True) for t in (*_SCOPED, "issues")}
    return replace(listed[0], **frames)


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"
