"""Labelled observations for tuning decay: whether a fact of an age was still true, as people said or as is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import polars as pl

from memlab.errors import DataError
from memlab.knowledge import scoring
from memlab.knowledge.likelihood import observed

COLUMNS = {
    "fact_id": pl.String(),
    "predicate": pl.String(),
    "age_days": pl.Float64(),
    "accesses_days": pl.List(pl.Float64()),
    "still_true": pl.Boolean(),
}
_DAY_US = 86_400_000_000


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


def from_simulated(facts: pl.DataFrame, truth: pl.DataFrame, *, dates: Sequence[datetime]) -> pl.DataFrame:
    """Look at each simulated value on some dates: how old it was, how often it had been said, whether it still held.

    What was said wrongly is left out. A fact that is looked at on several dates is one ``fact_id``.

    :param facts: what :func:`memlab.knowledge.simulated.simulate` gives, with its ``truth``.
    :returns: the columns of :func:`read`; ``predicate`` is the name of the relation.

    >>> from datetime import datetime, UTC
    >>> from memlab.knowledge import labels, simulated
    >>> seen = labels.from_simulated(*simulated.simulate(300, seed=1), dates=[datetime(2024, 6, 1, tzinfo=UTC)])
    >>> 0.5 < seen["still_true"].mean() < 0.9
    True
    """
    told = truth.filter(pl.col("role").is_in(["assert", "fix"])).join(
        facts.select("fact_id", "asserted_at", "recorded_at"), on="fact_id", maintain_order="left"
    )
    parts = [pl.DataFrame(schema=COLUMNS)]
    for date in dates:
        heard = told.filter(pl.col("asserted_at") <= date, pl.col("recorded_at") <= date)
        ages = heard.with_columns(age=(pl.lit(date) - pl.col("asserted_at")).dt.total_microseconds() / _DAY_US)
        states = ages.group_by("state", "slot", "value", maintain_order=True).agg(
            age_days=pl.col("age").min(), accesses_days=pl.col("age").sort(), last=pl.col("asserted_at").max()
        )
        latest = pl.col("last") == pl.col("last").max().over("slot", "value")
        holding = scoring.holding(facts, truth, date).with_columns(held=True)
        states = states.join(holding, on=["slot", "value"], how="left", maintain_order="left")
        # A value that came back holds by its new period, not by the one before.
        rows = states.with_columns(still_true=pl.col("held").fill_null(False) & latest)
        name = pl.col("slot").str.split("/").list.last()
        parts.append(rows.with_columns(fact_id="state", predicate=name).select(list(COLUMNS)))
    return pl.concat(parts)
