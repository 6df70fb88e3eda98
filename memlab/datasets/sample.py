"""The sample: conversations of four invented memories with questions and gold evidence, for
examples and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import polars as pl

from memlab.atomic_files import shipped_data
from memlab.datasets import load
from memlab.errors import DataError, explained
from memlab.records import Dataset

_FILE = shipped_data("sample", "sample.jsonl")
_load_cached = cache(load)


@explained
def sample(scopes: Sequence[str] | None = None, turns: int | None = None) -> Dataset:
    """Load the sample: four invented memories with questions and gold evidence.

    :param scopes: names of memories to keep; they stand in the order of the file. All where not
        given.
    :param turns: about how many turns to keep in all. Each scope has the same share and keeps whole
        sessions from its first on, at least one. Of the questions stay those whose evidence is
        kept, and those without an answer.
    :raises DataError: when the file is not there, for a scope that it does not have, or fewer than
        one turn.

    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> data.scopes == memlab.sample().scopes, 100 < data.turns.height < 300
    (True, True)
    """
    if turns is not None and turns < 1:
        raise DataError(f"turns is {turns}; give at least 1, or leave it out for the whole sample")
    if not _FILE.exists():
        raise DataError(
            f"{_FILE}: the sample is not there, which comes with memlab: install memlab again, "
            "or load a file of your own"
        )
    data = _load_cached(_FILE, name="sample")
    data = data if scopes is None else data.take([scopes] if isinstance(scopes, str) else scopes)
    if turns is None or not data.scopes:
        return data
    middle_turn = pl.col("n_turns").cum_sum().over("scope") - pl.col("n_turns") / 2
    is_first = pl.int_range(pl.len()).over("scope") == 0
    sessions = data.sessions.filter((middle_turn <= turns / len(data.scopes)) | is_first)
    kept_turns = data.turns.join(sessions, on="session_id", how="semi", maintain_order="left")
    cited_turns = data.questions.select(
        "query_id", turn_id=pl.concat_list("evidence", pl.col("stale").fill_null([]))
    )
    cut_questions = (
        cited_turns.explode("turn_id").drop_nulls().join(kept_turns, on="turn_id", how="anti")
    )
    questions = data.questions.join(cut_questions, on="query_id", how="anti", maintain_order="left")
    return replace(data, turns=kept_turns, sessions=sessions, questions=questions)
