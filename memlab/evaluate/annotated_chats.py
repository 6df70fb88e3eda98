"""The annotated chats of a folder with what is known of each: by an index, or by stated facts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from memlab import indexing
from memlab.config import IndexSettings
from memlab.embed import Encoder
from memlab.errors import DataError, warn_user
from memlab.evaluate.gold_facts import (
    ChatAnnotations,
    read_gold_annotations,
    read_json_lines,
    turn_id_of_message,
)
from memlab.knowledge import Resolved, resolve
from memlab.knowledge.fact_extraction import make_fact
from memlab.llm import Service
from memlab.records import Fact, frame
from memlab.store import MemoryStore

ResolveFacts = Callable[..., Resolved]
"""Gives the resolved facts of a chat; called with ``as_of``, a date or ``None``."""
_OPTIONAL = ("sentence", "kind", "holds", "values", "since", "until", "said_by")
"""Columns of a stated fact that need not be there."""


def index_or_read_and_iter_fact_resolvers(
    folder: str | Path,
    *,
    facts: str | Path | None,
    settings: IndexSettings | None,
    service: str | Service | None,
    encoder: Encoder | None,
) -> Iterator[tuple[ChatAnnotations, ResolveFacts]]:
    """Give each chat with what gives its resolved facts.

    That is to be called before the next chat is asked for. Parameters as of
    :func:`memlab.evaluate.knowledge_scores.score_annotated_chats`.

    :raises DataError: when there is nothing to measure.
    """
    if facts is None and service is None:
        raise DataError(
            "no facts: only a model reads them out of chats; name one with service= "
            "(--service NAME), or give stated ones with facts= (--facts FILE)"
        )
    gold_chats = read_gold_annotations(folder)
    if facts is not None:
        stated_rows = read_json_lines(facts)
        for gold in gold_chats:
            yield gold, partial(resolve, stated_facts_of_chat(stated_rows, gold), encoder=encoder)
        return
    index_settings = settings or IndexSettings()
    facts_alone = index_settings.model_copy(update={"summaries": False})
    index_events = []
    with tempfile.TemporaryDirectory(prefix="memlab-knowledge-") as store_folder:
        store = MemoryStore.open(store_folder)
        for gold in gold_chats:
            index_events.append(_index_chat_into_checked_events(store, gold, facts_alone, service))
            resolve_facts = partial(
                indexing.resolved_facts, store, gold.data.name, scopes=[gold.scope]
            )
            yield gold, partial(resolve_facts, encoder=encoder)
    _warn_if_some_raise_if_all_unread(pl.concat(index_events))


def stated_facts_of_chat(
    stated_rows: Sequence[Mapping[str, Any]], gold: ChatAnnotations
) -> pl.DataFrame:
    """Give the facts of one chat, of a file of stated facts: rows of :class:`memlab.records.Fact`.

    :param stated_rows: as of ``data/facts/frozen.jsonl``: ``scope``, ``about``, ``slot``,
        ``value``, ``source`` and ``messages`` (of the chat log); ``sentence``, ``kind``, ``holds``,
        ``values``, ``since``, ``until``, ``said_by`` and ``effects``, each with ``id`` and ``how``,
        where there are any.
    :raises DataError: when a row lacks something, or cites a message that the chat does not have.
    """
    turns_by_id = {row["turn_id"]: row for row in gold.data.turns.iter_rows(named=True)}
    facts_by_id: dict[str, Fact] = {}
    for row_number, row in enumerate(stated_rows, 1):
        try:
            if row["scope"] == gold.scope:
                fact = _fact_from_stated_row(row, turns_by_id)
                facts_by_id.setdefault(fact.fact_id, fact)
        except (KeyError, IndexError, TypeError) as error:
            raise DataError(
                f"stated facts, row {row_number}: {error!r}; see data/README.md for what a row "
                "holds"
            ) from None
    return frame(Fact, facts_by_id.values())


def _fact_from_stated_row(
    stated_row: Mapping[str, Any], turn_rows_by_id: Mapping[str, dict[str, Any]]
) -> Fact:
    """Make the fact of a row from the turns that it cites."""
    cited_turns = [
        turn_rows_by_id[turn_id_of_message(stated_row["scope"], message)]
        for message in stated_row["messages"]
    ]
    effects = stated_row.get("effects") or []
    optional_columns: dict[str, Any] = {}
    for column_name in _OPTIONAL:
        if stated_row.get(column_name) is not None:
            optional_columns[column_name] = stated_row[column_name]
    return make_fact(
        cited_turns,
        about=stated_row["about"],
        slot=stated_row["slot"],
        value=stated_row["value"],
        source=stated_row["source"],
        effects=[effect["how"] for effect in effects],
        affected=[effect["id"] for effect in effects],
        **optional_columns,
    )


def _index_chat_into_checked_events(
    store: MemoryStore,
    gold: ChatAnnotations,
    settings: IndexSettings,
    service: str | Service | None,
) -> pl.DataFrame:
    """Index a chat and give the events.

    :raises DataError: when a session fails.
    """
    dataset_name = gold.data.name
    store.ingest(gold.data, choose=False)
    index_events = indexing.index(store, dataset_name, settings=settings, service=service)
    failed_events = index_events.filter(kind="failed")
    if failed_events.height:
        raise DataError(
            f"{failed_events.height} sessions of {dataset_name} were not indexed "
            f"({failed_events['reason'][0]}), so nothing is measured; see that the service "
            "answers, and run it again"
        )
    return index_events


def _warn_if_some_raise_if_all_unread(index_events: pl.DataFrame) -> None:
    """Warn of sessions that no model read.

    :raises DataError: when it read none.
    """
    # A file with several chats is tried once for each.
    last_events = index_events.unique("session_id", keep="last", maintain_order=True)
    unread_sessions = last_events.filter(service=indexing.EXTRACTIVE)
    if unread_sessions.is_empty():
        return
    unread_note = (
        f"{unread_sessions['reason'][0]}, for {unread_sessions.height:,} of {last_events.height:,} "
        "sessions; --service NAME asks a model, and llm.recordings names recorded answers"
    )
    if unread_sessions.height == last_events.height:
        raise DataError(unread_note)
    # The level of what calls for the measure.
    warn_user(unread_note)
