"""Labelled observations for tuning decay: whether a fact of an age was still true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from memlab.errors import DataError
from memlab.knowledge.likelihood import observed

COLUMNS = {
    "fact_id": pl.String(),
    "predicate": pl.String(),
    "age_days": pl.Float64(),
    "accesses_days": pl.List(pl.Float64()),
    "still_true": pl.Boolean(),
}


def read(path: str | Path) -> pl.DataFrame:
    """Read labels from a file: CSV, JSON lines or Parquet.

    :param path: a row an observation: ``fact_id``, ``predicate``, ``age_days`` (days since the last access) and
        ``still_true``; ``accesses_days`` (the age of each access) where known: a list, in CSV numbers with ";" between.
    :returns: those five columns; others are dropped.
    :raises DataError: when the file cannot be read, or a column is missing or holds something else.

    >>> import tempfile, pathlib
    >>> from memlab.knowledge import labels
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("fact_id,predicate,age_days,accesses_days,still_true\\nf1,works at,40,40;90.5,true\\n")
    >>> labels.read(path).row(0)
    ('f1', 'works at', 40.0, [40.0, 90.5], True)
    """
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".csv": pl.read_csv,
        ".jsonl": pl.read_ndjson,
        ".ndjson": pl.read_ndjson,
        ".parquet": pl.read_parquet,
    }
    path = Path(path)
    if path.suffix not in readers:
        raise DataError(f"{path}: labels are read from .csv, .jsonl or .parquet; found {path.suffix or 'no suffix'!r}")
    try:
        frame = readers[path.suffix](path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"{path}: cannot be read ({str(error).splitlines()[0]}); see that it is a whole file"
        ) from error
    missing = [name for name in COLUMNS if name not in frame.columns and name != "accesses_days"]
    if missing:
        raise DataError(f"{path}: has no column {missing[0]!r}; it has {', '.join(frame.columns)}")
    if "accesses_days" not in frame.columns:
        frame = frame.with_columns(accesses_days=pl.lit(None))
    elif frame["accesses_days"].dtype.is_numeric():
        frame = frame.with_columns(pl.concat_list("accesses_days"))
    elif frame["accesses_days"].dtype == pl.String:
        frame = frame.with_columns(pl.col("accesses_days").replace("", None).str.split(";"))
    try:
        frame = frame.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())
        observed(frame)
    except (DataError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: {str(error).splitlines()[0]}") from error
    return frame
