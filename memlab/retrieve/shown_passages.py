"""What a language model is shown of turns: short passages with their day, their speaker and what came before."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.retrieve.bench import Bench, cache_per_bench
from memlab.text.analysis import tokenize

WORDS, BEFORE = 60, 12
"""Words of a passage at most, and of the message before it, which short messages are understood by."""

STEP = 15
"""Words between the beginnings of the passages among which that of a long message is chosen."""


def format_passages(rows: pl.DataFrame, bench: Bench) -> pl.DataFrame:
    """Write what a model reads of turns.

    A long message is cut to the passage of 60 words that shares most words with the question, the first of equals. A
    message of fewer words is shown with the end of the one before it in its session.

    :param rows: ``query_id``, ``doc_id`` of turns.
    :returns: ``rows`` with ``text``, the whole turn, and ``shown``: the day, in brackets the end of the message before,
        where it is shown, and the passage behind its speaker.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.shown_passages import format_passages
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> format_passages(retrieve.bm25(bench, k=1).frame, bench)["shown"][0].split(".")[0]
    'Thu 11 Sep 2025'
    """
    documents, (days, before) = bench.documents("turn"), _days_and_contexts(bench)
    wanted = [frozenset(words) for words in bench.query_words]
    of, texts, shown = bench.asked(rows.select("query_id"), "row")["row"].to_list(), [], []
    for i, q in zip(documents.at(rows["doc_id"]).tolist(), of, strict=True):
        texts.append(documents.texts[i])
        says = _best_passage(texts[-1], wanted[q], bench.language)
        spare = min(BEFORE, max(0, WORDS - len(says.split())))
        end = f"[{' '.join(before[i].split()[-spare:])}] " if spare and before[i] else ""
        shown.append(f"{days[i]}. {end}{says}")
    return rows.with_columns(text=pl.Series(texts, dtype=pl.String), shown=pl.Series(shown, dtype=pl.String))


@cache_per_bench
def _days_and_contexts(bench: Bench) -> tuple[list[str], list[str]]:
    """Give of each turn its day and the text of the turn before it in its session, empty for the first."""
    documents = bench.documents("turn")
    starts = bench.sessions.select("session_id", "start")
    turns = bench.turns.join(starts, on="session_id", how="left", maintain_order="left")
    times = turns.select(doc_id="turn_id", day=pl.coalesce("timestamp", "start").dt.strftime("%a %-d %b %Y"))
    days = documents.place.join(times, on="doc_id", how="left", maintain_order="left")["day"].fill_null("")
    same = np.concatenate([[False], documents.session[1:] == documents.session[:-1]])
    texts = documents.texts
    return days.to_list(), [texts[i - 1] if near else "" for i, near in enumerate(same.tolist())]


def _best_passage(text: str, wanted: frozenset[str], language: str) -> str:
    """Cut a text to its best passage; who speaks stays before it."""
    words = text.split()
    if len(words) <= WORDS:
        return text
    head, found, _ = text.partition(": ")
    speaker = [head + ":"] if found and len(head.split()) <= 3 else []
    cuts = [words[i : i + WORDS] for i in range(0, max(1, len(words) - WORDS + STEP), STEP)]
    shared = [len(wanted.intersection(read)) for read in tokenize([" ".join(cut) for cut in cuts], language=language)]
    best = int(np.argmax(shared))
    return " ".join([*(speaker if best else []), *cuts[best]])
