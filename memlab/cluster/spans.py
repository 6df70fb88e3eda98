"""How evidence lies in clusters, and how similar its items are.

Everything here reads the labels of a benchmark (which turns are evidence). It analyses; no retrieval stage may call it.
A noise turn is a group of its own wherever groups are counted.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.cluster.clusterers import NOISE
from memlab.cluster.projection import unit_rows
from memlab.errors import DataError

PAIR_KINDS = (
    "evidence, same session", "evidence, other session", "evidence – random", "question – evidence",
    "question – best other",
)  # fmt: skip


def concentration(run: pl.DataFrame, turn_labels: pl.DataFrame, questions: pl.DataFrame, *, k: int = 10) -> pl.DataFrame:
    """Say of each query how its first ``k`` turns lie in clusters, and how many clusters of its evidence they reach.

    What chance would give, :func:`permuted_spread` says.

    :param run: ``query_id``, ``doc_id``, ``rank`` of turns (the ``frame`` of a turn-level :class:`memlab.records.Run`).
    :param turn_labels: ``turn_id``, ``label`` (``NOISE`` = −1) of every turn.
    :param questions: rows of :class:`memlab.records.Question`.
    :returns: one row a query: ``query_id``, ``n_clusters`` (groups among the first), ``largest_share`` (of them, in one
        group), ``pair_share`` (of their pairs, in one group; null for one turn) and ``evidence_clusters_reached`` (share
        of the groups with evidence that hold one of the first; null without evidence).
    :raises DataError: when a column is missing, a turn has two labels, or the run ranks a turn without one.

    >>> import polars as pl
    >>> from memlab.cluster import concentration
    >>> run = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "rank": [1, 2, 3]})
    >>> labels = pl.DataFrame({"turn_id": ["a", "b", "c"], "label": [0, 0, -1]})
    >>> asked = pl.DataFrame({"query_id": ["q"], "evidence": [["a", "c"]]})
    >>> concentration(run, labels, asked, k=2).select("largest_share", "evidence_clusters_reached").row(0)
    (1.0, 0.5)
    """
    _need(run, "run", "query_id", "doc_id", "rank")
    _need(questions, "questions", "query_id", "evidence")
    labels = _unique(turn_labels, "label")
    groups = dict(zip(labels["turn_id"], _groups(labels["label"].to_numpy()[:, None])[:, 0].tolist(), strict=True))
    evidence = dict(questions.select("query_id", "evidence").rows())
    rows = []
    top = run.filter(pl.col("rank") <= k).group_by("query_id", maintain_order=True).agg("doc_id")
    for query_id, turns in top.iter_rows():
        if unknown := [turn for turn in turns if turn not in groups]:
            raise DataError(f"run: query {query_id!r} ranks {unknown[0]!r}, which has no label; cluster what is ranked")
        first = [groups[turn] for turn in turns]
        wanted = {groups[turn] for turn in evidence.get(query_id, ()) if turn in groups}
        spread = _spread(np.array(first)[None, :, None])[0].tolist()
        rows.append((query_id, *spread, len(wanted & set(first)) / len(wanted) if wanted else None))
    columns = ["n_clusters", "largest_share", "pair_share", "evidence_clusters_reached"]
    schema = {"query_id": pl.String, **dict.fromkeys(columns, pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row").with_columns(pl.col("pair_share").fill_nan(None))


def permuted_spread(
    sets: pl.DataFrame, turn_labels: pl.DataFrame, *, draws: int = 1000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Say how sets of turns lie in clusters, and how after the labels were permuted over the turns of each scope.

    A permutation keeps the sizes of clusters and which turns the sets share: the null distribution for
    :func:`memlab.evaluate.against_null`.

    :param sets: ``query_id``, ``turn_id``: the evidence of each question, or the first turns of each ranking.
    :param turn_labels: ``scope``, ``turn_id``, ``label``; with a column ``draw``, several clusterings, over which the
        numbers of a set are averaged.
    :param draws: permutations.
    :returns: (sets, 3) and (draws, sets, 3): groups, largest share, and share of pairs together (NaN for one turn), the
        sets in the order of ``sets``, scope by scope.
    :raises DataError: when a column is missing, or a turn has two labels or none.

    >>> import polars as pl
    >>> from memlab.cluster import permuted_spread
    >>> sets = pl.DataFrame({"query_id": ["q"] * 2, "turn_id": ["a", "b"]})
    >>> labels = pl.DataFrame({"scope": "u", "turn_id": ["a", "b", "c"], "label": [0, 0, 1]})
    >>> permuted_spread(sets, labels)[0].tolist()
    [[1.0, 1.0, 1.0]]
    """
    _need(sets, "sets", "query_id", "turn_id")
    _need(turn_labels, "turn_labels", "scope", "turn_id", "label")
    parts = turn_labels.partition_by("draw") if "draw" in turn_labels.columns else [turn_labels]
    first, *others = [_unique(part, "label") for part in parts]
    for number, part in enumerate(others):
        first = first.join(part.select("turn_id", pl.col("label").alias(f"label_{number}")), on="turn_id")
    first = first.with_columns(place=pl.int_range(pl.len()).over("scope"))
    placed = sets.select("query_id", "turn_id").join(first, on="turn_id", how="left", maintain_order="left")
    if placed["place"].has_nulls():
        raise DataError(f"sets: turn {placed.filter(pl.col('place').is_null())['turn_id'][0]!r} has no label")
    rng, observed, null = np.random.default_rng(seed), [], []
    for (scope,), own in placed.group_by("scope", maintain_order=True):
        groups = _groups(first.filter(scope=scope).select("^label.*$").to_numpy())
        order = rng.permuted(np.tile(np.arange(len(groups)), (draws, 1)), axis=1)
        for _, part in own.group_by("query_id", maintain_order=True):
            at = part["place"].to_numpy()
            observed.append(_spread(groups[at][None])[0])
            null.append(_spread(groups[order[:, at]]))
    return np.array(observed), np.stack(null, axis=1)


def _groups(labels: np.ndarray) -> np.ndarray:
    """Give noise turns groups of their own: (n, clusterings)."""
    return np.where(labels == NOISE, -1 - np.arange(len(labels))[:, None], labels)


def _spread(groups: np.ndarray) -> np.ndarray:
    """Give number of groups, largest share and pairs together of rows of groups (rows, n, clusterings): (rows, 3)."""
    n = groups.shape[1]
    together = (groups[:, :, None] == groups[:, None]).sum(axis=2)
    pairs = (together.sum(axis=1) - n) / (n * (n - 1)) if n > 1 else np.full((len(groups), groups.shape[2]), np.nan)
    return np.stack([(1 / together).sum(axis=1), together.max(axis=1) / n, pairs], axis=1).mean(axis=2)


def pair_similarity(
    embeddings: np.ndarray,
    turns: pl.DataFrame,
    questions: pl.DataFrame,
    question_embeddings: np.ndarray,
    *,
    n_random: int = 5,
    seed: int = 0,
) -> pl.DataFrame:
    """Compare evidence with itself, with the rest of its scope and with its question: cosine of each pair.

    If evidence items of one question are as dissimilar as random turns are, no cluster can hold them; if they are
    similar, penalising similarity (as MMR does) pushes them out of the ranking.

    :param embeddings: (n, d) of the turns.
    :param turns: n rows with ``turn_id``, ``session_id``, ``scope``, in the order of ``embeddings``.
    :param questions: rows of :class:`memlab.records.Question`, and their embeddings (questions, d).
    :param n_random: random turns to draw for each evidence item.
    :returns: ``query_id``, ``kind``, ``similarity`` (−1 to 1), one row a pair. Kinds, :data:`PAIR_KINDS`: two evidence
        items of one or two sessions, an item and a random turn of the scope that is none, the question and an item, the
        question and the most similar turn that is no evidence of it.
    :raises DataError: when lengths or widths differ, a number is not finite, an id comes twice or a column is missing.

    >>> import numpy as np, polars as pl
    >>> from memlab.cluster import pair_similarity
    >>> turns = pl.DataFrame({"turn_id": ["a", "b"], "session_id": ["s", "t"], "scope": "u"})
    >>> questions = pl.DataFrame({"query_id": ["q"], "evidence": [["a", "b"]]})
    >>> pair_similarity(np.eye(2), turns, questions, np.eye(2)[:1])["kind"].unique(maintain_order=True).to_list()
    ['evidence, other session', 'question – evidence']
    """
    _need(turns, "turns", "turn_id", "session_id", "scope")
    _need(questions, "questions", "query_id", "evidence")
    rows, asked, at = unit_rows(embeddings), unit_rows(question_embeddings), _unique(turns, "session_id", "scope")
    if len(rows) != at.height or asked.shape != (questions.height, rows.shape[1]):
        raise DataError(
            f"embeddings are {rows.shape} for {at.height} turns and {asked.shape} for {questions.height} questions; "
            "expected one row for each, all of one width"
        )
    place = dict(zip(at["turn_id"], range(at.height), strict=True))
    session, scope = at["session_id"].to_numpy(), at["scope"].to_numpy()
    members = {name: np.flatnonzero(scope == name) for name in at["scope"].unique()}
    rng, found = np.random.default_rng(seed), list[tuple[str, str, float]]()
    same, other, random, near, best = PAIR_KINDS
    for number, (query_id, evidence) in enumerate(questions.select("query_id", "evidence").iter_rows()):
        own = np.array([place[turn] for turn in dict.fromkeys(evidence) if turn in place], np.int64)
        if not len(own):
            continue
        cosines, to_question = rows[own] @ rows[own].T, rows[own] @ asked[number]
        for i, j in zip(*np.triu_indices(len(own), 1), strict=True):
            found.append((query_id, same if session[own[i]] == session[own[j]] else other, cosines[i, j]))
        pool = np.setdiff1d(members[scope[own[0]]], own)
        if len(pool):
            drawn = rng.choice(pool, (len(own), n_random))
            found += [(query_id, random, value) for value in np.einsum("id,ijd->ij", rows[own], rows[drawn]).ravel()]
            found.append((query_id, best, (rows[pool] @ asked[number]).max()))
        found += [(query_id, near, value) for value in to_question]
    schema = {"query_id": pl.String, "kind": pl.String, "similarity": pl.Float64}
    return pl.DataFrame([(q, kind, float(value)) for q, kind, value in found], schema, orient="row")


def _unique(turns: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Check that each turn has one row."""
    _need(turns, "turns", "turn_id", *columns)
    if turns["turn_id"].is_duplicated().any():
        twice = turns.filter(pl.col("turn_id").is_duplicated())["turn_id"][0]
        raise DataError(f"turn {twice!r} has more than one label or row; expected one row a turn")
    return turns


def _need(frame: pl.DataFrame, name: str, *columns: str) -> None:
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise DataError(f"{name} has no column {missing[0]!r}; it has {frame.columns}, expected {list(columns)}")
