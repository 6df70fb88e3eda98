"""What the index knows of chats with gold facts.

Measured are active facts, at the end and as of dates, invalidations, and false positives.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.config import IndexSettings
from memlab.embed import Encoder
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, mean_intervals
from memlab.evaluate.fact_outcomes import Outcome, active_outcomes, closing_outcomes, trap_outcomes
from memlab.evaluate.gold_facts import Annotations
from memlab.evaluate.known_chats import Known, known_chats
from memlab.evaluate.reader_verdicts import (
    AS_READ,
    UNMATCHED,
    Verdicts,
    read_outcomes,
    read_verdicts,
    unmatched_in,
)
from memlab.evaluate.tables import Table
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
    read: Verdicts = {}
    if verdicts is not None:
        read = read_verdicts(verdicts)
    chats = known_chats(folder, facts=facts, settings=settings, service=service, encoder=encoder)
    measured = []
    for gold, known in chats:
        measured.append(measure_chat(gold, known, verdicts=read))
    return pl.concat(measured)


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
    chats = known_chats(folder, facts=facts, settings=settings, service=service, encoder=encoder)
    listed = [pl.DataFrame(schema=UNMATCHED)]
    for gold, known in chats:
        listed.append(unmatched_in(gold, known(as_of=None)))
    return pl.concat(listed)


def measure_chat(
    gold: Annotations, known: Known, *, verdicts: Verdicts | None = None
) -> pl.DataFrame:
    """Measure what is known of one chat by its annotations; rows as of :func:`measure_folder`.

    :param known: gives the resolved facts; called with ``as_of``, a date or ``None``.
    :param verdicts: what readers made of facts of this and other chats.

    >>> from functools import partial
    >>> from memlab.evaluate.gold_facts import read_gold
    >>> from memlab.evaluate.fact_measures import measure_chat, outcome_totals
    >>> from memlab.knowledge import resolve
    >>> from memlab.records import Fact, frame
    >>> known = partial(resolve, frame(Fact, []))
    >>> outcomes = measure_chat(read_gold("data/facts/dev")[0], known)
    >>> outcome_totals(outcomes).filter(measure="traps avoided")["n"].item()
    46
    """
    counted: list[Outcome] = []
    for day in gold.dates:
        counted += active_outcomes(gold, known(as_of=day), name="as-of", when=day)
    end = known(as_of=None)
    counted += active_outcomes(gold, end, name="current", when=None)
    counted += closing_outcomes(gold, end)
    counted += trap_outcomes(gold, end)
    if verdicts:
        counted += read_outcomes(gold, end, verdicts)
    rows = []
    for outcome in counted:
        what = None
        if not gold.closed:
            what = outcome.what
        rows.append((gold.scope, outcome.measure, outcome.hit, outcome.kind, what, gold.closed))
    return pl.DataFrame(rows, schema=_OUTCOMES, orient="row")


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
    rows = []
    for measure in measures:
        counted = outcomes.filter(measure=measure)
        hits = counted["hit"].cast(pl.Float64).to_numpy()[:, None]
        scopes = clustering_scopes(counted["scope"], unit)
        span = mean_intervals(hits, scopes=scopes).select("low", "high", "level", "unit", "units")
        row = {"measure": measure, "n": counted.height, "share": counted["hit"].mean()}
        rows.append(row | span.row(0, named=True))
    numbers = dict.fromkeys(("share", "low", "high"), pl.Float64)
    table = pl.DataFrame(rows, schema_overrides=numbers)
    return Table(table.with_columns(pl.col("unit").replace("question", "outcome")))


def format_outcomes(outcomes: pl.DataFrame, *, errors: int = 20) -> str:
    """Write totals down, and of what is not ``closed`` what was wrong.

    :param errors: of each measure, how many are written.
    """
    blocks = [str(outcome_totals(outcomes))]
    if errors:
        shown = outcomes.filter(~pl.col("hit") & ~pl.col("closed"))
        for measure in MEASURES:
            wrong = shown.filter(measure=measure)
            if wrong.height:
                blocks.append(_format_errors(measure, wrong, most=errors))
    return "\n\n".join(blocks)


def _format_errors(measure: str, wrong: pl.DataFrame, *, most: int) -> str:
    """Write down what was wrong by one measure, the first of it where there is more."""
    head = f"{measure}: {wrong.height} errors"
    if wrong.height > most:
        head += f", the first {most}"
    lines = [head]
    for kind, scope, what in wrong.head(most).select("kind", "scope", "what").iter_rows():
        lines.append(f"- {kind}: {scope}: {what}")
    return "\n".join(lines)
