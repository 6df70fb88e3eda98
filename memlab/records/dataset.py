"""Conversations and the questions over them: row types, their frames, and the parts of ids."""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache, partial
from operator import attrgetter
from typing import Any, get_type_hints
from urllib.parse import unquote

import polars as pl

from memlab.errors import DataError
from memlab.text.languages import check_language
from memlab.text.quotations import find_quotations

TIMESTAMP = pl.Datetime("us", "UTC")
WRITTEN, PROPOSED, ACCEPTED = "written", "proposed", "accepted"
SOURCES = (WRITTEN, PROPOSED, ACCEPTED)
"""Who wrote a question: a person or a benchmark, a model, or a model and a person has read it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    :param scope: the memory that the turn belongs to (one user, one chat); retrieval never crosses
        scopes.
    :param n: place within the session, from 1.
    :param speaker: the name of who speaks; the role where no name is known.
    :param role: ``user``, ``assistant``, ``system`` or ``other``.
    :param caption: a description of an image that came with the message.
    :param timestamp: when, in UTC; ``None`` where the source does not say.
    :param forwarded_from: whose words the text is, where the speaker passed on somebody else's.
    :param quoted: the parts of the text that are somebody else's words, as they stand in it;
        ``None`` where there are none.
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
    forwarded_from: str | None = None
    quoted: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """Consecutive turns without a long silence, or what the source calls a session.

    :param n: place within the scope in order of time, from 1.
    :param start: time of the first turn; the session's own date where turns have none.
    :param participants: the speakers, in order of first appearance.
    :param status: ``summarized`` where the source carries a summary, else ``closed``.
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

    :param question_type: the source's own kind (LoCoMo's five categories by name, LongMemEval's
        types …).
    :param timestamp: when the question was asked, in UTC.
    :param evidence: ids of every turn that the answer needs.
    :param evidence_sessions: ids of every session that the answer needs.
    :param abstention: true where the conversations do not hold the answer.
    :param rubric: what a good answer says, point by point, where the source tells it.
    :param stale: ids of turns that must not come back: what they say was superseded, corrected or
        has ended.
    :param judged: ids of the turns that were graded, the evidence first, then those found not to be
        relevant; null where all that is known is which turns are evidence.
    :param grades: the grade of each of ``judged``: from 1 for evidence, 0 or less for what is not.
    :param source: who wrote it: null for a person or a benchmark, ``proposed`` for a language
        model, ``accepted`` where a person has read what a model proposed.
    :param reasons: why each of ``evidence`` is needed, a text for each.
    :param distractors: ids of turns that seem to answer it and do not.
    :param checks: what was checked before it was proposed, as JSON.
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
    rubric: list[str] | None = None
    stale: list[str] | None = None
    judged: list[str] | None = None
    grades: list[int] | None = None
    source: str | None = None
    reasons: list[str] | None = None
    distractors: list[str] | None = None
    checks: str | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """A statement about a session that the source carries beside the turns.

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
    list[str] | None: pl.List(pl.String()),
    list[int] | None: pl.List(pl.Int32()),
    list[list[str]]: pl.List(pl.List(pl.String())),
}


@cache
def schema(row_type: type) -> dict[str, pl.DataType]:
    """Give the polars schema of a row type.

    >>> from memlab.records import Issue, schema
    >>> schema(Issue)
    {'where': String, 'found': String, 'action': String}
    """
    type_hints = get_type_hints(row_type)
    return {
        record_field.name: _DTYPES[type_hints[record_field.name]]
        for record_field in fields(row_type)
    }


def frame(row_type: type, rows: Iterable[object] = ()) -> pl.DataFrame:
    """Turn rows of one type into a frame with that type's schema; no rows give an empty frame.

    >>> from memlab.records import Issue, frame
    >>> frame(Issue, [Issue("a.json: record 3: text", "null", "quarantined")]).shape
    (1, 3)
    """
    columns = schema(row_type)
    return pl.DataFrame([*map(attrgetter(*columns), rows)], schema=columns, orient="row")


def in_utc(moment: datetime) -> datetime:
    """Give a time in UTC, as frames have it; one without a time zone is taken to be in UTC.

    >>> from datetime import datetime, timedelta, timezone
    >>> from memlab.records.dataset import in_utc
    >>> in_utc(datetime(2026, 5, 1, 9, tzinfo=timezone(timedelta(hours=2)))).isoformat()
    '2026-05-01T07:00:00+00:00'
    """
    zoned = moment.replace(tzinfo=moment.tzinfo or UTC)
    return zoned.astimezone(UTC)


def convert_to_polars(
    rows: Any,
    rows_name: str,
    needed_columns: Sequence[str] = (),
    *,
    type_by_column: Mapping[str, pl.DataType] | None = None,
) -> pl.DataFrame:
    """Give rows as a frame of polars: a lazy one is collected, one of pandas or Arrow converted.

    :param rows_name: the name of the rows, for messages.
    :param needed_columns: that they must have.
    :param type_by_column: of columns, to which those of another library are cast.
    :raises DataError: for what is no frame, or lacks a column.

    >>> import polars as pl
    >>> from memlab.records.dataset import convert_to_polars
    >>> convert_to_polars(pl.LazyFrame({"scope": ["a"]}), "turns", ["scope"]).height
    1
    """
    if isinstance(rows, pl.LazyFrame):
        rows = rows.collect()
    if not isinstance(rows, pl.DataFrame) and _is_foreign_frame(rows):
        rows = pl.DataFrame(rows)
        present_types = {
            column_name: column_type
            for column_name, column_type in (type_by_column or {}).items()
            if column_name in rows.columns
        }
        rows = rows.cast(present_types)
    if not isinstance(rows, pl.DataFrame):
        raise DataError(
            f"{rows_name} is a {type(rows).__name__}; expected a frame of polars or pandas"
        )
    for missing in [
        column_name for column_name in needed_columns if column_name not in rows.columns
    ][:1]:
        raise DataError(
            f"{rows_name} has no column {missing!r}; it needs {', '.join(needed_columns)}"
        )
    return rows


def _is_foreign_frame(rows: object) -> bool:
    """Say whether something is a frame of pandas, Arrow or another library."""
    is_named = hasattr(rows, "columns") or hasattr(rows, "column_names")
    return is_named and any(map(partial(hasattr, rows), _INTERCHANGE))


_INTERCHANGE = ("__dataframe__", "__arrow_c_stream__")


def refuse_frame(given: object, argument_name: str) -> None:
    """Refuse a frame where a dataset is meant, as its columns do not say what they are.

    :param argument_name: the function and its argument, for the message.
    :raises DataError: for a frame of polars, lazy or not, of pandas or of Arrow.

    >>> import polars as pl
    >>> from memlab.records.dataset import refuse_frame
    >>> refuse_frame("log.jsonl", "search: data")
    >>> refuse_frame(pl.LazyFrame(), "search: data")
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: search: data is a frame (polars.LazyFrame); expected a dataset ...
    """
    if isinstance(given, pl.DataFrame | pl.LazyFrame) or _is_foreign_frame(given):
        library = type(given).__module__.partition(".")[0]
        raise DataError(
            f"{argument_name} is a frame ({library}.{type(given).__name__}); expected a dataset or "
            "the path of a file: write its rows as lines of JSON with scope, sender, text and "
            "timestamp, and give that file"
        )


@cache
def _required_columns(row_type: type) -> list[str]:
    """Name the columns of a row type that have no default: those that rows always have."""
    return [
        record_field.name for record_field in fields(row_type) if record_field.default is MISSING
    ]


_LATER_COLUMNS = ("rubric", "stale", "judged", "grades", "source", "distractors")
"""Columns of questions that came later: where nothing is in them, a fingerprint is as it was."""
_ABOUT_PROPOSALS = ("reasons", "checks")
"""Columns of questions that say how they came about: no result depends on them."""

_LINES = 10_000
"""Rows that are written together for a fingerprint, so that it takes little memory."""
_UNSAFE = re.compile(r"[\s/%\x00-\x1f\x7f\ud800-\udfff]")


def encode_id_part(raw: str) -> str:
    """Make one part of an id: what would break an id or a TREC file is percent-encoded.

    Injective, so two different names never meet; :func:`decode_id_part` undoes it.

    >>> from memlab.records import encode_id_part
    >>> encode_id_part("work/2026 plan")
    'work%2F2026%20plan'
    >>> encode_id_part("'; --")
    "';%20--"
    """
    if not raw:
        raise DataError("an id is empty; give every scope, session and question a name")
    return _UNSAFE.sub(
        lambda unsafe_match: "".join(
            f"%{unsafe_byte:02X}"
            for unsafe_byte in unsafe_match[0].encode("utf-8", "surrogatepass")
        ),
        raw,
    )


def resolve_scope_name(given: str, scopes: Sequence[str]) -> str:
    """Give the scope of a name: as conversations have it, or else as memlab prints it (encoded).

    >>> from memlab.records import resolve_scope_name
    >>> resolve_scope_name("a%2Fb", ["a%2Fb", "a%252Fb"]), resolve_scope_name("a/b", ["a%2Fb"])
    ('a%252Fb', 'a%2Fb')
    """
    encoded = encode_id_part(given) if given else given
    return given if given in scopes and encoded not in scopes else encoded


def decode_id_part(part: str) -> str:
    """Undo :func:`encode_id_part`.

    >>> from memlab.records import encode_id_part, decode_id_part
    >>> decode_id_part(encode_id_part("50 % off/today"))
    '50 % off/today'
    """
    return unquote(part, errors="surrogatepass")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Conversations and the questions over them.

    :param format: the name of the reader that made it, such as ``locomo`` or ``chatlog``.
    :param turns: rows of :class:`Turn`, in order of scope, session and place; ``sessions``,
        ``questions`` and ``annotations`` are rows of those types.
    :param issues: rows of :class:`Issue`: what was odd in the source and what was done.
    :param language: that people speak in it, as ISO 639-1 has it; tokens, stems and stop words are
        this language's.
    :param merged_onto: of scopes that messages were added to, a digest of the turns that were there
        (:func:`digest_turns_by_scope_or_empty`), by which a store sees that somebody else wrote
        there meanwhile.
    """

    name: str
    format: str
    turns: pl.DataFrame
    sessions: pl.DataFrame
    questions: pl.DataFrame = field(default_factory=lambda: frame(Question))
    annotations: pl.DataFrame = field(default_factory=lambda: frame(Annotation))
    issues: pl.DataFrame = field(default_factory=lambda: frame(Issue))
    language: str = "en"
    merged_onto: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table, row_type in _ROW_TYPES.items():
            given_rows = getattr(self, table)
            column_types = schema(row_type)
            object.__setattr__(
                self,
                table,
                convert_to_polars(
                    given_rows, table, _required_columns(row_type), type_by_column=column_types
                ),
            )
        check_language(self.language)
        _refuse_unknown_sources(self.questions)

    @property
    def scopes(self) -> list[str]:
        """The scopes, in the order in which they first appear."""
        return self.turns["scope"].unique(maintain_order=True).to_list()

    def fingerprint(self) -> str:
        """Give a hash of all that a result can depend on, in 16 hex digits."""
        digest = hashlib.sha256()
        turn_rows = _drop_empty_columns(self.turns.drop("quoted", strict=False), "forwarded_from")
        question_rows = self.questions.drop(_ABOUT_PROPOSALS, strict=False)
        question_rows = _drop_empty_columns(question_rows, *_LATER_COLUMNS)
        for table in (turn_rows, self.sessions.drop("status"), question_rows, self.annotations):
            digest.update(",".join(table.columns).encode())
            for row_slice in table.iter_slices(_LINES):
                line_buffer = io.BytesIO()
                row_slice.write_ndjson(line_buffer)
                digest.update(line_buffer.getbuffer())
        # What is quoted is part of a text, unless the source says it beside the text.
        given_quotations = select_turns_with_given_quotations(self.turns, self.language)
        if given_quotations.height:
            digest.update(given_quotations.write_ndjson().encode())
        if self.language != "en":
            digest.update(self.language.encode())
        return digest.hexdigest()[:16]

    def take(self, scopes: Iterable[str]) -> Dataset:
        """Give the part of the dataset that belongs to some scopes."""
        wanted_scopes = list(scopes)
        unknown_scopes = set(wanted_scopes) - set(self.scopes)
        if unknown_scopes:
            raise DataError(
                f"no scope {sorted(unknown_scopes)[0]!r} in dataset {self.name!r}; "
                f"it has {self.scopes[:5]} …"
            )
        scope_tables = {
            table_name: getattr(self, table_name).filter(pl.col("scope").is_in(wanted_scopes))
            for table_name in _SCOPED
        }
        return replace(self, **scope_tables)

    def describe(self) -> str:
        """Say in a line what the dataset holds.

        >>> import memlab
        >>> memlab.sample(turns=200).describe()
        'sample (chatlog): ... turns in ... sessions of 4 scopes, ... questions...'
        """
        n_turns = self.turns.height
        n_sessions = self.sessions.height
        n_scopes = self.turns["scope"].n_unique()
        description = (
            f"{self.name} ({self.format}): {_count_noun(n_turns, 'turn')} in "
            f"{_count_noun(n_sessions, 'session')} of {_count_noun(n_scopes, 'scope')}, "
            f"{_count_noun(self.questions.height, 'question')}"
        )
        sources = describe_question_sources_or_empty(self.questions)
        if sources:
            description += f" ({sources})"
        if self.annotations.height:
            description += f", {_count_noun(self.annotations.height, 'annotation')}"
        if self.issues.height:
            description += f"; {_count_noun(self.issues.height, 'issue')}, see .issues"
        return description

    def __repr__(self) -> str:
        return f"<Dataset {self.describe()}>"

    def _repr_html_(self) -> str:
        example_questions = self.questions.head(5).select("text", "question_type").iter_rows()
        example_items = "".join(
            f"<li>{html.escape(text)} <i>{html.escape(question_type or '')}</i></li>"
            for text, question_type in example_questions
        )
        return f"<p>{html.escape(self.describe())}</p>" + (
            f"<p>Such as:</p><ul>{example_items}</ul>" if example_items else ""
        )


def question_source_expr() -> pl.Expr:
    """Give the source of questions by its name, also where the column is null or empty.

    >>> import polars as pl
    >>> from memlab.records.dataset import question_source_expr
    >>> questions = pl.DataFrame({"source": [None, "", "accepted"]})
    >>> questions.select(question_source_expr())["source"].to_list()
    ['written', 'written', 'accepted']
    """
    given_source = pl.col("source").cast(pl.String)
    return pl.when(given_source != "").then(given_source).otherwise(pl.lit(WRITTEN)).alias("source")


def count_questions_by_source(questions: pl.DataFrame) -> dict[str, int]:
    """Count questions by their source, in the order of :data:`SOURCES`; those that occur.

    :param questions: with the column ``source``, without which all are written.

    >>> import polars as pl
    >>> from memlab.records.dataset import count_questions_by_source
    >>> count_questions_by_source(pl.DataFrame({"source": ["accepted", None, "accepted"]}))
    {'written': 1, 'accepted': 2}
    """
    if questions.is_empty():
        return {}
    if "source" not in questions.columns:
        return {WRITTEN: questions.height}
    count_by_name = dict(
        questions.select(question_source_expr()).group_by("source").len().iter_rows()
    )
    return {source: count_by_name[source] for source in SOURCES if source in count_by_name}


def describe_question_sources_or_empty(questions: pl.DataFrame) -> str:
    """Say how many questions are of which source; empty where all are written.

    >>> import polars as pl
    >>> from memlab.records.dataset import describe_question_sources_or_empty
    >>> questions = pl.DataFrame({"source": ["accepted", "proposed", "accepted"]})
    >>> describe_question_sources_or_empty(questions)
    '1 proposed, 2 accepted'
    >>> describe_question_sources_or_empty(pl.DataFrame({"source": ["proposed"] * 2}))
    'all proposed'
    >>> describe_question_sources_or_empty(pl.DataFrame({"source": [None, None]}))
    ''
    """
    counts = count_questions_by_source(questions)
    if not counts.keys() - {WRITTEN}:
        return ""
    if len(counts) == 1:
        return f"all {next(iter(counts))}"
    return ", ".join(f"{n_questions:,} {source}" for source, n_questions in counts.items())


def _refuse_unknown_sources(questions: pl.DataFrame) -> None:
    """Refuse a source of questions that is none, since tables would count it for another."""
    if "source" not in questions.columns:
        return
    question_sources = questions.select("query_id", question_source_expr())
    for query_id, source in (
        question_sources.filter(~pl.col("source").is_in(SOURCES)).head(1).iter_rows()
    ):
        known_sources = ", ".join(SOURCES)
        raise DataError(
            f"question {query_id!r} has the source {source!r}; it is one of {known_sources}"
        )


def keep_questions_of_sources(dataset: Dataset, sources: Iterable[str]) -> Dataset:
    """Give a dataset with the questions of some sources alone.

    :param sources: of :data:`SOURCES`.
    :raises DataError: for another source, and where no question is of these.

    >>> import memlab
    >>> from memlab.records.dataset import keep_questions_of_sources
    >>> keep_questions_of_sources(memlab.sample(turns=200), ["accepted"])
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: no question of 'sample' is accepted; there are ... written
    """
    wanted_sources = list(sources)
    for unknown in [source for source in wanted_sources if source not in SOURCES][:1]:
        raise DataError(f"no source is called {unknown!r}; choose of {', '.join(SOURCES)}")
    question_rows = dataset.questions
    if "source" not in question_rows.columns:
        question_rows = question_rows.with_columns(source=pl.lit(None, pl.String))
    kept_questions = question_rows.filter(
        question_rows.select(question_source_expr())["source"].is_in(wanted_sources)
    )
    if kept_questions.is_empty():
        source_counts = count_questions_by_source(dataset.questions).items()
        present_sources = ", ".join(
            f"{n_questions:,} {source}" for source, n_questions in source_counts
        )
        raise DataError(
            f"no question of {dataset.name!r} is {' or '.join(wanted_sources)}; there are "
            f"{present_sources or 'none'}"
        )
    return replace(dataset, questions=kept_questions)


_ROW_TYPES: dict[str, type] = {
    "turns": Turn,
    "sessions": Session,
    "questions": Question,
    "annotations": Annotation,
    "issues": Issue,
}
_SCOPED = ("turns", "sessions", "questions", "annotations")


def concat(parts: Iterable[Dataset]) -> Dataset:
    """Join datasets of one stream into one; the name and format are the first part's."""
    datasets = list(parts)
    if not datasets:
        raise DataError("no records to join: the source holds no conversation")
    joined_tables = {
        table_name: pl.concat([getattr(dataset, table_name) for dataset in datasets], rechunk=True)
        for table_name in (*_SCOPED, "issues")
    }
    merged_onto = {
        scope: digest for dataset in datasets for scope, digest in dataset.merged_onto.items()
    }
    return replace(datasets[0], **joined_tables, merged_onto=merged_onto)


def digest_turns_by_scope_or_empty(turns: pl.DataFrame, scopes: Iterable[str]) -> dict[str, str]:
    """Give a digest of the turns of each scope, the same whatever their order.

    It holds for one version of Polars, whose hashes of rows it is made of.

    >>> from memlab.records import Turn, frame
    >>> turns = frame(Turn, [Turn("a/1", "a", "a/s", 1, "Ann", "user", "Hello")])
    >>> digests = digest_turns_by_scope_or_empty(turns, "ab")
    >>> of_nothing = digest_turns_by_scope_or_empty(turns.clear(), "ab")
    >>> digests["a"] == of_nothing["a"], digests["b"] == of_nothing["b"]
    (False, True)
    """
    wanted_scopes = list(scopes)
    if not wanted_scopes:
        return {}
    quoted = pl.col("quoted").list
    digested_turns = turns.select(
        *("scope", "turn_id", "speaker", "role", "text", "caption", "timestamp"),
        *("forwarded_from", quoted.len().alias("n_quoted"), quoted.join("\x1f")),
    )
    row_hashes = digested_turns.select("scope", row=digested_turns.hash_rows()).sort("row")
    digests = {}
    for (scope,), scope_hashes in row_hashes.partition_by("scope", as_dict=True).items():
        hash_bytes = scope_hashes["row"].to_numpy().tobytes()
        digests[scope] = hashlib.sha256(hash_bytes).hexdigest()[:16]
    return {scope: digests.get(scope, "") for scope in wanted_scopes}


def select_turns_with_given_quotations(turns: pl.DataFrame, language: str) -> pl.DataFrame:
    """Select the turns whose quotations are others than their texts show: their source named these.

    :param language: of the texts, see :attr:`Dataset.language`.
    :returns: ``turn_id`` and ``quoted``.

    >>> said = Turn("a/1", "a", "a/s", 1, "Ann", "user", "> I ski.", quoted=["I ski."])
    >>> named = replace(said, turn_id="a/2", quoted=["ski"])
    >>> select_turns_with_given_quotations(frame(Turn, [said, named]), "en")["turn_id"].to_list()
    ['a/2']
    """
    if "quoted" not in turns.columns or not turns["quoted"].count():
        return pl.DataFrame(schema={"turn_id": pl.String, "quoted": pl.List(pl.String)})
    turns = turns.with_columns(pl.col(pl.String).fill_null(""))
    quoting_turns = turns.filter(pl.col("quoted").is_not_null())
    scope_turns = turns.filter(pl.col("scope").is_in(quoting_turns["scope"].unique().to_list()))
    people_by_scope = dict[str, set[str]]()
    for scope, speaker in scope_turns.select("scope", "speaker").unique().iter_rows():
        people_by_scope.setdefault(scope, set()).add(speaker.strip().casefold())
    columns = ("scope", "speaker", "role", "text", "quoted")
    is_given = []
    for scope, speaker, role, text, parts in quoting_turns.select(columns).iter_rows():
        is_in_text = role != "assistant" and _text_shows_quotations_by_itself(
            text, parts, speaker, people_by_scope[scope], language
        )
        is_given.append(not is_in_text)
    return quoting_turns.filter(pl.Series(is_given, dtype=pl.Boolean)).select("turn_id", "quoted")


def _text_shows_quotations_by_itself(
    text: str, quotations: list[str], speaker: str, people: set[str], language: str
) -> bool:
    """Say whether a text shows by itself that these parts of it are quoted.

    A line behind the name of somebody counts where they had spoken before it was read, which is
    not known here: it may count, what is quoted whoever spoke must.
    """
    quotations_among_people = find_quotations(
        text, speaker=speaker, people=people, language=language
    )
    quotations_in_text = find_quotations(text, speaker=speaker, language=language)
    missing_quotations = [
        quotation
        for quotation in quotations_in_text
        if not any(quotation in given_part for given_part in quotations)
    ]
    return not missing_quotations and {*quotations_among_people, *quotations_in_text}.issuperset(
        quotations
    )


def _drop_empty_columns(rows: pl.DataFrame, *optional_columns: str) -> pl.DataFrame:
    """Leave out those of some columns that hold nothing: an older fingerprint stays as it was."""
    empty_columns = [
        column_name
        for column_name in optional_columns
        if column_name in rows.columns and not rows[column_name].count()
    ]
    return rows.drop(empty_columns)


def _count_noun(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}s"
