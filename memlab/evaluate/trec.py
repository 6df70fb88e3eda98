"""TREC run and qrels files, so that any other evaluation tool can check and reuse what memlab found.

A run has six columns (``query_id Q0 doc_id rank score tag``), qrels have four (``query_id 0 doc_id relevance``).
trec_eval sorts by score, held as float32, and breaks ties by id: scores are written so that they fall strictly even
then, and every reader sees the order that was meant.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.files import atomic
from memlab.records import RUN_SCHEMA, Level, Qrels, Run, run_from_scores, session_of, strictly_decreasing

_RUN_FIELDS = ("query_id", "Q0", "doc_id", "rank", "score", "tag")
_QRELS_FIELDS = ("query_id", "iteration", "doc_id", "relevance")
_BLANK = r"[\s\x00-\x1f\x7f]"


def write_run(run: Run, path: str | Path) -> Path:
    """Write a run as a TREC file, complete or not at all.

    The tag is the run's name without its white space; ranks decide the order, and scores that tie (as float32) are
    lowered by the smallest step that tells them apart.

    :raises DataError: when an id is empty or holds white space, or a score is not finite as float32.
    """
    rows = run.frame.with_row_index("row").with_columns(first=pl.col("row").min().over("query_id"))
    rows = rows.sort("first", "rank")
    _check_ids(rows, f"run {run.name!r}")
    beyond = rows.filter(~(pl.col("score").abs() <= float(np.finfo(np.float32).max)))
    for query, doc, score in beyond.select("query_id", "doc_id", "score").head(1).rows():
        raise DataError(
            f"run {run.name!r}: the score of document {doc!r} for query {query!r} is {score}; expected a finite number "
            "within the range of float32"
        )
    strict = strictly_decreasing(rows["score"].to_numpy(), rows["first"].to_numpy())
    tag = re.sub(_BLANK, "", run.name) or "memlab"
    table = rows.with_columns(Q0=pl.lit("Q0"), score=pl.Series(strict.astype(np.float32)), tag=pl.lit(tag))
    return _write(table.select(_RUN_FIELDS), Path(path))


def write_qrels(qrels: Qrels, path: str | Path) -> Path:
    """Write qrels as a TREC file, complete or not at all.

    :raises DataError: when an id is empty or holds white space.
    """
    _check_ids(qrels.frame, "the qrels")
    return _write(qrels.frame.with_columns(iteration=pl.lit(0)).select(_QRELS_FIELDS), Path(path))


def read_run(path: str | Path, level: Level) -> Run:
    """Read a TREC run; scores decide the order, equal ones stay in the file's. The tag becomes the name.

    :raises DataError: when a line is not of six fields, a rank or score is not a number, or a document is ranked twice
        for a query: names file, line and field.
    """
    path = Path(path)
    rows = _read(path, _RUN_FIELDS, {"rank": pl.Int64, "score": pl.Float64})
    if not rows.height:
        return Run(pl.DataFrame(schema=RUN_SCHEMA), level, provenance={"file": path.name})
    run = run_from_scores(rows["query_id"], rows["doc_id"], rows["score"].to_numpy(), level=level, k=rows.height)
    return Run(run.frame, level, name=rows["tag"][0], provenance={"file": path.name})


def read_qrels(path: str | Path, level: Level) -> Qrels:
    """Read TREC qrels. The subtopic of a turn is its session, as ids of benchmarks name it; of a session, itself.

    :raises DataError: when a line is not of four fields, a relevance is not a whole number, or a document is judged
        twice for a query: names file, line and field.
    """
    rows = _read(Path(path), _QRELS_FIELDS, {"relevance": pl.Int32})
    session = pl.col("doc_id") if level == "session" else session_of("doc_id", None)
    return Qrels(rows.select("query_id", "doc_id", "relevance", subtopic=session), level)


def _check_ids(rows: pl.DataFrame, what: str) -> None:
    for column in ("query_id", "doc_id"):
        bad = rows.filter(pl.col(column).fill_null("").str.contains(rf"^$|{_BLANK}"))[column]
        if len(bad):
            raise DataError(
                f"{what}: {column} {bad[0]!r} is empty or holds white space, which a TREC file cannot carry; encode it "
                "with memlab.records.id_part"
            )


def _write(table: pl.DataFrame, path: Path) -> Path:
    with atomic(path) as stream:
        table.write_csv(stream, separator=" ", include_header=False, quote_style="never")
    return path


def _read(path: Path, fields: tuple[str, ...], numbers: dict[str, Any]) -> pl.DataFrame:
    """Read the lines of a file into columns, each with its number ``line``."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read: {getattr(error, 'strerror', error)}; give a file of UTF-8 text"
        ) from error
    lines = pl.DataFrame({"text": pl.Series(text.split("\n"), dtype=pl.String)}).with_row_index("line", offset=1)
    split = lines.with_columns(part=pl.col("text").str.extract_all(r"[^\s\x00-\x1f\x7f]+"))
    split = split.filter(pl.col("part").list.len() > 0)
    for line, found, _ in split.filter(pl.col("part").list.len() != len(fields)).head(1).rows():
        raise DataError(
            f"{path}: line {line}: expected {len(fields)} fields ({' '.join(fields)}): {found.strip()[:80]!r}"
        )
    rows = split.select("line", *(pl.col("part").list.get(i).alias(name) for i, name in enumerate(fields)))
    for name, dtype in numbers.items():
        kind = "a finite number" if dtype == pl.Float64 else "a whole number"
        values = rows[name].cast(dtype, strict=False)
        for line, value in (
            rows.filter(~values.cast(pl.Float64).is_finite().fill_null(False)).select("line", name).rows()
        ):
            raise DataError(f"{path}: line {line}: {name} is {value!r}, expected {kind}")
        rows = rows.with_columns(values)
    for line, query, doc in rows.filter(~pl.struct("query_id", "doc_id").is_first_distinct()).select(
        "line", "query_id", "doc_id"
    ).rows():  # fmt: skip
        raise DataError(
            f"{path}: line {line}: doc_id {doc!r} stands a second time under query {query!r}; expected once"
        )
    return rows
