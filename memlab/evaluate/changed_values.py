"""Questions about a value that has changed: whether its current fact ranks above the stale ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from memlab.embed import Encoder
from memlab.evaluate.gold_facts import ChatAnnotations
from memlab.evaluate.groups_of_questions import add_source_of_each_unless_all_written
from memlab.evaluate.printed_tables import Table
from memlab.evaluate.system_comparison import compare_question_outcomes, stale_outcomes_by_question
from memlab.knowledge import ConfidenceSettings, resolve
from memlab.knowledge.decay_curves import PlateauLinear
from memlab.knowledge.fact_search import current_first_share_by_condition
from memlab.records import Dataset, Run


class Condition(NamedTuple):
    """How facts are ranked.

    :param confidence: the constants of confidence; ``is_without_superseded``: whether superseded
        facts are left out.
    """

    confidence: ConfidenceSettings
    is_without_superseded: bool


_DEFAULT = ConfidenceSettings()
_NO_DECAY = ConfidenceSettings(decay=PlateauLinear(floor=1.0))
CONDITIONS: Mapping[str, Condition] = {
    "neither": Condition(_NO_DECAY, False),
    "decay": Condition(_DEFAULT, False),
    "supersession": Condition(_NO_DECAY, True),
    "decay and supersession": Condition(_DEFAULT, True),
}
"""With and without decay by the default curve, and with and without superseded facts."""
_SECONDS_A_DAY = 86_400
_OUTCOMES = {
    "system": pl.String(),
    "query_id": pl.String(),
    "scope": pl.String(),
    "hit": pl.Float64(),
}


def add_fitted_decay_conditions(fitted_decay: Mapping[str, Any]) -> dict[str, Condition]:
    """Give :data:`CONDITIONS`, and those with decay once more by another curve.

    :param fitted_decay: of a :class:`memlab.knowledge.decay_fitting.Recommendation`.

    >>> from memlab.evaluate.changed_values import add_fitted_decay_conditions
    >>> list(add_fitted_decay_conditions({"family": "exponential", "half_life_days": 250}))[4:]
    ['fitted decay', 'fitted decay and supersession']
    """
    fitted_settings = ConfidenceSettings.from_table({"decay": dict(fitted_decay)})
    fitted_pairs = {
        "fitted decay": Condition(fitted_settings, False),
        "fitted decay and supersession": Condition(fitted_settings, True),
    }
    return {**CONDITIONS, **fitted_pairs}


def ages_and_validity_of_gold_facts(chats: Sequence[ChatAnnotations]) -> pl.DataFrame:
    """Give the age of each gold fact at the end of its chat, and whether it still holds then.

    :param chats: what :func:`memlab.evaluate.gold_facts.read_gold_annotations` gave; corrections
        and what only might be are left out.
    :returns: ``fact_id``, ``age_days`` and ``still_true``, for
        :mod:`memlab.knowledge.decay_fitting`.
    """
    label_rows = []
    for chat in chats:
        last_time = max(chat.times.values())
        for fact in chat.entries_of_kind("fact"):
            if fact.mode != "is" or fact.corrected:
                continue
            age = last_time - chat.times[fact.since]
            label_rows.append((age.total_seconds() / _SECONDS_A_DAY, chat.is_active_at(fact)))
    schema = {"age_days": pl.Float64(), "still_true": pl.Boolean()}
    return pl.DataFrame(label_rows, schema=schema, orient="row").with_row_index("fact_id")


def score_current_fact_first(
    questions: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None = None,
    conditions: Mapping[str, Condition] = CONDITIONS,
) -> pl.DataFrame:
    """Say of each question and condition whether a current fact ranks above every stale one.

    Facts are resolved as of the time of the question.

    :param questions: ``query_id``, ``scope``, ``text``, ``now``, and the turns with the current
        value, ``evidence``, and with those before it, ``stale``.
    :param facts: of :func:`memlab.knowledge.extract`.
    :param conditions: see :func:`memlab.knowledge.fact_search.current_first_share_by_condition`.
    :returns: ``system`` (the condition), ``query_id``, ``scope`` and ``hit`` (0 or 1), for
        :func:`memlab.evaluate.system_comparison.compare_question_outcomes`; questions none of whose
        turns became a fact are left out. ``source`` stands beside where some questions were
        proposed by a model.
    """
    outcomes = [pl.DataFrame(schema=_OUTCOMES)]
    if questions.is_empty():
        return outcomes[0]
    of_turn = facts.select("fact_id", turn="evidence").explode("turn")
    current_turns = questions.select("query_id", turn="evidence", current=pl.lit(True))
    stale_turns = questions.select("query_id", turn="stale", current=pl.lit(False))
    labels = pl.concat([current_turns, stale_turns]).explode("turn").join(of_turn, on="turn")
    grouped = questions.group_by("query_id", "scope", "now", maintain_order=True)
    for (query_id, scope, now), question_row in grouped:
        resolved_then = resolve(facts.filter(scope=scope), as_of=now, encoder=encoder)
        question_labels = labels.filter(query_id=query_id)
        first_shares = current_first_share_by_condition(
            question_row, question_labels, resolved_then, conditions=conditions, encoder=encoder
        )
        first_shares = first_shares.filter(pl.col("n") > 0)
        hits = first_shares.select(
            system="condition", query_id=pl.lit(query_id), scope=pl.lit(scope), hit="share"
        )
        outcomes.append(hits)
    return add_source_of_each_unless_all_written(pl.concat(outcomes), questions)


def score_current_message_first(runs: Sequence[Run], data: Dataset) -> pl.DataFrame:
    """Say of each question and ranking whether a message with the current value stands above every
    stale one.

    :param runs: rankings of turns.
    :returns: as :func:`score_current_fact_first`, a ``system`` a ranking.
    """
    outcomes = [pl.DataFrame(schema=_OUTCOMES)]
    for run in runs:
        first_messages = stale_outcomes_by_question(run, data).select(
            "query_id", "scope", hit=pl.col("current first").cast(pl.Float64)
        )
        outcomes.append(first_messages.select(pl.lit(run.name).alias("system"), pl.all()))
    return add_source_of_each_unless_all_written(pl.concat(outcomes), data.questions)


def compare_with_first_condition(
    outcomes_by_name: Mapping[str, pl.DataFrame], *, seed: int = 0
) -> Table:
    """Compare the conditions of each side, such as ``facts`` and ``messages``, with its first.

    :param outcomes_by_name: what :func:`score_current_fact_first` and
        :func:`score_current_message_first` gave, by name.
    :returns: ``data``, the name of the side, and the columns of
        :func:`memlab.evaluate.system_comparison.compare_question_outcomes`.
    """
    tables = []
    for name, outcomes in outcomes_by_name.items():
        compared = compare_question_outcomes(outcomes, seed=seed)
        tables.append(compared.select(pl.lit(name).alias("data"), pl.all()))
    return Table(pl.concat(tables, how="diagonal_relaxed"))


def questions_of_changed_values(dataset: Dataset) -> Dataset:
    """Keep the questions that name the stale turns of a value that has changed, and when they are
    asked.

    >>> import memlab
    >>> from memlab.evaluate.changed_values import questions_of_changed_values
    >>> questions_of_changed_values(memlab.sample()).questions["stale"].list.len().min() > 0
    True
    """
    names_stale_turns = pl.col("stale").list.len() > 0
    has_time = pl.col("timestamp").is_not_null()
    return replace(dataset, questions=dataset.questions.filter(names_stale_turns & has_time))
