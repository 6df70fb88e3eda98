"""The shapes that conversations, questions and rankings have everywhere in memlab.

A row type is a frozen dataclass that documents its columns once; many rows are one polars frame with the
schema that :func:`schema` reads off the dataclass. Ids are strings and opaque to every scorer.

========  ==========================  =================================
row       id                          example
========  ==========================  =================================
turn      ``<scope>/<session>/<n>``   ``conv-26/session_1/3``
session   ``<scope>/<session>``       ``conv-26/session_1``
question  ``<scope>/q<i>`` or native  ``conv-26/q0``
========  ==========================  =================================
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal, get_type_hints
from urllib.parse import unquote

import numpy as np
import polars as pl

from memlab.errors import DataError

Level = Literal["turn", "session"]
LEVELS: tuple[Level, ...] = ("turn", "session")

TIMESTAMP = pl.Datetime("us", "UTC")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    :param turn_id: ``<scope>/<session>/<n>``.
    :param scope: the memory that the turn belongs to (one user, one chat); retrieval never crosses scopes.
    :param session_id: ``<scope>/<session>``.
    :param n: place within the session, from 1.
    :param speaker: the name of who speaks; the role where no name is known.
    :param role: ``user``, ``assistant``, ``system`` or ``other``.
    :param text: what was said, as it was said.
    :param caption: a description of an image that came with the message.
    :param timestamp: when, in UTC; ``None`` where the source does not say.
    """

    turn_id: str
    scope: str
    session_id: str
    n: int
    speaker: str
    role: str
    text: str
    caption: str | None = None
    timestamp: datetime | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A run of turns without a long silence, or what the source calls a session.

    :param session_id: ``<scope>/<session>``.
    :param n: place within the scope in order of time, from 1.
    :param start: time of the first turn; the session's own date where turns have none.
    :param end: time of the last turn.
    :param n_turns: number of turns.
    :param participants: the speakers, in order of first appearance.
    :param status: ``open``, ``closed``, ``summarized``, ``failed`` or ``skipped``.
    :param summary: a summary that the source carries or a model wrote.
    """

    session_id: str
    scope: str
    n: int
    start: datetime | None
    end: datetime | None
    n_turns: int
    participants: list[str]
    status: str = "closed"
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question over a scope, with the evidence that answers it.

    :param query_id: unique in the dataset.
    :param question_type: the source's own kind (LoCoMo's five categories by name, LongMemEval's types).
    :param timestamp: when the question was asked, in UTC.
    :param evidence: ids of every turn that the answer needs.
    :param evidence_sessions: ids of every session that the answer needs.
    :param abstention: true where the conversations do not hold the answer.
    """

    query_id: str
    scope: str
    text: str
    answer: str | None
    question_type: str
    timestamp: datetime | None
    evidence: list[str]
    evidence_sessions: list[str]
    abstention: bool = False


@dataclass(frozen=True, slots=True)
class Annotation:
    """A statement about a session that the source carries beside the turns.

    :param annotation_id: unique in the dataset.
    :param kind: ``observation`` (a fact with evidence) or ``event``.
    :param speaker: whom the statement is about.
    :param evidence: ids of the turns that support it; empty where the source names none.
    """

    annotation_id: str
    scope: str
    session_id: str
    kind: str
    speaker: str
    text: str
    evidence: list[str]


@dataclass(frozen=True, slots=True)
class Issue:
    """Something in a source that was not as expected, and what was done about it.

    :param where: file, record and field.
    :param found: what stood there.
    :param action: what was done: ``quarantined``, ``dropped evidence``, ``repaired`` …
    """

    where: str
    found: str
    action: str


_DTYPES: dict[Any, Any] = {
    str: pl.String(),
    int: pl.Int32(),
    bool: pl.Boolean(),
    float: pl.Float64(),
    str | None: pl.String(),
    datetime | None: TIMESTAMP,
    list[str]: pl.List(pl.String()),
}


def schema(row_type: type) -> dict[str, Any]:
    """Give the polars schema of a row type.

    >>> from memlab.records import Issue, schema
    >>> schema(Issue)
    {'where': String, 'found': String, 'action': String}
    """
    hints = get_type_hints(row_type)
    return {f.name: _DTYPES[hints[f.name]] for f in fields(row_type)}


def frame(row_type: type, rows: Iterable[Any] = ()) -> pl.DataFrame:
    """Turn rows of one type into a frame with that type's schema; no rows give an empty frame.

    >>> from memlab.records import Issue, frame
    >>> frame(Issue, [Issue("a.json: record 3: text", "null", "quarantined")]).shape
    (1, 3)
    """
    names = list(schema(row_type))
    return pl.DataFrame(
        [tuple(getattr(row, name) for name in names) for row in rows], schema=schema(row_type), orient="row"
    )


_UNSAFE = re.compile(r"[\s/%\x00-\x1f\x7f\ud800-\udfff]")


def id_part(raw: str) -> str:
    """Make one part of an id: what would break ``<scope>/<session>/<n>`` or a TREC file is percent-encoded.

    Injective, so two different names never meet; :func:`raw_part` undoes it.

    >>> from memlab.records import id_part
    >>> id_part("work/2026 plan")
    'work%2F2026%20plan'
    >>> id_part("'; --")
    "';%20--"
    """
    if not raw:
        raise DataError("an id is empty; give every scope, session and question a name")
    return _UNSAFE.sub(lambda m: "".join(f"%{b:02X}" for b in m[0].encode("utf-8", "surrogatepass")), raw)


def raw_part(part: str) -> str:
    """Undo :func:`id_part`.

    >>> from memlab.records import id_part, raw_part
    >>> raw_part(id_part("50 % off/today"))
    '50 % off/today'
    """
    return unquote(part, errors="surrogatepass")


@dataclass(frozen=True)
class Dataset:
    """Conversations and the questions over them.

    :param name: short name, used in file names and tables.
    :param format: ``locomo``, ``longmemeval``, ``chatlog`` or ``synthetic``.
    :param turns: rows of :class:`Turn`, in order of scope, session and place.
    :param sessions: rows of :class:`Session`.
    :param questions: rows of :class:`Question`; may be empty.
    :param annotations: rows of :class:`Annotation`; may be empty.
    :param issues: rows of :class:`Issue`: what was odd in the source and what was done.
    """

    name: str
    format: str
    turns: pl.DataFrame
    sessions: pl.DataFrame
    questions: pl.DataFrame = field(default_factory=lambda: frame(Question))
    annotations: pl.DataFrame = field(default_factory=lambda: frame(Annotation))
    issues: pl.DataFrame = field(default_factory=lambda: frame(Issue))

    @property
    def scopes(self) -> list[str]:
        """The scopes, in the order in which they first appear."""
        return self.turns["scope"].unique(maintain_order=True).to_list()

    def fingerprint(self) -> str:
        """Give a hash of everything that a result can depend on: 16 hex digits, the same for the same content."""
        digest = hashlib.sha256()
        for table in (self.turns, self.sessions.drop("status"), self.questions, self.annotations):
            digest.update(",".join(table.columns).encode())
            digest.update(table.with_columns(pl.col(pl.List(pl.String)).list.join("\x1f")).write_ndjson().encode())
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
        >>> memlab.datasets.synthetic.generate(turns=200, seed=0).describe()  # doctest: +ELLIPSIS
        'synthetic...: ... turns in ... sessions of ... scopes, ... questions...'
        """
        text = (
            f"{self.name} ({self.format}): {self.turns.height:,} turns in {self.sessions.height:,} sessions of "
            f"{self.turns['scope'].n_unique():,} scopes, {self.questions.height:,} questions"
        )
        if self.annotations.height:
            text += f", {self.annotations.height:,} annotations"
        if self.issues.height:
            text += f"; {self.issues.height:,} issues, see .issues"
        return text

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.describe())}</p>" + self.questions.head(5)._repr_html_()


_SCOPED = ("turns", "sessions", "questions", "annotations")


def concat(parts: Iterable[Dataset]) -> Dataset:
    """Join datasets of one stream into one; the name and format are the first part's."""
    held = list(parts)
    if not held:
        raise DataError("no records to join: the source holds no conversation")
    frames = {t: pl.concat([getattr(p, t) for p in held], rechunk=True) for t in (*_SCOPED, "issues")}
    return replace(held[0], **frames)


@dataclass(frozen=True)
class Qrels:
    """What is evidence for what.

    :param frame: ``query_id``, ``doc_id``, ``relevance`` (Int32, > 0 = evidence), ``subtopic`` (the session that the
        evidence belongs to; what alpha-nDCG counts as one aspect).
    :param level: whether documents are turns or sessions.
    """

    frame: pl.DataFrame
    level: Level


def qrels(questions: pl.DataFrame, level: Level) -> Qrels:
    """Read qrels off questions: one row for each (question, piece of evidence); abstention questions have none.

    :param questions: rows of :class:`Question`.
    :param level: ``turn`` or ``session``.
    """
    column = {"turn": "evidence", "session": "evidence_sessions"}[level]
    session = pl.col("doc_id") if level == "session" else pl.col("doc_id").str.replace(r"/[^/]*$", "")
    rows = (
        questions.filter(~pl.col("abstention"))
        .select("query_id", doc_id=pl.col(column).list.unique(maintain_order=True))
        .explode("doc_id")
        .drop_nulls("doc_id")
        .with_columns(relevance=pl.lit(1, pl.Int32), subtopic=session)
    )
    return Qrels(rows, level)


RUN_SCHEMA: dict[str, Any] = {
    "query_id": pl.String(),
    "doc_id": pl.String(),
    "rank": pl.Int32(),
    "score": pl.Float64(),
}


@dataclass(frozen=True)
class Run:
    """A ranking of documents for each query.

    :param frame: ``query_id``, ``doc_id``, ``rank`` (from 1), ``score`` (strictly decreasing within a query), in that
        order of rows.
    :param level: whether documents are turns or sessions.
    :param name: how the run is called in tables and files, usually the pipeline's text.
    :param provenance: what the run came from: pipeline, dataset fingerprint, encoder, table versions, seeds.
    :param text_of: gives the text of document ids, for showing the run.
    :param evidence: qrels to mark the evidence with when the run is shown; never read by a stage.
    """

    frame: pl.DataFrame
    level: Level
    name: str = "run"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    text_of: Callable[[list[str]], list[str]] | None = field(default=None, repr=False, compare=False)
    evidence: Qrels | None = field(default=None, repr=False, compare=False)

    def top(self, k: int) -> Run:
        """Keep the first ``k`` documents of each query."""
        return replace(self, frame=self.frame.filter(pl.col("rank") <= k))

    def _repr_html_(self) -> str:
        shown = self.frame.head(10)
        if self.text_of is not None:
            shown = shown.with_columns(text=pl.Series(self.text_of(shown["doc_id"].to_list()), dtype=pl.String))
        if self.evidence is not None:
            marks = self.evidence.frame.select("query_id", "doc_id", evidence=pl.lit("✔"))
            shown = shown.join(marks, on=["query_id", "doc_id"], how="left", maintain_order="left")
        rows = (
            "<tr>" + "".join(f"<td style='text-align:left'>{_cell(v)}</td>" for v in row) + "</tr>"
            for row in shown.iter_rows()
        )
        head = "".join(f"<th>{html.escape(c)}</th>" for c in shown.columns)
        n = self.frame["query_id"].n_unique()
        title = f"{self.name}: {n:,} queries, {self.frame.height:,} {self.level}s ranked"
        return f"<p>{html.escape(title)}</p><table><tr>{head}</tr>{''.join(rows)}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    return html.escape(text if len(text) <= 160 else text[:159] + "…")


def run_from_scores(query_ids: np.ndarray, doc_ids: np.ndarray, scores: np.ndarray, *, level: Level, k: int) -> Run:
    """Rank scored (query, document) pairs: best score first, ties as they are given, ``k`` kept for each query.

    Ties are never broken by id: in some benchmarks an id gives the label away. Equal scores are lowered by the
    smallest float32 step, so that tools that break ties by id read the same order.

    :param query_ids: (n,) ids; order of first appearance is kept.
    :param doc_ids: (n,) ids.
    :param scores: (n,) finite numbers.
    :raises DataError: when the lengths differ or a score is not finite.

    >>> import numpy as np
    >>> from memlab.records import run_from_scores
    >>> run = run_from_scores(np.array(["q", "q"]), np.array(["b", "a"]), np.array([1.0, 1.0]), level="turn", k=5)
    >>> run.frame["doc_id"].to_list(), run.frame["score"].is_sorted(descending=True)
    (['b', 'a'], True)
    """
    if not len(query_ids) == len(doc_ids) == len(scores):
        raise DataError(f"lengths differ: {len(query_ids)} queries, {len(doc_ids)} documents, {len(scores)} scores")
    if not np.isfinite(scores).all():
        raise DataError(f"score {int(np.flatnonzero(~np.isfinite(scores))[0])} is not a finite number")
    ranked = (
        pl.DataFrame({"query_id": pl.Series(query_ids, dtype=pl.String), "doc_id": pl.Series(doc_ids, dtype=pl.String)})
        .with_columns(score=pl.Series(scores, dtype=pl.Float64))
        .with_row_index("row")
        .with_columns(first=pl.col("row").min().over("query_id"))
        .sort("first", "score", descending=[False, True], maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("first"))
        .filter(pl.col("rank") <= k)
    )
    strict = _strictly_decreasing(ranked["score"].to_numpy(), ranked["first"].to_numpy())
    return Run(ranked.with_columns(score=strict).select(*RUN_SCHEMA), level)


def _strictly_decreasing(scores: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Lower each score to at least one float32 step below the one before it in its group.

    float32, because trec_eval holds scores so. Floats of one sign order like their bit patterns, so "one step lower"
    is integer arithmetic: y[i] = min over j ≤ i of x[j] − (i − j).
    """
    bits = scores.astype(np.float32).view(np.int32).astype(np.int64)
    ordered = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    place = np.arange(len(ordered))
    offset = pl.DataFrame({"x": ordered + place, "g": group}).select(pl.col("x").cum_min().over("g"))["x"].to_numpy()
    lowered = offset - place
    back = np.where(lowered < 0, -lowered | 0x80000000, lowered).astype(np.uint32)
    return back.view(np.float32).astype(np.float64)
