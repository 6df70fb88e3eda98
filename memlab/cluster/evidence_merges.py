"""At which height of a merge tree the evidence of a question meets, beside random turns.

Everything here reads the labels of a benchmark (which turns are evidence). It analyses; no
retrieval stage may call it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from memlab.cluster.merge_trees import MergeTree
from memlab.errors import DataError


def observed_and_null_merges(
    sets: pl.DataFrame,
    trees: Mapping[str, MergeTree],
    turns: pl.DataFrame,
    *,
    within: Sequence[str] = (),
    draws: int = 1000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Say how much of a memory one must take to have all turns of a set in one branch, and as much
    for random turns.

    That is the share of the scope's turns under the lowest node that holds the set. A random set
    has for each turn another one of the scope, or of the same speaker and session: turns are
    permuted, so that the sets of a scope share as many turns as they do.

    :param sets: ``query_id``, ``turn_id``: the evidence of each question.
    :param trees: of each scope, whose rows are its turns in the order of ``turns``.
    :param turns: ``scope``, ``turn_id`` and the columns of ``within``; each turn once.
    :param within: columns of which a random turn has the same value, such as ``speaker``.
    :param draws: permutations.
    :returns: (sets,) and (draws, sets) shares from 0 to 1, NaN for a set of one turn; the sets in
        the order of ``sets``, scope by scope.
    :raises DataError: when a turn of a set is not listed, or a tree has other turns than ``turns``.

    >>> import numpy as np, polars as pl
    >>> from memlab.cluster import merge_tree, observed_and_null_merges
    >>> tree = merge_tree(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]))
    >>> turns = pl.DataFrame({"scope": "u", "turn_id": ["a", "b", "c", "d"]})
    >>> asked = pl.DataFrame({"query_id": ["q", "q"], "turn_id": ["a", "b"]})
    >>> observed_and_null_merges(asked, {"u": tree}, turns)[0].tolist()
    [0.5]
    """
    if turns["turn_id"].is_duplicated().any():
        raise DataError("turns: a turn is listed twice; expected one row a turn")
    placed_turns = turns.with_columns(place=pl.int_range(pl.len()).over("scope"))
    turn_places = placed_turns.select("scope", "turn_id", "place")
    placed_sets = sets.join(turn_places, on="turn_id", how="left", maintain_order="left")
    for unlisted_turn in placed_sets.filter(pl.col("place").is_null())["turn_id"].head(1):
        raise DataError(f"sets: turn {unlisted_turn!r} is not listed in turns")
    generator = np.random.default_rng(seed)
    observed_shares = [np.zeros(0)]
    null_shares = [np.zeros((draws, 0))]
    for (scope_name,), scope_sets in placed_sets.group_by("scope", maintain_order=True):
        scope_turns = placed_turns.filter(scope=scope_name)
        scope_tree = trees.get(str(scope_name))
        if scope_tree is None or len(scope_tree.leaf_of) != scope_turns.height:
            raise DataError(
                f"trees: none of the {scope_turns.height:,} turns of scope {scope_name!r}"
            )
        shuffled_places = np.tile(np.arange(scope_turns.height), (draws, 1))
        for group_places in turn_places_of_each_group(scope_turns, within):
            shuffled_places[:, group_places] = generator.permuted(
                shuffled_places[:, group_places], axis=1
            )
        for _, evidence_set in scope_sets.group_by("query_id", maintain_order=True):
            evidence_places = evidence_set["place"].unique().to_numpy()
            drawn_places = np.vstack([evidence_places, shuffled_places[:, evidence_places]])
            set_shares = np.full(1 + draws, np.nan)
            if len(evidence_places) > 1:
                set_shares = scope_tree.share_below(scope_tree.lowest_common(drawn_places))
            observed_shares.append(set_shares[:1])
            null_shares.append(set_shares[1:, None])
    return np.concatenate(observed_shares), np.hstack(null_shares)


def turn_places_of_each_group(
    turns: pl.DataFrame, group_columns: Sequence[str]
) -> list[np.ndarray]:
    """Give the places of the turns that may stand for each other."""
    if not group_columns:
        return [np.arange(turns.height)]
    numbered = turns.with_row_index("row").group_by(*group_columns, maintain_order=True)
    return [group_rows.to_numpy() for group_rows in numbered.agg("row")["row"]]
