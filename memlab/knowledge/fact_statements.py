"""Statements: facts in the order in which they were said, with what the resolver compares."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge.date_precision import Period, parse_date_period
from memlab.knowledge.fact_keys import ComparisonKeys, make_comparison_keys
from memlab.records import Fact, schema
from memlab.records.dataset import convert_to_polars
from memlab.records.facts import EFFECTS, KINDS, VALUES, meaning_id

_NO_DATE = datetime(1970, 1, 1, tzinfo=UTC)
"""The place of facts of a scope without any date: the order of the rows alone counts."""
_N_REQUIRED = 8  # the columns of a fact up to ``asserted_at``
LASTING = ("state", "rule")
"""The kinds of facts that hold for a time."""
_DEFAULTS = {"kind": "state", "holds": True, "values": "one"}


class Meaning(NamedTuple):
    """What a fact states, however it is worded and whenever it was said."""

    parts: ComparisonKeys
    kind: str
    holds: bool

    @property
    def opposite_meaning(self) -> Meaning:
        """The denial of it; of a denial what it denies."""
        return Meaning(self.parts, self.kind, not self.holds)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A fact in its place among the others of its scope.

    :param fact: its row.
    :param placed_at: its place in time: when it was said, or of what nobody dated what stands
        before it. ``said_at``: when it was said; ``None`` where nobody dated it.
    :param begins: from when it holds: the start of ``since``, else its place. A plan stands from
        when it was made, whatever it is for. ``is_dated``: whether that is more than the place of a
        statement that nobody dated.
    :param since: the time that its own ``since`` covers; ``until`` likewise.
    :param effects: pairs of an effect and what it affects.
    :param meaning_id: the id of what it states, see :func:`memlab.records.facts.meaning_id`.
    """

    fact: dict[str, Any]
    meaning: Meaning
    meaning_id: str
    placed_at: datetime
    said_at: datetime | None
    begins: datetime
    is_dated: bool
    since: Period | None
    until: Period | None
    effects: tuple[tuple[str, str], ...]

    @property
    def fact_id(self) -> str:
        return str(self.fact["fact_id"])

    @property
    def kind(self) -> str:
        return self.meaning.kind

    @property
    def scope_subject_slot_and_kind(self) -> tuple[str, ...]:
        """Scope, subject, slot and kind: what has one value at a time has one of these."""
        return (*self.meaning.parts[:3], self.kind)

    @property
    def evidence_turn_ids(self) -> Collection[str]:
        cited_turns: list[str] | None = self.fact["evidence"]
        return cited_turns or ()

    @property
    def takes_place_of_other_values(self) -> bool:
        """Whether it takes the place of another value of its slot; a denial does not."""
        return self.fact["values"] == "one" and self.meaning.holds

    @property
    def was_over_when_said(self) -> bool:
        """Whether what it states was over when it was said."""
        return self.says_it_ends_by(self.placed_at)

    @property
    def has_any_date(self) -> bool:
        """Whether there is a date to it: when it was said, or from when it holds."""
        return self.said_at is not None or self.since is not None

    def says_it_ends_by(self, moment: datetime) -> bool:
        """Whether what it states ends by a time, as it says itself."""
        return self.until is not None and self.until.end <= moment

    def ids_affected_by(self, effect: str) -> list[str]:
        """Give what one of its effects names."""
        return [affected_id for effect_name, affected_id in self.effects if effect_name == effect]


def fill_columns_and_place_in_time(facts: pl.DataFrame) -> pl.DataFrame:
    """Fill the optional columns of facts and give each its place in time.

    :returns: the columns of :class:`memlab.records.Fact` and ``said_at`` (empty where nobody dated
        it), ``placed_at`` and ``placed_by`` (the order among facts of one ``placed_at``).
    :raises DataError: for facts without their columns, with repeated ids, or with a kind, a
        number of values or an effect that is none.

    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.fact_statements import fill_columns_and_place_in_time
    >>> fact = Fact("f1", "u", "Ann", "home", "Oslo", "stated", [], None)
    >>> fill_columns_and_place_in_time(frame(Fact, [fact]))["placed_at"].to_list()
    [datetime.datetime(1970, 1, 1, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC'))]
    """
    facts = convert_to_polars(facts, "facts")
    fact_schema = schema(Fact)
    for name in list(fact_schema)[:_N_REQUIRED]:
        if name not in facts.columns:
            raise DataError(f"facts have no column {name!r}; expected {', '.join(fact_schema)}")
    missing_columns = [name for name in fact_schema if name not in facts.columns]
    filled_facts = facts.with_columns(pl.lit(None).alias(name) for name in missing_columns)
    filled_facts = filled_facts.cast(fact_schema)  # type: ignore[arg-type]
    filled_facts = filled_facts.with_columns(
        pl.col(name).fill_null(default_value) for name, default_value in _DEFAULTS.items()
    )
    filled_facts = filled_facts.with_columns(pl.col("effects", "affected").fill_null([]))
    repeated_ids = filled_facts.filter(pl.col("fact_id").is_duplicated())
    if len(repeated_ids):
        raise DataError(f"fact id {repeated_ids['fact_id'][0]!r} stands twice; ids are unique")
    _refuse_unknown_kinds_and_effects(filled_facts)
    said_at = pl.col("asserted_at")
    # What nobody dated stands right behind what stands before it, or before all that follows.
    time_before = said_at.forward_fill().over("scope")
    time_behind = said_at.backward_fill().over("scope")
    placed_by = (
        pl.when(said_at.is_not_null()).then(0).when(time_before.is_null()).then(-1).otherwise(1)
    )
    return filled_facts.with_columns(
        said_at=said_at,
        placed_at=pl.coalesce(time_before, time_behind, pl.lit(_NO_DATE)),
        placed_by=placed_by,
        recorded_at=pl.coalesce("recorded_at", "asserted_at"),
    )


def _refuse_unknown_kinds_and_effects(facts: pl.DataFrame) -> None:
    """Refuse words that name no kind, no number of values and no effect.

    :raises DataError: with the fact and what may stand there.
    """
    effects = facts.select("fact_id", "effects").explode("effects").drop_nulls()
    for table, column, known_words in (
        (facts, "kind", KINDS),
        (facts, "values", VALUES),
        (effects, "effects", EFFECTS),
    ):
        unknown_rows = table.filter(~pl.col(column).is_in(known_words))
        if len(unknown_rows):
            fact_id, word = unknown_rows.select("fact_id", column).row(0)
            word_list = ", ".join(known_words)
            raise DataError(f"fact {fact_id!r}: {column} {word!r} is none of {word_list}")


def read_statements(placed_facts: pl.DataFrame, encoder: Encoder | None) -> list[Statement]:
    """Read facts that have their place as statements, in the order in which they were said.

    :raises DataError: for a ``since`` or ``until`` that is no date, and for effects that do not
        stand beside what they affect.

    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.fact_statements import fill_columns_and_place_in_time, read_statements
    >>> fact = Fact("f1", "u", "Ann", "Home", "Oslo.", "stated", [], None, since="2019")
    >>> (statement,) = read_statements(fill_columns_and_place_in_time(frame(Fact, [fact])), None)
    >>> statement.meaning.parts[1:], str(statement.begins.date())
    (('ann', 'home', 'oslo'), '2019-01-01')
    """
    arrived_at = pl.when(pl.col("said_at").is_not_null()).then("recorded_at")
    placed_rows = placed_facts.sort(
        "placed_at", "placed_by", arrived_at, maintain_order=True
    ).to_dicts()
    fact_parts = make_comparison_keys(placed_rows, encoder)
    return [
        _make_statement(fact_row, fact_keys)
        for fact_row, fact_keys in zip(placed_rows, fact_parts, strict=True)
    ]


def _make_statement(fact_row: dict[str, Any], comparison_keys: ComparisonKeys) -> Statement:
    kind = fact_row["kind"]
    holds = fact_row["holds"]
    try:
        since_period = _parse_optional_period(fact_row["since"])
        until_period = _parse_optional_period(fact_row["until"])
    except DataError as error:
        raise DataError(f"fact {fact_row['fact_id']!r}: {error}") from error
    if len(fact_row["effects"]) != len(fact_row["affected"]):
        raise DataError(f"fact {fact_row['fact_id']!r} has effects and affected of unequal length")
    begins_at, is_dated = _begin_and_whether_dated(fact_row, since_period, until_period)
    return Statement(
        fact=fact_row,
        meaning=Meaning(comparison_keys, kind, holds),
        meaning_id=meaning_id(
            fact_row["about"], fact_row["slot"], fact_row["value"], kind=kind, holds=holds
        ),
        placed_at=fact_row["placed_at"],
        said_at=fact_row["said_at"],
        begins=begins_at,
        is_dated=is_dated,
        since=since_period,
        until=until_period,
        effects=tuple(zip(fact_row["effects"], fact_row["affected"], strict=True)),
    )


def _parse_optional_period(date_text: str | None) -> Period | None:
    if not date_text:
        return None
    return parse_date_period(date_text)


def _begin_and_whether_dated(
    fact_row: dict[str, Any], since: Period | None, until: Period | None
) -> tuple[datetime, bool]:
    """Give from when a fact holds, and whether anybody said so."""
    placed_at: datetime = fact_row["placed_at"]
    is_dated = fact_row["said_at"] is not None
    if fact_row["kind"] == "plan":
        return placed_at, is_dated
    if since is not None:
        return since.start, True
    if fact_row["kind"] == "event" or until is None:
        return placed_at, is_dated
    if until.end <= placed_at:
        # It was over when it was said, and nobody said when it began.
        return until.end, False
    return placed_at, is_dated
