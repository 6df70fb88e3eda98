"""What late interaction adds up and thereby hides: which words of a question match where."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from memlab.embed.token_vectors import TokenVectors
from memlab.rerank._words import neighbour_values, speakers
from memlab.retrieve import Bench
from memlab.retrieve.arrays import group_starts
from memlab.retrieve.late_interaction import ScopeTokens, question_per_token, sum_per_question

ABSOLUTE_FEATURES = ("late_of_session_words", "late_rarest_least", "late_share_60", "late_share_75")
"""Those whose size, and not only how it compares within the scope, says something."""

MARGIN = 0.05


def token_match_features(tokens: ScopeTokens, asked: TokenVectors, session: np.ndarray) -> dict[str, np.ndarray]:
    """Compare the tokens of questions with those of the turns of a scope, their neighbours and their sessions.

    :param session: (n,) number of each turn's session.
    :returns: (q, n) each. ``late`` is late interaction; ``late_with_…`` the same where a token may find its match in a
        neighbour too; ``…_of_session_words`` anywhere in the session; ``…_rarest`` over the rarer third of the
        tokens, at least two, their mean and their least; ``…_share_60`` the weight of the tokens whose match reaches a
        cosine of .6; ``…_equal`` without weights; ``…_near_best_of_session`` over the tokens that match nowhere better
        in the session.
    """
    best, weights = tokens.best(asked), tokens.weights(asked)
    previous, following, before = (neighbour_values(best, session, step, absent=0.0) for step in (1, -1, 2))
    first = group_starts(session)
    whole = np.repeat(np.maximum.reduceat(best, first, axis=1), np.diff(first, append=len(session)), axis=1)
    question, of_question = question_per_token(asked), np.diff(asked.start)
    equal = np.repeat(1 / np.maximum(of_question, 1), of_question).astype(np.float32)
    place = np.empty(len(question), np.int64)
    place[np.lexsort((-weights, question))] = np.arange(len(question)) - asked.start[question]
    rarest = place < np.maximum(2, of_question // 3)[question]
    share = (rarest / np.bincount(question, rarest, minlength=len(asked))[question]).astype(np.float32)
    parts = {
        "late": (best, weights),
        "late_with_previous": (np.maximum(best, previous), weights),
        "late_with_next": (np.maximum(best, following), weights),
        "late_within_one": (np.maximum(np.maximum(best, previous), following), weights),
        "late_with_two_before": (np.maximum(np.maximum(best, previous), before), weights),
        "late_of_session_words": (whole, weights),
        "late_rarest": (best, share),
        "late_share_60": (best > 0.6, weights),
        "late_share_75": (best > 0.75, weights),
        "late_equal": (best, equal),
        "late_near_best_of_session": (np.maximum(best - whole + MARGIN, 0.0), weights),
    }
    columns = {name: sum_per_question(values, weight, asked) for name, (values, weight) in parts.items()}
    least, filled = np.zeros_like(columns["late"]), np.flatnonzero(of_question)
    if len(filled):
        least[filled] = np.minimum.reduceat(np.where(rarest[:, None], best, 1.0), asked.start[filled], axis=0)
    return columns | {"late_rarest_least": least}


def rephrase_in_first_person(bench: Bench) -> Bench:
    """Put the questions as a speaker of the scope would: ``What did Ann buy?`` becomes ``What did I buy?``.

    Who speaks says "I" of himself, and an encoder hears the difference.
    """
    named = {
        scope: re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, names)) + r")(?!\w)(['’]s)?", re.I)
        for scope, people in speakers(bench).items()
        if (names := sorted(filter(str.strip, people), key=len, reverse=True))
    }
    asked = [
        named[scope].sub(lambda m: "my" if m[1] else "I", text) if scope in named else text
        for scope, text in bench.queries.select("scope", "text").iter_rows()
    ]
    if asked == bench.queries["text"].to_list():
        return bench
    return bench.with_queries(bench.queries.with_columns(text=pl.Series(asked, dtype=pl.String)))
