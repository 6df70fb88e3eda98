"""How evidence lies in clusters, how similar its items are, and how far a speaker decides both.

Everything here reads the labels of a benchmark (which turns are evidence). It analyses; no
retrieval stage may call it. A noise turn is a group of its own wherever groups are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.cluster.clusterers import NOISE
from memlab.cluster.projection import unit_rows
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
    for :func:`memlab.evaluate.significance.compare_with_null`. Permuted within speakers, labels
    keep how much of each cluster every speaker says: what the sets share beyond that is not that
    one person said it.

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
    wide = turn_labels.pivot("draw", index=["scope", "turn_id"], values="label")
    wide = wide.with_columns(place=pl.int_range(pl.len()).over("scope"), speaker=pl.lit(""))
    if speakers is not None:
        listed = speakers.select("turn_id", pl.col("speaker").fill_null(""))
        wide = wide.drop("speaker").join(listed, on="turn_id", how="left", maintain_order="left")
    if wide["speaker"].has_nulls():
        unknown = wide.filter(pl.col("speaker").is_null())["turn_id"][0]
        raise DataError(f"speakers: turn {unknown!r} is not listed")
    placed = sets.join(
        wide.select("scope", "turn_id", "place"), on="turn_id", how="left", maintain_order="left"
    )
    if placed["place"].has_nulls():
        raise DataError(
            f"sets: turn {placed.filter(pl.col('place').is_null())['turn_id'][0]!r} has no label"
        )
    rng, observed, null = np.random.default_rng(seed), [], []
    for (scope,), own in placed.group_by("scope", maintain_order=True):
        of_scope = wide.filter(scope=scope)
        groups = of_scope.drop("scope", "turn_id", "place", "speaker").to_numpy()
        groups = np.where(groups == NOISE, -1 - np.arange(len(groups))[:, None], groups)
        order = np.tile(np.arange(len(groups)), (draws, 1))
        for name in of_scope["speaker"].unique(maintain_order=True):
            own_turns = (of_scope["speaker"] == name).arg_true().to_numpy()
            order[:, own_turns] = rng.permuted(order[:, own_turns], axis=1)
        for _, part in own.group_by("query_id", maintain_order=True):
            at = part["place"].to_numpy()
            observed.append(_measure_spread(groups[at][None])[0])
            null.append(_measure_spread(groups[order[:, at]]))
    if not observed:
        return np.zeros((0, 3)), np.zeros((draws, 0, 3))
    return np.array(observed), np.stack(null, axis=1)


def _measure_spread(groups: np.ndarray) -> np.ndarray:
    """Give number of groups, largest share and pairs together of rows of groups (rows, n,
    clusterings): (rows, 3).
    """
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
    rows, asked = unit_rows(embeddings), unit_rows(question_embeddings)
    listed = pl.DataFrame({"turn_id": turn_ids}).join(
        turns, on="turn_id", how="left", maintain_order="left"
    )
    fits = len(rows) == len(turn_ids) == listed.height and not listed["scope"].has_nulls()
    if not fits or asked.shape != (questions.height, rows.shape[1]):
        raise DataError(
            f"embeddings are {rows.shape} for {len(turn_ids)} turns and {asked.shape} for "
            f"{questions.height} "
            "questions; expected one row for each, all of one width, and each turn once in turns"
        )
    compared, members, said_by = rows, dict[str, np.ndarray](), listed["speaker"].fill_null("")
    for (scope,), own_turns in listed.with_row_index("row").group_by("scope", maintain_order=True):
        members[str(scope)] = own_turns["row"].to_numpy()
    if centred:
        compared = np.empty_like(rows)
        for own in members.values():
            compared[own] = centre_by_speaker(rows[own], said_by[own])
    place = dict(zip(turn_ids, range(len(turn_ids)), strict=True))
    session, scopes, speaker = listed["session_id"], listed["scope"], said_by.to_numpy()
    rng, control = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    found = list[tuple[str, str, float]]()
    same, other, random, of_speaker, near, best = PAIR_KINDS
    for number, (query_id, evidence) in enumerate(
        questions.select("query_id", "evidence").iter_rows()
    ):
        own = np.array([place[turn] for turn in dict.fromkeys(evidence) if turn in place], np.int64)
        if not len(own):
            continue
        of_session = session[own].to_numpy()
        i, j = np.triu_indices(len(own), 1)
        kinds = np.where(of_session[i] == of_session[j], same, other).tolist()
        pairs = [*zip(kinds, (compared[own] @ compared[own].T)[i, j], strict=True)]
        pool = np.setdiff1d(members[scopes[int(own[0])]], own)
        if len(pool):
            drawn = compared[rng.choice(pool, (len(own), n_random))]
            cosines = np.einsum("id,ijd->ij", compared[own], drawn).ravel()
            pairs += [(random, value) for value in cosines]
            pairs.append((best, (rows[pool] @ asked[number]).max()))
        for item in own:
            alike = pool[speaker[pool] == speaker[item]]
            if len(alike):
                cosines = compared[control.choice(alike, n_random)] @ compared[item]
                pairs += [(of_speaker, value) for value in cosines]
        pairs += [(near, value) for value in rows[own] @ asked[number]]
        found += [(query_id, kind, float(value)) for kind, value in pairs]
    return pl.DataFrame(
        found, {"query_id": pl.String, "kind": pl.String, "similarity": pl.Float64}, orient="row"
    )


def similarity_quartiles(pairs: pl.DataFrame) -> pl.DataFrame:
    """Sum pairs of :func:`pair_similarity` up by kind, for a figure of medians and quartiles.

    :returns: ``kind``, ``n`` (questions), ``mean`` (the median), ``low`` and ``high`` (the
        quartiles).
    """
    cosine = pl.col("similarity")
    places = dict(zip(PAIR_KINDS, range(len(PAIR_KINDS)), strict=True))
    order = pl.col("kind").replace_strict(places)
    return (
        pairs.sort(order, maintain_order=True)
        .group_by("kind", maintain_order=True)
        .agg(
            n=pl.n_unique("query_id"),
            mean=cosine.median(),
            low=cosine.quantile(0.25),
            high=cosine.quantile(0.75),
        )
    )


def nearest_same_speaker(vectors: np.ndarray, speakers: Sequence[str]) -> tuple[float, float]:
    """Say how often the most similar other turn is one of the same speaker, and how often a random
    one is.

    :param vectors: (n, d) of the turns of one scope, finite numbers.
    :param speakers: n names.
    :returns: two shares of the turns; NaN for fewer than two turns.

    >>> import numpy as np
    >>> from memlab.cluster.evidence_spread import nearest_same_speaker
    >>> nearest_same_speaker(np.eye(4)[[0, 0, 1, 1]], ["Ana", "Ana", "Mika", "Ana"])
    (0.5, 0.5)
    """
    rows, names = unit_rows(vectors), np.asarray(speakers)
    n = len(rows)
    if n < 2:
        return float("nan"), float("nan")
    nearest = np.empty(n, np.int64)
    for start in range(0, n, _BLOCK):
        similar = rows[start : start + _BLOCK] @ rows.T
        places = np.arange(len(similar))
        similar[places, start + places] = -np.inf
        nearest[start : start + _BLOCK] = similar.argmax(axis=1)
    counts = np.unique(names, return_counts=True)[1]
    chance = (counts * (counts - 1)).sum() / (n * (n - 1))
    return float((names[nearest] == names).mean()), float(chance)
