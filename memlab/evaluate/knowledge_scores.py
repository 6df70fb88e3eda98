"""What the index knows of chats with gold facts.

Measured are active facts, at the end and as of dates, invalidations, and false positives.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.config import IndexSettings
from memlab.embed import Encoder
from memlab.evaluate.annotated_chats import ResolveFacts, index_or_read_and_iter_fact_resolvers
from memlab.evaluate.confidence_intervals import Unit, mean_intervals, scopes_if_they_are_the_unit
from memlab.evaluate.fact_outcomes import (
    FactOutcome,
    score_active_facts,
    score_invalidations,
    score_traps_avoided,
)
from memlab.evaluate.gold_facts import ChatAnnotations
from memlab.evaluate.printed_tables import Table
from memlab.evaluate.reader_verdicts import (
    AS_READ,
    UNMATCHED,
    ReaderVerdicts,
    list_facts_without_annotation,
    read_reader_verdicts,
    score_active_facts_as_read_if_all_read,
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


def score_annotated_chats(
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
        :func:`memlab.evaluate.reader_verdicts.read_reader_verdicts`: of the chats of which they
        read all that no annotation speaks of, :data:`memlab.evaluate.reader_verdicts.AS_READ` is
        measured too.
    :returns: a row for each thing counted: ``scope``, ``measure``, ``hit``, ``kind`` (of a trap; of
        what was wrong), ``what`` (in words; null where ``closed``) and ``closed``: see
        :func:`summarise_fact_outcomes`.
    :raises DataError: when the folder has no annotations, a line is bad, or there is nothing to
        measure: no service and no facts, or no answer for any session.
    """
    read_by_person: ReaderVerdicts = {}
    if verdicts is not None:
        read_by_person = read_reader_verdicts(verdicts)
    gold_chats = index_or_read_and_iter_fact_resolvers(
        folder, facts=facts, settings=settings, service=service, encoder=encoder
    )
    chat_outcomes = []
    for gold, known in gold_chats:
        chat_outcomes.append(score_annotated_chat(gold, known, verdicts=read_by_person))
    return pl.concat(chat_outcomes)


def list_unannotated_facts(
    folder: str | Path,
    *,
    facts: str | Path | None = None,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    encoder: Encoder | None = None,
) -> pl.DataFrame:
    """List the active facts of which no annotation speaks, for readers to call true or not.

    Chats that are ``closed`` are left out. Parameters as of :func:`score_annotated_chats`.

    :returns: ``scope``, ``meaning`` (:func:`memlab.records.facts.meaning_id`), ``about``, ``slot``,
        ``value``, ``sentence``, ``kind``, ``holds``, ``evidence`` (ids of turns) and ``turns`` (who
        said them, and their text).
    :raises DataError: as :func:`score_annotated_chats`.
    """
    gold_chats = index_or_read_and_iter_fact_resolvers(
        folder, facts=facts, settings=settings, service=service, encoder=encoder
    )
    unmatched_tables = [pl.DataFrame(schema=UNMATCHED)]
    for gold, known in gold_chats:
        unmatched_tables.append(list_facts_without_annotation(gold, known(as_of=None)))
    return pl.concat(unmatched_tables)


def score_annotated_chat(
    gold: ChatAnnotations, resolve_facts: ResolveFacts, *, verdicts: ReaderVerdicts | None = None
) -> pl.DataFrame:
    """Measure what is known of one chat by its annotations; rows as of
    :func:`score_annotated_chats`.

    :param resolve_facts: gives the resolved facts; called with ``as_of``, a date or ``None``.
    :param verdicts: what readers made of facts of this and other chats.

    >>> from functools import partial
    >>> from memlab.evaluate.gold_facts import read_gold_annotations
    >>> from memlab.evaluate.knowledge_scores import score_annotated_chat, summarise_fact_outcomes
    >>> from memlab.knowledge import resolve
    >>> from memlab.records import Fact, frame
    >>> known = partial(resolve, frame(Fact, []))
    >>> outcomes = score_annotated_chat(read_gold_annotations("data/facts/dev")[0], known)
    >>> summarise_fact_outcomes(outcomes).filter(measure="traps avoided")["n"].item()
    46
    """
    chat_outcomes: list[FactOutcome] = []
    for day in gold.dates:
        chat_outcomes += score_active_facts(
            gold, resolve_facts(as_of=day), measure_prefix="as-of", as_of=day
        )
    final_state = resolve_facts(as_of=None)
    chat_outcomes += score_active_facts(gold, final_state, measure_prefix="current", as_of=None)
    chat_outcomes += score_invalidations(gold, final_state)
    chat_outcomes += score_traps_avoided(gold, final_state)
    if verdicts:
        chat_outcomes += score_active_facts_as_read_if_all_read(gold, final_state, verdicts)
    outcome_rows = []
    for outcome in chat_outcomes:
        fact_shown = None
        if not gold.closed:
            fact_shown = outcome.what
        outcome_rows.append(
            (gold.scope, outcome.measure, outcome.hit, outcome.kind, fact_shown, gold.closed)
        )
    return pl.DataFrame(outcome_rows, schema=_OUTCOMES, orient="row")


def summarise_fact_outcomes(outcomes: pl.DataFrame, *, unit: Unit = "auto") -> Table:
    """Put shares with their intervals beside each measure, in its order.

    :param outcomes: of :func:`score_annotated_chats`.
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
        scopes = scopes_if_they_are_the_unit(measure_outcomes["scope"], unit)
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


def format_fact_outcomes(outcomes: pl.DataFrame, *, max_errors: int = 20) -> str:
    """Write totals down, and of what is not ``closed`` what was wrong.

    :param max_errors: of each measure, how many are written.
    """
    blocks = [str(summarise_fact_outcomes(outcomes))]
    if max_errors:
        shown_errors = outcomes.filter(~pl.col("hit") & ~pl.col("closed"))
        for measure in MEASURES:
            measure_errors = shown_errors.filter(measure=measure)
            if measure_errors.height:
                blocks.append(_format_errors(measure, measure_errors, max_errors=max_errors))
    return "\n\n".join(blocks)


def _format_errors(measure: str, error_rows: pl.DataFrame, *, max_errors: int) -> str:
    """Write down what was wrong by one measure, the first of it where there is more."""
    heading = f"{measure}: {error_rows.height} errors"
    if error_rows.height > max_errors:
        heading += f", the first {max_errors}"
    error_lines = [heading]
    for kind, scope, fact_line in (
        error_rows.head(max_errors).select("kind", "scope", "what").iter_rows()
    ):
        error_lines.append(f"- {kind}: {scope}: {fact_line}")
    return "\n".join(error_lines)
