"""The words of turns and questions: what kind of turn or question they make, and which of them match where."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.token_vectors import TokenVectors
from memlab.embed.turn_texts import ROLES
from memlab.retrieve import Bench
from memlab.retrieve.bench import cache_per_bench
from memlab.retrieve.documents import group_starts
from memlab.retrieve.fusion import assistant_turn_mask
from memlab.retrieve.late_interaction import ScopeTokens, question_per_token, sum_per_question
from memlab.text.analysis import tokenize
from memlab.text.bm25_formula import assign_word_ids, idf
from memlab.text.dates import date_range, dates
from memlab.text.question_patterns import (
    BEHIND_NAMES,
    FIRST_PERSON,
    question_patterns,
    turn_patterns,
)


def word_overlaps(
    bench: Bench, rows: np.ndarray, turns: slice, session: np.ndarray
) -> dict[str, np.ndarray]:
    """Compare the words of questions with those of the turns of their scope, whose speakers' names are none of them.

    :returns: shares (q, n) of the question's words, weighted by idf, that stand in the turn, in it
        and the one before, within two turns, in its session; and how much the words of each
        question weigh (q, 1).
    """
    people = speakers(bench).get(bench.queries["scope"][int(rows[0])], [])
    names = set(chain(*tokenize(people, language=bench.language)))
    texts = [[word for word in bench.query_words[row] if word not in names] for row in rows]
    number: dict[str, int] = {}
    words, of_scope = assign_word_ids(texts, number), bench.documents("turn").words_in(turns)
    asked = np.zeros((len(rows), len(number)), np.float32)
    asked[np.repeat(np.arange(len(rows)), [len(own) for own in texts]), words] = 1
    known = np.array([of_scope.number.get(word, -1) for word in number], np.int64)
    here = np.zeros((len(session), len(number)), bool)
    here[:, known >= 0] = of_scope.counts[known[known >= 0]].toarray().T > 0
    frequency = of_scope.frequency_of(number)
    weights = asked * idf(frequency, of_scope.n).astype(np.float32)
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-6)
    near = {
        step: neighbour_values(here.T, session, step, absent=False).T for step in (1, -1, 2, -2)
    }
    first = group_starts(session)
    within = np.repeat(
        np.logical_or.reduceat(here, first, axis=0), np.diff(first, append=len(session)), axis=0
    )
    inside = (weights * (frequency > 0)).sum(axis=1, keepdims=True)
    places = {
        "words": here,
        "words_with_previous": here | near[1],
        "words_within_two": here | near[1] | near[-1] | near[2] | near[-2],
        "words_of_session": within,
    }
    shares = {name: weights @ there.T.astype(np.float32) / total for name, there in places.items()}
    shares["n_words"] = asked @ here.T.astype(np.float32)
    shares["words_of_known"] = shares["words"] * total / np.maximum(inside, 1e-6)
    return shares | {"question_weight": total, "question_known": inside / total}


def neighbour_values(
    values: np.ndarray, session: np.ndarray, step: int, *, absent: float
) -> np.ndarray:
    """Give each turn what the turn ``step`` places before it in its session has: (q, n), of the same type.

    :param absent: for a turn that has no such neighbour.
    """
    moved = np.full_like(values, absent)
    if abs(step) < values.shape[1]:
        to, of = (
            (slice(step, None), slice(None, -step))
            if step > 0
            else (slice(None, step), slice(-step, None))
        )
        moved[:, to] = np.where(session[to] == session[of], values[:, of], moved[:, to])
    return moved


@cache_per_bench
def speakers(bench: Bench) -> dict[str, list[str]]:
    """Give the named speakers of each scope that has any."""
    named = (
        bench.turns.filter(~pl.col("speaker").is_in(ROLES))
        .group_by("scope")
        .agg(pl.col("speaker").unique())
    )
    return dict(named.iter_rows())


@cache_per_bench
def _describe_turns(bench: Bench) -> pl.DataFrame:
    """Give the turns in the order of the documents: ``speaker``, ``captioned``, shapes as log(1 + n), ``length``."""
    documents = bench.documents("turn")
    ordered = documents.place.join(
        bench.turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left"
    )
    counts = [
        pl.col("text").str.count_matches(pattern).log1p().alias(name)
        for name, pattern in turn_patterns(bench.language).items()
    ]
    length = pl.Series(documents.n_tokens).log1p()
    return ordered.select(
        "speaker", *counts, length=length, captioned=pl.col("caption").is_not_null()
    )


@cache_per_bench
def turn_features(bench: Bench, start: int, stop: int) -> dict[str, np.ndarray]:
    """Describe the turns of a scope: (n,) each. Counts are log(1 + n)."""
    about, session = _describe_turns(bench)[start:stop], bench.documents("turn").session[start:stop]
    shapes = {
        name: about[name].to_numpy().astype(np.float32)
        for name in (*turn_patterns(bench.language), "length")
    }
    shapes["by_assistant"] = assistant_turn_mask(bench)[start:stop].astype(np.float32)
    shapes["captioned"] = about["captioned"].to_numpy().astype(np.float32)
    shapes["answers"] = neighbour_values(shapes["asks"][None], session, 1, absent=0.0)[0]
    return shapes


def question_features(
    bench: Bench, rows: np.ndarray, turns: slice, session: np.ndarray
) -> dict[str, np.ndarray]:
    """Describe the questions, and how the turns' speakers and dates fit them: (q, 1) or (q, n) each."""
    text = bench.queries["text"][rows]
    shapes: dict[str, Any] = {
        name: text.str.contains(pattern).to_numpy().astype(np.float32)[:, None]
        for name, pattern in question_patterns(bench.language).items()
    }
    named_dates = [_first_named_date(question, bench.language) for question in text]
    asked = np.array(named_dates).reshape(len(text), 3)
    shapes["names_date"] = np.isfinite(asked).any(axis=1).astype(np.float32)[:, None]
    shapes["question_length"] = (
        text.str.count_matches(r"\w+").log1p().to_numpy().astype(np.float32)[:, None]
    )
    people = speakers(bench).get(bench.queries["scope"][int(rows[0])], [])
    speaks = (
        _describe_turns(bench)["speaker"][turns].to_numpy() == np.array(people, object)[:, None]
    )
    named = [[name.lower() in question for name in people] for question in text.str.to_lowercase()]
    called = np.array(named, np.float32).reshape(len(rows), len(people))
    shapes["speaker_named"] = called @ speaks.astype(np.float32)
    shapes["n_named"] = called.sum(axis=1, keepdims=True)
    shapes["other_named"] = shapes["n_named"] - shapes["speaker_named"]
    return shapes | {
        name: values[:, session]
        for name, values in _compare_dates(bench, asked, turns, session).items()
    }


@cache_per_bench
def _session_dates(bench: Bench) -> np.ndarray:
    """Give month, year and day since 1970 of each session: (3, n sessions), NaN where it has no date."""
    when = bench.sessions.sort("scope", "n", maintain_order=True)["start"].dt
    return np.array(
        [part.cast(pl.Float64).to_numpy() for part in (when.month(), when.year(), when.epoch("d"))]
    )


def _compare_dates(
    bench: Bench, asked: np.ndarray, turns: slice, session: np.ndarray
) -> dict[str, np.ndarray]:
    """Compare the dates that questions name (q, 3) with those of the scope's sessions: (q, n_sessions) each."""
    numbers = bench.documents("turn").session[turns]
    start = int(numbers[0] - session[0])  # of the scope, whose first sessions may be empty
    of_month, of_year, of_day = _session_dates(bench)[:, None, start : int(numbers[-1]) + 1]
    year, month, day = asked.T[:, :, None]
    same_year = np.isnan(year) | (year == of_year)
    # Days since 1970 of the day that is named, in the year of the session where none is named.
    months_since = (np.where(np.isnan(year), of_year, year) - 1970) * 12 + month - 1
    whole = np.isfinite(months_since) & np.isfinite(day)
    epoch = (
        np.where(whole, months_since, 0)
        .astype("datetime64[M]")
        .astype("datetime64[D]")
        .astype(np.float64)
    )
    distance = np.where(whole, of_day - (epoch + np.where(whole, day, 1) - 1), np.nan)
    return {
        "month_named": ((month == of_month) & same_year).astype(np.float32),
        "date_near": np.nan_to_num(np.exp(-np.abs(distance) / 7)).astype(np.float32),
        "date_before": np.nan_to_num(np.clip(distance, -30, 30) / 30).astype(np.float32),
    }


def _first_named_date(text: str, language: str) -> list[float]:
    """Give year, month and day of the first date that a question names, NaN for what it leaves out."""
    found = dates(text, language=language)
    values = [read.value for read in found if read.value[0].isdigit()]
    if not values:
        return [np.nan] * 3
    spans = [span for value in values if (span := date_range(value))]
    value = str(spans[0][0]) if "W" in values[0] or "/" in values[0] else values[0]
    parts = [float(part) for part in value.split("-")]
    if not date_range(value):
        parts = [float(spans[0][0].year) if spans else np.nan, *parts]
    return [*parts, np.nan, np.nan][:3]


TOKEN_MATCHES = (
    "late_with_previous",
    "late_with_next",
    "late_within_one",
    "late_with_two_before",
    "late_of_session_words",
    "late_rarest",
    "late_equal",
    "late_rarest_least",
)
"""What :func:`token_match_features` gives beside late interaction itself."""


def token_match_features(
    tokens: ScopeTokens, asked: TokenVectors, session: np.ndarray
) -> dict[str, np.ndarray]:
    """Compare the tokens of questions with those of the turns of a scope, their neighbours and their sessions.

    :param session: (n,) number of each turn's session.
    :returns: (q, n) each. ``late`` is late interaction; ``late_with_…`` the same where a token may
        find its match in a neighbour too; ``…_of_session_words`` anywhere in the session;
        ``…_rarest`` over the rarer third of the tokens, at least two, their mean and their least;
        ``…_equal`` without weights.
    """
    best, weights = tokens.best(asked), tokens.weights(asked)
    previous, following, before = (
        neighbour_values(best, session, step, absent=0.0) for step in (1, -1, 2)
    )
    first = group_starts(session)
    whole = np.repeat(
        np.maximum.reduceat(best, first, axis=1), np.diff(first, append=len(session)), axis=1
    )
    question, of_question = question_per_token(asked), np.diff(asked.start)
    equal = np.repeat(1 / np.maximum(of_question, 1), of_question).astype(np.float32)
    place = np.empty(len(question), np.int64)
    place[np.lexsort((-weights, question))] = np.arange(len(question)) - asked.start[question]
    rarest = place < np.maximum(2, of_question // 3)[question]
    share = (rarest / np.bincount(question, rarest, minlength=len(asked))[question]).astype(
        np.float32
    )
    parts = {
        "late": (best, weights),
        "late_with_previous": (np.maximum(best, previous), weights),
        "late_with_next": (np.maximum(best, following), weights),
        "late_within_one": (np.maximum(np.maximum(best, previous), following), weights),
        "late_with_two_before": (np.maximum(np.maximum(best, previous), before), weights),
        "late_of_session_words": (whole, weights),
        "late_rarest": (best, share),
        "late_equal": (best, equal),
    }
    columns = {
        name: sum_per_question(values, weight, asked) for name, (values, weight) in parts.items()
    }
    least, filled = np.zeros_like(columns["late"]), np.flatnonzero(of_question)
    if len(filled):
        least[filled] = np.minimum.reduceat(
            np.where(rarest[:, None], best, 1.0), asked.start[filled], axis=0
        )
    return columns | {"late_rarest_least": least}


def rephrase_in_first_person(bench: Bench) -> Bench:
    """Put the questions as a speaker of the scope would: ``What did Ann buy?`` becomes ``What did I buy?``.

    Who speaks says "I" of himself, and an encoder hears the difference.
    """
    behind = BEHIND_NAMES.get(bench.language, BEHIND_NAMES["en"])
    named = {
        scope: re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, names)) + ")" + behind, re.I)
        for scope, people in speakers(bench).items()
        if (names := sorted(filter(str.strip, people), key=len, reverse=True))
    }
    subject, possessive = FIRST_PERSON.get(bench.language, FIRST_PERSON["en"])
    asked = [
        named[scope].sub(lambda m: possessive if m["owns"] else subject, text)
        if scope in named
        else text
        for scope, text in bench.queries.select("scope", "text").iter_rows()
    ]
    if asked == bench.queries["text"].to_list():
        return bench
    return bench.with_queries(bench.queries.with_columns(text=pl.Series(asked, dtype=pl.String)))
