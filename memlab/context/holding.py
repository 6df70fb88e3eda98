"""Does a context hold the answer? The offline measure of the whole chain, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from memlab.context._answers import KINDS, UNMEASURABLE, Said, has, said, wanted
from memlab.context._filling import cleaned
from memlab.context.dating import dated
from memlab.context.tokens import count
from memlab.embed.text import turn_texts
from memlab.errors import DataError
from memlab.knowledge.calibration import wilson
from memlab.records import Dataset

_DAY = "[%-d %B %Y]"


def holds(context: str, answer: str | None) -> bool:
    """Say whether a context holds an answer.

    Every item of the answer ("clarinet and violin" has two) must stand in one line of the context: all its telling
    words, stemmed, and all its numbers and dates, compared as values. A line is read with the day that it stands
    under. A date that is only meant ("last week") is not there. An answer that cannot be looked for is never held;
    :func:`answer_kind` says which.

    :param context: as :func:`memlab.context.assemble` writes it; days stand in lines of their own, in brackets.
    :param answer: the gold answer.

    >>> from memlab.context import holds
    >>> said = "[8 May 2023]\\nMel: The two lamps were $1,250.\\nMel: I bought them last week."
    >>> [holds(said, answer) for answer in ("1250 dollars", "2 lamps", "May 8, 2023", "1 May 2023", "two beds")]
    [True, True, True, False, False]
    """
    return answers_in([context], [answer])[0]


def answers_in(contexts: Sequence[str], answers: Sequence[str | None]) -> list[bool]:
    """Say for many contexts whether each holds its answer; see :func:`holds`.

    :raises DataError: when there are not as many answers as contexts.
    """
    if len(contexts) != len(answers):
        raise DataError(f"there are {len(contexts)} contexts and {len(answers)} answers; give each context its answer")
    read: dict[str, list[Said]] = {}
    found = []
    for context, answer in zip(contexts, answers, strict=True):
        lines = read.get(context)
        if lines is None:
            lines = read[context] = _lines(context)
        want = wanted(answer)
        found.append(
            want.kind not in UNMEASURABLE
            and any(all(any(has(line, item) for line in lines) for item in items) for items in want.alternatives)
        )
    return found


def answer_kind(answer: str | None) -> str:
    """Say what an answer is: ``list``, ``date``, ``number`` or ``text``; or what cannot be looked for in a text.

    That is ``none``, ``yes/no``, and ``open``: one that gives reasons or has a phrase of more than five telling words,
    so that a context need not say it in those words.

    >>> from memlab.context import answer_kind
    >>> [answer_kind(a) for a in ("May 2023", "rock climbing, fishing", "Likely no", "twice", None)]
    ['date', 'list', 'yes/no', 'number', 'none']
    """
    return wanted(answer).kind


def _lines(context: str) -> list[Said]:
    """Read the lines of a context, each with the bracketed line that it stands under."""
    lines, head = [], ""
    for line in context.split("\n"):
        if line.startswith("[") and line.endswith("]"):
            head = line
        else:
            lines.append(said(f"{line} {head}" if head else line))
    return lines


def holding(contexts: Mapping[str, pl.DataFrame], questions: pl.DataFrame) -> pl.DataFrame:
    """Say for every question and way of making contexts whether the answer is there.

    :param contexts: name → ``query_id`` and ``text``, such as ``Contexts.texts``; tokens are counted where there is no
        ``n_tokens``.
    :param questions: rows of :class:`memlab.records.Question`.
    :returns: ``context``, ``query_id``, ``question_type``, ``answer_kind``, ``holds`` (null where the answer cannot be
        looked for) and ``n_tokens``.
    :raises DataError: for a question that a way of making contexts has none for.
    """
    parts = []
    about = questions.select("query_id", "question_type", "answer", "abstention")
    for name, made in contexts.items():
        lacking = [column for column in ("query_id", "text") if column not in made.columns]
        if lacking:
            raise DataError(f"context {name!r} has no column {lacking[0]!r}; it needs query_id and text")
        sized = made if "n_tokens" in made.columns else _counted(made)
        rows = about.join(sized, on="query_id", how="left", maintain_order="left")
        if rows["text"].null_count():
            raise DataError(f"context {name!r} has none for question {rows.filter(pl.col('text').is_null())[0, 0]!r}")
        answers = [None if none else answer for answer, none in rows.select("answer", "abstention").iter_rows()]
        kinds = pl.Series("answer_kind", [answer_kind(answer) for answer in answers], dtype=pl.String)
        there = pl.Series("there", answers_in(rows["text"].to_list(), answers), dtype=pl.Boolean)
        unknown = pl.col("answer_kind").is_in(UNMEASURABLE)
        parts.append(
            rows.with_columns(kinds, there).select(
                pl.lit(name).alias("context"),
                "query_id",
                "question_type",
                "answer_kind",
                holds=pl.when(~unknown).then("there"),
                n_tokens="n_tokens",
            )
        )
    return pl.concat(parts)


def holding_table(rows: pl.DataFrame, *, by: str = "question_type") -> pl.DataFrame:
    """Give shares of contexts that hold the answer, by group, and over all.

    :param rows: what :func:`holding` gave.
    :param by: ``question_type`` or ``answer_kind``.
    :returns: ``context``, ``group``, ``n`` (answers that can be looked for), ``n_unmeasurable``, ``holds``, ``low``,
        ``high`` (Wilson, 95 %) and ``n_tokens`` (mean).
    """
    grouped = pl.concat([rows.with_columns(group=pl.lit("all")), rows.with_columns(group=pl.col(by))])
    table = grouped.group_by("context", "group", maintain_order=True).agg(
        n=pl.col("holds").count(),
        n_unmeasurable=pl.col("holds").is_null().sum(),
        hits=pl.col("holds").sum(),
        n_tokens=pl.col("n_tokens").mean(),
    )
    low, high = wilson(table["hits"].to_numpy(), np.maximum(table["n"].to_numpy(), 1), confidence=0.95)
    some = pl.col("n") > 0
    return table.with_columns(low=pl.Series(low), high=pl.Series(high)).select(
        "context", "group", "n", "n_unmeasurable", holds=pl.when(some).then(pl.col("hits") / pl.col("n")),
        low=pl.when(some).then("low"), high=pl.when(some).then("high"), n_tokens="n_tokens",
    )  # fmt: skip


def whole_history(data: Dataset, *, dates: bool = True) -> pl.DataFrame:
    """Give every question all turns of its scope: the ceiling, since no part of them can hold more of an answer.

    Only what is worded anew, by a summariser, or by writing dates out, could hold an answer that no turn says; compare
    contexts with dates written out with a ceiling that has them too.

    :param dates: write dates behind words that only mean them; see :func:`memlab.context.dated`.
    :returns: ``query_id``, ``text`` and ``n_tokens``.
    """
    day = pl.col("timestamp").dt.strftime(_DAY).fill_null("")
    lines = data.turns.select("scope", day=day, text=_texts(data.turns, dates))
    new = (pl.col("day") != pl.col("day").shift(1).over("scope")).fill_null(True) & (pl.col("day") != "")
    said = pl.when(new).then(pl.col("day") + "\n").otherwise(pl.lit(""))
    lines = lines.with_columns(line=said + pl.col("text").map_elements(cleaned, return_dtype=pl.String))
    whole = lines.group_by("scope", maintain_order=True).agg(text=pl.col("line").str.join("\n"))
    return _counted(data.questions.select("query_id", "scope").join(whole, on="scope", how="left").drop("scope"))


def _counted(contexts: pl.DataFrame) -> pl.DataFrame:
    each = contexts.select(pl.col("text").fill_null("").unique(maintain_order=True))
    sizes = each.with_columns(n_tokens=pl.Series(count(each["text"].to_list()), dtype=pl.Int64))
    return contexts.with_columns(pl.col("text").fill_null("")).join(sizes, on="text", how="left", maintain_order="left")


def _texts(turns: pl.DataFrame, dates: bool) -> pl.Series:
    texts, times = turn_texts(turns), turns["timestamp"] if dates else [None] * turns.height
    said = [text if when is None else dated(text, when.date()) for text, when in zip(texts, times, strict=True)]
    return pl.Series(said, dtype=pl.String)


def evidence_only(data: Dataset, *, dates: bool = True) -> pl.DataFrame:
    """Give every question its evidence and nothing else: what perfect retrieval could hold, in the fewest tokens.

    Where such a context does not hold the answer, the answer is said in other words or has to be worked out: no
    retrieval is to blame. A question without evidence has an empty context.

    :param dates: as in :func:`whole_history`.
    :returns: ``query_id``, ``text`` and ``n_tokens``.
    """
    day = pl.col("timestamp").dt.strftime(_DAY + "\n").fill_null("")
    lines = data.turns.select("turn_id", line=day + _texts(data.turns, dates))
    needed = data.questions.select("query_id", turn_id="evidence").explode("turn_id")
    joined = needed.join(lines, on="turn_id", how="left", maintain_order="left")
    texts = joined.group_by("query_id", maintain_order=True).agg(text=pl.col("line").drop_nulls().str.join("\n"))
    asked = data.questions.select("query_id").join(texts, on="query_id", how="left", maintain_order="left")
    return _counted(asked)


def of_another(contexts: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Give every question the context of another question: what is held by accident, the floor.

    The other one is of the same scope, or of another where the scope has no second question; half the questions away,
    so that it is no neighbour on the same session.

    :param contexts: ``query_id``, ``text``, and what else goes with it.
    :param questions: rows of :class:`memlab.records.Question`.
    :returns: the contexts under other ids.
    """
    away = pl.col("query_id").gather((pl.int_range(pl.len()) + pl.len() // 2) % pl.len())
    alone = pl.len().over("scope") == 1
    other = questions.select("query_id", other=pl.when(alone).then(away).otherwise(away.over("scope")))
    return other.join(contexts.rename({"query_id": "other"}), on="other", how="left", maintain_order="left").drop(
        "other"
    )


__all__ = [
    "KINDS",
    "answer_kind",
    "answers_in",
    "evidence_only",
    "holding",
    "holding_table",
    "holds",
    "of_another",
    "whole_history",
]
