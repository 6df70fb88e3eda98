"""Haystacks out of an oracle file of LongMemEval: distractor sessions of other questions, drawn
with a seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, Issue, Turn, frame, schema
from memlab.sessions import sessions_of


def pool_haystacks(
    data: Dataset, *, n_sessions: int, seed: int, batch_turns: int
) -> Iterator[Dataset]:
    """Pool an oracle dataset to haystacks, in batches of whole questions of at least
    ``batch_turns`` turns.

    Each question gets sessions of others as distractors. A distractor never repeats one of the
    question's own sessions and holds no exact copy of an evidence turn. The draw depends on the
    seed, the question's id and the set of sessions, not on their order in the file. Sessions keep
    their dates; equal dates are ordered by id, so that the order tells nothing. Results on such
    data are "pooled", never LongMemEval_S.

    :param n_sessions: sessions of each haystack, own ones included; 48 is the size of
        LongMemEval_S.
    :raises DataError: when a question has more sessions of its own than that, or the file too few
        for it.
    """
    if isinstance(n_sessions, bool) or n_sessions < 1:
        raise DataError(
            f"n_sessions (pool) is {n_sessions!r}, expected a number of sessions from 1"
        )
    sessions_by_scope = _own_and_drawn_sessions_by_scope(data, n_sessions, seed)
    session_sizes = dict(data.sessions.select("session_id", "n_turns").iter_rows())
    pool_name = f"{data.name}-pool{n_sessions}-seed{seed}"
    issues = data.issues
    chosen_scopes: list[str] = []
    n_turns = 0
    for scope_number, (scope, sessions) in enumerate(sessions_by_scope.items(), 1):
        chosen_scopes.append(scope)
        n_turns += sum(session_sizes[session_or_scope] for session_or_scope in sessions)
        if n_turns >= batch_turns or scope_number == len(sessions_by_scope):
            haystacks = _build_haystacks(
                {
                    session_or_scope: sessions_by_scope[session_or_scope]
                    for session_or_scope in chosen_scopes
                },
                data,
            )
            yield replace(haystacks, name=pool_name, issues=issues)
            chosen_scopes = []
            n_turns = 0
            issues = frame(Issue)


def _own_and_drawn_sessions_by_scope(
    data: Dataset, n_sessions: int, seed: int
) -> dict[str, list[str]]:
    """Choose the sessions of every question: scope to session ids of the source, own ones first."""
    session_content = pl.format("{}\x1f{}", "role", "text").str.join("\x1e")
    session_library = (
        data.turns.group_by("session_id", maintain_order=True)
        .agg(
            content=session_content,
            scope=pl.col("scope").first(),
            start=pl.col("timestamp").min(),
            texts=pl.col("text"),
        )
        .with_columns(
            name=pl.col("session_id").str.extract(r"([^/]*)$"),
            content=pl.col("content").rank("dense"),
        )
        .sort("name", "content", "start", "scope")
    )
    distinct_sessions = session_library.unique(
        ["name", "content"], keep="first", maintain_order=True
    )
    session_names = distinct_sessions["name"].to_numpy()
    session_contents = distinct_sessions["content"].to_numpy()
    places_by_text: dict[str, list[int]] = {}
    for session_place, texts in enumerate(distinct_sessions["texts"].to_list()):
        for text in texts:
            places_by_text.setdefault(text, []).append(session_place)
    sessions_by_scope = {
        scope: rows for (scope,), rows in session_library.group_by("scope", maintain_order=True)
    }
    text_by_turn = dict(data.turns.select("turn_id", "text").iter_rows())
    plan_by_scope: dict[str, list[str]] = {}
    for scope, evidence in data.questions.select("scope", "evidence").iter_rows():
        is_barred = np.isin(session_names, sessions_by_scope[scope]["name"].to_numpy()) | np.isin(
            session_contents, sessions_by_scope[scope]["content"].to_numpy()
        )
        is_barred[
            [
                session_place
                for turn_id in evidence
                for session_place in places_by_text.get(text_by_turn[turn_id], ())
            ]
        ] = True
        n_wanted = max(n_sessions - sessions_by_scope[scope].height, 0)
        digest = hashlib.sha256(f"{seed} {scope}".encode()).digest()
        drawn_order = np.random.default_rng(int.from_bytes(digest[:16])).permutation(
            np.flatnonzero(~is_barred)
        )
        drawn_sessions = distinct_sessions.select("session_id", "name", "content")[drawn_order]
        for column in ("name", "content"):
            drawn_sessions = drawn_sessions.unique(column, keep="first", maintain_order=True)
        if n_sessions != sessions_by_scope[scope].height + drawn_sessions.head(n_wanted).height:
            raise DataError(
                f"{data.name}: question {scope!r} has {sessions_by_scope[scope].height} sessions "
                f"of its own and {drawn_sessions.head(n_wanted).height} others to draw (the file "
                f"holds {distinct_sessions.height}), which cannot make {n_sessions}; choose "
                "another n_sessions (pool)"
            )
        plan_by_scope[scope] = [
            *sessions_by_scope[scope]["session_id"],
            *drawn_sessions["session_id"].head(n_wanted),
        ]
    return plan_by_scope


def _build_haystacks(sessions_by_scope: dict[str, list[str]], data: Dataset) -> Dataset:
    """Build the haystacks of some questions."""
    chosen_sessions = (
        pl.DataFrame({"scope": list(sessions_by_scope), "source": list(sessions_by_scope.values())})
        .with_row_index("question")
        .explode("source")
        .with_columns(name=pl.col("source").str.extract(r"([^/]*)$"))
        .with_columns(session_id=pl.format("{}/{}", "scope", "name"))
    )
    haystack_turns = (
        chosen_sessions.join(
            data.turns.drop("scope"), left_on="source", right_on="session_id", how="left"
        )
        .with_columns(turn_id=pl.format("{}/{}", "session_id", "n"))
        .sort("question", pl.col("timestamp").min().over("session_id"), "name", "n")
        .select(*schema(Turn))
    )
    questions = data.questions.filter(pl.col("scope").is_in(list(sessions_by_scope)))
    return Dataset(data.name, data.format, haystack_turns, sessions_of(haystack_turns), questions)
