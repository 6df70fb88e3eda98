"""Who writes the text of a node: sentences of groups in, sentences with their turns out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import polars as pl

from memlab.records import TIMESTAMP
from memlab.summarize import Weights, extract

SOURCE, EXTRACTIVE = "source", "extractive"

POOL = pl.Schema({
    "group": pl.String(), "kind": pl.String(), "scope": pl.String(), "session_id": pl.String(), "turn_id": pl.String(),
    "speaker": pl.String(), "text": pl.String(), "position": pl.Int32(), "timestamp": TIMESTAMP,
    "evidence": pl.List(pl.String()), "said": pl.Boolean(),
})  # fmt: skip
"""What a summariser reads: a row for each sentence of a group, in order of time. ``kind`` is that of the node to be
written, ``evidence`` all turns of the sentence; ``session_id``, ``turn_id``, ``speaker`` and ``timestamp`` are those
of the first of them; ``said`` is true for a sentence of a turn and false for one of a summary. A group without
sentences is not asked for."""

WRITTEN = pl.Schema({
    "group": pl.String(), "sentences": pl.List(pl.String()), "evidence": pl.List(pl.List(pl.String())),
    "service": pl.String(),
})  # fmt: skip
"""What a summariser gives: a row for each group."""

# Names, numbers and dates are what a later question asks for.
KEEPS_VALUES = Weights(specific=1.5)


class Summariser(Protocol):
    """Writes the sentences of groups, each with its turns."""

    @property
    def recipe(self) -> str:
        """Everything that the sentences depend on beside their sources: another recipe makes another node."""
        ...

    def write(self, pool: pl.DataFrame) -> pl.DataFrame:
        """Write each group; groups do not depend on each other.

        :param pool: as :data:`POOL`.
        :returns: as :data:`WRITTEN`, in order of first appearance.
        """
        ...


@dataclass(frozen=True)
class Extractive:
    """Picks sentences of the group itself, those with names, numbers and dates first; no model.

    Of turns it takes at most a quarter of the sentences, of summaries as many as a node may have: these are few. So
    every sentence of a tree is one of the conversation.

    :param max_sentences: most sentences of a node.
    :param weights: what a sentence gets for what it is.

    >>> import memlab
    >>> from memlab.rollup import Extractive, rollup
    >>> turns = memlab.sample(turns=60).turns
    >>> rollup(turns, summariser=Extractive(max_sentences=3))["sentences"].list.len().max()
    3
    """

    max_sentences: int = 6
    weights: Weights = KEEPS_VALUES

    @property
    def recipe(self) -> str:
        return repr(self)

    def write(self, pool: pl.DataFrame) -> pl.DataFrame:
        # A group is its own world of words, so that it reads the same whatever else is written with it.
        fresh = pl.struct("group", pl.col("text").str.to_lowercase()).is_first_distinct()
        rest = pool.filter(fresh).with_columns(scope=pl.col("group")).with_row_index("line")
        picked = self._picked(rest)
        # A quarter of a summary's sentences would be too few: what is left is asked for again while there is room.
        while (room := self._with_room(rest, picked)).height:
            best = pl.col("score").rank("ordinal", descending=True).over("group") <= pl.col("left")
            picked = pl.concat([picked, self._picked(room).filter(best).select(picked.columns)])
        return (
            picked.sort("line")
            .group_by("group", maintain_order=True)
            .agg(sentences="spoken", evidence="evidence")
            .with_columns(service=pl.lit(EXTRACTIVE))
            .select(*WRITTEN)
            .cast(WRITTEN)
        )

    def _picked(self, sentences: pl.DataFrame) -> pl.DataFrame:
        return extract(sentences, by="group", max_sentences=self.max_sentences, weights=self.weights)

    def _with_room(self, sentences: pl.DataFrame, picked: pl.DataFrame) -> pl.DataFrame:
        """Give the sentences of summaries that are not picked yet, where their group has ``left`` room."""
        left = self.max_sentences - pl.col("n").fill_null(0).cast(pl.Int64)
        return (
            sentences.filter(~pl.col("said"))
            .join(picked, on="line", how="anti", maintain_order="left")
            .join(picked.group_by("group").len("n"), on="group", how="left", maintain_order="left")
            .select(*sentences.columns, left=left)
            .filter(pl.col("left") > 0)
        )
