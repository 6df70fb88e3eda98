"""What the index knows of chats with gold facts.

Measured are active facts, at the end and as of dates, invalidations, and false positives.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.config import IndexSettings
from memlab.embed import Encoder
from memlab.evaluate.annotated_chats import Known, known_chats
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, mean_intervals
from memlab.evaluate.fact_outcomes import Outcome, active_outcomes, closing_outcomes, trap_outcomes
from memlab.evaluate.gold_facts import Annotations
from memlab.evaluate.printed_tables import Table
from memlab.evaluate.reader_verdicts import (
    AS_READ,
    UNMATCHED,
    Verdicts,
    read_outcomes,
    read_verdicts,
    unmatched_in,
)
from memlab.llm import Service

MEASURES = (
    "current precision",
    "current recall",
    "as-of precision",
    "as-of recall",
    "invalidation precision",
    "invalidation recall",
    "traps avoided",
)
_OUTCOMES = {
    "scope": pl.String(),
    "measure": pl.String(),
    "hit": pl.Boolean(),
    "kind": pl.String(),
    "what": pl.String(),
    "closed": pl.Boolean(),
}


def measure_folder(
    folder: str | Path,
    *,
    facts: str | Path | None = None,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    encoder: Encoder | None = None,
    verdicts: str | Path | None = None,
) -> pl.DataFrame:
    """Index the chats of a folder in a store of their own, and measure what is known of them.

    An active fact, also a plan that is due, counts for precision if it says what an active entry
    says (a hit); if it falls into a trap, says what no longer holds, contradicts or is nowhere
    among the entries (a miss); neither way if it is a neutral entry, or states truly that something
    was planned, happened, is over or was not so. Recall asks which active entries are stated by
    such a fact. An invalidation is right if it ends an entry that has ended, and was known at most
    a day before that was said; what ends by the date that was stated of it has no such bound. A
    trap is avoided unless a fact from its message says it. A session that the model does not answer
    for has no facts, with a warning.

    :param facts: JSON lines of stated facts as in ``data/facts/frozen.jsonl``: nothing is indexed,
        they are resolved.
    :param service: the language model that extracts, where ``facts`` are not given.
    :param encoder: matches near-equal wordings when facts are resolved; ``None``: equal ones only.
    :param verdicts: JSON lines of readers, see
        :func:`memlab.evaluate.reader_verdicts.read_verdicts`: of the chats of which they read all
        that no annotation speaks of, :data:`memlab.evaluate.reader_verdicts.AS_READ` is measured
        too.
    :returns: a row for each thing counted: ``scope``, ``measure``, ``hit``, ``kind`` (of a trap; of
        what was wrong), ``what`` (in words; null where ``closed``) and ``closed``: see
        :func:`outcome_totals`.
    :raises DataError: when the folder has no annotations, a line is bad, or there is nothing to
        measure: no service and no facts, or no answer for any session.
    """
    read_by_person: Verdicts = {}
    if verdicts is not None:
        read_by_person = read_verdicts(verdicts)
    gold_chats = known_chats(
        folder, facts=facts, settings=settings, service=service, encoder=encoder
    )
    chat_outcomes = []
    for gold, known in gold_chats:
        chat_outcomes.append(measure_chat(gold, known, verdicts=read_by_person))
    return pl.concat(chat_outcomes)


def unmatched_facts(
    folder: str | Path,
    *,
    facts: str | Path | None = None,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    encoder: Encoder | None = None,
) -> pl.DataFrame:
    """List the active facts of which no annotation speaks, for readers to call true or not.

    Chats that are ``closed`` are left out. Parameters as of :func:`measure_folder`.

    :returns: ``scope``, ``meaning`` (:func:`memlab.records.facts.meaning_id`), ``about``, ``slot``,
        ``value``, ``sentence``, ``kind``, ``holds``, ``evidence`` (ids of turns) and ``turns`` (who
        said them, and their text).
    :raises DataError: as :func:`measure_folder`.
    """
    gold_chats = known_chats(
        folder, facts=facts, settings=settings, service=service, encoder=encoder
    )
    unmatched_tables = [pl.DataFrame(schema=UNMATCHED)]
    for gold, known in gold_chats:
        unmatched_tables.append(unmatched_in(gold, known(as_of=None)))
    return pl.concat(unmatched_tables)


def measure_chat(
    gold: Annotations, known: Known, *, verdicts: Verdicts | None = None
) -> pl.DataFrame:
    """Measure what is known of one chat by its annotations; rows as of :func:`measure_folder`.

    :param known: gives the resolved facts; called with ``as_of``, a date or ``None``.
    :param verdicts: what readers made of facts of this and other chats.

    >>> from functools import partial
    >>> from memlab.evaluate.gold_facts import read_gold
    >>> from memlab.evaluate.knowledge_scores import measure_chat, outcome_totals
    >>> from memlab.knowledge import resolve
    >>> from memlab.records import Fact, frame
    >>> known = partial(resolve, frame(Fact, []))
    >>> outcomes = measure_chat(read_gold("data/facts/dev")[0], known)
    >>> outcome_totals(outcomes).filter(measure="traps avoided")["n"].item()
    46
    """
    chat_outcomes: list[Outcome] = []
    for day in gold.dates:
        chat_outcomes += active_outcomes(gold, known(as_of=day), name="as-of", when=day)
    final_state = known(as_of=None)
    chat_outcomes += active_outcomes(gold, final_state, name="current", when=None)
    chat_outcomes += closing_outcomes(gold, final_state)
    chat_outcomes += trap_outcomes(gold, final_state)
    if verdicts:
        chat_outcomes += read_outcomes(gold, final_state, verdicts)
    outcome_rows = []
    for outcome in chat_outcomes:
        fact_shown = None
        if not gold.closed:
            fact_shown = outcome.what
        outcome_rows.append(
            (gold.scope, outcome.measure, outcome.hit, outcome.kind, fact_shown, gold.closed)
        )
    return pl.DataFrame(outcome_rows, schema=_OUTCOMES, orient="row")


def outcome_totals(outcomes: pl.DataFrame, *, unit: Unit = "auto") -> Table:
    """Put shares with their intervals beside each measure, in its order.

    :param outcomes: of :func:`measure_folder`.
    :param unit: what is independent: ``question``, here each thing counted, ``scope``, or ``auto``:
        scopes where there are five or more.
    :returns: of :data:`MEASURES`, and of :data:`memlab.evaluate.reader_verdicts.AS_READ` where
        readers were asked, ``measure``, ``n``, ``share``, ``low`` and ``high`` (null where there is
        nothing to say), ``level``, ``unit`` and ``units``.
    """
    measures = list(MEASURES)
    if AS_READ in outcomes["measure"]:
        measures.append(AS_READ)
    total_rows = []
    for measure in measures:
        measure_outcomes = outcomes.filter(measure=measure)
        hit_column = measure_outcomes["hit"].cast(pl.Float64).to_numpy()[:, None]
        scopes = clustering_scopes(measure_outcomes["scope"], unit)
        interval = mean_intervals(hit_column, scopes=scopes).select(
            "low", "high", "level", "unit", "units"
        )
        total_row = {
            "measure": measure,
            "n": measure_outcomes.height,
            "share": measure_outcomes["hit"].mean(),
        }
        total_rows.append(total_row | interval.row(0, named=True))
    float_columns = dict.fromkeys(("share", "low", "high"), pl.Float64)
    table = pl.DataFrame(total_rows, schema_overrides=float_columns)
    return Table(table.with_columns(pl.col("unit").replace("question", "outcome")))


def format_outcomes(outcomes: pl.DataFrame, *, errors: int = 20) -> str:
    """Write totals down, and of what is not ``closed`` what was wrong.

    :param errors: of each measure, how many are written.
    """
    blocks = [str(outcome_totals(outcomes))]
    if errors:
        shown_errors = outcomes.filter(~pl.col("hit") & ~pl.col("closed"))
        for measure in MEASURES:
            measure_errors = shown_errors.filter(measure=measure)
            if measure_errors.height:
                blocks.append(_format_errors(measure, measure_errors, most=errors))
    return "\n\n".join(blocks)


def _format_errors(measure: str, error_rows: pl.DataFrame, *, most: int) -> str:
    """Write down what was wrong by one measure, the first of it where there is more."""
    heading = f"{measure}: {error_rows.height} errors"
    if error_rows.height > most:
        heading += f", the first {most}"
    error_lines = [heading]
    for kind, scope, fact_line in error_rows.head(most).select("kind", "scope", "what").iter_rows():
        error_lines.append(f"- {kind}: {scope}: {fact_line}")
    return "\n".join(error_lines)
