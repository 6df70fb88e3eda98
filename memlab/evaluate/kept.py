"""What shortened documents still say: complete recall by id beside the answer that is still to be read."""

from __future__ import annotations

import polars as pl

from memlab.embed.text import turn_text
from memlab.errors import DataError
from memlab.records import Dataset, qrels


def kept(texts: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """Say for each question what fits a budget, and what of its evidence is left in the texts.

    A shortened turn counts as found by its id though its answer may be cut off. So the truth about complete recall
    lies between ``recall_all``, which asks for the ids alone, and ``whole``, which asks for every piece of evidence
    uncut. Where the answer stands word for word in a piece of evidence, ``answer`` looks for it in what is kept.

    :param texts: what :func:`memlab.select.budget.kept_text` gave for a run of turns that a budget has cut.
    :returns: a row a question with evidence: ``query_id``, ``scope``, ``n_evidence_sessions``; ``documents``,
        ``sessions`` and ``tokens`` kept; ``recall_all`` and ``whole``; and ``answer``, null where no piece of
        evidence holds the answer word for word. Means leave nulls out.
    :raises DataError: when no question has evidence turns, or a text is of no turn of the dataset.

    >>> import memlab
    >>> from memlab.evaluate.kept import kept
    >>> from memlab.select.budget import kept_text
    >>> data = memlab.sample(turns=200)
    >>> bench = memlab.Bench.of(data, encoder=None)
    >>> run = memlab.pipeline("bm25 | budget(tokens=300, content='head', limit=40)").run(bench)
    >>> table = kept(kept_text(run, bench, content="head", limit=40), data)
    >>> bool((table["whole"] <= table["recall_all"]).all())
    True
    """
    evidence = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    if not evidence.height:
        raise DataError(f"no question of dataset {dataset.name!r} has evidence turns; nothing can be looked for")
    full = dataset.turns.select("session_id", doc_id="turn_id", full=turn_text())
    placed = texts.join(full, on="doc_id", how="left", maintain_order="left")
    if placed["full"].null_count():
        unknown = placed.filter(pl.col("full").is_null())["doc_id"][0]
        raise DataError(
            f"document {unknown!r} is no turn of dataset {dataset.name!r}; give the texts of a run of turns"
        )
    sizes = placed.group_by("query_id").agg(
        documents=pl.len(), sessions=pl.col("session_id").n_unique(), tokens=pl.col("n_tokens").sum()
    )
    answers = dataset.questions.select("query_id", answer=_words(pl.col("answer").fill_null("")))
    pieces = (
        evidence.join(full.select("doc_id", "full"), on="doc_id", how="left", maintain_order="left")
        .join(texts.select("query_id", "doc_id", "text"), on=["query_id", "doc_id"], how="left", maintain_order="left")
        .join(answers, on="query_id", maintain_order="left")
        .with_columns(present=pl.col("text").is_not_null(), uncut=(pl.col("text") == pl.col("full")).fill_null(False))
        .with_columns(before=_says("full"), after=_says("text"))
    )
    by_query = pieces.group_by("query_id").agg(
        recall_all=pl.col("present").all().cast(pl.Float64),
        whole=pl.col("uncut").all().cast(pl.Float64),
        answer=pl.when(pl.col("before").any()).then(pl.col("after").any().cast(pl.Float64)),
    )
    asked = dataset.questions.select(
        "query_id", "scope", n_evidence_sessions=pl.col("evidence_sessions").list.n_unique()
    )
    return (
        asked.join(by_query, on="query_id", maintain_order="left")
        .join(sizes, on="query_id", how="left", maintain_order="left")
        .with_columns(pl.col("documents", "sessions", "tokens").fill_null(0))
        .select(*asked.columns, *sizes.columns[1:], *by_query.columns[1:])
    )


def _words(text: pl.Expr) -> pl.Expr:
    """Write a text as lower-case words with one space around each, so that "5" is not found in "15"."""
    return " " + text.str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars() + " "


def _says(column: str) -> pl.Expr:
    answer = pl.col("answer")
    contains = _words(pl.col(column).fill_null("")).str.contains(answer, literal=True)
    return contains & (answer.str.strip_chars() != "")
