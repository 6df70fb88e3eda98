"""What moved a learned score: each candidate ranked again with one group of features silent."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl

from memlab.records import Run
from memlab.rerank import features
from memlab.rerank.features import run_places
from memlab.rerank.learned import apply, models_of
from memlab.retrieve import Bench
from memlab.retrieve.arrays import places

_GROUPS = {
    "summary": r"summary",
    "dates": r"month_named|date_\w+",
    "speaker": r"speaker_named|other_named|n_named",
    "question shape": r"asks_\w+|names_date|question_\w+",
    "first person": r"\w+_first_person_\w+",
    "neighbours": r"\w+_at[+-]\d+|words_with_previous|words_within_two|late_with\w*",
    "session": r"\w+_of_session(?:_words)?(?:_z)?|late_near_best\w*|age",
    "words": r"words\w*|n_words",
    "dense": r"dense\w*",
    "BM25": r"bm25\w*",
    "late": r"late\w*",
    "sum of scores": r"sum",
    "like the first hits": r"similar_to_\w+",
    "turn shape": r"asks|exclaims|digits|time_words|\w+_person|capitalised|length|captioned|answers"
    r"|by_assistant|\w+_in_session",
}


def group_of(feature: str) -> str:
    """Name the group of a feature: what correlated features have in common.

    >>> from memlab.rerank.ablation import group_of
    >>> group_of("late_z"), group_of("late_at-1"), group_of("late_best_of_session")
    ('late', 'neighbours', 'session')
    """
    return next((name for name, pattern in _GROUPS.items() if re.fullmatch(pattern, feature)), "other")


def ablate(run: Run, bench: Bench, *, model: str, candidates: int = 200) -> pl.DataFrame:
    """Rank the candidates of each question by a trained model, with one group of features at a time silent.

    A silent feature has its mean over the question's candidates, so that it tells none from another.

    :param run: what :func:`memlab.rerank.learned` was given; ``model`` and ``candidates`` as there.
    :returns: a row a candidate and group: ``query_id``, ``doc_id``, ``rank``, ``group`` and ``without``, the rank
        that it would have; larger than ``rank`` where the group lifts it.

    Source: the leave-one-feature-out explanation of a single prediction (Robnik-Šikonja & Kononenko, 2008), by groups.
    """
    models = models_of(model, bench)
    at, present = run_places(run.top(candidates).frame, bench)
    ids, queries = bench.documents("turn").ids, bench.queries["query_id"].to_numpy()
    parts = []
    for part in features.candidates(bench, at, present):
        of_scope = models[bench.queries["scope"][int(part.rows[0])]]
        groups: dict[str, list[int]] = {}
        for column, name in enumerate(part.names):
            groups.setdefault(group_of(name), []).append(column)
        seen = part.mask[..., None]
        means = (part.values * seen).sum(1, keepdims=True) / np.maximum(seen.sum(1, keepdims=True), 1)
        row, place = np.nonzero(part.mask)
        with_all = 1 + places(apply(of_scope, part))[row, place]
        for group, columns in groups.items():
            values = part.values.copy()
            values[..., columns] = means[..., columns]
            without = 1 + places(apply(of_scope, replace(part, values=values)))[row, place]
            doc, query = ids[part.at[row, place]], queries[part.rows[row]]
            about = {"query_id": query, "doc_id": doc, "rank": with_all, "group": group, "without": without}
            parts.append(pl.DataFrame(about))
    return pl.concat(parts)
