"""How evidence lies in clusters, how similar its items are, and how far a speaker decides both.

Everything here reads the labels of a benchmark (which turns are evidence). It analyses; no
retrieval stage may call it. A noise turn is a group of its own wherever groups are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.cluster.clusterers import NOISE
from memlab.cluster.umap_projection import check_and_scale_to_unit
from memlab.embed.speaker_centring import centre_by_speaker
from memlab.errors import DataError

PAIR_KINDS = (
    "evidence, same session",
    "evidence, other session",
    "evidence – random",
    "evidence – random, same speaker",
    "question – evidence",
    "question – best other",
)

_BLOCK = 1024


def observed_and_null_spread(
    sets: pl.DataFrame,
    turn_labels: pl.DataFrame,
    *,
    speakers: pl.DataFrame | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Say how sets of turns lie in clusters, and how after the labels were permuted over the turns
    of each scope.

    A permutation keeps the sizes of clusters and which turns the sets share: the null distribution
    for :func:`memlab.evaluate.significance_tests.compare_with_null`. Permuted within speakers,
    labels keep how much of each cluster every speaker says: what the sets share beyond that is not
    that one person said it.

    :param sets: ``query_id``, ``turn_id``: the evidence of each question, or the first turns of
        each ranking.
    :param turn_labels: ``scope``, ``turn_id``, ``label`` and ``draw``, as
        :func:`memlab.cluster.scope_labels` gives them; the numbers of a set are averaged over the
        draws.
    :param speakers: ``turn_id``, ``speaker``: labels are permuted over the turns of each speaker of
        a scope; by default over those of all.
    :param draws: permutations.
    :returns: (sets, 3) and (draws, sets, 3): groups, largest share, and share of pairs together
        (NaN for one turn), the sets in the order of ``sets``, scope by scope.
    :raises DataError: when a turn has two labels or none, or no speaker is listed for it.

    >>> import polars as pl
    >>> from memlab.cluster import observed_and_null_spread
    >>> sets = pl.DataFrame({"query_id": ["q"] * 2, "turn_id": ["a", "b"]})
    >>> labels = pl.DataFrame({"turn_id": ["a", "b", "c"], "label": [0, 0, 1]})
    >>> labels = labels.with_columns(scope=pl.lit("u"), draw=pl.lit(0))
    >>> observed_and_null_spread(sets, labels)[0].tolist()
    [[1.0, 1.0, 1.0]]
    """
    if turn_labels.select("turn_id", "draw").is_duplicated().any():
        raise DataError(
            "turn_labels: a turn has more than one label; expected one row a turn and draw"
        )
    labels_by_turn = turn_labels.pivot("draw", index=["scope", "turn_id"], values="label")
    labels_by_turn = labels_by_turn.with_columns(
        place=pl.int_range(pl.len()).over("scope"), speaker=pl.lit("")
    )
    if speakers is not None:
        turn_speakers = speakers.select("turn_id", pl.col("speaker").fill_null(""))
        labels_by_turn = labels_by_turn.drop("speaker").join(
            turn_speakers, on="turn_id", how="left", maintain_order="left"
        )
    if labels_by_turn["speaker"].has_nulls():
        unlisted_turn = labels_by_turn.filter(pl.col("speaker").is_null())["turn_id"][0]
        raise DataError(f"speakers: turn {unlisted_turn!r} is not listed")
    placed_sets = sets.join(
        labels_by_turn.select("scope", "turn_id", "place"),
        on="turn_id",
        how="left",
        maintain_order="left",
    )
    if placed_sets["place"].has_nulls():
        raise DataError(
            f"sets: turn {placed_sets.filter(pl.col('place').is_null())['turn_id'][0]!r} has no "
            "label"
        )
    generator = np.random.default_rng(seed)
    observed_spread = []
    null_spread = []
    for (scope_name,), scope_sets in placed_sets.group_by("scope", maintain_order=True):
        scope_turns = labels_by_turn.filter(scope=scope_name)
        turn_groups = scope_turns.drop("scope", "turn_id", "place", "speaker").to_numpy()
        turn_groups = np.where(
            turn_groups == NOISE, -1 - np.arange(len(turn_groups))[:, None], turn_groups
        )
        shuffled_places = np.tile(np.arange(len(turn_groups)), (draws, 1))
        for speaker_name in scope_turns["speaker"].unique(maintain_order=True):
            speaker_places = (scope_turns["speaker"] == speaker_name).arg_true().to_numpy()
            shuffled_places[:, speaker_places] = generator.permuted(
                shuffled_places[:, speaker_places], axis=1
            )
        for _, evidence_set in scope_sets.group_by("query_id", maintain_order=True):
            evidence_places = evidence_set["place"].to_numpy()
            observed_spread.append(
                _group_count_largest_and_pair_share(turn_groups[evidence_places][None])[0]
            )
            null_spread.append(
                _group_count_largest_and_pair_share(
                    turn_groups[shuffled_places[:, evidence_places]]
                )
            )
    if not observed_spread:
        return np.zeros((0, 3)), np.zeros((draws, 0, 3))
    return np.array(observed_spread), np.stack(null_spread, axis=1)


def _group_count_largest_and_pair_share(group_of_turn: np.ndarray) -> np.ndarray:
    """Give number of groups, largest share and pairs together of rows of groups (rows, n,
    clusterings): (rows, 3).
    """
    n_evidence = group_of_turn.shape[1]
    same_group_counts = (group_of_turn[:, :, None] == group_of_turn[:, None]).sum(axis=2)
    pair_shares = (
        (same_group_counts.sum(axis=1) - n_evidence) / (n_evidence * (n_evidence - 1))
        if n_evidence > 1
        else np.full((len(group_of_turn), group_of_turn.shape[2]), np.nan)
    )
    return np.stack(
        [
            (1 / same_group_counts).sum(axis=1),
            same_group_counts.max(axis=1) / n_evidence,
            pair_shares,
        ],
        axis=1,
    ).mean(axis=2)


def pair_similarity(
    embeddings: np.ndarray,
    turn_ids: Sequence[str],
    questions: pl.DataFrame,
    *,
    question_embeddings: np.ndarray,
    turns: pl.DataFrame,
    n_random: int = 5,
    seed: int = 0,
    centred: bool = True,
) -> pl.DataFrame:
    """Compare evidence with itself, with the rest of its scope and with its question: cosine of
    each pair.

    If evidence items of one question are as dissimilar as random turns are, no cluster can hold
    them; if they are similar, penalising similarity (as MMR does) pushes them out of the ranking.
    Turns are compared with each other by their speaker-centred vectors, with questions as they are
    encoded. As they are encoded two turns resemble each other when one person says both, which most
    evidence items of a question have in common: the control is a random turn of the same speaker.

    :param embeddings: (n, d) of the turns as they are encoded, of whole scopes.
    :param turn_ids: n ids, in the order of ``embeddings``.
    :param questions: rows of :class:`memlab.records.Question`.
    :param question_embeddings: (questions, d), in the order of ``questions``.
    :param turns: rows of :class:`memlab.records.Turn`, for the session, the scope and the
        speaker of each turn.
    :param n_random: random turns to draw for each evidence item, of all and of its speaker.
    :param centred: ``False`` compares turns with each other as they are encoded, too.
    :returns: ``query_id``, ``kind``, ``similarity`` (−1 to 1), one row a pair. Kinds,
        :data:`PAIR_KINDS`: two evidence items of one or two sessions, an item and a random turn of
        the scope that is none, the same of its speaker, where there is one, the question and an
        item, the question and the most similar turn that is no evidence of it.
    :raises DataError: when lengths or widths differ, a turn is not listed, or a number is not
        finite.

    >>> import numpy as np, polars as pl
    >>> from memlab.cluster import pair_similarity
    >>> turns = pl.DataFrame({"turn_id": ["a", "b"], "session_id": ["s", "t"]})
    >>> turns = turns.with_columns(scope=pl.lit("u"), speaker=pl.lit("Mika"))
    >>> asked = pl.DataFrame({"query_id": ["q"], "evidence": [["a", "b"]]})
    >>> about = {"question_embeddings": np.eye(2)[:1], "turns": turns}
    >>> pair_similarity(np.eye(2), ["a", "b"], asked, **about, centred=False).row(0)
    ('q', 'evidence, other session', 0.0)
    """
    turn_vectors = check_and_scale_to_unit(embeddings)
    question_vectors = check_and_scale_to_unit(question_embeddings)
    turn_rows = pl.DataFrame({"turn_id": turn_ids}).join(
        turns, on="turn_id", how="left", maintain_order="left"
    )
    shapes_fit = (
        len(turn_vectors) == len(turn_ids) == turn_rows.height
        and not turn_rows["scope"].has_nulls()
    )
    if not shapes_fit or question_vectors.shape != (questions.height, turn_vectors.shape[1]):
        raise DataError(
            f"embeddings are {turn_vectors.shape} for {len(turn_ids)} turns and "
            f"{question_vectors.shape} for {questions.height} questions; expected one row for "
            "each, all of one width, and each turn once in turns"
        )
    compared_vectors = turn_vectors
    rows_by_scope = dict[str, np.ndarray]()
    speaker_of_turn = turn_rows["speaker"].fill_null("")
    for (scope,), scope_turns in turn_rows.with_row_index("row").group_by(
        "scope", maintain_order=True
    ):
        rows_by_scope[str(scope)] = scope_turns["row"].to_numpy()
    if centred:
        compared_vectors = np.empty_like(turn_vectors)
        for own in rows_by_scope.values():
            compared_vectors[own] = centre_by_speaker(turn_vectors[own], speaker_of_turn[own])
    place_by_turn = dict(zip(turn_ids, range(len(turn_ids)), strict=True))
    session_of_turn = turn_rows["session_id"]
    scope_of_turn = turn_rows["scope"]
    speaker_names = speaker_of_turn.to_numpy()
    generator = np.random.default_rng(seed)
    control_generator = np.random.default_rng([seed, 1])
    similarity_rows = list[tuple[str, str, float]]()
    same_session, other_session, random_pair, same_speaker, to_question, best_of_others = PAIR_KINDS
    for question_number, (query_id, evidence) in enumerate(
        questions.select("query_id", "evidence").iter_rows()
    ):
        own = np.array(
            [
                place_by_turn[turn_id]
                for turn_id in dict.fromkeys(evidence)
                if turn_id in place_by_turn
            ],
            np.int64,
        )
        if not len(own):
            continue
        evidence_sessions = session_of_turn[own].to_numpy()
        left_places, right_places = np.triu_indices(len(own), 1)
        pair_kinds = np.where(
            evidence_sessions[left_places] == evidence_sessions[right_places],
            same_session,
            other_session,
        ).tolist()
        kind_and_cosine = [
            *zip(
                pair_kinds,
                (compared_vectors[own] @ compared_vectors[own].T)[left_places, right_places],
                strict=True,
            )
        ]
        other_places = np.setdiff1d(rows_by_scope[scope_of_turn[int(own[0])]], own)
        if len(other_places):
            drawn_vectors = compared_vectors[generator.choice(other_places, (len(own), n_random))]
            cosines = np.einsum("id,ijd->ij", compared_vectors[own], drawn_vectors).ravel()
            kind_and_cosine += [(random_pair, cosine_value) for cosine_value in cosines]
            kind_and_cosine.append(
                (
                    best_of_others,
                    (turn_vectors[other_places] @ question_vectors[question_number]).max(),
                )
            )
        for evidence_place in own:
            of_same_speaker = other_places[
                speaker_names[other_places] == speaker_names[evidence_place]
            ]
            if len(of_same_speaker):
                cosines = (
                    compared_vectors[control_generator.choice(of_same_speaker, n_random)]
                    @ compared_vectors[evidence_place]
                )
                kind_and_cosine += [(same_speaker, cosine_value) for cosine_value in cosines]
        kind_and_cosine += [
            (to_question, cosine_value)
            for cosine_value in turn_vectors[own] @ question_vectors[question_number]
        ]
        similarity_rows += [
            (query_id, pair_kind, float(cosine_value))
            for pair_kind, cosine_value in kind_and_cosine
        ]
    return pl.DataFrame(
        similarity_rows,
        {"query_id": pl.String, "kind": pl.String, "similarity": pl.Float64},
        orient="row",
    )


def similarity_quartiles_by_kind(similarity_pairs: pl.DataFrame) -> pl.DataFrame:
    """Sum pairs of :func:`pair_similarity` up by kind, for a figure of medians and quartiles.

    :returns: ``kind``, ``n`` (questions), ``mean`` (the median), ``low`` and ``high`` (the
        quartiles).
    """
    cosine = pl.col("similarity")
    place_by_kind = dict(zip(PAIR_KINDS, range(len(PAIR_KINDS)), strict=True))
    kind_order = pl.col("kind").replace_strict(place_by_kind)
    return (
        similarity_pairs.sort(kind_order, maintain_order=True)
        .group_by("kind", maintain_order=True)
        .agg(
            n=pl.n_unique("query_id"),
            mean=cosine.median(),
            low=cosine.quantile(0.25),
            high=cosine.quantile(0.75),
        )
    )


def observed_and_chance_same_speaker(
    vectors: np.ndarray, speakers: Sequence[str]
) -> tuple[float, float]:
    """Say how often the most similar other turn is one of the same speaker, and how often a random
    one is.

    :param vectors: (n, d) of the turns of one scope, finite numbers.
    :param speakers: n names.
    :returns: two shares of the turns; NaN for fewer than two turns.

    >>> import numpy as np
    >>> from memlab.cluster.evidence_spread import observed_and_chance_same_speaker
    >>> observed_and_chance_same_speaker(np.eye(4)[[0, 0, 1, 1]], ["Ana", "Ana", "Mika", "Ana"])
    (0.5, 0.5)
    """
    unit_vectors = check_and_scale_to_unit(vectors)
    speaker_names = np.asarray(speakers)
    n_rows = len(unit_vectors)
    if n_rows < 2:
        return float("nan"), float("nan")
    nearest = np.empty(n_rows, np.int64)
    for block_start in range(0, n_rows, _BLOCK):
        block_cosines = unit_vectors[block_start : block_start + _BLOCK] @ unit_vectors.T
        block_rows = np.arange(len(block_cosines))
        block_cosines[block_rows, block_start + block_rows] = -np.inf
        nearest[block_start : block_start + _BLOCK] = block_cosines.argmax(axis=1)
    speaker_counts = np.unique(speaker_names, return_counts=True)[1]
    chance = (speaker_counts * (speaker_counts - 1)).sum() / (n_rows * (n_rows - 1))
    return float((speaker_names[nearest] == speaker_names).mean()), float(chance)
