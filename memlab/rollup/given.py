"""Summaries that a dataset brings with it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import polars as pl

from memlab.errors import DataError
from memlab.rollup.nodes import INSTEAD
from memlab.rollup.summarisers import EXTRACTIVE, WRITTEN, Extractive, Summariser
from memlab.summarize import shared, split, words

GIVEN = "given"

# Of a sentence's telling words, the share or the number that a turn has to hold to be its source, and the most such
# turns. Given sentences are long: they join what several turns say.
_SHARE, _ENOUGH = 0.3, 3
_SOURCES = 3


@dataclass(frozen=True, eq=False)
class Given:
    """Takes the summaries of sessions as they are; what stands above them is written by another summariser.

    A sentence of a given summary names no turns: it stands on the three that share most of its telling words, if these
    are three or three in ten; else it stands on none, and goes no further up the tree.

    :param sessions: ``session_id`` and ``summary``, as rows of :class:`memlab.records.Session` have.
    :param otherwise: writes what has no summary: periods, clusters, and sessions without one.
    """

    sessions: pl.DataFrame
    otherwise: Summariser = field(default_factory=Extractive)

    def __post_init__(self) -> None:
        missing = [name for name in ("session_id", "summary") if name not in self.sessions.columns]
        if missing:
            raise DataError(f"the sessions have no column {missing[0]!r}; they have {', '.join(self.sessions.columns)}")

    @property
    def recipe(self) -> str:
        texts = str(self.sessions.select("session_id", "summary").sort("session_id").rows())
        return f"given {hashlib.sha256(texts.encode('utf-8', 'backslashreplace')).hexdigest()}; {self.otherwise.recipe}"

    def write(self, pool: pl.DataFrame) -> pl.DataFrame:
        summaries = self.sessions.select("session_id", "summary").filter(pl.col("summary").str.strip_chars() != "")
        of_sessions = pool.filter(pl.col("kind") == "session")
        summarised = of_sessions.group_by("group", maintain_order=True).agg(pl.col("session_id", "scope").first())
        summarised = summarised.join(summaries, on="session_id", maintain_order="left")
        rest = pool.filter(~((pl.col("kind") == "session") & pl.col("group").is_in(summarised["group"].implode())))
        parts = [_sourced(summarised, of_sessions)]
        if rest.height:
            sessions = rest.filter(pl.col("kind") == "session")["group"].unique()
            instead = pl.col("group").is_in(sessions.implode()) & (pl.col("service") == EXTRACTIVE)
            service = pl.when(instead).then(pl.lit(EXTRACTIVE + INSTEAD + GIVEN)).otherwise("service")
            parts.append(self.otherwise.write(rest).with_columns(service=service))
        order = pool.select("group").unique(maintain_order=True)
        return order.join(pl.concat(parts), on="group", maintain_order="left")


def _sourced(summarised: pl.DataFrame, pool: pl.DataFrame) -> pl.DataFrame:
    """Split the summaries and find the turns that their sentences stand on."""
    # As turns, so that the one splitter reads them.
    nobody = {"speaker": pl.lit("other"), "role": pl.lit("other")}
    as_turns = summarised.select("scope", session_id="group", turn_id="group", text="summary", **nobody)
    told = split(as_turns).select("scope", "speaker", "text", group="session_id", of_turn=pl.lit(False))
    of_turns = pool.select("group", "scope", "speaker", "text", "turn_id", of_turn=pl.lit(True))
    rows = pl.concat([told, of_turns], how="diagonal").with_row_index("row")
    rows = rows.with_columns(other=pl.col("row").min().over("group", "turn_id"))
    asked = rows.filter(~pl.col("of_turn"))
    pairs = shared(asked, rows.filter("of_turn"), words(rows), by="group")
    best = (
        pairs.filter((pl.col("share") >= _SHARE) | (pl.col("shared") >= _ENOUGH))
        .sort("row", "shared", "other", descending=[False, True, False])
        .join(rows.select("turn_id", other="row"), on="other", maintain_order="left")
        .group_by("row", maintain_order=True)
        .agg(evidence=pl.col("turn_id").head(_SOURCES))
    )
    return (
        asked.join(best, on="row", how="left", maintain_order="left")
        .group_by("group", maintain_order=True)
        .agg(sentences="text", evidence=pl.col("evidence").fill_null(pl.lit([], pl.List(pl.String))))
        .with_columns(service=pl.lit(GIVEN))
        .select(*WRITTEN)
        .cast(WRITTEN)
    )
