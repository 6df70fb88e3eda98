"""TREC run and qrels files, so that any other evaluation tool can check and reuse what memlab
found.

A run has six columns (``query_id Q0 doc_id rank score tag``), qrels have four
(``query_id 0 doc_id relevance``). trec_eval sorts by score, held as float32, and breaks ties by id:
scores are written so that they fall strictly even then, and every reader sees the order that was
meant.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from memlab.atomic_files import open_atomically
from memlab.errors import DataError
from memlab.records import RUN_SCHEMA, Level, Qrels, Run, make_strictly_decreasing, run_from_scores

_FIELDS = ("query_id", "Q0", "doc_id", "rank", "score", "tag")
_BLANK = r"[\s\x00-\x1f\x7f]"


def write_run(run: Run, path: str | Path) -> Path:
    """Write a run as a TREC file, complete or not at all.

    The tag is the run's name without its white space; ranks decide the order, and scores that tie
    (as float32) are lowered by the smallest step that tells them apart.

    :raises DataError: when an id is empty or holds white space, or a score is not finite as
        float32.
    """
    ordered_rows = run.frame.with_row_index("row").with_columns(
        first=pl.col("row").min().over("query_id")
    )
    ordered_rows = ordered_rows.sort("first", "rank")
    for bad_score in ordered_rows.filter(
        ~(pl.col("score").abs() <= float(np.finfo(np.float32).max))
    )["score"].head(1):
        raise DataError(
            f"run {run.name!r}: a score is {bad_score}; expected a finite number within the range "
            "of float32"
        )
    strict_scores = make_strictly_decreasing(
        ordered_rows["score"].to_numpy(), ordered_rows["first"].to_numpy()
    )
    run_tag = re.sub(_BLANK, "", run.name) or "memlab"
    trec_table = ordered_rows.with_columns(
        Q0=pl.lit("Q0"), score=pl.Series(strict_scores.astype(np.float32)), tag=pl.lit(run_tag)
    )
    return _check_ids_and_write_trec_table(trec_table.select(_FIELDS), Path(path))


def write_qrels(qrels: Qrels, path: str | Path) -> Path:
    """Write qrels as a TREC file with their grades, complete or not at all.

    :raises DataError: when an id is empty or holds white space.
    """
    return _check_ids_and_write_trec_table(
        qrels.frame.select("query_id", pl.lit(0).alias("iteration"), "doc_id", "relevance"),
        Path(path),
    )


def _check_ids_and_write_trec_table(run_or_qrels_table: pl.DataFrame, path: Path) -> Path:
    for id_column in ("query_id", "doc_id"):
        for bad_id in run_or_qrels_table.filter(
            pl.col(id_column).fill_null("").str.contains(rf"^$|{_BLANK}")
        )[id_column].head(1):
            raise DataError(
                f"{path}: {id_column} {bad_id!r} is empty or holds white space, which a TREC file "
                "cannot carry; encode it with memlab.records.encode_id_part"
            )
    with open_atomically(path) as stream:
        run_or_qrels_table.write_csv(
            stream, separator=" ", include_header=False, quote_style="never"
        )
    return path


def read_run(path: str | Path, level: Level) -> Run:
    """Read a TREC run; scores decide the order, equal ones stay in the file's.

    The tag becomes the name.

    :raises DataError: when a line is not of six fields, a rank or score is not a number, or a
        document is ranked twice for a query: names file, line and field.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.evaluate import read_run
    >>> file = Path(tempfile.mkdtemp(), "theirs.trec")
    >>> _ = file.write_text("q1 Q0 a/1 1 2.5 theirs")
    >>> read_run(file, "turn").name
    'theirs'
    """
    path = Path(path)
    try:
        file_text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read: {reason}; give a file of UTF-8 text") from error
    numbered_lines = pl.DataFrame(
        {"text": pl.Series(file_text.split("\n"), dtype=pl.String)}
    ).with_row_index("line", offset=1)
    split_lines = numbered_lines.with_columns(
        part=pl.col("text").str.extract_all(r"[^\s\x00-\x1f\x7f]+")
    )
    field_rows = split_lines.filter(pl.col("part").list.len() > 0).with_columns(
        *(
            pl.col("part").list.get(field_number, null_on_oob=True).alias(field_name)
            for field_number, field_name in enumerate(_FIELDS)
        ),
    )
    field_rows = field_rows.with_columns(
        pl.col("rank").cast(pl.Int64, strict=False), pl.col("score").cast(pl.Float64, strict=False)
    )
    fault_masks = {
        f"expected six fields, {' '.join(_FIELDS)}": pl.col("part").list.len() != len(_FIELDS),
        "expected a whole number as rank": pl.col("rank").is_null(),
        "expected a finite number as score": ~pl.col("score").is_finite().fill_null(False),
        "expected each document once a query": ~pl.struct("query_id", "doc_id").is_first_distinct(),
    }
    for expected, is_wrong in fault_masks.items():
        for line_number, faulty_text in (
            field_rows.filter(is_wrong).select("line", "text").head(1).rows()
        ):
            raise DataError(f"{path}: line {line_number}: {expected}: {faulty_text.strip()[:80]!r}")
    if field_rows.is_empty():
        return Run(pl.DataFrame(schema=RUN_SCHEMA), level, provenance={"file": path.name})
    run = run_from_scores(
        field_rows["query_id"],
        field_rows["doc_id"],
        field_rows["score"].to_numpy(),
        level=level,
        k=field_rows.height,
    )
    return Run(run.frame, level, name=field_rows["tag"][0], provenance={"file": path.name})
