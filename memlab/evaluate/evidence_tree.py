"""Where the evidence of a question meets in trees of turns, and where the question lies, as tables
and sentences.

Merge trees are compared with turns that are permuted within a scope, within its speakers, and
within the sessions of each speaker. A question is placed in clusters that were found without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab import llm
from memlab.cluster.clusterers import NOISE
from memlab.cluster.density_clusters import DensityClusters, density_clusters
from memlab.cluster.evidence_merges import observed_and_null_merges, places_of_groups
from memlab.cluster.merge_trees import LINKAGES, merge_tree, scope_trees
from memlab.embed.speaker_centring import add_by_speaker
from memlab.errors import DataError
from memlab.evaluate.branch_names import name_branches
from memlab.evaluate.cluster_spread import (
    AS_ENCODED,
    CENTRED,
    FEWEST,
    MEASURED,
    PERMUTED,
    WITHIN,
    asked_in_order,
    mean_share_text,
    rows_beside_controls,
    scopes_of_questions,
)
from memlab.evaluate.conclusions import p_text, percent
from memlab.evaluate.confidence_intervals import clustering_scopes, mean_intervals
from memlab.evaluate.significance import compare_paired
from memlab.retrieve import Bench

WITHIN_SESSIONS = "permuted within speakers and sessions"
CONTROLS: dict[str, tuple[str, ...]] = {
    PERMUTED: (),
    WITHIN: ("speaker",),
    WITHIN_SESSIONS: ("speaker", "session_id"),
}
"""The columns within which each control permutes turns."""
BRANCH, TENTH = "share of the memory in the branch", "questions with a branch of at most a tenth"
"""What is measured of the lowest branch that holds all evidence of a question."""
CLUSTERED, SHARED, SOFT = (
    "questions in a cluster",
    "questions in a cluster of their evidence",
    "soft membership in the clusters of the evidence",
)
"""What is measured of the place of a question."""
RETRIEVED, MISSED = "retrieved", "missed"

LEAST_LEAVES = 5
"""Of a branch that is drawn: as many as a cluster of HDBSCAN has by default."""

_SMALL = 0.1
_DRAWN_ITEMS = (3, 8)
_NAMES = ("vectors", "linkage", "number", "turns")
_NUMBERS = {
    "n": pl.Int64,
    "unit": pl.String,
    "units": pl.Int64,
    **dict.fromkeys(("mean", "low", "high", "level", "p"), pl.Float64),
}


def turns_in_order(bench: Bench) -> pl.DataFrame:
    """Give the turns in the order of their documents: ``scope``, ``turn_id``, ``speaker``,
    ``session_id``.
    """
    columns = ("scope", "turn_id", "speaker", "session_id")
    ids = pl.DataFrame({"turn_id": pl.Series(bench.documents("turn").ids, dtype=pl.String)})
    return ids.join(bench.turns.select(columns), on="turn_id", maintain_order="left")


def merge_table(
    evidence: pl.DataFrame, bench: Bench, *, draws: int = 1000, seed: int = 0
) -> pl.DataFrame:
    """Measure in which branch of a merge tree all evidence of a question meets, beside random
    turns.

    Of both linkages, and of turns speaker-centred and as they are encoded.

    :param evidence: ``query_id``, ``turn_id``; questions with one evidence item are left out.
    :param draws: permutations of each control.
    :param seed: of permutations and bootstrap.
    :returns: ``vectors``, ``linkage``, ``number`` (:data:`BRANCH`, :data:`TENTH`), ``turns`` (what
        was measured, or one of :data:`CONTROLS`), ``n`` questions, ``mean`` with ``low`` and
        ``high`` at ``level`` over ``units`` of ``unit``, of a control the middle of its draws;
        ``p``, two-sided, uncorrected, of the measured mean under the control; ``median``. No rows
        where no question has two items.
    :raises DataError: when the bench was made without an encoder.
    """
    turns, documents = turns_in_order(bench), bench.documents("turn")
    scopes = clustering_scopes(scopes_of_questions(evidence, turns))
    ways = {CENTRED: documents.speaker_centred(), AS_ENCODED: documents.vectors()}
    rows = list[dict[str, Any]]()
    for vectors, compared in ways.items():
        for linkage in LINKAGES:
            trees = scope_trees(compared, documents.spans, linkage=linkage)
            observed = np.zeros(0)
            controls = dict[str, np.ndarray]()
            for name, columns in CONTROLS.items():
                observed, controls[name] = observed_and_null_merges(
                    evidence, trees, turns, within=columns, draws=draws, seed=seed
                )
            about = {"vectors": vectors, "linkage": linkage}
            for row in _rows_of_tree(observed, controls, scopes, seed):
                rows.append(about | row)
    schema = {**dict.fromkeys(_NAMES, pl.String), **_NUMBERS, "median": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def _rows_of_tree(
    observed: np.ndarray, controls: Mapping[str, np.ndarray], scopes: np.ndarray | None, seed: int
) -> Iterator[dict[str, Any]]:
    """Give the rows of both numbers, the median beside the mean of the first."""
    if not np.isfinite(observed).any():
        return
    medians = {MEASURED: np.nanmedian(observed)}
    for name, null in controls.items():
        medians[name] = np.nanmedian(null)
    for row in rows_beside_controls(observed, controls, scopes, seed, column="turns"):
        yield {"number": BRANCH, **row, "median": float(medians[row["turns"]])}
    small = {name: _at_most_a_tenth(null) for name, null in controls.items()}
    measured = _at_most_a_tenth(observed)
    for row in rows_beside_controls(measured, small, scopes, seed, column="turns"):
        yield {"number": TENTH, **row, "median": None}


def _at_most_a_tenth(shares: np.ndarray) -> np.ndarray:
    """Say by 1 and 0 which shares are at most a tenth; NaN stays."""
    return np.where(np.isnan(shares), np.nan, shares <= _SMALL)


def typical_question(questions: pl.DataFrame, bench: Bench) -> pl.DataFrame:
    """Choose a question to draw, one whose branch is about as large as that of most.

    Of those with three to eight evidence items the one whose branch in the speaker-centred
    average-linkage tree is the nearest to the mean of all, of equal ones the first; where no
    question has so many items, the first question.

    :param questions: ``query_id`` and ``evidence`` (ids of turns), beside whatever else.
    :returns: its row; no row where there are no questions.

    >>> import memlab
    >>> from memlab.evaluate.evidence_tree import typical_question
    >>> data = memlab.sample()
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> typical_question(data.questions.head(20), bench).height
    1
    """
    items = pl.col("evidence").list.unique(maintain_order=True)
    evidence = questions.select("query_id", turn_id=items).explode("turn_id").drop_nulls()
    documents, turns = bench.documents("turn"), turns_in_order(bench)
    trees = scope_trees(documents.speaker_centred(), documents.spans)
    shares, _ = observed_and_null_merges(evidence, trees, turns, draws=0)
    meeting = pl.DataFrame({"query_id": asked_in_order(evidence, turns)["query_id"]})
    meeting = meeting.with_columns(share=pl.Series(shares, nan_to_null=True))
    meeting = meeting.with_columns(apart=(pl.col("share") - pl.col("share").mean()).abs())
    drawn = questions.filter(items.list.len().is_between(*_DRAWN_ITEMS))
    placed = drawn.join(meeting, on="query_id", how="left", maintain_order="left")
    nearest = placed.sort("apart", maintain_order=True).select(questions.columns)
    return pl.concat([nearest, questions]).head(1)


def question_trees(
    bench: Bench,
    scope: str,
    evidence: Sequence[str],
    *,
    retrieved: Sequence[str] = (),
    draws: int = 1000,
    seed: int = 0,
    service: str | llm.Service | None = llm.RECORDED,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Join the turns of a scope by average and by single linkage, with one question's evidence at
    their feet.

    :param evidence: ids of turns of the scope; ``retrieved`` the same, the best first.
    :param draws: permutations within speakers, of which the panel's heading gives the median.
    :param service: who names the largest branches, see
        :func:`memlab.cluster.model_names.name_clusters`.
    :returns: boxes and leaves for :func:`memlab.figures.condensed_tree.condensed_tree`,
        speaker-centred.
    :raises DataError: when the bench was made without an encoder, or has no such scope or turn.

    >>> import memlab
    >>> from memlab.evaluate.evidence_tree import question_trees
    >>> data = memlab.sample(turns=60)
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> evidence = data.turns["turn_id"].head(2).to_list()
    >>> boxes, leaves = question_trees(bench, data.scopes[0], evidence)
    >>> boxes["panel"].n_unique(), int(leaves["evidence"].sum())
    (2, 4)
    """
    documents = bench.documents("turn")
    if scope not in documents.spans:
        known = ", ".join(list(documents.spans)[:5])
        raise DataError(f"no scope {scope!r} on this bench; there are {known}")
    first, end = documents.spans[scope]
    turns = turns_in_order(bench)[first:end]
    texts = bench.turns.select("turn_id", "text")
    spoken = turns.join(texts, on="turn_id", maintain_order="left")
    vectors = documents.speaker_centred()[first:end]
    ranks = {turn: rank for rank, turn in enumerate(retrieved, 1)}
    is_evidence = pl.col("turn_id").is_in(list(evidence))
    ids = pl.Series("turn_id", evidence, dtype=pl.String).to_frame()
    asked = ids.select(pl.lit("").alias("query_id"), "turn_id")
    boxes, leaves = list[pl.DataFrame](), list[pl.DataFrame]()
    for linkage in LINKAGES:
        tree = merge_tree(vectors, linkage=linkage)
        observed, null = observed_and_null_merges(
            asked, {scope: tree}, turns, within=("speaker",), draws=draws, seed=seed
        )
        panel = pl.lit(_panel_text(linkage, observed, null)).alias("panel")
        held = turns.select(is_evidence.arg_true()).to_series().to_numpy()
        low, high = -1, -1
        if len(held):
            low, high = tree.spans[tree.lowest_common(held)]
        holds = (pl.col("first") >= int(low)) & (pl.col("end") <= int(high))
        named = name_branches(
            tree.branches(LEAST_LEAVES),
            spoken,
            vectors,
            tree.spans[tree.leaf_of, 0],
            service=service,
            language=bench.language,
        )
        boxes.append(named.select(panel, pl.all(), holds=holds))
        # Where a turn enters the drawn part of the tree.
        enters = tree.height_of(tree.branches_above(np.arange(turns.height), LEAST_LEAVES))
        leaves.append(
            spoken.select(
                panel,
                "turn_id",
                "text",
                x=pl.Series(tree.spans[tree.leaf_of].mean(axis=1)),
                enters=pl.Series(enters),
                evidence=is_evidence,
                rank=pl.col("turn_id").replace_strict(ranks, default=None, return_dtype=pl.Int32),
            )
        )
    return pl.concat(boxes), pl.concat(leaves)


def _panel_text(linkage: str, observed: np.ndarray, null: np.ndarray) -> str:
    """Say above a tree how much of the memory the branch with all evidence holds."""
    if not np.isfinite(observed).any():
        return f"{linkage} linkage"
    share, random = percent(float(observed[0])), percent(float(np.median(null)))
    return (
        f"{linkage} linkage: the branch with all evidence holds {share} of the memory, "
        f"with random turns of the same speakers {random} (median)"
    )


def density_by_scope(
    bench: Bench, *, centred: bool = True, seeds: Sequence[int] = (0,)
) -> list[dict[str, DensityClusters]]:
    """Cluster the turns of each scope by UMAP and HDBSCAN, once with each seed.

    :param centred: ``False`` for turns as they are encoded.
    :returns: of each seed, by scope, what :func:`memlab.cluster.density_clusters` gives.
    """
    documents = bench.documents("turn")
    vectors = documents.speaker_centred() if centred else documents.vectors()
    spans = documents.spans.items()
    return [
        {scope: density_clusters(vectors[first:end], seed=seed) for scope, (first, end) in spans}
        for seed in seeds
    ]


def label_table(
    bench: Bench, clusters: Sequence[Mapping[str, DensityClusters]], seeds: Sequence[int]
) -> pl.DataFrame:
    """Give the labels of :func:`density_by_scope` as :func:`memlab.cluster.scope_labels` gives
    them.
    """
    turns = turns_in_order(bench).select("scope", "turn_id")
    parts = []
    for seed, each in zip(seeds, clusters, strict=True):
        labels = np.concatenate([own.labels for own in each.values()])
        parts.append(turns.with_columns(label=pl.Series(labels), draw=pl.lit(seed)))
    return pl.concat(parts)


def place_questions(
    evidence: pl.DataFrame,
    bench: Bench,
    clusters: Sequence[Mapping[str, DensityClusters]],
    *,
    centred: bool = True,
    draws: int = 1000,
    seed: int = 0,
) -> pl.DataFrame:
    """Measure whether questions lie in the clusters of their evidence, beside turns permuted within
    speakers.

    :param evidence: ``query_id``, ``turn_id``, of questions that the bench holds.
    :param clusters: of :func:`density_by_scope`; a question's numbers are the means over the seeds.
    :param centred: as the clusters were made; a question is then placed less the mean of its scope.
    :returns: ``number`` (:data:`CLUSTERED`, :data:`SHARED`, :data:`SOFT`), ``turns``, ``n`` and the
        rest as :func:`merge_table`; the first number has no control. No rows without evidence.
    """
    turns = turns_in_order(bench)
    rng = np.random.default_rng(seed)
    measured, null = [np.zeros((0, 3))], [np.zeros((draws, 0, 2))]
    listed = turns.with_columns(place=pl.int_range(pl.len()).over("scope"))
    placed = evidence.join(listed, on="turn_id", maintain_order="left")
    for (scope,), own in placed.group_by("scope", maintain_order=True):
        order = np.tile(np.arange(turns.filter(scope=scope).height), (draws, 1))
        for group in places_of_groups(turns.filter(scope=scope), ("speaker",)):
            order[:, group] = rng.permuted(order[:, group], axis=1)
        asked = own["query_id"].unique(maintain_order=True)
        vectors = _question_vectors(bench, str(scope), asked, centred=centred)
        where = [each[str(scope)] for each in clusters]
        places = [each.place(vectors) for each in where]
        for number, (_, part) in enumerate(own.group_by("query_id", maintain_order=True)):
            at = part["place"].unique().to_numpy()
            sets = np.vstack([at, order[:, at]])
            values = [
                _in_clusters_of(found.labels[sets], place.labels[number], place.memberships[number])
                for found, place in zip(where, places, strict=True)
            ]
            in_any = np.mean([place.labels[number] != NOISE for place in places])
            mean = np.mean(values, axis=0)
            measured.append(np.r_[in_any, mean[0]][None])
            null.append(mean[1:, None])
    scopes = clustering_scopes(scopes_of_questions(evidence, turns))
    rows = _rows_of_places(np.concatenate(measured), np.hstack(null), scopes, seed)
    return pl.DataFrame(rows, schema={"number": pl.String, "turns": pl.String, **_NUMBERS})


def _question_vectors(
    bench: Bench, scope: str, query_ids: pl.Series, *, centred: bool
) -> np.ndarray:
    """Give the vectors of questions, less the mean of the scope's turns where these are centred:
    (q, d).
    """
    rows = bench.queries.with_row_index("row").select("query_id", "row")
    at = query_ids.to_frame().join(rows, on="query_id", maintain_order="left")["row"].to_numpy()
    asked: np.ndarray = bench.query_vectors[at]
    if not centred:
        return asked
    documents = bench.documents("turn")
    first, end = documents.spans[scope]
    of_scope = documents.vectors()[first:end]
    return asked - add_by_speaker(of_scope, [""] * len(of_scope)).scope_mean


def _in_clusters_of(labels: np.ndarray, label: int, memberships: np.ndarray) -> np.ndarray:
    """Say of sets of turns whether a question is in a cluster of theirs, and its membership in all
    of these.

    :param labels: (sets, k) of their turns.
    :param memberships: (clusters,) of the question.
    :returns: (sets, 2).
    """
    # The last column is that of noise, in which nothing is a member.
    held = np.zeros((len(labels), len(memberships) + 1))
    np.put_along_axis(held, labels, 1.0, axis=1)
    held[:, NOISE] = 0.0
    return np.stack([held[:, label], held[:, :-1] @ memberships], axis=1)


def _rows_of_places(
    measured: np.ndarray, null: np.ndarray, scopes: np.ndarray | None, seed: int
) -> list[dict[str, Any]]:
    """Give the rows of the three numbers.

    :param measured: (n, 3); ``null`` (draws, n, 2), of the second and the third.
    """
    if not len(measured):
        return []
    span = mean_intervals(measured[:, :1], scopes=scopes, seed=seed).drop("method")
    about = {"number": CLUSTERED, "turns": MEASURED, "n": len(measured)}
    rows = [about | span.row(0, named=True) | {"mean": float(measured[:, 0].mean()), "p": None}]
    for column, number in enumerate((SHARED, SOFT)):
        controls = {WITHIN: null[:, :, column]}
        values = measured[:, column + 1]
        own = rows_beside_controls(values, controls, scopes, seed, column="turns")
        rows.extend({"number": number, **row} for row in own)
    return rows


def outlier_table(
    evidence: pl.DataFrame,
    retrieved: pl.DataFrame,
    bench: Bench,
    clusters: Sequence[Mapping[str, DensityClusters]],
    *,
    seed: int = 0,
) -> pl.DataFrame:
    """Compare the outlier scores of evidence that was retrieved and that was missed, question by
    question.

    :param evidence: ``query_id``, ``turn_id``; ``retrieved`` the same, of the first turns.
    :param clusters: of :func:`density_by_scope`; a turn's score is the mean over the seeds.
    :returns: ``evidence`` (:data:`RETRIEVED`, :data:`MISSED`), ``items``, and of questions with
        both what :func:`memlab.evaluate.significance.compare_paired` gives; no rows where there are
        none.
    """
    turns = turns_in_order(bench)
    scores = np.mean(
        [np.concatenate([own.outlier_scores for own in each.values()]) for each in clusters], axis=0
    )
    scored = turns.select("turn_id", "scope", score=pl.Series(scores, dtype=pl.Float64))
    hits = retrieved.select("query_id", "turn_id").unique().with_columns(hit=True)
    items = evidence.join(scored, on="turn_id", maintain_order="left")
    items = items.join(hits, on=["query_id", "turn_id"], how="left", maintain_order="left")
    hit = pl.col("hit").fill_null(False)
    both = items.group_by("query_id", "scope", maintain_order=True).agg(
        pl.col("score").filter(hit).mean().alias(RETRIEVED),
        pl.col("score").filter(~hit).mean().alias(MISSED),
        hits=hit.sum(),
        misses=(~hit).sum(),
    )
    both = both.drop_nulls([RETRIEVED, MISSED])
    values = both.select(RETRIEVED, MISSED).to_numpy()
    scopes = clustering_scopes(both["scope"].to_numpy())
    compared = compare_paired(values, np.array([0, 0]), scopes=scopes, seed=seed)
    counts = [both["hits"].sum(), both["misses"].sum()]
    named = pl.DataFrame({"evidence": [RETRIEVED, MISSED], "items": counts})
    return named.hstack(compared).head(2 if both.height else 0)


def merge_sentences(table: pl.DataFrame) -> list[str]:
    """Say what :func:`merge_table` found, the answer first.

    Nothing of fewer questions than a test needs.

    >>> import polars as pl
    >>> from memlab.evaluate.evidence_tree import merge_sentences
    >>> empty = dict.fromkeys(("vectors", "linkage", "number", "turns"), pl.String)
    >>> merge_sentences(pl.DataFrame(schema=empty))
    []
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {
        tuple(row[name] for name in _NAMES): row for row in table.iter_rows(named=True)
    }
    branch = found.get((CENTRED, "average", BRANCH, MEASURED))
    if branch is None or branch["n"] < FEWEST:
        return []
    control = found[CENTRED, "average", BRANCH, WITHIN]
    small, by_chance = (found[CENTRED, "average", TENTH, name] for name in (MEASURED, WITHIN))
    lines = [
        "To have all evidence of a question in one branch of the average-linkage tree, "
        f"{mean_share_text(branch)} of the memory must be taken (mean of {branch['n']:,} "
        "questions; "
        f"median {percent(branch['median'])}), {_random_text(control)}; a tenth is enough for "
        f"{mean_share_text(small)} of them, {_random_text(by_chance)}."
    ]
    others = []
    for vectors, linkage in ((CENTRED, "single"), (AS_ENCODED, "average"), (AS_ENCODED, "single")):
        own, random = (found[vectors, linkage, BRANCH, name] for name in (MEASURED, WITHIN))
        others.append(
            f"{linkage} linkage, {vectors}: {percent(own['mean'])} against "
            f"{percent(random['mean'])}"
        )
    lines.append(f"Other trees, HDBSCAN's kind being single linkage: {'; '.join(others)}.")
    return lines


def place_sentences(places: pl.DataFrame, outliers: pl.DataFrame) -> list[str]:
    """Say what :func:`place_questions` and :func:`outlier_table` found.

    Nothing of too few questions.
    """
    found = {(row["number"], row["turns"]): row for row in places.iter_rows(named=True)}
    clustered = found.get((CLUSTERED, MEASURED))
    lines = list[str]()
    if clustered is not None and clustered["n"] >= FEWEST:
        shared, soft = found[SHARED, MEASURED], found[SOFT, MEASURED]
        lines.append(
            f"{mean_share_text(clustered)} of the questions fall into a cluster, "
            f"{mean_share_text(shared)} into one of their evidence; their soft membership in the "
            f"clusters of their evidence is {soft['mean']:.2f}, {found[SOFT, WITHIN]['mean']:.2f} "
            f"with turns permuted within speakers ({p_text(found[SOFT, WITHIN]['p'])}, "
            "uncorrected)."
        )
    rows = {row["evidence"]: row for row in outliers.iter_rows(named=True)}
    if rows and rows[MISSED]["n"] >= FEWEST:
        missed, retrieved = rows[MISSED], rows[RETRIEVED]
        lines.append(
            f"Missed evidence has an outlier score (GLOSH) of {missed['mean']:.2f} on average, "
            f"retrieved evidence of the same {missed['n']:,} questions {retrieved['mean']:.2f} "
            f"({p_text(missed['p'])})."
        )
    return lines


def _random_text(row: Mapping[str, Any]) -> str:
    """Write the mean of random turns of the same speakers, and the p of the measured value."""
    permuted = f"{percent(row['mean'])} for random turns of the same speakers"
    return f"{permuted} ({p_text(row['p'])}, uncorrected)"
