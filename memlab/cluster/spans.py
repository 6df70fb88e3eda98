"""How evidence lies in clusters, and how alike it is: the numbers behind "similarity concentrates on one cluster".

Everything here reads the labels of a benchmark (which turns are evidence). It analyses; no retrieval stage may call it.
A noise point belongs to no group, so wherever groups are counted it counts as a group of its own.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.cluster.density import NOISE
from memlab.cluster.projection import unit_rows
from memlab.errors import DataError
from memlab.records import session_of

PAIR_KINDS = (
    "evidence, same session",
    "evidence, other session",
    "evidence – random",
    "question – evidence",
    "question – best other",
)

_SCOPE = pl.col("turn_id").str.replace(r"/.*$", "")
# A cluster is named by its number and a noise point by its own id: no number is an id.
_GROUP = pl.when(pl.col("label") == NOISE).then("turn_id").otherwise(pl.col("label").cast(pl.String))


def concentration(
    run: pl.DataFrame, turn_labels: pl.DataFrame, *, k: int = 10, questions: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Say of each query how much of its first ``k`` turns falls in one cluster, and whether evidence lies there.

    What chance would give, :func:`permuted_spread` says.

    :param run: ``query_id``, ``doc_id``, ``rank`` of turns (the ``frame`` of a turn-level :class:`memlab.records.Run`).
    :param turn_labels: ``turn_id``, ``label`` (``NOISE`` = −1) of every turn, clustered all together or each scope by
        itself.
    :param k: how many of the first turns to look at.
    :param questions: rows of :class:`memlab.records.Question`, to look for their evidence.
    :returns: one row a query: ``query_id``, ``n_top`` (≤ k), ``n_clusters`` (groups among them), ``largest_share`` (of
        the top, in one group), ``pair_share`` (of its pairs, in one cluster; null for one turn), ``noise_share``; with
        ``questions`` also ``evidence_cluster_share`` (share of the top in groups that hold evidence) and
        ``evidence_clusters_reached`` (share of the groups that hold evidence with at least one turn in the top); both
        null without evidence.
    :raises DataError: when a column is missing, a turn has two labels, or the run ranks something that has no label.

    >>> import polars as pl
    >>> from memlab.cluster import concentration
    >>> run = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a/s/1", "a/s/2", "a/s/3"], "rank": [1, 2, 3]})
    >>> labels = pl.DataFrame({"turn_id": ["a/s/1", "a/s/2", "a/s/3"], "label": [0, 0, -1]})
    >>> concentration(run, labels, k=2).select("largest_share", "n_clusters").row(0)
    (1.0, 1)
    """
    _need(run, "run", "query_id", "doc_id", "rank")
    labels = _checked_labels(turn_labels)
    top = run.filter(pl.col("rank") <= k).select("query_id", turn_id="doc_id")
    top = top.join(labels, on="turn_id", how="left", maintain_order="left")
    unknown = top.filter(pl.col("label").is_null())
    if unknown.height:
        raise DataError(
            f"run: query {unknown['query_id'][0]!r} ranks {unknown['turn_id'][0]!r}, which has no label "
            f"({unknown.height} such rows); expected a run over the turns that were clustered"
        )
    n, size = pl.col("size").sum(), pl.col("size")
    spread = (
        top.group_by("query_id", group=_GROUP, maintain_order=True)
        .agg(size=pl.len().cast(pl.Int64), noise=(pl.col("label") == NOISE).sum())
        .group_by("query_id", maintain_order=True)
        .agg(
            n_top=n,
            n_clusters=pl.len(),
            largest_share=size.max() / n,
            pair_share=pl.when(n > 1).then((size * (size - 1)).sum() / (n * (n - 1))),
            noise_share=pl.col("noise").sum() / n,
        )
    )
    if questions is None:
        return spread
    return spread.join(_evidence_reached(top, questions, labels), on="query_id", how="left", maintain_order="left")


def permuted_spread(
    sets: pl.DataFrame, turn_labels: pl.DataFrame, *, draws: int = 1000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Say how sets of turns lie in clusters, and how after the labels were permuted over the turns of each scope.

    A permutation keeps the sizes of clusters and which turns the sets share, and breaks only what the clusters hold:
    the null distribution for :func:`memlab.evaluate.against_null`.

    :param sets: ``query_id``, ``turn_id``: the evidence of each question, or the first turns of each ranking.
    :param turn_labels: as in :func:`concentration`; with a column ``draw``, several clusterings, over which the
        numbers of a set are averaged.
    :param draws: permutations.
    :returns: (sets, 3) and (draws, sets, 3): groups, largest share, and share of pairs together (NaN for one turn), the
        sets in the order of ``sets``.
    :raises DataError: when a column is missing, or a turn has two labels or none.

    >>> import polars as pl
    >>> from memlab.cluster import permuted_spread
    >>> sets = pl.DataFrame({"query_id": ["q"] * 2, "turn_id": ["a/s/1", "a/s/2"]})
    >>> labels = pl.DataFrame({"turn_id": ["a/s/1", "a/s/2", "a/s/3"], "label": [0, 0, 1]})
    >>> permuted_spread(sets, labels)[0].tolist()
    [[1.0, 1.0, 1.0]]
    """
    _need(sets, "sets", "query_id", "turn_id")
    parts = turn_labels.partition_by("draw", include_key=False) if "draw" in turn_labels.columns else [turn_labels]
    labels = _checked_labels(parts[0])
    for i, part in enumerate(parts):
        its = _checked_labels(part).rename({"label": f"label_{i}"})
        labels = (labels.drop("label") if i == 0 else labels).join(its, on="turn_id", maintain_order="left")
    labels = labels.with_columns(scope=_SCOPE).with_columns(place=pl.int_range(pl.len()).over("scope"))
    placed = sets.select("query_id", "turn_id").join(labels, on="turn_id", how="left", maintain_order="left")
    if placed["place"].has_nulls():
        raise DataError(f"sets: turn {placed.filter(pl.col('place').is_null())['turn_id'][0]!r} has no label")
    rng, observed, null = np.random.default_rng(seed), [], []
    for (scope,), its in placed.group_by("scope", maintain_order=True):
        names = labels.filter(pl.col("scope") == scope).select(pl.col("^label_.*$")).to_numpy()
        # A noise point is in a group of its own.
        names = np.where(names == NOISE, -1 - np.arange(len(names))[:, None], names)
        order = rng.permuted(np.tile(np.arange(len(names)), (draws, 1)), axis=1)
        for _, part in its.group_by("query_id", maintain_order=True):
            at = part["place"].to_numpy()
            observed.append(_groups(names[at][None])[0])
            null.append(_groups(names[order[:, at]]))
    return np.array(observed), np.stack(null, axis=1)


def _groups(labels: np.ndarray) -> np.ndarray:
    """Give groups, largest share and pairs together of rows of labels (rows, n, clusterings): (rows, 3)."""
    n = labels.shape[1]
    # With how many, itself among them: (rows, n, clusterings).
    alike = (labels[:, :, None] == labels[:, None]).sum(axis=2)
    pairs = (alike.sum(axis=1) - n) / (n * (n - 1)) if n > 1 else np.full((len(labels), labels.shape[2]), np.nan)
    return np.stack([(1 / alike).sum(axis=1), alike.max(axis=1) / n, pairs], axis=1).mean(axis=2)


def _evidence_reached(top: pl.DataFrame, questions: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    evidence = _evidence(questions).join(labels, on="turn_id").select("query_id", group=_GROUP).unique()
    ranked = top.select("query_id", group=_GROUP)

    def shared(left: pl.DataFrame, right: pl.DataFrame, name: str) -> pl.DataFrame:
        both = left.join(right.unique().with_columns(both=True), on=["query_id", "group"], how="left")
        return both.group_by("query_id").agg(pl.col("both").is_not_null().mean().alias(name))

    inside = shared(ranked, evidence, "evidence_cluster_share")
    return inside.join(shared(evidence, ranked, "evidence_clusters_reached"), on="query_id")


def pair_similarity(
    embeddings: np.ndarray,
    turn_ids: list[str],
    questions: pl.DataFrame,
    *,
    question_embeddings: np.ndarray | None = None,
    turns: pl.DataFrame | None = None,
    n_random: int = 5,
    seed: int = 0,
) -> pl.DataFrame:
    """Compare evidence with itself, with the rest of its scope and with its question: cosine of each pair.

    If evidence of one question is as unlike as random turns are, no cluster can hold it; if it is alike, penalising
    similarity (as MMR does) pushes it out of the ranking.

    :param embeddings: (n, d) of the turns.
    :param turn_ids: n ids, in the order of ``embeddings``.
    :param questions: rows of :class:`memlab.records.Question`.
    :param question_embeddings: (questions, d), in the order of ``questions``; without it the last two kinds are absent.
    :param turns: say which session each turn is of, where the ids do not, as in a chat log.
    :param n_random: random turns to draw for each piece of evidence.
    :param seed: of these draws.
    :returns: ``query_id``, ``kind``, ``similarity`` (−1 to 1), one row a pair. Kinds, :data:`PAIR_KINDS`:
        ``evidence, same session`` and ``evidence, other session`` (two pieces of one question), ``evidence – random``
        (a random turn of the scope that is no evidence of the question), ``question – evidence`` and
        ``question – best other`` (the turn nearest to the question that is no evidence of it).
    :raises DataError: when lengths or widths differ, a number is not finite, an id comes twice or a column is missing.

    >>> import numpy as np, polars as pl
    >>> from memlab.cluster import pair_similarity
    >>> questions = pl.DataFrame({"query_id": ["q"], "evidence": [["a/s1/1", "a/s2/1"]]})
    >>> pair_similarity(np.eye(3), ["a/s1/1", "a/s2/1", "a/s2/2"], questions, n_random=0).rows()
    [('q', 'evidence, other session', 0.0)]
    """
    rows = unit_rows(embeddings)
    if len(rows) != len(turn_ids):
        raise DataError(f"{len(rows)} embeddings but {len(turn_ids)} turn ids; expected one id for each embedding")
    listed = pl.DataFrame({"turn_id": pl.Series(turn_ids, dtype=pl.String)}).with_row_index("at")
    _checked_labels(listed.with_columns(label=0))
    listed = listed.with_columns(scope=_SCOPE, session=session_of("turn_id", turns))
    pieces = _evidence(questions).join(listed, on="turn_id", maintain_order="left")
    parts = [_evidence_pairs(pieces), _random_pairs(pieces, listed, n_random, np.random.default_rng(seed))]
    compared = [p.with_columns(similarity=_cosine(rows, rows, p["at"], p["other"])) for p in parts]
    if question_embeddings is not None:
        asked = unit_rows(question_embeddings)
        if asked.shape != (questions.height, rows.shape[1]):
            raise DataError(
                f"question_embeddings have shape {asked.shape}; expected {(questions.height, rows.shape[1])}: one row "
                "for each question, as wide as the embeddings of the turns"
            )
        pieces = pieces.join(questions.select("query_id").with_row_index("asked"), on="query_id", maintain_order="left")
        near = pieces.with_columns(kind=pl.lit(PAIR_KINDS[3]))
        compared.append(near.with_columns(similarity=_cosine(asked, rows, near["asked"], near["at"])))
        compared.append(_best_other(asked, rows, pieces, listed))
    return pl.concat([c.select("query_id", "kind", pl.col("similarity").cast(pl.Float64)) for c in compared])


def _evidence_pairs(pieces: pl.DataFrame) -> pl.DataFrame:
    right = pieces.select("query_id", other="at", other_session="session")
    pairs = pieces.join(right, on="query_id", maintain_order="left_right").filter(pl.col("at") < pl.col("other"))
    same = pl.col("session") == pl.col("other_session")
    return pairs.with_columns(kind=pl.when(same).then(pl.lit(PAIR_KINDS[0])).otherwise(pl.lit(PAIR_KINDS[1])))


def _random_pairs(pieces: pl.DataFrame, turns: pl.DataFrame, n_random: int, rng: np.random.Generator) -> pl.DataFrame:
    pool = turns.select("scope", other="at", place=pl.int_range(pl.len()).over("scope"), size=pl.len().over("scope"))
    sizes = pool.select("scope", "size").unique()
    drawn = pieces.select(pl.all().repeat_by(n_random).explode()).join(sizes, on="scope", maintain_order="left")
    drawn = drawn.with_columns(place=(pl.Series(rng.random(drawn.height)) * pl.col("size")).cast(pl.Int64))
    drawn = drawn.join(pool.drop("size"), on=["scope", "place"], maintain_order="left")
    # A drawn turn that is evidence is dropped, not drawn again: what is left is uniform over the rest.
    evidence = pieces.select("query_id", other="at")
    drawn = drawn.join(evidence, on=["query_id", "other"], how="anti", maintain_order="left")
    return drawn.with_columns(kind=pl.lit(PAIR_KINDS[2]))


def _best_other(asked: np.ndarray, rows: np.ndarray, pieces: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Find the best turn of the scope that is no evidence, one matrix product a scope."""
    pools = {scope: part["at"].to_numpy() for (scope,), part in turns.group_by("scope")}
    nearest = [pl.DataFrame(schema={"query_id": pl.String(), "similarity": pl.Float32()})]
    for (scope,), part in pieces.group_by("scope", maintain_order=True):
        pool = pools[scope]
        queries = part.select("query_id", "asked").unique(maintain_order=True)
        scores = asked[queries["asked"].to_numpy()] @ rows[pool].T
        query_row = np.searchsorted(queries["asked"].to_numpy(), part["asked"].to_numpy())
        scores[query_row, np.searchsorted(pool, part["at"].to_numpy())] = -np.inf
        best = scores.max(axis=1)
        nearest.append(queries.select("query_id", similarity=pl.Series(best)).filter(pl.Series(best > -np.inf)))
    return pl.concat(nearest).with_columns(kind=pl.lit(PAIR_KINDS[4]))


def _cosine(left: np.ndarray, right: np.ndarray, left_at: pl.Series, right_at: pl.Series) -> pl.Series:
    return pl.Series(np.einsum("nd,nd->n", left[left_at.to_numpy()], right[right_at.to_numpy()]))


def _evidence(questions: pl.DataFrame) -> pl.DataFrame:
    _need(questions, "questions", "query_id", "evidence")
    pieces = questions.select("query_id", turn_id=pl.col("evidence").list.unique(maintain_order=True))
    return pieces.explode("turn_id").drop_nulls("turn_id")


def _checked_labels(turn_labels: pl.DataFrame) -> pl.DataFrame:
    _need(turn_labels, "turn_labels", "turn_id", "label")
    twice = turn_labels.filter(pl.col("turn_id").is_duplicated())
    if twice.height:
        raise DataError(f"turn_labels: turn {twice['turn_id'][0]!r} has more than one label; expected one row a turn")
    return turn_labels.select("turn_id", pl.col("label").cast(pl.Int64))


def _need(frame: pl.DataFrame, name: str, *columns: str) -> None:
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise DataError(f"{name} has no column {missing[0]!r}; it has {frame.columns}, expected {list(columns)}")
