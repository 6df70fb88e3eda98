"""How the evidence of a benchmark lies in clusters of turns, as tables and as sentences.

Clusters are compared with two controls: labels permuted over all turns of a scope, and over the
turns of each speaker. The second asks what evidence items have in common beside their speaker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from memlab.cluster.evidence_spread import (
    observed_and_chance_same_speaker,
    observed_and_null_spread,
    pair_similarity,
    similarity_quartiles_by_kind,
)
from memlab.evaluate.conclusions import (
    format_interval_level,
    format_p,
    format_percent,
    format_share_with_interval,
)
from memlab.evaluate.confidence_intervals import mean_intervals, scopes_if_they_are_the_unit
from memlab.evaluate.groups_of_questions import (
    add_question_sources_column,
    describe_sources_of_items_or_empty,
)
from memlab.evaluate.significance_tests import (
    LEVEL,
    compare_with_null,
    fewest_units_for_significance,
)
from memlab.question_source_labels import COLUMN
from memlab.retrieve import Bench
from memlab.terminal_text import count_noun

AS_ENCODED = "as encoded"
CENTRED = "speaker-centred"
"""What turns are compared by."""
SPANNED = "clusters spanned"
LARGEST = "share in the largest cluster"
TOGETHER = "pairs that share a cluster"
MEASURED = "measured"
PERMUTED = "permuted"
WITHIN = "permuted within speakers"
FEWEST = fewest_units_for_significance()
"""Questions from which a finding is stated: of fewer, no p of a paired test is below .05."""

_OF_MEASURED = ("n", "mean", "low", "high", "level", "unit", "units")


def same_speaker_shares_of_nearest_turns(bench: Bench) -> pl.DataFrame:
    """Say for each scope how often a turn's most similar one is the same speaker's.

    :returns: ``scope``, ``turns``, ``speakers``, and shares of the turns: :data:`AS_ENCODED`,
        :data:`CENTRED` and ``chance``, a random other turn.
    :raises DataError: when the bench was made without an encoder.
    """
    documents = bench.documents("turn")
    speakers = documents.place_of_id.join(
        bench.turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left"
    )["speaker"]
    scope_rows = []
    for scope, (start, end) in documents.spans.items():
        scope_speakers = speakers[start:end].to_list()
        encoded_share, chance_share = observed_and_chance_same_speaker(
            documents.vectors()[start:end], scope_speakers
        )
        centred_share, _ = observed_and_chance_same_speaker(
            documents.speaker_centred()[start:end], scope_speakers
        )
        scope_rows.append(
            (
                scope,
                len(scope_speakers),
                len(set(scope_speakers)),
                encoded_share,
                centred_share,
                chance_share,
            )
        )
    columns = ["scope", "turns", "speakers", AS_ENCODED, CENTRED, "chance"]
    return pl.DataFrame(scope_rows, schema=columns, orient="row")


def spread_table(
    turn_sets: Mapping[str, pl.DataFrame],
    cluster_labels: Mapping[str, pl.DataFrame],
    turns: pl.DataFrame,
    *,
    seed: int = 0,
) -> pl.DataFrame:
    """Measure how sets of turns lie in clusters, beside both controls.

    :param turn_sets: by name, such as ``evidence``: frames of ``query_id``, ``turn_id``.
    :param cluster_labels: by what turns are compared by: frames of
        :func:`memlab.cluster.scope_labels`.
    :param turns: ``turn_id``, ``speaker``.
    :param seed: of permutations and bootstrap.
    :returns: ``vectors``, ``of``, ``number`` (:data:`SPANNED`, :data:`LARGEST`, :data:`TOGETHER`),
        ``clusters`` (:data:`MEASURED`, :data:`PERMUTED`, :data:`WITHIN`), ``n`` questions, ``mean``
        with ``low`` and ``high`` at ``level``: of what is measured an interval over ``units`` of
        ``unit``, of a control the middle of its draws, its ``unit``; ``p``, two-sided, of the
        measured mean under a control. A number that no set has gives no row. Where members have
        ``source``, ``question_sources`` says who wrote the questions.
    """
    spread_rows = list[dict[str, Any]]()
    for vectors, of_turns in cluster_labels.items():
        for set_name, members in turn_sets.items():
            measured, null_spread = observed_and_null_spread(members, of_turns, seed=seed)
            null_within_speakers = observed_and_null_spread(
                members, of_turns, speakers=turns, seed=seed
            )[1]
            scopes = scopes_if_they_are_the_unit(scopes_in_question_order(members, of_turns))
            for column, number in enumerate((SPANNED, LARGEST, TOGETHER)):
                if np.isfinite(measured[:, column]).any():
                    row_labels = {"vectors": vectors, "of": set_name, "number": number}
                    row_labels[COLUMN] = describe_sources_of_items_or_empty(members)
                    controls = {
                        PERMUTED: null_spread[:, :, column],
                        WITHIN: null_within_speakers[:, :, column],
                    }
                    control_rows = measured_and_control_rows(
                        measured[:, column], controls, scopes, seed
                    )
                    spread_rows += [row_labels | row for row in control_rows]
    schema = {
        **dict.fromkeys(("vectors", "of", "number", "clusters"), pl.String),
        "n": pl.Int64,
        "unit": pl.String,
        "units": pl.Int64,
        **dict.fromkeys(("mean", "low", "high", "level", "p"), pl.Float64),
        COLUMN: pl.String,
    }
    table = pl.DataFrame(spread_rows, schema=schema)
    if not any(table[COLUMN]):
        return table.drop(COLUMN)
    return table


def evidence_similarity_quartiles(
    bench: Bench, questions: pl.DataFrame, *, seed: int = 0
) -> pl.DataFrame:
    """Give how similar the evidence items of a question are, beside random turns: of each kind of
    pair the median cosine and its quartiles.

    :param questions: of the bench, with ``evidence``.
    :param seed: of the random turns.
    :returns: the columns of :func:`memlab.cluster.evidence_spread.similarity_quartiles_by_kind`,
        and ``form``, which is ``all``.
    :raises DataError: when the bench was made without an encoder.
    """
    documents = bench.documents("turn")
    pairs = pair_similarity(
        documents.vectors(),
        documents.ids.tolist(),
        questions,
        question_embeddings=bench.require_query_vectors(),
        turns=bench.turns,
        seed=seed,
    )
    quartiles = similarity_quartiles_by_kind(pairs).with_columns(form=pl.lit("all"))
    if not describe_sources_of_items_or_empty(questions):
        return quartiles
    return add_question_sources_column(quartiles, questions)


def questions_in_scope_order(turn_set_rows: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Give the questions in the order that spreads and merges are measured in: scope by scope.

    :param turn_set_rows: ``query_id``, ``turn_id``; ``turns``: ``turn_id``, ``scope``.
    :returns: ``scope``, ``query_id``.
    """
    turn_scopes = turns.select("turn_id", "scope").unique()
    scoped_members = turn_set_rows.join(
        turn_scopes, on="turn_id", how="left", maintain_order="left"
    )
    questions = scoped_members.select("scope", "query_id").unique(maintain_order=True)
    of_scopes = [
        scope_questions for _, scope_questions in questions.group_by("scope", maintain_order=True)
    ]
    return pl.concat([questions.clear(), *of_scopes])


def scopes_in_question_order(turn_set_rows: pl.DataFrame, turns: pl.DataFrame) -> np.ndarray:
    """Give the scope of each question, in the order of :func:`questions_in_scope_order`."""
    return questions_in_scope_order(turn_set_rows, turns)["scope"].to_numpy()


def measured_and_control_rows(
    measured_values: np.ndarray,
    nulls_by_control: Mapping[str, np.ndarray],
    scopes: np.ndarray | None,
    seed: int,
    *,
    kind_column: str = "clusters",
) -> list[dict[str, Any]]:
    """Give the rows of one number: what was measured, then the controls.

    :param measured_values: (n,) a value a question, NaN where it has none.
    :param nulls_by_control: by name, (draws, n) the same under permutation.
    :param scopes: (n,) the scope of each question where scopes are the unit.
    :param kind_column: that says what a row is.
    """
    control_rows = list[dict[str, Any]]()
    for control_name, null_values in nulls_by_control.items():
        comparison = compare_with_null(measured_values, null_values, scopes=scopes, seed=seed)
        if not control_rows:
            measured_columns = {
                column_name: comparison[column_name] for column_name in _OF_MEASURED
            }
            control_rows.append({kind_column: MEASURED, **measured_columns, "p": None})
        chance_ends = {end_name: comparison[f"chance_{end_name}"] for end_name in ("low", "high")}
        of_draws = {"level": LEVEL, "unit": "draw", "units": null_values.shape[0]}
        chance_columns = {
            "n": comparison["n"],
            "mean": comparison["chance"],
            **chance_ends,
            **of_draws,
        }
        control_rows.append({kind_column: control_name, **chance_columns, "p": comparison["p"]})
    return control_rows


def shares_of_evidence_clusters_reached(
    evidence: pl.DataFrame, retrieved: pl.DataFrame, cluster_labels: pl.DataFrame
) -> np.ndarray:
    """Say which share of the clusters that hold evidence of a question what was retrieved reaches.

    :param evidence: ``query_id``, ``turn_id``; ``retrieved`` the same.
    :param cluster_labels: as :func:`memlab.cluster.scope_labels` gives them; a turn of noise is a
        cluster of its own.
    :returns: (questions,) shares, the mean over the draws, in ascending order.
    """
    cluster_of_turn = (
        pl.when(pl.col("label") < 0).then("turn_id").otherwise(pl.col("label").cast(pl.String))
    )
    turn_clusters = cluster_labels.select("turn_id", "draw", group=cluster_of_turn)
    cluster_key = ["query_id", "draw", "group"]
    evidence_clusters = evidence.join(turn_clusters, on="turn_id").select(cluster_key).unique()
    reached_clusters = retrieved.join(turn_clusters, on="turn_id").select(cluster_key).unique()
    evidence_reached = evidence_clusters.join(
        reached_clusters.with_columns(hit=1), on=cluster_key, how="left"
    )
    query_shares = evidence_reached.group_by("query_id").agg(pl.col("hit").is_not_null().mean())
    return query_shares["hit"].sort().to_numpy()


def sentences_on_cluster_spread(
    spread_table: pl.DataFrame, *, k: int, reached_shares_by_question: Iterable[float] = ()
) -> list[str]:
    """Say what :func:`spread_table` found, the answer first, in whole percent.

    :param spread_table: of the sets ``evidence`` and ``first K``, by both kinds of vectors.
    :param k: how many first turns.
    :param reached_shares_by_question: of :func:`shares_of_evidence_clusters_reached`.

    >>> import polars as pl
    >>> from memlab.evaluate.cluster_spread import sentences_on_cluster_spread
    >>> sentences_on_cluster_spread(pl.DataFrame({"of": []}, schema={"of": pl.String}), k=10)
    ['There is no question with evidence: nothing can be said about clusters.']
    """
    rows_by_key: dict[tuple[str, ...], dict[str, Any]] = {
        (row["vectors"], row["of"], row["number"], row["clusters"]): row
        for row in spread_table.iter_rows(named=True)
    }
    spanned = rows_by_key.get((CENTRED, "evidence", SPANNED, MEASURED))
    if spanned is None:
        return ["There is no question with evidence: nothing can be said about clusters."]
    question_count = count_noun(spanned["n"], "questions")
    if spanned["n"] < FEWEST:
        return [
            f"With {question_count} nothing can be said about others: from {FEWEST} on, a test can "
            "be significant. The tables show what was measured."
        ]
    sentences = _sentences_on_shared_clusters(rows_by_key)
    null_mean = rows_by_key[CENTRED, "evidence", SPANNED, WITHIN]["mean"]
    width_text = (
        f"The evidence of a question spans {_format_mean_and_any_interval(spanned)} "
        "speaker-centred clusters"
    )
    sentences.append(
        f"{width_text}, {null_mean:.1f} with labels permuted within speakers (n = {spanned['n']})."
    )
    first_turns = rows_by_key.get((CENTRED, f"first {k}", LARGEST, MEASURED))
    if first_turns is not None:
        control_row = rows_by_key[CENTRED, f"first {k}", LARGEST, WITHIN]
        largest_text = (
            f"Of the first {k} turns of dense retrieval the largest speaker-centred cluster holds"
        )
        sentences.append(
            f"{largest_text} {format_mean_share_and_interval(first_turns)}, "
            f"{_format_permuted_label_mean_and_p(control_row)}."
        )
    reached_shares = np.fromiter(reached_shares_by_question, dtype=np.float64)
    if len(reached_shares) >= FEWEST:
        interval = mean_intervals(reached_shares[:, None], shares=np.array([False])).row(
            0, named=True
        )
        reach_text = format_mean_share_and_interval(
            {**interval, "n": len(reached_shares), "mean": reached_shares.mean()}
        )
        clusters_text = "of the clusters that hold evidence of a question"
        sentences.append(
            f"The first {k} turns of dense retrieval reach {reach_text} {clusters_text} "
            f"(mean of {len(reached_shares):,} questions)."
        )
    return sentences


def _sentences_on_shared_clusters(
    spread_row_by_key: Mapping[tuple[str, ...], Mapping[str, Any]],
) -> list[str]:
    """Say whether evidence items share clusters more than turns of one speaker do."""
    pair_row = spread_row_by_key.get((CENTRED, "evidence", TOGETHER, MEASURED))
    if pair_row is None:
        return ["No question has two evidence items: whether they share a cluster cannot be said."]
    if pair_row["n"] < FEWEST:
        return [
            f"{pair_row['n']} of the questions have two evidence items, too few to say whether "
            "they share a cluster."
        ]
    control_row = spread_row_by_key[CENTRED, "evidence", TOGETHER, WITHIN]
    pairs_text = "of the pairs of evidence items of a question share a speaker-centred cluster"
    pair_share = format_mean_share_and_interval(pair_row)
    pair_sentence = f"{pair_share} {pairs_text} (mean of {pair_row['n']:,} questions)"
    sentences = [f"{pair_sentence}, {_format_permuted_label_mean_and_p(control_row)}."]
    encoded_row = spread_row_by_key.get((AS_ENCODED, "evidence", TOGETHER, MEASURED))
    if encoded_row is not None:
        encoded_control = spread_row_by_key[AS_ENCODED, "evidence", TOGETHER, WITHIN]
        encoded_share = format_mean_share_and_interval(encoded_row)
        pair_sentence = (
            f"As encoded, speakers' names included, {encoded_share} of the pairs "
            "of evidence items share a cluster"
        )
        sentences.append(f"{pair_sentence}, {_format_permuted_label_mean_and_p(encoded_control)}.")
    return sentences


def format_mean_share_and_interval(mean_row: Mapping[str, Any]) -> str:
    """Write a mean of shares with its interval, where it has one."""
    if mean_row["low"] is None:
        return format_percent(mean_row["mean"])
    return format_share_with_interval(mean_row, interval_prefix="")


def _format_mean_and_any_interval(mean_row: Mapping[str, Any]) -> str:
    """Write a mean with its interval, where it has one."""
    mean_text = f"{mean_row['mean']:.1f}"
    if mean_row["low"] is None:
        return mean_text
    return (
        f"{mean_text} [{format_interval_level(mean_row)}: {mean_row['low']:.1f} to "
        f"{mean_row['high']:.1f}]"
    )


def _format_permuted_label_mean_and_p(control_row: Mapping[str, Any]) -> str:
    """Write the mean of a control, and the p of what was measured under it."""
    permuted = f"{format_percent(control_row['mean'])} with labels permuted within speakers"
    return f"{permuted} ({format_p(control_row['p'])}, uncorrected)"
