"""Who speaks: what an assistant says resembles a question more, and holds its answer less, than what the user says.

An assistant repeats, in more words, what the user said, and goes on about it for pages. So where a question is not
about what the assistant said itself, :func:`assistant_penalty` holds its turns back.
"""

from __future__ import annotations

import numpy as np

from memlab.retrieve.bench import Bench, cache_per_bench

_YOU = "you(?:['’]ve| have| had)? (?:[a-z]+ )?"
ASKS_ASSISTANT = (
    rf"(?i)\b(?:(?:did|had) you|{_YOU}(?:suggest|recommend|propos|advis|mention|explain|list|call|warn|work)ed"
    rf"|{_YOU}(?:said|told|gave|given|wrote|written|(?:comput|calculat|estimat|nam)ed)|{_YOU}(?:draft|offer)ed"
    r"|your (?:[a-z]+ )?(?:suggestion|recommendation|proposal|advice|answer|draft|plan|estimate|calculation|list)s?)\b"
)
"""Asks for what the assistant said, rather than for what the user did."""

ASSISTANT = 1.0
"""Standard deviations: of 0 to 2 on chats of ``data/train`` and a former sample; see ``docs/evaluation/results.md``."""


@cache_per_bench
def assistant_turn_mask(bench: Bench) -> np.ndarray:
    """Say of each turn of a bench, in the order of its documents, whether an assistant speaks it: (n,)."""
    documents = bench.documents("turn")
    spoken = np.zeros(len(documents.ids), bool)
    spoken[documents.at(bench.turns.filter(role="assistant")["turn_id"])] = True
    return spoken


def assistant_penalty(bench: Bench, rows: np.ndarray, turns: slice, assistant: float = ASSISTANT) -> np.ndarray | None:
    """Say by how many standard deviations the scores of turns are lowered: (q, n), or ``None`` where by none.

    Turns of an assistant are, but for questions that ask what it said (English ones).

    :param rows: (q,) rows of the questions of a scope.
    :param turns: where its n turns are.
    """
    spoken = assistant_turn_mask(bench)[turns]
    if not assistant or spoken.all() or not spoken.any():
        return None
    about_it = bench.queries["text"][rows].str.contains(ASKS_ASSISTANT).to_numpy()
    return np.where(about_it[:, None], 0.0, assistant * spoken)
