"""Which statements still hold: computed from all statements, with a log of what closed what; nothing is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge import _runs
from memlab.knowledge.cardinality import assign
from memlab.knowledge.matching import checked, match
from memlab.records import TIMESTAMP

_SINGLE = ("API key", "email address", "phone number", "lives in", "is married to", "was born on", "is years old")
DECLARED = dict.fromkeys((*_SINGLE, "is named"), "one")
_UNDONE = {"old": pl.String(), "new": pl.String(), "undone_at": TIMESTAMP, "why": pl.String()}


@dataclass(frozen=True)
class Resolved:
    """What holds, and why the rest does not.

    :param facts: every statement, in its order, with ``status`` (``active``; ``repeat`` of an earlier statement;
        ``superseded``, ``corrected`` or ``ended``; ``expired`` for a plan or a stay not told again; ``closing`` for a
        statement that only ends something), ``superseded`` (true for the last five), ``superseded_by``, ``repeats``
        (the statement that it reinforces), ``valid_from``, ``valid_to``, ``n_reinforced``, ``last_access``,
        ``accesses`` (times of all its mentions: statements that were read from the same turn are one) and ``tension``
        (facts with which it does not go together). Statements that nothing completes are left out.
    :param log: one row per closing: ``old``, ``new`` (fact ids), ``at`` (when the old stopped to hold),
        ``recorded_at`` (when that could first be known), ``rule``, ``by`` (who said so), ``evidence`` (turn ids), and
        both values.
    :param undone: closings that were undone: ``old``, ``new``, ``undone_at``, ``why``.
    """

    facts: pl.DataFrame
    log: pl.DataFrame
    undone: pl.DataFrame


def resolve(
    facts: pl.DataFrame,
    *,
    cardinality: Mapping[str, str] | None = None,
    encoder: Encoder | None = None,
    learn: bool = True,
    as_of: datetime | None = None,
) -> Resolved:
    """Find out which statements still hold.

    For one subject and one relation, in the order in which things were *said* (not in which they arrived):

    - the same value again reinforces; another value supersedes where the relation has one value at a time;
    - where it has many, or where that is unknown, another value stands beside the old, unless the statement says that
      it replaces: "is now B" (unknown only), "B instead of A", "from A to B";
    - "no longer", "used to", "not … any more" and a plain denial end the value that they name;
    - "I meant B", "not A but B", "B, not A" correct: A never held, and B holds from when A was said. A bare "actually"
      corrects where there is one value. Without a named value the statement before is meant (elsewhere than with one
      value at a time: of the last seven days).

    An older statement that arrives late takes its place in that order, so it is superseded from the start.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param cardinality: predicate → ``one`` or ``many``, over what :data:`DECLARED` says; pass ``{}`` for that alone.
    :param encoder: matches near-equal wordings too (see :mod:`memlab.knowledge.matching`); ``None``: normal forms only.
    :param learn: learn the cardinality of undeclared predicates from the facts of each scope.
    :param as_of: only what had reached the memory by then counts: what was believed on that date.
    :raises DataError: for facts without their columns, with repeated ids, or without any time.

    >>> from datetime import datetime, UTC
    >>> from memlab.records import Fact, frame
    >>> from memlab.knowledge.supersession import believed, resolve
    >>> march, june = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    >>> facts = frame(Fact, [
    ...     Fact("f1", "u", "my API key", "is", "sk-1111", "stated", ["u/s1/1"], march),
    ...     Fact("f2", "u", "my API key", "is now", "sk-2222", "stated", ["u/s9/4"], june),
    ... ])
    >>> resolved = resolve(facts)
    >>> believed(resolved)["object"].to_list()
    ['sk-2222']
    >>> believed(resolved, as_of=datetime(2026, 4, 1, tzinfo=UTC))["object"].to_list()
    ['sk-1111']
    >>> resolved.log.select("old", "new", "rule", "evidence").row(0)
    ('f1', 'f2', 'another value', ['u/s9/4'])
    """
    arrived = checked(facts)
    if as_of is not None:
        arrived = arrived.filter(pl.col("recorded_at") <= as_of, pl.col("said_at") <= as_of)
    keyed = match(arrived.drop("said_at"), encoder=encoder)
    return _state(assign(keyed, DECLARED | dict(cardinality or {}), learned=learn), pl.DataFrame(schema=_UNDONE), as_of)


def believed(resolved: Resolved, *, as_of: datetime | None = None) -> pl.DataFrame:
    """List the facts that hold, one row for each however often it was said.

    :param as_of: what held then, by all that is known; ``None``: what holds last. For what was *believed* then,
        without what arrived or was corrected later, resolve with the same ``as_of``.
    """
    facts = resolved.facts.filter(pl.col("status").is_in(["active", "superseded", "ended", "expired"]))
    if as_of is None:
        return facts.filter(pl.col("status") == "active")
    return facts.filter(pl.col("valid_from") <= as_of, pl.col("valid_to").is_null() | (pl.col("valid_to") > as_of))


def undo(resolved: Resolved, old: str, new: str, *, now: datetime, why: str = "") -> Resolved:
    """Take back one closing: ``new`` no longer closes ``old``. Later statements still may.

    :param now: when it is undone.
    :raises DataError: when the log has no such row.
    """
    if resolved.log.filter(pl.col("old") == old, pl.col("new") == new).is_empty():
        raise DataError(f"the log has no row in which {new!r} closes {old!r}; give a pair of its columns old and new")
    row = pl.DataFrame([(old, new, now, why)], schema=_UNDONE, orient="row")
    return _state(resolved.facts, resolved.undone.vstack(row))


def redo(resolved: Resolved, old: str, new: str) -> Resolved:
    """Let an undone closing count again.

    :raises DataError: when it was not undone.
    """
    rest = resolved.undone.filter((pl.col("old") != old) | (pl.col("new") != new))
    if rest.height == resolved.undone.height:
        raise DataError(f"the closing of {old!r} by {new!r} was not undone; give a pair of the frame undone")
    return _state(resolved.facts, rest)


def _state(keyed: pl.DataFrame, undone: pl.DataFrame, now: datetime | None = None) -> Resolved:
    facts, closings = _runs.compute(keyed.drop(_runs.COMPUTED, strict=False), undone, now=now)
    old = facts.select(old="fact_id", old_object="object", old_known="recorded_at")
    new = facts.select(
        "scope", "subject", "predicate", "evidence", new="fact_id", new_object="object", new_known="recorded_at",
        by=pl.coalesce("speaker", "source"),
    )  # fmt: skip
    late = pl.when(pl.col("old_known") > pl.col("new_known")).then(pl.lit(" (the old arrived late)"))
    log = closings.join(old, on="old", how="left").join(new, on="new", how="left")
    log = log.select(
        "scope", "subject", "predicate", "old", "new", "old_object", "new_object", "at",
        pl.max_horizontal("old_known", "new_known").alias("recorded_at"), pl.col("rule") + late.otherwise(pl.lit("")),
        "by", "evidence",
    )  # fmt: skip
    return Resolved(facts, log.sort("recorded_at", "at", maintain_order=True), undone)
