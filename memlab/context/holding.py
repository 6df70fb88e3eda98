"""Does a context hold the answer? The offline measure of the whole chain, without a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from memlab.context.answers import UNMEASURABLE, Content, answer_content, content
from memlab.context.sources import messages
from memlab.context.tokens import cleaned, counted
from memlab.errors import DataError
from memlab.knowledge.calibration import wilson
from memlab.records import Dataset


def holds(context: str, answer: str | None) -> bool:
    """Say whether a context holds an answer.

    Every item of the answer ("clarinet and violin" has two) must stand in one line of the context: all its telling
    words, stemmed, and all its numbers and dates, compared as values. A line is read with the day that it stands
    under. A date that is only meant ("last week") is not there. An answer that cannot be looked for is never held:
    none, yes or no, and one that gives reasons or has a phrase of more than five telling words.

    :param context: a text, as :func:`memlab.context.assemble` writes it; days stand in lines of their own, in brackets.
    :param answer: the gold answer.

    >>> from memlab.context import holds
    >>> text = "[8 May 2023]\\nMel: The two lamps were $1,250.\\nMel: I bought them last week."
    >>> [holds(text, answer) for answer in ("1250 dollars", "2 lamps", "May 8, 2023", "1 May 2023", "two beds")]
    [True, True, True, False, False]
    """
    return _holds(_read(context), answer)


def _holds(lines: Sequence[Content], answer: str | None) -> bool:
    asked = answer_content(answer)
    return asked.kind not in UNMEASURABLE and any(
        all(any(line.has(item) for line in lines) for item in items) for items in asked.alternatives
    )


def _read(text: str) -> list[Content]:
    """Read a context that is only a text: its lines, each with the bracketed line that it stands under."""
    lines, head = [], ""
    for line in text.split("\n"):
        if line.startswith("[") and line.endswith("]"):
            head = line
        else:
            lines.append(content(f"{line} {head}" if head else line))
    return lines


def holding(contexts: Mapping[str, pl.DataFrame], questions: pl.DataFrame) -> pl.DataFrame:
    """Say for every question and way of making contexts whether the answer is there.

    :param contexts: name → ``query_id`` and ``text``, such as ``Contexts.texts``; where there are no ``lines``, the
        text is read as :func:`holds` reads it, and tokens are counted where there is no ``n_tokens``.
    :param questions: rows of :class:`memlab.records.Question`.
    :returns: ``context``, ``query_id``, ``question_type``, ``answer_kind`` (see
        :class:`memlab.context.answers.Answer`), ``holds`` (null where it cannot be looked for) and ``n_tokens``.
    :raises DataError: for a question that a way of making contexts has none for.
    """
    answer = pl.when("abstention").then(None).otherwise("answer")
    about = questions.select("query_id", "question_type", answer=answer)
    kinds = pl.Series("answer_kind", [answer_content(text).kind for text in about["answer"]], dtype=pl.String)
    about = about.with_columns(kinds)
    parts = []
    for name, made in contexts.items():
        lacking = [column for column in ("query_id", "text") if column not in made.columns]
        if lacking:
            raise DataError(f"context {name!r} has no column {lacking[0]!r}; it needs query_id and text")
        sized = made if "n_tokens" in made.columns else counted(made)
        rows = about.join(sized, on="query_id", how="left", maintain_order="left")
        if rows["text"].null_count():
            raise DataError(f"context {name!r} has none for question {rows.filter(pl.col('text').is_null())[0, 0]!r}")
        different = rows.unique("text")
        lines: Iterable[list[Content]] = map(_read, different["text"])
        if "lines" in rows.columns:
            lines = ([content(line) for line in each or ()] for each in different["lines"].to_list())
        read = dict(zip(different["text"], lines, strict=True))
        there = [_holds(read[text], answer) for text, answer in rows.select("text", "answer").iter_rows()]
        measurable = ~pl.col("answer_kind").is_in(UNMEASURABLE)
        holds = pl.when(measurable).then(pl.Series("holds", there, dtype=pl.Boolean))
        parts.append(
            rows.select(pl.lit(name).alias("context"), "query_id", "question_type", "answer_kind", holds, "n_tokens")
        )
    return pl.concat(parts)


def holding_table(rows: pl.DataFrame, *, by: str = "question_type") -> pl.DataFrame:
    """Give shares of contexts that hold the answer, by group (``question_type`` or ``answer_kind``), and over all.

    :param rows: what :func:`holding` gave.
    :returns: ``context``, ``group``, ``n`` (answers that can be looked for), ``n_unmeasurable``, ``holds``, ``low``,
        ``high`` (Wilson, 95 %) and ``n_tokens`` (mean).
    """
    grouped = pl.concat([rows.with_columns(group=pl.lit("all")), rows.with_columns(group=pl.col(by))])
    table = grouped.group_by("context", "group", maintain_order=True).agg(
        n=pl.col("holds").count(),
        n_unmeasurable=pl.col("holds").is_null().sum(),
        holds=pl.col("holds").mean(),
        hits=pl.col("holds").sum(),
        n_tokens=pl.col("n_tokens").mean(),
    )
    table = with_interval(table)
    return table.select("context", "group", "n", "n_unmeasurable", "holds", "low", "high", "n_tokens")


def with_interval(table: pl.DataFrame) -> pl.DataFrame:
    """Add ``low`` and ``high`` (Wilson, 95 %) of ``hits`` among ``n``; null where there is none."""
    low, high = wilson(table["hits"].to_numpy(), np.maximum(table["n"].to_numpy(), 1), confidence=0.95)
    some = pl.col("n") > 0
    return table.with_columns(low=pl.when(some).then(pl.Series(low)), high=pl.when(some).then(pl.Series(high)))


def whole_history(data: Dataset, *, dates: bool = True) -> pl.DataFrame:
    """Give every question all turns of its scope: the ceiling, since no part of them can hold more of an answer.

    Only what is worded anew, by a summariser, or by writing dates out, could hold an answer that no turn says; compare
    contexts with dates written out with a ceiling that has them too (``dates``; see :func:`memlab.context.dated`).

    :returns: ``query_id``, ``text``, ``lines`` and ``n_tokens``, as :class:`memlab.context.Contexts` has them.
    """
    whole = _joined(messages(data.turns, "scope", dates=dates), "scope")
    asked = data.questions.select("query_id", "scope")
    return counted(asked.join(whole, on="scope", how="left", maintain_order="left").drop("scope"))


def evidence_only(data: Dataset, *, dates: bool = True) -> pl.DataFrame:
    """Give every question its evidence and nothing else: what perfect retrieval could hold, in the fewest tokens.

    Where such a context does not hold the answer, the answer is said in other words or has to be worked out: no
    retrieval is to blame. A question without evidence has an empty context.
    """
    needed = data.questions.select("query_id", turn_id="evidence").explode("turn_id")
    quoted = needed.join(messages(data.turns, dates=dates), on="turn_id", maintain_order="left")
    asked = data.questions.select("query_id")
    return counted(asked.join(_joined(quoted, "query_id"), on="query_id", how="left", maintain_order="left"))


def _joined(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    """Write messages down, each new day in a line above them: ``by``, ``text``, ``lines``."""
    day = pl.col("at").dt.strftime("[%-d %B %Y]").fill_null("")
    rows = rows.with_columns(day=day, text=pl.col("text").map_elements(cleaned, return_dtype=pl.String))
    new = pl.col("day").ne_missing(pl.col("day").shift(1).over(by)) & (pl.col("day") != "")
    head = pl.when(new).then(pl.col("day") + "\n").otherwise(pl.lit(""))
    rows = rows.with_columns(shown=head + pl.col("text"), line=(pl.col("text") + " " + pl.col("day")).str.strip_chars())
    return rows.group_by(by, maintain_order=True).agg(text=pl.col("shown").str.join("\n"), lines="line")


def of_another(contexts: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Give every question the context of another question: what is there by accident, the floor.

    The other one is of the same scope, or of another where the scope has no second question; half the questions away,
    so that it is no neighbour on the same session.
    """
    away = pl.col("query_id").gather((pl.int_range(pl.len()) + pl.len() // 2) % pl.len())
    alone = pl.len().over("scope") == 1
    other = questions.select("query_id", other=pl.when(alone).then(away).otherwise(away.over("scope")))
    contexts = contexts.rename({"query_id": "other"})
    return other.join(contexts, on="other", how="left", maintain_order="left").drop("other")
