"""What a tree costs and what it keeps, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from memlab.language.tokens import PIECE
from memlab.rollup.given import GIVEN
from memlab.rollup.nodes import INSTEAD
from memlab.rollup.summarisers import EXTRACTIVE, SOURCE

_TOKENS = pl.col("text").str.count_matches(PIECE)


def cost(nodes: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Count what writing the nodes took, as if all of them were written now.

    Tokens are words and punctuation marks. A service is called once for a node, and reads its children's texts, or its
    turns where it has no children; also where its answer was not used. Instructions to the model are not counted.

    :param nodes: rows of :class:`memlab.records.Node`, with the leaves that they read: before what
        :func:`memlab.rollup.trees_of` gives, put :func:`memlab.rollup.nodes.turn_nodes`.
    :param turns: rows of :class:`memlab.records.Turn`, all that the nodes stand on.
    :returns: ``kind``, ``level``, ``service``, ``nodes``, ``calls``, ``tokens_in``, ``tokens_out``; leaves that are
        turns are left out.

    >>> import memlab
    >>> from memlab.rollup import cost, rollup
    >>> turns = memlab.sample(turns=60).turns
    >>> cost(rollup(turns), turns).select("kind", "calls").rows()
    [('session', 0), ('week', 0), ('month', 0)]
    """
    own = nodes.select("node_id", tokens=_TOKENS)
    below = (
        nodes.select("node_id", child="children").explode("child").join(own.rename({"node_id": "child"}), on="child")
    )
    leaves = nodes.filter(pl.col("children").list.len() == 0).select("node_id", "turns").explode("turns")
    direct = leaves.join(turns.select(turns="turn_id", tokens=_TOKENS), on="turns")
    read = pl.concat([below.select("node_id", "tokens"), direct.select("node_id", "tokens")])
    read = read.group_by("node_id").agg(read=pl.col("tokens").sum())
    called = ~pl.col("service").is_in([SOURCE, EXTRACTIVE, GIVEN, EXTRACTIVE + INSTEAD + GIVEN])
    return (
        nodes.filter(pl.col("kind") != "turn")
        .join(own, on="node_id", maintain_order="left")
        .join(read, on="node_id", how="left", maintain_order="left")
        .group_by("kind", "level", "service", maintain_order=True)
        .agg(nodes=pl.len(), calls=called.sum(), tokens_in=pl.col("read").sum(), tokens_out=pl.col("tokens").sum())
    )


def kept(nodes: pl.DataFrame, turns: pl.DataFrame, evidence: Iterable[str] = ()) -> pl.DataFrame:
    """Say of each layer how short it is, and how much of some turns it still holds.

    :param turns: rows of :class:`memlab.records.Turn`, all that the nodes stand on.
    :param evidence: ids of turns that questions need; one is kept where a sentence of the layer stands on it.
    :returns: ``kind``, ``level``, ``nodes``, ``tokens``, ``compression`` (tokens of the turns over those of the layer)
        and ``evidence_kept`` (share; null without evidence).

    >>> import memlab
    >>> from memlab.rollup import kept, rollup
    >>> turns = memlab.sample(turns=60).turns
    >>> kept(rollup(turns), turns)["compression"].is_sorted()
    True
    """
    wanted = pl.Series(list(evidence), dtype=pl.String).unique()
    total = turns.select(_TOKENS.sum()).item()
    stands_on = pl.col("evidence").list.eval(pl.element().explode()).explode()
    table = nodes.group_by("kind", "level", maintain_order=True).agg(
        nodes=pl.len(),
        tokens=_TOKENS.sum(),
        compression=total / _TOKENS.sum(),
        evidence_kept=stands_on.filter(stands_on.is_in(wanted.implode())).n_unique() / max(len(wanted), 1),
    )
    return table if len(wanted) else table.with_columns(evidence_kept=pl.lit(None, pl.Float64))
