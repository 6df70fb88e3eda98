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
    nearest_same_speaker,
    observed_and_null_spread,
    pair_similarity,
    similarity_quartiles,
)
from memlab.evaluate.conclusions import level_text, p_text, percent, share_text
from memlab.evaluate.confidence_intervals import clustering_scopes, mean_intervals
from memlab.evaluate.groups_of_questions import describe_item_sources, with_sources
from memlab.evaluate.significance_tests import LEVEL, compare_with_null, fewest_units
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
FEWEST = fewest_units()
"""Questions from which a finding is stated: of fewer, no p of a paired test is below .05."""

_OF_MEASURED = ("n", "mean", "low", "high", "level", "unit", "units")


def speaker_shares(bench: Bench) -> pl.DataFrame:
    """Say for each scope how often a turn's most similar one is the same speaker's.

    :returns: ``scope``, ``turns``, ``speakers``, and shares of the turns: :data:`AS_ENCODED`,
        :data:`CENTRED` and ``chance``, a random other turn.
    :raises DataError: when the bench was made without an encoder.
    """
    documents = bench.documents("turn")
    speakers = documents.place.join(
        bench.turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left"
    )["speaker"]
    scope_rows = []
    for scope, (start, end) in documents.spans.items():
        scope_speakers = speakers[start:end].to_list()
        encoded_share, chance_share = nearest_same_speaker(
            documents.vectors()[start:end], scope_speakers
        )
        centred_share, _ = nearest_same_speaker(
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
    sets: Mapping[str, pl.DataFrame],
    labels: Mapping[str, pl.DataFrame],
    turns: pl.DataFrame,
    *,
    seed: int = 0,
) -> pl.DataFrame:
    """Measure how sets of turns lie in clusters, beside both controls.

    :param sets: by name, such as ``evidence``: frames of ``query_id``, ``turn_id``.
    :param labels: by what turns are compared by: frames of
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
    for vectors, of_turns in labels.items():
        for set_name, members in sets.items():
            measured, null_spread = observed_and_null_spread(members, of_turns, seed=seed)
            null_within_speakers = observed_and_null_spread(
                members, of_turns, speakers=turns, seed=seed
            )[1]
            scopes = clustering_scopes(scopes_of_questions(members, of_turns))
            for column, number in enumerate((SPANNED, LARGEST, TOGETHER)):
                if np.isfinite(measured[:, column]).any():
                    row_labels = {"vectors": vectors, "of": set_name, "number": number}
                    row_labels[COLUMN] = describe_item_sources(members)
                    controls = {
                        PERMUTED: null_spread[:, :, column],
                        WITHIN: null_within_speakers[:, :, column],
                    }
                    control_rows = rows_beside_controls(measured[:, column], controls, scopes, seed)
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


def evidence_similarity(bench: Bench, questions: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Give how similar the evidence items of a question are, beside random turns: of each kind of
    pair the median cosine and its quartiles.

    :param questions: of the bench, with ``evidence``.
    :param seed: of the random turns.
    :returns: the columns of :func:`memlab.cluster.evidence_spread.similarity_quartiles`, and
        ``form``, which is ``all``.
    :raises DataError: when the bench was made without an encoder.
    """
    documents = bench.documents("turn")
    pairs = pair_similarity(
        documents.vectors(),
        documents.ids.tolist(),
        questions,
        question_embeddings=bench.query_vectors,
        turns=bench.turns,
        seed=seed,
    )
    quartiles = similarity_quartiles(pairs).with_columns(form=pl.lit("all"))
    if not describe_item_sources(questions):
        return quartiles
    return with_sources(quartiles, questions)


def asked_in_order(members: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Give the questions in the order that spreads and merges are measured in: scope by scope.

    :param members: ``query_id``, ``turn_id``; ``turns``: ``turn_id``, ``scope``.
    :returns: ``scope``, ``query_id``.
    """
    turn_scopes = turns.select("turn_id", "scope").unique()
    scoped_members = members.join(turn_scopes, on="turn_id", how="left", maintain_order="left")
    questions = scoped_members.select("scope", "query_id").unique(maintain_order=True)
    of_scopes = [
        scope_questions for _, scope_questions in questions.group_by("scope", maintain_order=True)
    ]
    return pl.concat([questions.clear(), *of_scopes])


def scopes_of_questions(members: pl.DataFrame, turns: pl.DataFrame) -> np.ndarray:
    """Give the scope of each question, in the order of :func:`asked_in_order`."""
    return asked_in_order(members, turns)["scope"].to_numpy()


def rows_beside_controls(
    measured: np.ndarray,
    controls: Mapping[str, np.ndarray],
    scopes: np.ndarray | None,
    seed: int,
    *,
    column: str = "clusters",
) -> list[dict[str, Any]]:
    """Give the rows of one number: what was measured, then the controls.

    :param measured: (n,) a value a question, NaN where it has none.
    :param controls: by name, (draws, n) the same under permutation.
    :param scopes: (n,) the scope of each question where scopes are the unit.
    :param column: that says what a row is.
    """
    control_rows = list[dict[str, Any]]()
    for control_name, null_values in controls.items():
        comparison = compare_with_null(measured, null_values, scopes=scopes, seed=seed)
        if not control_rows:
            measured_columns = {
                column_name: comparison[column_name] for column_name in _OF_MEASURED
            }
            control_rows.append({column: MEASURED, **measured_columns, "p": None})
        chance_ends = {end_name: comparison[f"chance_{end_name}"] for end_name in ("low", "high")}
        of_draws = {"level": LEVEL, "unit": "draw", "units": null_values.shape[0]}
        chance_columns = {
            "n": comparison["n"],
            "mean": comparison["chance"],
            **chance_ends,
            **of_draws,
        }
        control_rows.append({column: control_name, **chance_columns, "p": comparison["p"]})
    return control_rows


def share_of_clusters_reached(
    evidence: pl.DataFrame, retrieved: pl.DataFrame, labels: pl.DataFrame
) -> np.ndarray:
    """Say which share of the clusters that hold evidence of a question what was retrieved reaches.

    :param evidence: ``query_id``, ``turn_id``; ``retrieved`` the same.
    :param labels: as :func:`memlab.cluster.scope_labels` gives them; a turn of noise is a cluster
        of its own.
    :returns: (questions,) shares, the mean over the draws, in ascending order.
    """
    cluster_of_turn = (
        pl.when(pl.col("label") < 0).then("turn_id").otherwise(pl.col("label").cast(pl.String))
    )
    turn_clusters = labels.select("turn_id", "draw", group=cluster_of_turn)
    cluster_key = ["query_id", "draw", "group"]
    evidence_clusters = evidence.join(turn_clusters, on="turn_id").select(cluster_key).unique()
    reached_clusters = retrieved.join(turn_clusters, on="turn_id").select(cluster_key).unique()
    evidence_reached = evidence_clusters.join(
        reached_clusters.with_columns(hit=1), on=cluster_key, how="left"
    )
    query_shares = evidence_reached.group_by("query_id").agg(pl.col("hit").is_not_null().mean())
    return query_shares["hit"].sort().to_numpy()


def spread_sentences(table: pl.DataFrame, *, k: int, reached: Iterable[float] = ()) -> list[str]:
    """Say what :func:`spread_table` found, the answer first, in whole percent.

    :param table: of the sets ``evidence`` and ``first K``, by both kinds of vectors.
    :param k: how many first turns.
    :param reached: of :func:`share_of_clusters_reached`.

    >>> import polars as pl
    >>> from memlab.evaluate.cluster_spread import spread_sentences
    >>> spread_sentences(pl.DataFrame({"of": []}, schema={"of": pl.String}), k=10)
    ['There is no question with evidence: nothing can be said about clusters.']
    """
    rows_by_key: dict[tuple[str, ...], dict[str, Any]] = {
        (row["vectors"], row["of"], row["number"], row["clusters"]): row
        for row in table.iter_rows(named=True)
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
    sentences = _sentences_of_pairs(rows_by_key)
    null_mean = rows_by_key[CENTRED, "evidence", SPANNED, WITHIN]["mean"]
    width_text = (
        f"The evidence of a question spans {_number_text(spanned)} speaker-centred clusters"
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
            f"{largest_text} {mean_share_text(first_turns)}, {_control_text(control_row)}."
        )
    reached_shares = np.fromiter(reached, dtype=np.float64)
    if len(reached_shares) >= FEWEST:
        interval = mean_intervals(reached_shares[:, None], shares=np.array([False])).row(
            0, named=True
        )
        reach_text = mean_share_text(
            {**interval, "n": len(reached_shares), "mean": reached_shares.mean()}
        )
        clusters_text = "of the clusters that hold evidence of a question"
        sentences.append(
            f"The first {k} turns of dense retrieval reach {reach_text} {clusters_text} "
            f"(mean of {len(reached_shares):,} questions)."
        )
    return sentences


def _sentences_of_pairs(rows_by_key: Mapping[tuple[str, ...], Mapping[str, Any]]) -> list[str]:
    """Say whether evidence items share clusters more than turns of one speaker do."""
    pair_row = rows_by_key.get((CENTRED, "evidence", TOGETHER, MEASURED))
    if pair_row is None:
        return ["No question has two evidence items: whether they share a cluster cannot be said."]
    if pair_row["n"] < FEWEST:
        return [
            f"{pair_row['n']} of the questions have two evidence items, too few to say whether "
            "they share a cluster."
        ]
    control_row = rows_by_key[CENTRED, "evidence", TOGETHER, WITHIN]
    pairs_text = "of the pairs of evidence items of a question share a speaker-centred cluster"
    pair_sentence = (
        f"{mean_share_text(pair_row)} {pairs_text} (mean of {pair_row['n']:,} questions)"
    )
    sentences = [f"{pair_sentence}, {_control_text(control_row)}."]
    encoded_row = rows_by_key.get((AS_ENCODED, "evidence", TOGETHER, MEASURED))
    if encoded_row is not None:
        encoded_control = rows_by_key[AS_ENCODED, "evidence", TOGETHER, WITHIN]
        pair_sentence = (
            f"As encoded, speakers' names included, {mean_share_text(encoded_row)} of the pairs of "
            "evidence items share a cluster"
        )
        sentences.append(f"{pair_sentence}, {_control_text(encoded_control)}.")
    return sentences


def mean_share_text(row: Mapping[str, Any]) -> str:
    """Write a mean of shares with its interval, where it has one."""
    if row["low"] is None:
        return percent(row["mean"])
    return share_text(row, prefix="")


def _number_text(row: Mapping[str, Any]) -> str:
    """Write a mean with its interval, where it has one."""
    mean_text = f"{row['mean']:.1f}"
    if row["low"] is None:
        return mean_text
    return f"{mean_text} [{level_text(row)}: {row['low']:.1f} to {row['high']:.1f}]"


def _control_text(row: Mapping[str, Any]) -> str:
    """Write the mean of a control, and the p of what was measured under it."""
    permuted = f"{percent(row['mean'])} with labels permuted within speakers"
    return f"{permuted} ({p_text(row['p'])}, uncorrected)"
