"""Summaries that a dataset brings with it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import polars as pl

from memlab.errors import DataError
from memlab.rollup.nodes import INSTEAD
from memlab.rollup.summarisers import EXTRACTIVE, WRITTEN, Extractive, Summariser
from memlab.summarize import split, words

GIVEN = "given"

# Of a sentence's telling words, the share or the number that a turn has to hold to be its source, and the most such
# turns. Given sentences are long: they join what several turns say.
_SHARED, _ENOUGH = 0.3, 3
_SOURCES = 3


@dataclass(frozen=True, eq=False)
class Given:
    """Takes the summaries of sessions as they are; what stands above them is written by another summariser.

    A sentence of a given summary names no turns: it stands on the three that share most of its telling words, if these
    are three or three in ten; else it stands on none, and goes no further up the tree.

    :param sessions: ``session_id`` and ``summary``, as rows of :class:`memlab.records.Session` have.
    :param otherwise: writes what has no summary: periods, clusters, and sessions without one.
    :raises DataError: when a column is missing.
    """

    sessions: pl.DataFrame
    otherwise: Summariser = field(default_factory=Extractive)

    def __post_init__(self) -> None:
        missing = [name for name in ("session_id", "summary") if name not in self.sessions.columns]
        if missing:
            raise DataError(f"the sessions have no column {missing[0]!r}; they have {', '.join(self.sessions.columns)}")

    @property
    def recipe(self) -> str:
        """Everything that the sentences depend on beside their sources."""
        texts = str(self.sessions.select("session_id", "summary").sort("session_id").rows())
        return f"given {hashlib.sha256(texts.encode('utf-8', 'backslashreplace')).hexdigest()}; {self.otherwise.recipe}"

    def write(self, pool: pl.DataFrame) -> pl.DataFrame:
        """Take the summaries of sessions, and have the other groups written."""
        summaries = self.sessions.select("session_id", "summary").filter(pl.col("summary").str.strip_chars() != "")
        of_sessions = pool.filter(pl.col("kind") == "session")
        scope = of_sessions.group_by("group", maintain_order=True).agg(pl.col("session_id", "scope").first())
        known = scope.join(summaries, on="session_id", maintain_order="left")
        rest = pool.filter(~((pl.col("kind") == "session") & pl.col("group").is_in(known["group"].implode())))
        parts = [_sourced(known, of_sessions)]
        if rest.height:
            other = self.otherwise.write(rest)
            instead = rest.filter(pl.col("kind") == "session")["group"].unique()
            named = pl.when(pl.col("group").is_in(instead.implode()) & (pl.col("service") == EXTRACTIVE))
            parts.append(
                other.with_columns(service=named.then(pl.lit(EXTRACTIVE + INSTEAD + GIVEN)).otherwise("service"))
            )
        order = pool.select("group").unique(maintain_order=True)
        return order.join(pl.concat(parts), on="group", maintain_order="left")


def _sourced(known: pl.DataFrame, pool: pl.DataFrame) -> pl.DataFrame:
    """Split the summaries and find the turns that their sentences stand on."""
    turn_sentences = pool.select("group", "scope", "speaker", "text", "turn_id", wanted=pl.lit(False))
    # As turns, so that the one splitter reads them.
    as_turns = known.select("scope", session_id="group", turn_id="group", speaker=pl.lit("other"), text="summary")
    told = split(as_turns).select("scope", "speaker", "text", group="session_id", wanted=pl.lit(True))
    both = pl.concat([told, turn_sentences], how="diagonal").with_row_index("line")
    tokens = words(both).filter("content").select("stem", line="row").unique()
    stems = both.select("line", "group", "turn_id", "wanted").join(tokens, on="line")
    of_turns = stems.filter(~pl.col("wanted")).select("group", "turn_id", "stem", first="line")
    of_turns = of_turns.group_by("group", "turn_id", "stem").agg(pl.col("first").min())
    asked = stems.filter("wanted").select("line", "group", "stem").with_columns(total=pl.len().over("line"))
    best = (
        asked.join(of_turns, on=["group", "stem"])
        .group_by("line", "turn_id")
        .agg(pl.col("total").first(), pl.col("first").min(), shared=pl.len())
        .filter((pl.col("shared") >= _SHARED * pl.col("total")) | (pl.col("shared") >= _ENOUGH))
        .sort("line", "shared", "first", descending=[False, True, False])
        .group_by("line", maintain_order=True)
        .agg(evidence=pl.col("turn_id").head(_SOURCES))
    )
    rows = both.filter("wanted").join(best, on="line", how="left", maintain_order="left")
    return (
        rows.group_by("group", maintain_order=True)
        .agg(sentences="text", evidence=pl.col("evidence").fill_null(pl.lit([], pl.List(pl.String))))
        .with_columns(service=pl.lit(GIVEN))
        .select(pl.col(name).cast(kind) for name, kind in WRITTEN.items())
    )
