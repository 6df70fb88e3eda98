"""Follow-ups with known answers, and how close rewrites come to those of people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from memlab.conversation.rewriting import content
from memlab.errors import DataError
from memlab.text.tokens import base

FOLLOW_UP = pl.Schema({
    "thread": pl.String(), "scope": pl.String(), "kind": pl.String(), "question": pl.String(),
    "standalone": pl.String(), "answer": pl.String(), "evidence": pl.List(pl.String()),
    "history": pl.List(pl.Struct({"role": pl.String(), "content": pl.String()})),
})  # fmt: skip


def follow_ups(path: str | Path) -> pl.DataFrame:
    """Read questions of threads, JSON lines with the fields of :data:`FOLLOW_UP`.

    :returns: these fields with ``query_id``: the line's ``id``, else its thread and place. The first question of a
        thread has the kind ``first``.
    :raises DataError: when the file cannot be read or lacks a field.
    """
    try:
        rows = pl.read_ndjson(Path(path), infer_schema_length=None)
        if missing := [name for name in FOLLOW_UP if name not in rows.columns]:
            raise DataError(f"{path} has no field {missing[0]!r}; a follow-up has {', '.join(FOLLOW_UP)}")
        place = pl.format("{}/{}", "thread", pl.int_range(1, pl.len() + 1).over("thread"))
        query_id = pl.col("id") if "id" in rows.columns else place
        return rows.select(*FOLLOW_UP, query_id=query_id).cast(dict(FOLLOW_UP))  # type: ignore[arg-type]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path} cannot be read as follow-ups: {error}") from error


def score(questions: Sequence[str], rewritten: Sequence[str], references: Sequence[str]) -> pl.DataFrame:
    """Measure rewritten questions against references written by people.

    A question *needs* a rewrite when its reference has a content word that it lacks. Over these, ``recall`` is the mean
    share of the lacking words that were added, and ``precision`` the mean share of the added words that were lacking
    (over questions to which something was added). ``damaged`` is the share of the others whose content words changed.

    :returns: a row of ``n``, ``needed``, ``recall``, ``precision``, ``self_contained`` and ``damaged``.
    :raises DataError: when the three differ in length.

    Source: recall and precision of terms are those of Voskarides et al., Query Resolution for Conversational Search
    (SIGIR 2020).

    >>> from memlab.conversation import score
    >>> score(["Was he tall?"], ["Was Ben Hecht tall?"], ["Was Hecht tall?"]).select("recall", "precision").row(0)
    (1.0, 0.5)
    """
    if not len(questions) == len(rewritten) == len(references):
        lengths = f"{len(questions)} questions, {len(rewritten)} rewritten, {len(references)} references"
        raise DataError(f"score was given {lengths}; give one of each for every item")
    recall, precision, damaged = list[float](), list[float](), list[bool]()
    for texts in zip(questions, rewritten, references, strict=True):
        had, has, wanted = ({base(word.text) for word in content(text)} for text in texts)
        lacking, added = wanted - had, has - had
        if lacking:
            recall.append(len(added & lacking) / len(lacking))
            precision += [len(added & lacking) / len(added)] if added else []
        else:
            damaged.append(had != has)
    means = {name: float(np.mean(values)) if values else float("nan")
             for name, values in (("recall", recall), ("precision", precision), ("damaged", damaged))}  # fmt: skip
    counts = {"n": len(questions), "needed": len(recall), "self_contained": len(damaged)}
    return pl.DataFrame([counts | means]).select("n", "needed", "recall", "precision", "self_contained", "damaged")
