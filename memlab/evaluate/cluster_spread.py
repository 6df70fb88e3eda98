"""How the evidence of a benchmark lies in clusters of turns, as tables and as sentences.

Clusters are compared with two controls: labels permuted over all turns of a scope, and over the
turns of each speaker. The second asks what evidence items have in common beside their speaker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from memlab.cluster.evidence_spread import nearest_same_speaker, observed_and_null_spread
from memlab.evaluate.conclusions import level_text, p_text, percent, share_text
from memlab.evaluate.confidence_intervals import clustering_scopes, mean_intervals
from memlab.evaluate.significance import ALPHA, LEVEL, compare_with_null, fewest_units
from memlab.retrieve import Bench
from memlab.terminal import count_noun

AS_ENCODED, CENTRED = "as encoded", "speaker-centred"
"""What turns are compared by."""
SPANNED, LARGEST, TOGETHER = (
    "clusters spanned",
    "share in the largest cluster",
    "pairs that share a cluster",
)
MEASURED, PERMUTED, WITHIN = "measured", "permuted", "permuted within speakers"
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
    said_by = documents.place.join(
        bench.turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left"
    )["speaker"]
    rows = []
    for scope, (start, end) in documents.spans.items():
        names = said_by[start:end].to_list()
        encoded, chance = nearest_same_speaker(documents.vectors()[start:end], names)
        centred, _ = nearest_same_speaker(documents.speaker_centred()[start:end], names)
        rows.append((scope, len(names), len(set(names)), encoded, centred, chance))
    columns = ["scope", "turns", "speakers", AS_ENCODED, CENTRED, "chance"]
    return pl.DataFrame(rows, schema=columns, orient="row")


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
        measured mean under a control. A number that no set has gives no row.
    """
    rows = list[dict[str, Any]]()
    for vectors, of_turns in labels.items():
        for name, members in sets.items():
            measured, plain = observed_and_null_spread(members, of_turns, seed=seed)
            within = observed_and_null_spread(members, of_turns, speakers=turns, seed=seed)[1]
            scopes = clustering_scopes(scopes_of_questions(members, of_turns))
            for i, number in enumerate((SPANNED, LARGEST, TOGETHER)):
                if np.isfinite(measured[:, i]).any():
                    about = {"vectors": vectors, "of": name, "number": number}
                    controls = {PERMUTED: plain[:, :, i], WITHIN: within[:, :, i]}
                    found = rows_beside_controls(measured[:, i], controls, scopes, seed)
                    rows += [about | row for row in found]
    schema = {
        **dict.fromkeys(("vectors", "of", "number", "clusters"), pl.String),
        "n": pl.Int64,
        "unit": pl.String,
        "units": pl.Int64,
        **dict.fromkeys(("mean", "low", "high", "level", "p"), pl.Float64),
    }
    return pl.DataFrame(rows, schema=schema)


def asked_in_order(members: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Give the questions in the order that spreads and merges are measured in: scope by scope.

    :param members: ``query_id``, ``turn_id``; ``turns``: ``turn_id``, ``scope``.
    :returns: ``scope``, ``query_id``.
    """
    places = turns.select("turn_id", "scope").unique()
    placed = members.join(places, on="turn_id", how="left", maintain_order="left")
    questions = placed.select("scope", "query_id").unique(maintain_order=True)
    of_scopes = [part for _, part in questions.group_by("scope", maintain_order=True)]
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
    rows = list[dict[str, Any]]()
    for name, null in controls.items():
        found = compare_with_null(measured, null, scopes=scopes, seed=seed)
        if not rows:
            own = {key: found[key] for key in _OF_MEASURED}
            rows.append({column: MEASURED, **own, "p": None})
        ends = {end: found[f"chance_{end}"] for end in ("low", "high")}
        of_draws = {"level": LEVEL, "unit": "draw", "units": null.shape[0]}
        about = {"n": found["n"], "mean": found["chance"], **ends, **of_draws}
        rows.append({column: name, **about, "p": found["p"]})
    return rows


def share_of_clusters_reached(
    evidence: pl.DataFrame, retrieved: pl.DataFrame, labels: pl.DataFrame
) -> np.ndarray:
    """Say which share of the clusters that hold evidence of a question what was retrieved reaches.

    :param evidence: ``query_id``, ``turn_id``; ``retrieved`` the same.
    :param labels: as :func:`memlab.cluster.scope_labels` gives them; a turn of noise is a cluster
        of its own.
    :returns: (questions,) shares, the mean over the draws, in ascending order.
    """
    own = pl.when(pl.col("label") < 0).then("turn_id").otherwise(pl.col("label").cast(pl.String))
    groups = labels.select("turn_id", "draw", group=own)
    held, seen = (
        sets.join(groups, on="turn_id").select("query_id", "draw", "group").unique()
        for sets in (evidence, retrieved)
    )
    keys = ["query_id", "draw", "group"]
    hit = held.join(seen.with_columns(hit=1), on=keys, how="left")
    shares = hit.group_by("query_id").agg(pl.col("hit").is_not_null().mean())
    return shares["hit"].sort().to_numpy()


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
    found: dict[tuple[str, ...], dict[str, Any]] = {
        (row["vectors"], row["of"], row["number"], row["clusters"]): row
        for row in table.iter_rows(named=True)
    }
    spanned = found.get((CENTRED, "evidence", SPANNED, MEASURED))
    if spanned is None:
        return ["There is no question with evidence: nothing can be said about clusters."]
    few = count_noun(spanned["n"], "questions")
    if spanned["n"] < FEWEST:
        return [
            f"With {few} nothing can be said about others: from {FEWEST} on, a test can be "
            "significant. The tables show what was measured."
        ]
    lines = _sentences_of_pairs(found)
    plain = found[CENTRED, "evidence", SPANNED, WITHIN]["mean"]
    width = f"The evidence of a question spans {_number_text(spanned)} speaker-centred clusters"
    lines.append(f"{width}, {plain:.1f} with labels permuted within speakers (n = {spanned['n']}).")
    first = found.get((CENTRED, f"first {k}", LARGEST, MEASURED))
    if first is not None:
        control = found[CENTRED, f"first {k}", LARGEST, WITHIN]
        line = f"Of the first {k} turns of dense retrieval the largest of these clusters holds"
        lines.append(f"{line} {mean_share_text(first)}, {_control_text(control)}.")
    shares = np.fromiter(reached, dtype=np.float64)
    if len(shares) >= FEWEST:
        span = mean_intervals(shares[:, None], shares=np.array([False])).row(0, named=True)
        reach = mean_share_text({**span, "n": len(shares), "mean": shares.mean()})
        held = "of the clusters that hold evidence of a question"
        lines.append(f"They reach {reach} {held} (mean of {len(shares):,} questions).")
    return lines


def _sentences_of_pairs(found: Mapping[tuple[str, ...], Mapping[str, Any]]) -> list[str]:
    """Say whether evidence items share clusters more than turns of one speaker do."""
    pairs = found.get((CENTRED, "evidence", TOGETHER, MEASURED))
    if pairs is None:
        return ["No question has two evidence items: whether they share a cluster cannot be said."]
    if pairs["n"] < FEWEST:
        return [
            f"{pairs['n']} of the questions have two evidence items, too few to say whether they "
            "share a cluster."
        ]
    control = found[CENTRED, "evidence", TOGETHER, WITHIN]
    above = control["p"] < ALPHA and pairs["mean"] > control["mean"]
    answer = "No"
    if above and pairs["mean"] >= 0.5:
        answer = "Mostly"
    elif above:
        answer = "Partly"
    those = "of the pairs of evidence items of a question share a speaker-centred cluster"
    line = f"{answer}: {mean_share_text(pairs)} {those} (mean of {pairs['n']:,} questions)"
    lines = [f"{line}, {_control_text(control)}."]
    encoded = found.get((AS_ENCODED, "evidence", TOGETHER, MEASURED))
    if encoded is not None:
        plain = found[AS_ENCODED, "evidence", TOGETHER, WITHIN]
        line = f"As encoded, speakers' names included, {mean_share_text(encoded)} of the pairs do"
        lines.append(f"{line}, {_control_text(plain)}.")
    return lines


def mean_share_text(row: Mapping[str, Any]) -> str:
    """Write a mean of shares with its interval, where it has one."""
    if row["low"] is None:
        return percent(row["mean"])
    return share_text(row, prefix="")


def _number_text(row: Mapping[str, Any]) -> str:
    """Write a mean with its interval, where it has one."""
    text = f"{row['mean']:.1f}"
    if row["low"] is None:
        return text
    return f"{text} [{level_text(row)}: {row['low']:.1f} to {row['high']:.1f}]"


def _control_text(row: Mapping[str, Any]) -> str:
    """Write the mean of a control, and the p of what was measured under it."""
    permuted = f"{percent(row['mean'])} with labels permuted within speakers"
    return f"{permuted} ({p_text(row['p'])}, uncorrected)"
