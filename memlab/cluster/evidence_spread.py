"""How evidence lies in clusters, and how similar its items are.

Everything here reads the labels of a benchmark (which turns are evidence). It analyses; no
retrieval stage may call it. A noise turn is a group of its own wherever groups are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.cluster.clusterers import NOISE
from memlab.cluster.projection import unit_rows
from memlab.errors import DataError

PAIR_KINDS = (
    "evidence, same session", "evidence, other session", "evidence – random", "question – evidence",
    "question – best other",
)  # fmt: skip


def observed_and_null_spread(
    sets: pl.DataFrame, turn_labels: pl.DataFrame, *, draws: int = 1000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Say how sets of turns lie in clusters, and how after the labels were permuted over the turns of each scope.

    A permutation keeps the sizes of clusters and which turns the sets share: the null distribution
    for :func:`memlab.evaluate.significance.compare_with_null`.

    :param sets: ``query_id``, ``turn_id``: the evidence of each question, or the first turns of
        each ranking.
    :param turn_labels: ``scope``, ``turn_id``, ``label`` and ``draw``, as
        :func:`memlab.cluster.scope_labels` gives them; the numbers of a set are averaged over the
        draws.
    :param draws: permutations.
    :returns: (sets, 3) and (draws, sets, 3): groups, largest share, and share of pairs together
        (NaN for one turn), the sets in the order of ``sets``, scope by scope.
    :raises DataError: when a turn has two labels or none.

    >>> import polars as pl
    >>> from memlab.cluster import observed_and_null_spread
    >>> sets = pl.DataFrame({"query_id": ["q"] * 2, "turn_id": ["a", "b"]})
    >>> labels = pl.DataFrame({"scope": "u", "turn_id": ["a", "b", "c"], "label": [0, 0, 1], "draw": 0})
    >>> observed_and_null_spread(sets, labels)[0].tolist()
    [[1.0, 1.0, 1.0]]
    """
    if turn_labels.select("turn_id", "draw").is_duplicated().any():
        raise DataError(
            "turn_labels: a turn has more than one label; expected one row a turn and draw"
        )
    wide = turn_labels.pivot("draw", index=["scope", "turn_id"], values="label")
    wide = wide.with_columns(place=pl.int_range(pl.len()).over("scope"))
    placed = sets.join(
        wide.select("scope", "turn_id", "place"), on="turn_id", how="left", maintain_order="left"
    )
    if placed["place"].has_nulls():
        raise DataError(
            f"sets: turn {placed.filter(pl.col('place').is_null())['turn_id'][0]!r} has no label"
        )
    rng, observed, null = np.random.default_rng(seed), [], []
    for (scope,), own in placed.group_by("scope", maintain_order=True):
        groups = wide.filter(scope=scope).drop("scope", "turn_id", "place").to_numpy()
        groups = np.where(groups == NOISE, -1 - np.arange(len(groups))[:, None], groups)
        order = rng.permuted(np.tile(np.arange(len(groups)), (draws, 1)), axis=1)
        for _, part in own.group_by("query_id", maintain_order=True):
            at = part["place"].to_numpy()
            observed.append(_measure_spread(groups[at][None])[0])
            null.append(_measure_spread(groups[order[:, at]]))
    return np.array(observed), np.stack(null, axis=1)


def _measure_spread(groups: np.ndarray) -> np.ndarray:
    """Give number of groups, largest share and pairs together of rows of groups (rows, n, clusterings): (rows, 3)."""
    n = groups.shape[1]
    together = (groups[:, :, None] == groups[:, None]).sum(axis=2)
    pairs = (
        (together.sum(axis=1) - n) / (n * (n - 1))
        if n > 1
        else np.full((len(groups), groups.shape[2]), np.nan)
    )
    return np.stack([(1 / together).sum(axis=1), together.max(axis=1) / n, pairs], axis=1).mean(
        axis=2
    )


def pair_similarity(
    embeddings: np.ndarray,
    turn_ids: Sequence[str],
    questions: pl.DataFrame,
    *,
    question_embeddings: np.ndarray,
    turns: pl.DataFrame,
    n_random: int = 5,
    seed: int = 0,
) -> pl.DataFrame:
    """Compare evidence with itself, with the rest of its scope and with its question: cosine of each pair.

    If evidence items of one question are as dissimilar as random turns are, no cluster can hold
    them; if they are similar, penalising similarity (as MMR does) pushes them out of the ranking.

    :param embeddings: (n, d) of the turns.
    :param turn_ids: n ids, in the order of ``embeddings``.
    :param questions: rows of :class:`memlab.records.Question`.
    :param question_embeddings: (questions, d), in the order of ``questions``.
    :param turns: rows of :class:`memlab.records.Turn`, for the session and the scope of each turn.
    :param n_random: random turns to draw for each evidence item.
    :returns: ``query_id``, ``kind``, ``similarity`` (−1 to 1), one row a pair. Kinds,
        :data:`PAIR_KINDS`: two evidence items of one or two sessions, an item and a random turn of
        the scope that is none, the question and an item, the question and the most similar turn
        that is no evidence of it.
    :raises DataError: when lengths or widths differ, a turn is not listed, or a number is not
        finite.

    >>> import numpy as np, polars as pl
    >>> from memlab.cluster import pair_similarity
    >>> turns = pl.DataFrame({"turn_id": ["a", "b"], "session_id": ["s", "t"], "scope": "u"})
    >>> asked = pl.DataFrame({"query_id": ["q"], "evidence": [["a", "b"]]})
    >>> pair_similarity(np.eye(2), ["a", "b"], asked, question_embeddings=np.eye(2)[:1], turns=turns).row(0)
    ('q', 'evidence, other session', 0.0)
    """
    rows, asked = unit_rows(embeddings), unit_rows(question_embeddings)
    listed = pl.DataFrame({"turn_id": turn_ids}).join(
        turns, on="turn_id", how="left", maintain_order="left"
    )
    fits = len(rows) == len(turn_ids) == listed.height and not listed["scope"].has_nulls()
    if not fits or asked.shape != (questions.height, rows.shape[1]):
        raise DataError(
            f"embeddings are {rows.shape} for {len(turn_ids)} turns and {asked.shape} for {questions.height} "
            "questions; expected one row for each, all of one width, and each turn once in turns"
        )
    place = dict(zip(turn_ids, range(len(turn_ids)), strict=True))
    session, scope = listed["session_id"].to_numpy(), listed["scope"].to_numpy()
    members = {name: np.flatnonzero(scope == name) for name in listed["scope"].unique()}
    rng, found = np.random.default_rng(seed), list[tuple[str, str, float]]()
    same, other, random, near, best = PAIR_KINDS
    for number, (query_id, evidence) in enumerate(
        questions.select("query_id", "evidence").iter_rows()
    ):
        own = np.array([place[turn] for turn in dict.fromkeys(evidence) if turn in place], np.int64)
        if not len(own):
            continue
        i, j = np.triu_indices(len(own), 1)
        kinds = np.where(session[own[i]] == session[own[j]], same, other).tolist()
        pairs = [*zip(kinds, (rows[own] @ rows[own].T)[i, j], strict=True)]
        pool = np.setdiff1d(members[scope[own[0]]], own)
        if len(pool):
            drawn = rows[rng.choice(pool, (len(own), n_random))]
            pairs += [
                (random, value) for value in np.einsum("id,ijd->ij", rows[own], drawn).ravel()
            ]
            pairs.append((best, (rows[pool] @ asked[number]).max()))
        pairs += [(near, value) for value in rows[own] @ asked[number]]
        found += [(query_id, kind, float(value)) for kind, value in pairs]
    return pl.DataFrame(
        found, {"query_id": pl.String, "kind": pl.String, "similarity": pl.Float64}, orient="row"
    )
