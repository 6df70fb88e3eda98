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
from memlab.summaries.extractive import extract_sentences, find_continued_sentences
from memlab.summaries.summary_prompts import (
    Group,
    Item,
    Supported,
    Task,
    deduplicate_texts,
    evidence_column,
)
from memlab.text.tokens import sentences

NODES = pl.Schema(schema(Node))
EXTRACTIVE = "extractive"
_MAX_TOPICS = 6
Row = dict[str, Any]
Writer = str | llm.Service | Callable[[Sequence[llm.Request]], list[llm.Answer]] | None
"""Who writes summaries: a service or its name, ``recorded``, a function that answers, or ``None``
for no model.
"""


def turn_rows(turns: pl.DataFrame) -> list[Row]:
    """Make of turns rows that a summary can be written of.

    Each is one sentence, with the caption of its image.
    """
    image = ("\n[image: " + pl.col("caption") + "]").fill_null("")
    rows = turns.select(
        "scope",
        "speaker",
        node_id="turn_id",
        start="timestamp",
        end="timestamp",
        level=pl.lit(0),
        turns=pl.concat_list("turn_id"),
        sentences=pl.concat_list((pl.col("text") + image).str.strip_chars()),
    )
    return rows.with_columns(
        evidence=pl.concat_list("turns").list.eval(pl.concat_list(pl.element()))
    ).to_dicts()


def write_summaries(
    task: Task,
    parts: Sequence[Sequence[Row]],
    service: Writer,
    *,
    before: Sequence[Sequence[Row]] = (),
    known: pl.DataFrame | None = None,
) -> list[Row]:
    """Write a summary of each group of rows.

    Where the model gives none, pick sentences of the group.

    :param before: of each group the rows of the period before, where there are periods.
    :param known: rows of :class:`memlab.records.Node`; what the same model wrote of the same
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
    for part, earlier_part in zip_longest(parts, before, fillvalue=()):
        group = Group(summary_items(part), summary_items(earlier_part))
        request = summary_prompts.summary_request(task, group)
        groups.append(group)
        requests.append(request)
        digests.append(summary_prompts.source_digest(request, group))

    reusable = reusable_rows(known, service)
    missing = [place for place, digest in enumerate(digests) if digest not in reusable]
    missing_requests = [requests[place] for place in missing]
    answers = _ask_writer(missing_requests, service)
    answer_by_place = dict(zip(missing, answers, strict=True))

    rows = []
    for place, part in enumerate(parts):
        if place in answer_by_place:
            row = _written_row(task, groups[place], answer_by_place[place], service)
        else:
            row = dict(reusable[digests[place]])
        row["node_id"] = requests[place].key
        row["made_of"] = digests[place]
        row["version"] = f"{task.name} {task.version}"
        row |= _parent_fields(part)
        row["text"] = " ".join(row["sentences"])
        rows.append(row)
    return rows


def _ask_writer(requests: Sequence[llm.Request], service: Writer) -> Sequence[llm.Answer]:
    if callable(service):
        return service(requests)
    return llm.ask(requests, service)


def writer_name(service: Writer) -> str | None:
    """Find the name that summaries of a service stand under; ``None`` for no model."""
    if service is None or isinstance(service, str):
        return service
    for attribute in ("name", "__name__"):
        name = getattr(service, attribute, None)
        if name:
            return str(name)
    return str(service)


def writer_model(service: Writer) -> str | None:
    """Find the model of a service; ``None`` where it names none."""
    return getattr(service, "model", None)


def reusable_rows(known: pl.DataFrame | None, service: Writer) -> dict[str, Row]:
    """Look up what a model wrote before, by what it was made of.

    What is recorded is read from the recordings.
    """
    if known is None or service is None or service == llm.RECORDED:
        return {}
    own = known.filter(
        pl.col("service") == writer_name(service),
        pl.col("model").eq_missing(pl.lit(writer_model(service), pl.String)),
        pl.col("made_of") != "",
    )
    rows = own.select(*_WRITTEN).unique("made_of", maintain_order=True).to_dicts()
    return {row["made_of"]: row for row in rows}


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


def _written_row(task: Task, group: Group, answer: llm.Answer, service: Writer) -> Row:
    """Make a row of what a model wrote of a group.

    Sentences are picked where it gave none that counts.
    """
    value: Any = answer.value
    points: dict[str, list[Supported]] = {}
    dropped = 0
    if value:
        points, dropped = summary_prompts.supported_points(value, group)
    reason = ""
    if not points:
        reason = answer.error
    elif not points["sentences"]:
        reason = "no sentence stands on what it names"

    row: Row
    if points and not reason:
        row = {"service": writer_name(service), "model": writer_model(service)}
        row["topics"] = deduplicate_texts(getattr(value, "topics", ()))
        row["entities"] = deduplicate_texts(getattr(value, "entities", ()))
    else:
        row = {"service": EXTRACTIVE, "model": None, "topics": None, "entities": []}
        points = _extractive_points(task, group)
    for name, supported in points.items():
        row[name] = [text for text, _ in supported]
        row[evidence_column(name)] = [turns for _, turns in supported]
    row["dropped"] = dropped
    row["reason"] = reason if service else ""
    return row


def summary_items(rows: Sequence[Row]) -> list[Item]:
    """List the items that a summary of some rows may cite."""
    items: list[Item] = []
    for row in rows:
        items += _items_of(row, "sentences", kind="")
        items += _items_of(row, "decisions", kind="decisions")
        items += _items_of(row, "open_questions", kind="open_questions")
    return items


def _items_of(row: Row, column: str, *, kind: str) -> Iterator[Item]:
    """Make an item of each text of a column of texts."""
    texts = row.get(column) or ()
    evidence = row.get(evidence_column(column)) or ()
    speaker = row.get("speaker", "")
    for text, turns in zip(texts, evidence, strict=True):
        yield Item(row["node_id"], text, turns, row["start"], speaker, kind)


def _parent_fields(part: Sequence[Row]) -> Row:
    """Derive the fields of a summary that follow from its rows: children, turns and times."""
    starts = [row["start"] for row in part if row["start"]]
    ends = [row["end"] for row in part if row["end"]]
    return {
        "scope": part[0]["scope"],
        "level": part[0]["level"] + 1,
        "children": [row["node_id"] for row in part],
        "turns": deduplicate_texts(chain.from_iterable(row["turns"] for row in part)),
        "start": min(starts, default=None),
        "end": max(ends, default=None),
    }


def _extractive_points(task: Task, group: Group) -> dict[str, list[Supported]]:
    """Pick sentences without a model; decisions and open questions are kept as they are."""
    by_kind: dict[str, list[Item]] = {}
    for item in group.items:
        by_kind.setdefault(item.kind, []).append(item)
    points = {}
    for name in task.shape.sentence_lists():
        points[name] = _supported(by_kind.get(name, []))
    points["sentences"] = extract_sentences(by_kind.get("", []))
    if group.before:
        earlier = _supported(group.before)
        points["carried_on"] = find_continued_sentences(earlier, points["sentences"])
    return points


def _supported(items: Sequence[Item]) -> list[Supported]:
    return [(item.text, item.turns) for item in items]


def fallback_note(rows: pl.DataFrame, what: str) -> str:
    """Note how many summaries no model answered though it was asked.

    :param rows: ``reason``, as :func:`write_summaries` gives it.
    """
    answers = []
    for reason in rows["reason"]:
        value = None if reason else True
        answers.append(llm.Answer(value, reason))
    return llm.describe_unanswered(answers, what)


def node_frame(rows: Sequence[Row], turns: pl.DataFrame, language: str) -> pl.DataFrame:
    """Make a frame of nodes of rows, with topics."""
    lists = pl.col(pl.List(pl.String), pl.List(pl.List(pl.String)))
    nodes = fill_missing_topics(pl.DataFrame(rows, schema=NODES), turns, language)
    filled = {
        "made_of": pl.col("made_of").fill_null(""),
        "version": pl.col("version").fill_null(""),
    }
    return nodes.with_columns(lists.fill_null([]), pl.col("added").fill_null(0), **filled)


def fill_missing_topics(rows: pl.DataFrame, turns: pl.DataFrame, language: str) -> pl.DataFrame:
    """Fill in topics that no model gave.

    They are phrases that set a row's turns apart from those of the scope's others. What
    an assistant says is left out, unless nobody else speaks. See
    :func:`memlab.cluster.cluster_terms`.

    :param rows: ``scope``, ``turns`` (ids) and ``topics``, null where they are to be found.
    """
    lacks_topics = pl.col("topics").is_null().any().over("scope")
    # Splitting takes long: only turns of scopes where topics are missing.
    numbered = rows.with_row_index("row").filter(lacks_topics)
    texts = turns.select("turn_id", "speaker", "role", "text")
    stated = (
        numbered.select("row", "scope", turn_id="turns")
        .explode("turn_id")
        .join(texts, on="turn_id", maintain_order="left")
    )
    is_person = pl.col("role") != "assistant"
    stated = stated.filter(is_person | ~is_person.any().over("row"))
    split = pl.Series(map(sentences, stated["text"]), dtype=pl.List(pl.String))
    by_sentence = stated.with_columns(text=split).explode("text").drop_nulls("text")

    topics_by_row: dict[int, list[str]] = {}
    for part in by_sentence.partition_by("scope"):
        terms = cluster_terms(
            part["text"].to_list(),
            part["row"].to_numpy().astype(np.int64),
            n_terms=_MAX_TOPICS,
            speakers=part["speaker"].to_list(),
            language=language,
        )
        topics_by_row.update(terms.select("label", "terms").iter_rows())
    topics = [topics_by_row.get(row, []) for row in range(rows.height)]
    column = pl.Series("topics", topics, dtype=pl.List(pl.String))
    return rows.with_columns(pl.coalesce("topics", column))
