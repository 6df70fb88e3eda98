"""The words of turns and questions: what kind of turn or question they make, and which of them
match where.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.token_vectors import TokenVectors
from memlab.embed.turn_texts import ROLES
from memlab.retrieve import Bench
from memlab.retrieve.bench import cache_per_bench
from memlab.retrieve.documents import first_row_of_each_group
from memlab.retrieve.late_interaction import (
    ScopeTokens,
    question_of_each_token,
    sum_weighted_cosines_per_question,
)
from memlab.retrieve.rank_fusion import is_assistant_turn
from memlab.text.bm25_formula import ScopeWords, idf, number_words_and_extend_ids
from memlab.text.date_expressions import date_range, dates
from memlab.text.question_patterns import (
    BEHIND_NAMES,
    FIRST_PERSON,
    question_patterns,
    turn_patterns,
)
from memlab.text.text_analyser import tokenize


def word_overlap_values_by_name(
    bench: Bench, query_rows: np.ndarray, turn_span: slice, session_of_turn: np.ndarray
) -> dict[str, np.ndarray]:
    """Compare the words of questions with those of the turns of their scope.

    Names of the scope's speakers are none of them.

    :returns: shares (q, n) of the question's words, weighted by idf, that stand in the turn, in it
        and the one before, within two turns, in its session; and how much the words of each
        question weigh (q, 1).
    """
    speaker_names = named_speakers_by_scope(bench).get(
        bench.queries["scope"][int(query_rows[0])], []
    )
    name_words = set(chain(*tokenize(speaker_names, language=bench.language)))
    query_words = [bench.query_words[row] for row in query_rows]
    question_texts = [
        [word for word in flat_word_ids if word not in name_words] for flat_word_ids in query_words
    ]
    # Which of the words (v) each question has: (q, v), and which of them each turn has: (n, v).
    word_ids: dict[str, int] = {}
    flat_word_ids = number_words_and_extend_ids(question_texts, word_ids)
    has_word = np.zeros((len(query_rows), len(word_ids)), np.float32)
    has_word[
        np.repeat(
            np.arange(len(query_rows)), [len(question_words) for question_words in question_texts]
        ),
        flat_word_ids,
    ] = 1
    scope_words = bench.documents("turn").words_in(turn_span)
    in_turn = _turn_has_word(scope_words, word_ids, len(session_of_turn))

    frequency = scope_words.document_frequency_of(word_ids)
    weights = has_word * idf(frequency, scope_words.n).astype(np.float32)
    weight_totals = np.maximum(weights.sum(axis=1, keepdims=True), 1e-6)
    total_known = (weights * (frequency > 0)).sum(axis=1, keepdims=True)

    with_previous = in_turn | _neighbour_turn_has_word(in_turn, session_of_turn, 1)
    within_two = with_previous.copy()
    for turn_step in (-1, 2, -2):
        within_two |= _neighbour_turn_has_word(in_turn, session_of_turn, turn_step)
    session_starts = first_row_of_each_group(session_of_turn)
    in_session = np.logical_or.reduceat(in_turn, session_starts, axis=0)
    in_session = np.repeat(in_session, np.diff(session_starts, append=len(session_of_turn)), axis=0)

    share_columns = {
        "words": _weighted_share_of_words(weights, in_turn, weight_totals),
        "words_with_previous": _weighted_share_of_words(weights, with_previous, weight_totals),
        "words_within_two": _weighted_share_of_words(weights, within_two, weight_totals),
        "words_of_session": _weighted_share_of_words(weights, in_session, weight_totals),
        "n_words": has_word @ in_turn.T.astype(np.float32),
    }
    share_columns["words_of_known"] = (
        share_columns["words"] * weight_totals / np.maximum(total_known, 1e-6)
    )
    share_columns["question_weight"] = weight_totals
    share_columns["question_known"] = total_known / weight_totals
    return share_columns


def _turn_has_word(
    scope_words: ScopeWords, word_ids: Mapping[str, int], n_turns: int
) -> np.ndarray:
    """Say which turns have which words: (n, v) bool."""
    known_numbers = np.array([scope_words.number.get(word, -1) for word in word_ids], np.int64)
    in_turn = np.zeros((n_turns, len(word_ids)), bool)
    in_turn[:, known_numbers >= 0] = (
        scope_words.counts[known_numbers[known_numbers >= 0]].toarray().T > 0
    )
    return in_turn


def _neighbour_turn_has_word(
    turn_has_word: np.ndarray, session_of_turn: np.ndarray, step: int
) -> np.ndarray:
    return neighbour_values(turn_has_word.T, session_of_turn, step, absent=False).T


def _weighted_share_of_words(
    word_weights: np.ndarray, has_word: np.ndarray, weight_totals: np.ndarray
) -> np.ndarray:
    """Sum the weights of the words that are present, as a share of all: (q, v), (n, v) → (q, n)."""
    word_share: np.ndarray = word_weights @ has_word.T.astype(np.float32) / weight_totals
    return word_share


def neighbour_values(
    values: np.ndarray, session_of_turn: np.ndarray, step: int, *, absent: float
) -> np.ndarray:
    """Give each turn what the turn ``step`` places before it in its session has: (q, n).

    :param absent: for a turn that has no such neighbour.
    """
    moved_values = np.full_like(values, absent)
    if abs(step) >= values.shape[1]:
        return moved_values
    target_turns = slice(step, None)
    source_turns = slice(None, -step)
    if step < 0:
        target_turns = slice(None, step)
        source_turns = slice(-step, None)
    in_same_session = session_of_turn[target_turns] == session_of_turn[source_turns]
    moved_values[:, target_turns] = np.where(
        in_same_session, values[:, source_turns], moved_values[:, target_turns]
    )
    return moved_values


@cache_per_bench
def named_speakers_by_scope(bench: Bench) -> dict[str, list[str]]:
    """List the named speakers of each scope that has any."""
    speakers_by_scope = (
        bench.turns.filter(~pl.col("speaker").is_in(ROLES))
        .group_by("scope")
        .agg(pl.col("speaker").unique())
    )
    return dict(speakers_by_scope.iter_rows())


@cache_per_bench
def _turn_property_rows(bench: Bench) -> pl.DataFrame:
    """Describe the turns in the order of the documents.

    ``speaker``, ``captioned``, counts of patterns as log(1 + n), ``length``.
    """
    documents = bench.documents("turn")
    ordered_turns = documents.place_of_id.join(
        bench.turns, left_on="doc_id", right_on="turn_id", how="left", maintain_order="left"
    )
    pattern_counts = [
        pl.col("text").str.count_matches(pattern).log1p().alias(name)
        for name, pattern in turn_patterns(bench.language).items()
    ]
    token_length = pl.Series(documents.n_tokens).log1p()
    return ordered_turns.select(
        "speaker", *pattern_counts, length=token_length, captioned=pl.col("caption").is_not_null()
    )


@cache_per_bench
def turn_feature_values_by_name(
    bench: Bench, first_turn: int, end_turn: int
) -> dict[str, np.ndarray]:
    """Describe the turns of a scope: (n,) each. Counts are log(1 + n)."""
    turn_descriptions = _turn_property_rows(bench)[first_turn:end_turn]
    session_of_turn = bench.documents("turn").session[first_turn:end_turn]
    features = {}
    for name in (*turn_patterns(bench.language), "length"):
        features[name] = turn_descriptions[name].to_numpy().astype(np.float32)
    features["by_assistant"] = is_assistant_turn(bench)[first_turn:end_turn].astype(np.float32)
    features["captioned"] = turn_descriptions["captioned"].to_numpy().astype(np.float32)
    features["answers"] = neighbour_values(features["asks"][None], session_of_turn, 1, absent=0.0)[
        0
    ]
    return features


def question_feature_values_by_name(
    bench: Bench, query_rows: np.ndarray, turn_span: slice, session_of_turn: np.ndarray
) -> dict[str, np.ndarray]:
    """Describe the questions, and how the turns' speakers and dates fit them.

    :returns: (q, 1) or (q, n) each.
    """
    question_texts = bench.queries["text"][query_rows]
    features: dict[str, Any] = {}
    for feature_name, pattern in question_patterns(bench.language).items():
        features[feature_name] = _as_float_column(question_texts.str.contains(pattern))
    named_dates = [
        _first_year_month_day_or_nan(question, bench.language) for question in question_texts
    ]
    question_dates = np.array(named_dates).reshape(len(question_texts), 3)
    has_date = np.isfinite(question_dates).any(axis=1)
    features["names_date"] = has_date.astype(np.float32)[:, None]
    features["question_length"] = _as_float_column(question_texts.str.count_matches(r"\w+").log1p())

    speaker_names = named_speakers_by_scope(bench).get(
        bench.queries["scope"][int(query_rows[0])], []
    )
    turn_speakers = _turn_property_rows(bench)["speaker"][turn_span].to_numpy()
    is_speaker = turn_speakers == np.array(speaker_names, object)[:, None]
    lower_names = [feature_name.lower() for feature_name in speaker_names]
    questions = question_texts.str.to_lowercase()
    mentions = [
        [feature_name in question for feature_name in lower_names] for question in questions
    ]
    is_named = np.array(mentions, np.float32).reshape(len(query_rows), len(speaker_names))
    features["speaker_named"] = is_named @ is_speaker.astype(np.float32)
    features["n_named"] = is_named.sum(axis=1, keepdims=True)
    features["other_named"] = features["n_named"] - features["speaker_named"]

    # Dates are compared by session, and then given to the turns.
    for feature_name, values in _date_match_values_by_name(
        bench, question_dates, turn_span, session_of_turn
    ).items():
        features[feature_name] = values[:, session_of_turn]
    return features


def _as_float_column(value_per_question: pl.Series) -> np.ndarray:
    """Write a series of one value a question as (q, 1) float32."""
    return value_per_question.to_numpy().astype(np.float32)[:, None]


@cache_per_bench
def _month_year_epoch_day_of_sessions(bench: Bench) -> np.ndarray:
    """Read month, year and day since 1970 of each session: (3, n sessions), NaN without a date."""
    session_start = bench.sessions.sort("scope", "n", maintain_order=True)["start"].dt
    date_parts = [session_start.month(), session_start.year(), session_start.epoch("d")]
    return np.array([date_part.cast(pl.Float64).to_numpy() for date_part in date_parts])


def _date_match_values_by_name(
    bench: Bench, question_dates: np.ndarray, turn_span: slice, session_of_turn: np.ndarray
) -> dict[str, np.ndarray]:
    """Compare the dates that questions name (q, 3) with those of the scope's sessions.

    :returns: (q, n sessions) each.
    """
    session_numbers = bench.documents("turn").session[turn_span]
    first_session = int(
        session_numbers[0] - session_of_turn[0]
    )  # of the scope, whose first sessions may be empty
    of_month, of_year, of_day = _month_year_epoch_day_of_sessions(bench)[
        :, None, first_session : int(session_numbers[-1]) + 1
    ]
    year, month, day = question_dates.T[:, :, None]
    same_year = np.isnan(year) | (year == of_year)
    # Days since 1970 of the day that is named, in the year of the session where none is named.
    months_since = (np.where(np.isnan(year), of_year, year) - 1970) * 12 + month - 1
    is_whole_date = np.isfinite(months_since) & np.isfinite(day)
    month_start = (
        np.where(is_whole_date, months_since, 0)
        .astype("datetime64[M]")
        .astype("datetime64[D]")
        .astype(np.float64)
    )
    day_distance = np.where(
        is_whole_date, of_day - (month_start + np.where(is_whole_date, day, 1) - 1), np.nan
    )
    return {
        "month_named": ((month == of_month) & same_year).astype(np.float32),
        "date_near": np.nan_to_num(np.exp(-np.abs(day_distance) / 7)).astype(np.float32),
        "date_before": np.nan_to_num(np.clip(day_distance, -30, 30) / 30).astype(np.float32),
    }


def _first_year_month_day_or_nan(question_text: str, language: str) -> list[float]:
    """Read year, month and day of the first date of a question, NaN for what it leaves out."""
    stated_dates = [stated_date.value for stated_date in dates(question_text, language=language)]
    numbered_dates = [value for value in stated_dates if value[0].isdigit()]
    if not numbered_dates:
        return [np.nan] * 3
    date_ranges = list(filter(None, map(date_range, numbered_dates)))
    first_date = numbered_dates[0]
    # Of a week or a weekend its first day.
    if "W" in first_date or "/" in first_date:
        first_date = str(date_ranges[0][0])
    date_parts = [float(date_part) for date_part in first_date.split("-")]
    if not date_range(first_date):
        # The year is that of the first date that names one.
        date_parts.insert(0, float(date_ranges[0][0].year) if date_ranges else np.nan)
    return [*date_parts, np.nan, np.nan][:3]


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
"""What :func:`token_match_values_by_name` gives beside late interaction itself."""


def token_match_values_by_name(
    passage_tokens: ScopeTokens, question_tokens: TokenVectors, session_of_turn: np.ndarray
) -> dict[str, np.ndarray]:
    """Compare the tokens of questions with those of turns, their neighbours and sessions.

    :param session_of_turn: (n,) number of each turn's session.
    :returns: (q, n) each. ``late`` is late interaction; ``late_with_…`` the same where a token may
        find its match in a neighbour too; ``…_of_session_words`` anywhere in the session;
        ``…_rarest`` over the rarer third of the tokens, at least two, their mean and their least;
        ``…_equal`` without weights.
    """
    # (t, n) for the t tokens of all questions, one question after the other.
    best_matches = passage_tokens.best_cosine_per_turn(question_tokens)
    weights = passage_tokens.token_weights(question_tokens)
    previous_matches = neighbour_values(best_matches, session_of_turn, 1, absent=0.0)
    next_matches = neighbour_values(best_matches, session_of_turn, -1, absent=0.0)
    matches_two_before = neighbour_values(best_matches, session_of_turn, 2, absent=0.0)
    with_previous = np.maximum(best_matches, previous_matches)
    session_starts = first_row_of_each_group(session_of_turn)
    session_matches = np.maximum.reduceat(best_matches, session_starts, axis=1)
    session_matches = np.repeat(
        session_matches, np.diff(session_starts, append=len(session_of_turn)), axis=1
    )

    question_of_token = question_of_each_token(question_tokens)
    n_tokens = np.diff(question_tokens.start)
    equal_weights = np.repeat(1 / np.maximum(n_tokens, 1), n_tokens).astype(np.float32)
    is_rarest = _is_rare_token(weights, question_tokens, question_of_token)
    n_rarest = np.bincount(question_of_token, is_rarest, minlength=len(question_tokens))[
        question_of_token
    ]
    rarest_weights = (is_rarest / n_rarest).astype(np.float32)

    values_and_weights = {
        "late": (best_matches, weights),
        "late_with_previous": (with_previous, weights),
        "late_with_next": (np.maximum(best_matches, next_matches), weights),
        "late_within_one": (np.maximum(with_previous, next_matches), weights),
        "late_with_two_before": (np.maximum(with_previous, matches_two_before), weights),
        "late_of_session_words": (session_matches, weights),
        "late_rarest": (best_matches, rarest_weights),
        "late_equal": (best_matches, equal_weights),
    }
    features = {}
    for feature_name, (token_values, token_weights) in values_and_weights.items():
        features[feature_name] = sum_weighted_cosines_per_question(
            token_values, token_weights, question_tokens
        )
    least_of_rarest = np.zeros_like(features["late"])
    filled_questions = np.flatnonzero(n_tokens)
    if len(filled_questions):
        rarest_matches = np.where(is_rarest[:, None], best_matches, 1.0)
        least_of_rarest[filled_questions] = np.minimum.reduceat(
            rarest_matches, question_tokens.start[filled_questions], axis=0
        )
    features["late_rarest_least"] = least_of_rarest
    return features


def _is_rare_token(
    token_weights: np.ndarray, question_tokens: TokenVectors, question_of_token: np.ndarray
) -> np.ndarray:
    """Say which tokens are of the rarer third of their question, or of its two rarest: (t,)."""
    token_rank = np.empty(len(question_of_token), np.int64)
    rarest_first = np.lexsort((-token_weights, question_of_token))
    token_rank[rarest_first] = (
        np.arange(len(question_of_token)) - question_tokens.start[question_of_token]
    )
    n_rarest = np.maximum(2, np.diff(question_tokens.start) // 3)
    return token_rank < n_rarest[question_of_token]


def rephrase_in_first_person(bench: Bench) -> Bench:
    """Put the questions as a speaker of the scope would.

    ``What did Ann buy?`` becomes ``What did I buy?``. Who speaks says "I" of himself, and an
    encoder hears the difference.
    """
    subject, possessive = FIRST_PERSON.get(bench.language, FIRST_PERSON["en"])

    def pronoun_replacing_name(name_match: re.Match[str]) -> str:
        return possessive if name_match["owns"] else subject

    patterns = _speaker_name_patterns_by_scope(bench)
    rephrased = []
    for scope, text in bench.queries.select("scope", "text").iter_rows():
        if scope in patterns:
            text = patterns[scope].sub(pronoun_replacing_name, text)
        rephrased.append(text)
    if rephrased == bench.queries["text"].to_list():
        return bench
    texts = pl.Series(rephrased, dtype=pl.String)
    return bench.with_queries(bench.queries.with_columns(text=texts))


def _speaker_name_patterns_by_scope(bench: Bench) -> dict[str, re.Pattern[str]]:
    """Compile what finds the names of each scope's speakers, the longest first."""
    name_endings = BEHIND_NAMES.get(bench.language, BEHIND_NAMES["en"])
    patterns = {}
    for scope, people in named_speakers_by_scope(bench).items():
        longest_first = sorted(filter(str.strip, people), key=len, reverse=True)
        if longest_first:
            any_name = "|".join(map(re.escape, longest_first))
            patterns[scope] = re.compile(rf"(?<!\w)(?:{any_name}){name_endings}", re.I)
    return patterns
