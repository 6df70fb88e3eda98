"""Rows of summaries, written by a model, or of picked sentences where it gives no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import polars as pl

from memlab import llm
from memlab.cluster import cluster_terms
from memlab.records import Node, schema
from memlab.summaries import summary_prompts
from memlab.summaries.extractive_summaries import extract_sentences, find_continued_sentences
from memlab.summaries.summary_prompts import (
    Group,
    SentenceWithTurns,
    SourceItem,
    Task,
    deduplicate_texts,
    evidence_column,
)
from memlab.text.tokens_and_sentences import sentences

NODES = pl.Schema(schema(Node))
EXTRACTIVE = "extractive"
_MAX_TOPICS = 6
NodeRow = dict[str, Any]
Writer = str | llm.Service | Callable[[Sequence[llm.Request]], list[llm.Answer]] | None
"""Who writes summaries: a service or its name, ``recorded``, a function that answers, or ``None``
for no model.
"""


def turns_as_node_rows(turns: pl.DataFrame) -> list[NodeRow]:
    """Make of turns rows that a summary can be written of.

    Each is one sentence, with the caption of its image.
    """
    image_text = ("\n[image: " + pl.col("caption") + "]").fill_null("")
    row_frame = turns.select(
        "scope",
        "speaker",
        node_id="turn_id",
        start="timestamp",
        end="timestamp",
        level=pl.lit(0),
        turns=pl.concat_list("turn_id"),
        sentences=pl.concat_list((pl.col("text") + image_text).str.strip_chars()),
    )
    return row_frame.with_columns(
        evidence=pl.concat_list("turns").list.eval(pl.concat_list(pl.element()))
    ).to_dicts()


def write_summaries(
    task: Task,
    row_groups: Sequence[Sequence[NodeRow]],
    service: Writer,
    *,
    earlier_row_groups: Sequence[Sequence[NodeRow]] = (),
    known_nodes: pl.DataFrame | None = None,
) -> list[NodeRow]:
    """Write a summary of each group of rows.

    Where the model gives none, pick sentences of the group.

    :param earlier_row_groups: of each group the rows of the period before, where there are periods.
    :param known_nodes: rows of :class:`memlab.records.Node`; what the same model wrote of the same
        entries is taken from there, and not asked for.
    :returns: for each group ``node_id`` (the key of the request), ``text``, ``sentences`` and
        ``evidence``, the other lists of the task with theirs, ``topics`` (``None`` where no model
        gave them), ``entities``, ``service``, ``model``, ``version``, ``made_of``, ``dropped`` and
        ``reason``; and what it stands on: ``scope``, ``level``, ``children``, ``turns``, ``start``
        and ``end``.
    :raises ModelError: when the service cannot be asked at all.
    """
    if isinstance(service, str) and service != llm.RECORDED:
        service = llm.configured_service(service)
    groups = []
    requests = []
    digests = []
    for source_rows, earlier_rows in zip_longest(row_groups, earlier_row_groups, fillvalue=()):
        group = Group(citable_items(source_rows), citable_items(earlier_rows))
        request = summary_prompts.summary_request(task, group)
        groups.append(group)
        requests.append(request)
        digests.append(summary_prompts.source_digest(request, group))

    reusable = reusable_rows_by_source_digest(known_nodes, service)
    missing = [
        request_place for request_place, digest in enumerate(digests) if digest not in reusable
    ]
    missing_requests = [requests[request_place] for request_place in missing]
    answers = _ask_writer(missing_requests, service)
    answer_by_place = dict(zip(missing, answers, strict=True))

    summary_rows = []
    for request_place, source_rows in enumerate(row_groups):
        if request_place in answer_by_place:
            summary_row = _written_row(
                task, groups[request_place], answer_by_place[request_place], service
            )
        else:
            summary_row = dict(reusable[digests[request_place]])
        summary_row["node_id"] = requests[request_place].key
        summary_row["made_of"] = digests[request_place]
        summary_row["version"] = f"{task.name} {task.version}"
        summary_row |= _derive_children_turns_and_times(source_rows)
        summary_row["text"] = " ".join(summary_row["sentences"])
        summary_rows.append(summary_row)
    return summary_rows


def _ask_writer(requests: Sequence[llm.Request], service: Writer) -> Sequence[llm.Answer]:
    if callable(service):
        return service(requests)
    return llm.ask(requests, service)


def writer_name(service: Writer) -> str | None:
    """Find the name that summaries of a service stand under; ``None`` for no model."""
    if service is None or isinstance(service, str):
        return service
    for attribute in ("name", "__name__"):
        attribute_value = getattr(service, attribute, None)
        if attribute_value:
            return str(attribute_value)
    return str(service)


def writer_model(service: Writer) -> str | None:
    """Find the model of a service; ``None`` where it names none."""
    return getattr(service, "model", None)


def reusable_rows_by_source_digest(
    known_nodes: pl.DataFrame | None, service: Writer
) -> dict[str, NodeRow]:
    """Look up what a model wrote before, by what it was made of.

    What is recorded is read from the recordings.
    """
    if known_nodes is None or service is None or service == llm.RECORDED:
        return {}
    rows_of_writer = known_nodes.filter(
        pl.col("service") == writer_name(service),
        pl.col("model").eq_missing(pl.lit(writer_model(service), pl.String)),
        pl.col("made_of") != "",
    )
    written_rows = (
        rows_of_writer.select(*_WRITTEN).unique("made_of", maintain_order=True).to_dicts()
    )
    return {written_row["made_of"]: written_row for written_row in written_rows}


_WRITTEN = (
    "sentences",
    "evidence",
    "carried_on",
    "carried_on_evidence",
    "decisions",
    "decision_evidence",
    "open_questions",
    "open_question_evidence",
    "topics",
    "service",
    "model",
    "dropped",
    "reason",
    "made_of",
)
"""The columns of a node that its writer gave."""


def _written_row(task: Task, group: Group, answer: llm.Answer, service: Writer) -> NodeRow:
    """Make a row of what a model wrote of a group.

    Sentences are picked where it gave none that counts.
    """
    shaped_answer: Any = answer.value
    points_by_list: dict[str, list[SentenceWithTurns]] = {}
    n_dropped = 0
    if shaped_answer:
        points_by_list, n_dropped = summary_prompts.supported_points_and_n_dropped(
            shaped_answer, group
        )
    reason = ""
    if not points_by_list:
        reason = answer.error
    elif not points_by_list["sentences"]:
        reason = "no sentence stands on what it names"

    written_row: NodeRow
    if points_by_list and not reason:
        written_row = {"service": writer_name(service), "model": writer_model(service)}
        written_row["topics"] = deduplicate_texts(getattr(shaped_answer, "topics", ()))
        written_row["entities"] = deduplicate_texts(getattr(shaped_answer, "entities", ()))
    else:
        written_row = {"service": EXTRACTIVE, "model": None, "topics": None, "entities": []}
        points_by_list = _extractive_points(task, group)
    for list_name, list_points in points_by_list.items():
        written_row[list_name] = [text for text, _ in list_points]
        written_row[evidence_column(list_name)] = [turns for _, turns in list_points]
    written_row["dropped"] = n_dropped
    written_row["reason"] = reason if service else ""
    return written_row


def citable_items(node_rows: Sequence[NodeRow]) -> list[SourceItem]:
    """List the items that a summary of some rows may cite."""
    items: list[SourceItem] = []
    for row in node_rows:
        items += _items_of_sentence_list(row, "sentences", item_kind="")
        items += _items_of_sentence_list(row, "decisions", item_kind="decisions")
        items += _items_of_sentence_list(row, "open_questions", item_kind="open_questions")
    return items


def _items_of_sentence_list(
    node_row: NodeRow, list_name: str, *, item_kind: str
) -> Iterator[SourceItem]:
    """Make an item of each text of a column of texts."""
    item_texts = node_row.get(list_name) or ()
    evidence = node_row.get(evidence_column(list_name)) or ()
    speaker = node_row.get("speaker", "")
    for text, turns in zip(item_texts, evidence, strict=True):
        yield SourceItem(node_row["node_id"], text, turns, node_row["start"], speaker, item_kind)


def _derive_children_turns_and_times(source_rows: Sequence[NodeRow]) -> NodeRow:
    """Derive the fields of a summary that follow from its rows: children, turns and times."""
    start_times = [source_row["start"] for source_row in source_rows if source_row["start"]]
    end_times = [source_row["end"] for source_row in source_rows if source_row["end"]]
    return {
        "scope": source_rows[0]["scope"],
        "level": source_rows[0]["level"] + 1,
        "children": [source_row["node_id"] for source_row in source_rows],
        "turns": deduplicate_texts(
            chain.from_iterable(source_row["turns"] for source_row in source_rows)
        ),
        "start": min(start_times, default=None),
        "end": max(end_times, default=None),
    }


def _extractive_points(task: Task, group: Group) -> dict[str, list[SentenceWithTurns]]:
    """Pick sentences without a model; decisions and open questions are kept as they are."""
    items_by_kind: dict[str, list[SourceItem]] = {}
    for item in group.items:
        items_by_kind.setdefault(item.kind, []).append(item)
    points_by_list = {}
    for list_name in task.shape.names_of_sentence_lists():
        points_by_list[list_name] = _texts_with_turns(items_by_kind.get(list_name, []))
    points_by_list["sentences"] = extract_sentences(items_by_kind.get("", []))
    if group.before:
        earlier_texts = _texts_with_turns(group.before)
        points_by_list["carried_on"] = find_continued_sentences(
            earlier_texts, points_by_list["sentences"]
        )
    return points_by_list


def _texts_with_turns(source_items: Sequence[SourceItem]) -> list[SentenceWithTurns]:
    return [(item.text, item.turns) for item in source_items]


def fallback_note(rows: pl.DataFrame, what: str) -> str:
    """Note how many summaries no model answered though it was asked.

    :param rows: ``reason``, as :func:`write_summaries` gives it.
    """
    answers = []
    for reason in rows["reason"]:
        is_written = None if reason else True
        answers.append(llm.Answer(is_written, reason))
    return llm.describe_unanswered(answers, what)


def node_frame(node_rows: Sequence[NodeRow], turns: pl.DataFrame, language: str) -> pl.DataFrame:
    """Make a frame of nodes of rows, with topics."""
    list_columns = pl.col(pl.List(pl.String), pl.List(pl.List(pl.String)))
    filled_rows = fill_missing_topics(pl.DataFrame(node_rows, schema=NODES), turns, language)
    filled_columns = {
        "made_of": pl.col("made_of").fill_null(""),
        "version": pl.col("version").fill_null(""),
    }
    return filled_rows.with_columns(
        list_columns.fill_null([]), pl.col("added").fill_null(0), **filled_columns
    )


def fill_missing_topics(
    node_rows: pl.DataFrame, turns: pl.DataFrame, language: str
) -> pl.DataFrame:
    """Fill in topics that no model gave.

    They are phrases that set a row's turns apart from those of the scope's others. What
    an assistant says is left out, unless nobody else speaks. See
    :func:`memlab.cluster.cluster_terms`.

    :param node_rows: ``scope``, ``turns`` (ids) and ``topics``, null where they are to be found.
    """
    lacks_topics = pl.col("topics").is_null().any().over("scope")
    # Splitting takes long: only turns of scopes where topics are missing.
    numbered = node_rows.with_row_index("row").filter(lacks_topics)
    turn_texts = turns.select("turn_id", "speaker", "role", "text")
    stated_texts = (
        numbered.select("row", "scope", turn_id="turns")
        .explode("turn_id")
        .join(turn_texts, on="turn_id", maintain_order="left")
    )
    is_person = pl.col("role") != "assistant"
    stated_texts = stated_texts.filter(is_person | ~is_person.any().over("row"))
    sentence_lists = pl.Series(map(sentences, stated_texts["text"]), dtype=pl.List(pl.String))
    by_sentence = stated_texts.with_columns(text=sentence_lists).explode("text").drop_nulls("text")

    topics_by_row: dict[int, list[str]] = {}
    for scope_sentences in by_sentence.partition_by("scope"):
        cluster_topics = cluster_terms(
            scope_sentences["text"].to_list(),
            scope_sentences["row"].to_numpy().astype(np.int64),
            n_terms=_MAX_TOPICS,
            speakers=scope_sentences["speaker"].to_list(),
            language=language,
        )
        topics_by_row.update(cluster_topics.select("label", "terms").iter_rows())
    topic_lists = [topics_by_row.get(row, []) for row in range(node_rows.height)]
    topic_column = pl.Series("topics", topic_lists, dtype=pl.List(pl.String))
    return node_rows.with_columns(pl.coalesce("topics", topic_column))
