"""Where the evidence of a question meets in trees of turns, and where the question lies, as tables
and sentences.

Merge trees are compared with turns that are permuted within a scope, within its speakers, and
within the sessions of each speaker. A question is placed in clusters that were found without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab import llm
from memlab.cluster.clusterers import NOISE
from memlab.cluster.evidence_merges import observed_and_null_merges, turn_places_of_each_group
from memlab.cluster.hdbscan_clusters import DensityClusters, density_clusters
from memlab.cluster.merge_trees import LINKAGES, merge_tree, scope_trees
from memlab.embed.speaker_centring import sum_vectors_by_speaker
from memlab.errors import DataError
from memlab.evaluate.branch_names import add_end_branch_names_and_warn
from memlab.evaluate.cluster_spread import (
    AS_ENCODED,
    CENTRED,
    FEWEST,
    MEASURED,
    PERMUTED,
    WITHIN,
    format_mean_share_and_interval,
    measured_and_control_rows,
    questions_in_scope_order,
    scopes_in_question_order,
    sentences_on_cluster_spread,
)
from memlab.evaluate.conclusions import Conclusions, format_p, format_percent
from memlab.evaluate.confidence_intervals import mean_intervals, scopes_if_they_are_the_unit
from memlab.evaluate.groups_of_questions import add_question_sources_column, list_evidence_items
from memlab.evaluate.significance_tests import compare_paired
from memlab.question_source_labels import question_sources_note_or_empty
from memlab.retrieve import Bench

WITHIN_SESSIONS = "permuted within speakers and sessions"
CONTROLS: dict[str, tuple[str, ...]] = {
    PERMUTED: (),
    WITHIN: ("speaker",),
    WITHIN_SESSIONS: ("speaker", "session_id"),
}
"""The columns within which each control permutes turns."""
BRANCH = "share of the memory in the branch"
TENTH = "questions with a branch of at most a tenth"
"""What is measured of the lowest branch that holds all evidence of a question."""
CLUSTERED = "questions in a cluster"
SHARED = "questions in a cluster of their evidence"
SOFT = "soft membership in the clusters of the evidence"
"""What is measured of the place of a question."""
RETRIEVED = "retrieved"
MISSED = "missed"

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


def turns_in_document_order(bench: Bench) -> pl.DataFrame:
    """Give the turns in the order of their documents: ``scope``, ``turn_id``, ``speaker``,
    ``session_id``.
    """
    columns = ("scope", "turn_id", "speaker", "session_id")
    turn_ids = pl.DataFrame({"turn_id": pl.Series(bench.documents("turn").ids, dtype=pl.String)})
    return turn_ids.join(bench.turns.select(columns), on="turn_id", maintain_order="left")


def evidence_merge_table(
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
        where no question has two items. Where the evidence has ``source``, ``question_sources``
        says who wrote the questions, here and in the other tables.
    :raises DataError: when the bench was made without an encoder.
    """
    turns = turns_in_document_order(bench)
    documents = bench.documents("turn")
    scopes = scopes_if_they_are_the_unit(scopes_in_question_order(evidence, turns))
    vectors_by_name = {CENTRED: documents.speaker_centred(), AS_ENCODED: documents.vectors()}
    merge_rows = list[dict[str, Any]]()
    for vectors, compared in vectors_by_name.items():
        for linkage in LINKAGES:
            trees = scope_trees(compared, documents.spans, linkage=linkage)
            observed = np.zeros(0)
            controls = dict[str, np.ndarray]()
            for control_name, columns in CONTROLS.items():
                observed, controls[control_name] = observed_and_null_merges(
                    evidence, trees, turns, within=columns, draws=draws, seed=seed
                )
            tree_labels = {"vectors": vectors, "linkage": linkage}
            for row in _iter_branch_and_tenth_rows(observed, controls, scopes, seed):
                merge_rows.append(tree_labels | row)
    schema = {**dict.fromkeys(_NAMES, pl.String), **_NUMBERS, "median": pl.Float64}
    has_several_items = pl.col("turn_id").n_unique().over("query_id") > 1
    return add_question_sources_column(
        pl.DataFrame(merge_rows, schema=schema), evidence.filter(has_several_items)
    )


def _iter_branch_and_tenth_rows(
    observed_shares: np.ndarray,
    nulls_by_control: Mapping[str, np.ndarray],
    scopes: np.ndarray | None,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Give the rows of both numbers, the median beside the mean of the first."""
    if not np.isfinite(observed_shares).any():
        return
    medians = {MEASURED: np.nanmedian(observed_shares)}
    for control_name, null_values in nulls_by_control.items():
        medians[control_name] = np.nanmedian(null_values)
    for row in measured_and_control_rows(
        observed_shares, nulls_by_control, scopes, seed, kind_column="turns"
    ):
        yield {"number": BRANCH, **row, "median": float(medians[row["turns"]])}
    null_tenths = {
        control_name: _indicate_shares_up_to_a_tenth(null_values)
        for control_name, null_values in nulls_by_control.items()
    }
    measured = _indicate_shares_up_to_a_tenth(observed_shares)
    for row in measured_and_control_rows(measured, null_tenths, scopes, seed, kind_column="turns"):
        yield {"number": TENTH, **row, "median": None}


def _indicate_shares_up_to_a_tenth(shares: np.ndarray) -> np.ndarray:
    """Say by 1 and 0 which shares are at most a tenth; NaN stays."""
    return np.where(np.isnan(shares), np.nan, shares <= _SMALL)


def choose_typical_question(questions: pl.DataFrame, bench: Bench) -> pl.DataFrame:
    """Choose a question to draw, one whose branch is about as large as that of most.

    Of those with three to eight evidence items the one whose branch in the speaker-centred
    average-linkage tree is the nearest to the mean of all, of equal ones the first; where no
    question has so many items, the first question.

    :param questions: ``query_id`` and ``evidence`` (ids of turns), beside whatever else.
    :returns: its row; no row where there are no questions.

    >>> import memlab
    >>> from memlab.evaluate.evidence_tree import choose_typical_question
    >>> data = memlab.sample()
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> choose_typical_question(data.questions.head(20), bench).height
    1
    """
    evidence = list_evidence_items(questions)
    documents = bench.documents("turn")
    turns = turns_in_document_order(bench)
    trees = scope_trees(documents.speaker_centred(), documents.spans)
    shares, _ = observed_and_null_merges(evidence, trees, turns, draws=0)
    merge_shares = pl.DataFrame({"query_id": questions_in_scope_order(evidence, turns)["query_id"]})
    merge_shares = merge_shares.with_columns(share=pl.Series(shares, nan_to_null=True))
    merge_shares = merge_shares.with_columns(apart=(pl.col("share") - pl.col("share").mean()).abs())
    n_items = pl.col("evidence").list.n_unique()
    drawable_questions = questions.filter(n_items.is_between(*_DRAWN_ITEMS))
    questions_with_shares = drawable_questions.join(
        merge_shares, on="query_id", how="left", maintain_order="left"
    )
    nearest_first = questions_with_shares.sort("apart", maintain_order=True).select(
        questions.columns
    )
    return pl.concat([nearest_first, questions]).head(1)


def boxes_and_leaves_of_trees(
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
        :func:`memlab.cluster.names_by_model.name_clusters`.
    :returns: boxes and leaves for :func:`memlab.figures.condensed_tree.condensed_tree`,
        speaker-centred.
    :raises DataError: when the bench was made without an encoder, or has no such scope or turn.

    >>> import memlab
    >>> from memlab.evaluate.evidence_tree import boxes_and_leaves_of_trees
    >>> data = memlab.sample(turns=60)
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> evidence = data.turns["turn_id"].head(2).to_list()
    >>> boxes, leaves = boxes_and_leaves_of_trees(bench, data.scopes[0], evidence)
    >>> boxes["panel"].n_unique(), int(leaves["evidence"].sum())
    (2, 4)
    """
    documents = bench.documents("turn")
    if scope not in documents.spans:
        known_scopes = ", ".join(list(documents.spans)[:5])
        raise DataError(f"no scope {scope!r} on this bench; there are {known_scopes}")
    first_place, end_place = documents.spans[scope]
    turns = turns_in_document_order(bench)[first_place:end_place]
    turn_texts = bench.turns.select("turn_id", "text")
    turns_with_text = turns.join(turn_texts, on="turn_id", maintain_order="left")
    vectors = documents.speaker_centred()[first_place:end_place]
    ranks = {turn: rank for rank, turn in enumerate(retrieved, 1)}
    is_evidence = pl.col("turn_id").is_in(list(evidence))
    evidence_ids = pl.Series("turn_id", evidence, dtype=pl.String).to_frame()
    evidence_pairs = evidence_ids.select(pl.lit("").alias("query_id"), "turn_id")
    boxes = list[pl.DataFrame]()
    leaves = list[pl.DataFrame]()
    for linkage in LINKAGES:
        tree = merge_tree(vectors, linkage=linkage)
        observed, null_values = observed_and_null_merges(
            evidence_pairs, {scope: tree}, turns, within=("speaker",), draws=draws, seed=seed
        )
        panel = pl.lit(
            _tree_panel_heading(linkage, observed, null_values, n_turns=turns.height)
        ).alias("panel")
        evidence_places = turns.select(is_evidence.arg_true()).to_series().to_numpy()
        first_leaf = -1
        end_leaf = -1
        if len(evidence_places):
            first_leaf, end_leaf = tree.spans[tree.lowest_common(evidence_places)]
        holds_evidence = (pl.col("first") >= int(first_leaf)) & (pl.col("end") <= int(end_leaf))
        named_boxes = add_end_branch_names_and_warn(
            tree.branches(LEAST_LEAVES),
            turns_with_text,
            vectors,
            tree.spans[tree.leaf_of, 0],
            service=service,
            language=bench.language,
        )
        boxes.append(named_boxes.select(panel, pl.all(), holds=holds_evidence))
        # Where a turn enters the drawn part of the tree.
        entry_heights = tree.height_of(tree.branches_above(np.arange(turns.height), LEAST_LEAVES))
        leaves.append(
            turns_with_text.select(
                panel,
                "turn_id",
                "text",
                x=pl.Series(tree.spans[tree.leaf_of].mean(axis=1)),
                enters=pl.Series(entry_heights),
                evidence=is_evidence,
                rank=pl.col("turn_id").replace_strict(ranks, default=None, return_dtype=pl.Int32),
            )
        )
    return pl.concat(boxes), pl.concat(leaves)


def _tree_panel_heading(
    linkage: str, observed_shares: np.ndarray, null_shares: np.ndarray, *, n_turns: int
) -> str:
    """Say above a tree how much of the memory the branch with all evidence holds."""
    if not np.isfinite(observed_shares).any():
        return f"{linkage} linkage"
    branch_share = format_percent(float(observed_shares[0]))
    random_share = format_percent(float(np.median(null_shares)))
    return (
        f"{linkage} linkage: the branch with all evidence holds {branch_share} of {n_turns:,} "
        f"turns, with random turns of the same speakers {random_share} "
        f"(median of {null_shares.size:,})"
    )


def density_clusters_by_seed_and_scope(
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
        {
            scope: density_clusters(vectors[first_place:end_place], seed=seed)
            for scope, (first_place, end_place) in spans
        }
        for seed in seeds
    ]


def cluster_label_table(
    bench: Bench, clusters_by_seed: Sequence[Mapping[str, DensityClusters]], seeds: Sequence[int]
) -> pl.DataFrame:
    """Give the labels of :func:`density_clusters_by_seed_and_scope` as
    :func:`memlab.cluster.scope_labels` gives them.
    """
    turns = turns_in_document_order(bench).select("scope", "turn_id")
    seed_tables = []
    for seed, scope_clusters in zip(seeds, clusters_by_seed, strict=True):
        labels = np.concatenate(
            [clusters_of_scope.labels for clusters_of_scope in scope_clusters.values()]
        )
        seed_tables.append(turns.with_columns(label=pl.Series(labels), draw=pl.lit(seed)))
    return pl.concat(seed_tables)


def question_placement_table(
    evidence: pl.DataFrame,
    bench: Bench,
    clusters_by_seed: Sequence[Mapping[str, DensityClusters]],
    *,
    centred: bool = True,
    draws: int = 1000,
    seed: int = 0,
) -> pl.DataFrame:
    """Measure whether questions lie in the clusters of their evidence, beside turns permuted within
    speakers.

    :param evidence: ``query_id``, ``turn_id``, of questions that the bench holds.
    :param clusters_by_seed: of :func:`density_clusters_by_seed_and_scope`; a question's numbers are
        the means over the seeds.
    :param centred: as the clusters were made; a question is then placed less the mean of its scope.
    :returns: ``number`` (:data:`CLUSTERED`, :data:`SHARED`, :data:`SOFT`), ``turns``, ``n`` and the
        rest as :func:`evidence_merge_table`; the first number has no control. No rows without
        evidence.
    """
    turns = turns_in_document_order(bench)
    generator = np.random.default_rng(seed)
    measured_values = [np.zeros((0, 3))]
    null_values = [np.zeros((draws, 0, 2))]
    turns_with_places = turns.with_columns(place=pl.int_range(pl.len()).over("scope"))
    evidence_with_places = evidence.join(turns_with_places, on="turn_id", maintain_order="left")
    for (scope,), scope_evidence in evidence_with_places.group_by("scope", maintain_order=True):
        permuted_places = np.tile(np.arange(turns.filter(scope=scope).height), (draws, 1))
        for speaker_places in turn_places_of_each_group(turns.filter(scope=scope), ("speaker",)):
            permuted_places[:, speaker_places] = generator.permuted(
                permuted_places[:, speaker_places], axis=1
            )
        query_ids = scope_evidence["query_id"].unique(maintain_order=True)
        vectors = _vectors_of_questions(bench, str(scope), query_ids, centred=centred)
        scope_clusters = [seed_clusters[str(scope)] for seed_clusters in clusters_by_seed]
        places = [seed_clusters.place(vectors) for seed_clusters in scope_clusters]
        for number, (_, question_evidence) in enumerate(
            scope_evidence.group_by("query_id", maintain_order=True)
        ):
            evidence_places = question_evidence["place"].unique().to_numpy()
            place_sets = np.vstack([evidence_places, permuted_places[:, evidence_places]])
            shares_by_seed = [
                _hard_and_soft_membership_in_clusters(
                    clustering.labels[place_sets],
                    placement.labels[number],
                    placement.memberships[number],
                )
                for clustering, placement in zip(scope_clusters, places, strict=True)
            ]
            clustered_share = np.mean([placement.labels[number] != NOISE for placement in places])
            mean_shares = np.mean(shares_by_seed, axis=0)
            measured_values.append(np.r_[clustered_share, mean_shares[0]][None])
            null_values.append(mean_shares[1:, None])
    scopes = scopes_if_they_are_the_unit(scopes_in_question_order(evidence, turns))
    place_rows = _rows_of_question_placements(
        np.concatenate(measured_values), np.hstack(null_values), scopes, seed
    )
    schema = {"number": pl.String, "turns": pl.String, **_NUMBERS}
    return add_question_sources_column(pl.DataFrame(place_rows, schema=schema), evidence)


def _vectors_of_questions(
    bench: Bench, scope: str, query_ids: pl.Series, *, centred: bool
) -> np.ndarray:
    """Give the vectors of questions, less the mean of the scope's turns where these are centred:
    (q, d).
    """
    query_rows = bench.queries.with_row_index("row").select("query_id", "row")
    row_numbers = (
        query_ids.to_frame()
        .join(query_rows, on="query_id", maintain_order="left")["row"]
        .to_numpy()
    )
    question_vectors: np.ndarray = bench.require_query_vectors()[row_numbers]
    if not centred:
        return question_vectors
    documents = bench.documents("turn")
    first, end = documents.spans[scope]
    scope_vectors = documents.vectors()[first:end]
    return (
        question_vectors
        - sum_vectors_by_speaker(scope_vectors, [""] * len(scope_vectors)).scope_mean
    )


def _hard_and_soft_membership_in_clusters(
    turn_set_labels: np.ndarray, question_label: int, question_memberships: np.ndarray
) -> np.ndarray:
    """Say of sets of turns whether a question is in a cluster of theirs, and its membership in all
    of these.

    :param turn_set_labels: (sets, k) of their turns.
    :param question_memberships: (clusters,) of the question.
    :returns: (sets, 2).
    """
    # The last column is that of noise, in which nothing is a member.
    is_member = np.zeros((len(turn_set_labels), len(question_memberships) + 1))
    np.put_along_axis(is_member, turn_set_labels, 1.0, axis=1)
    is_member[:, NOISE] = 0.0
    return np.stack(
        [is_member[:, question_label], is_member[:, :-1] @ question_memberships], axis=1
    )


def _rows_of_question_placements(
    measured_values: np.ndarray, null_values: np.ndarray, scopes: np.ndarray | None, seed: int
) -> list[dict[str, Any]]:
    """Give the rows of the three numbers.

    :param measured_values: (n, 3); ``null_values`` (draws, n, 2), of the second and the third.
    """
    if not len(measured_values):
        return []
    interval = mean_intervals(measured_values[:, :1], scopes=scopes, seed=seed).drop("method")
    clustered_labels = {"number": CLUSTERED, "turns": MEASURED, "n": len(measured_values)}
    place_rows = [
        clustered_labels
        | interval.row(0, named=True)
        | {"mean": float(measured_values[:, 0].mean()), "p": None}
    ]
    for column, number in enumerate((SHARED, SOFT)):
        controls = {WITHIN: null_values[:, :, column]}
        measured_column = measured_values[:, column + 1]
        control_rows = measured_and_control_rows(
            measured_column, controls, scopes, seed, kind_column="turns"
        )
        place_rows.extend({"number": number, **row} for row in control_rows)
    return place_rows


def evidence_outlier_table(
    evidence: pl.DataFrame,
    retrieved: pl.DataFrame,
    bench: Bench,
    clusters_by_seed: Sequence[Mapping[str, DensityClusters]],
    *,
    seed: int = 0,
) -> pl.DataFrame:
    """Compare the outlier scores of evidence that was retrieved and that was missed, question by
    question.

    :param evidence: ``query_id``, ``turn_id``; ``retrieved`` the same, of the first turns.
    :param clusters_by_seed: of :func:`density_clusters_by_seed_and_scope`; a turn's score is the
        mean over the seeds.
    :returns: ``evidence`` (:data:`RETRIEVED`, :data:`MISSED`), ``items``, and of questions with
        both what :func:`memlab.evaluate.significance_tests.compare_paired` gives; no rows where
        there are none.
    """
    turns = turns_in_document_order(bench)
    scores = np.mean(
        [
            np.concatenate(
                [scope_clusters.outlier_scores for scope_clusters in seed_clusters.values()]
            )
            for seed_clusters in clusters_by_seed
        ],
        axis=0,
    )
    scored_turns = turns.select("turn_id", "scope", score=pl.Series(scores, dtype=pl.Float64))
    retrieved_turns = retrieved.select("query_id", "turn_id").unique().with_columns(hit=True)
    scored_items = evidence.join(scored_turns, on="turn_id", maintain_order="left")
    scored_items = scored_items.join(
        retrieved_turns, on=["query_id", "turn_id"], how="left", maintain_order="left"
    )
    is_retrieved = pl.col("hit").fill_null(False)
    mean_scores = scored_items.group_by("query_id", "scope", maintain_order=True).agg(
        pl.col("score").filter(is_retrieved).mean().alias(RETRIEVED),
        pl.col("score").filter(~is_retrieved).mean().alias(MISSED),
        hits=is_retrieved.sum(),
        misses=(~is_retrieved).sum(),
    )
    mean_scores = mean_scores.drop_nulls([RETRIEVED, MISSED])
    score_pairs = mean_scores.select(RETRIEVED, MISSED).to_numpy()
    scopes = scopes_if_they_are_the_unit(mean_scores["scope"].to_numpy())
    comparison = compare_paired(score_pairs, np.array([0, 0]), scopes=scopes, seed=seed)
    item_counts = [mean_scores["hits"].sum(), mean_scores["misses"].sum()]
    evidence_rows = pl.DataFrame({"evidence": [RETRIEVED, MISSED], "items": item_counts})
    compared = evidence_rows.hstack(comparison).head(2 if mean_scores.height else 0)
    return add_question_sources_column(
        compared, evidence.join(mean_scores, on="query_id", how="semi")
    )


def sentences_on_merges(merge_rows: pl.DataFrame) -> list[str]:
    """Say what :func:`evidence_merge_table` found, the answer first.

    Nothing of fewer questions than a test needs.

    >>> import polars as pl
    >>> from memlab.evaluate.evidence_tree import sentences_on_merges
    >>> empty = dict.fromkeys(("vectors", "linkage", "number", "turns"), pl.String)
    >>> sentences_on_merges(pl.DataFrame(schema=empty))
    []
    """
    rows_by_key: dict[tuple[str, ...], dict[str, Any]] = {
        tuple(row[column_name] for column_name in _NAMES): row
        for row in merge_rows.iter_rows(named=True)
    }
    branch_row = rows_by_key.get((CENTRED, "average", BRANCH, MEASURED))
    if branch_row is None or branch_row["n"] < FEWEST:
        return []
    control_row = rows_by_key[CENTRED, "average", BRANCH, WITHIN]
    tenth_row = rows_by_key[CENTRED, "average", TENTH, MEASURED]
    tenth_control = rows_by_key[CENTRED, "average", TENTH, WITHIN]
    sentences = [
        "To have all evidence of a question in one branch of the average-linkage tree, "
        f"{format_mean_share_and_interval(branch_row)} of the memory must be taken "
        f"(mean of {branch_row['n']:,} questions; median {format_percent(branch_row['median'])}), "
        f"{_format_random_turn_mean_and_p(control_row)}; a tenth "
        f"is enough for {format_mean_share_and_interval(tenth_row)} of them, "
        f"{_format_random_turn_mean_and_p(tenth_control)}."
    ]
    other_trees = []
    for vectors, linkage in ((CENTRED, "single"), (AS_ENCODED, "average"), (AS_ENCODED, "single")):
        tree_row = rows_by_key[vectors, linkage, BRANCH, MEASURED]
        tree_control = rows_by_key[vectors, linkage, BRANCH, WITHIN]
        other_trees.append(
            f"{linkage} linkage, {vectors}: {format_percent(tree_row['mean'])} against "
            f"{format_percent(tree_control['mean'])}"
        )
    sentences.append(f"Other trees, HDBSCAN's kind being single linkage: {'; '.join(other_trees)}.")
    return sentences


def sentences_on_placements_and_outliers(
    placement_table: pl.DataFrame, outlier_table: pl.DataFrame
) -> list[str]:
    """Say what :func:`question_placement_table` and :func:`evidence_outlier_table` found.

    Nothing of too few questions.
    """
    rows_by_key = {
        (row["number"], row["turns"]): row for row in placement_table.iter_rows(named=True)
    }
    clustered_row = rows_by_key.get((CLUSTERED, MEASURED))
    sentences = list[str]()
    if clustered_row is not None and clustered_row["n"] >= FEWEST:
        shared_row = rows_by_key[SHARED, MEASURED]
        soft_row = rows_by_key[SOFT, MEASURED]
        sentences.append(
            f"{format_mean_share_and_interval(clustered_row)} of the questions fall into a "
            f"cluster, {format_mean_share_and_interval(shared_row)} into one of their evidence; "
            f"their soft membership in the clusters of their evidence is {soft_row['mean']:.2f}, "
            f"{rows_by_key[SOFT, WITHIN]['mean']:.2f} with turns permuted within speakers "
            f"({format_p(rows_by_key[SOFT, WITHIN]['p'])}, uncorrected)."
        )
    outlier_rows = {row["evidence"]: row for row in outlier_table.iter_rows(named=True)}
    if outlier_rows and outlier_rows[MISSED]["n"] >= FEWEST:
        missed_row = outlier_rows[MISSED]
        retrieved_row = outlier_rows[RETRIEVED]
        sentences.append(
            f"Missed evidence has an outlier score (GLOSH) of {missed_row['mean']:.2f} on average, "
            f"retrieved evidence of the same {missed_row['n']:,} questions "
            f"{retrieved_row['mean']:.2f} ({format_p(missed_row['p'])})."
        )
    return sentences


def conclude_on_trees_and_clusters(
    merge_table: pl.DataFrame,
    placement_table: pl.DataFrame,
    outlier_table: pl.DataFrame,
    spread_table: pl.DataFrame,
    *,
    k: int,
    reached_shares: Iterable[float] = (),
) -> Conclusions:
    """Say what all tables found of trees and clusters, and who wrote the questions.

    :param merge_table: of :func:`evidence_merge_table`; ``placement_table`` of
        :func:`question_placement_table`, ``outlier_table`` of
        :func:`evidence_outlier_table`.
    :param spread_table: of :func:`memlab.evaluate.cluster_spread.spread_table`.
    :param k: how many first turns; ``reached_shares`` of
        :func:`memlab.evaluate.cluster_spread.shares_of_evidence_clusters_reached`.
    """
    sentences = sentences_on_merges(merge_table)
    sentences += sentences_on_placements_and_outliers(placement_table, outlier_table)
    sentences += sentences_on_cluster_spread(
        spread_table, k=k, reached_shares_by_question=reached_shares
    )
    sentences += filter(None, [question_sources_note_or_empty(spread_table)])
    return Conclusions(sentences)


def _format_random_turn_mean_and_p(control_row: Mapping[str, Any]) -> str:
    """Write the mean of random turns of the same speakers, and the p of the measured value."""
    permuted = f"{format_percent(control_row['mean'])} for random turns of the same speakers"
    return f"{permuted} ({format_p(control_row['p'])}, uncorrected)"
