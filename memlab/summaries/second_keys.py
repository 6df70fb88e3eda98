"""Second keys: turns are also found by facts or summaries that a language model extracted from
them.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab import llm
from memlab.errors import DataError, check_at_least, warn_user
from memlab.knowledge import extraction
from memlab.knowledge.fact_search import fact_sentences
from memlab.llm.spending import keep_with_spending
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve import Bench
from memlab.retrieve.bench import cache_per_bench_by
from memlab.retrieve.cosine import cosines
from memlab.retrieve.ranking import Scored, rank, require_turn_run, run_depth
from memlab.retrieve.search_again import fuse_hits
from memlab.summaries.rollups import summarize_sessions
from memlab.summaries.summary_rows import fallback_note

KEYS = ("facts", "summaries", "headers")


@stage
def second_keys(
    run: Run, bench: Bench, *, of: str = "facts", weight: float = 0.5, service: str = llm.RECORDED
) -> Run:
    """Search by facts or summaries that a model extracted, and fuse with the run by guarded
    reciprocal rank fusion.

    A turn's score is the best cosine of its own text and of its keys. Keys are ``facts`` (sentences
    that state one thing, and stand on the turns that say it), ``summaries`` (sentences of session
    summaries, with the turns that they cite), or ``headers``: the turn's own text behind the first
    sentence of its session's summary. They are extracted once for a bench; a session that the model
    gave no answer for has no keys, with a warning.

    :param of: ``facts``, ``summaries`` or ``headers``.
    :param weight: of the list that is added; the run's own list weighs 1, and its first three
        places are guarded.
    :param service: what extracts, see :func:`memlab.llm.ask`.
    :raises DataError: for a ranking of sessions, other keys, a negative weight, or a bench without
        an encoder.
    :raises ModelError: when no such service is set.

    Source: Wu et al., LongMemEval (ICLR 2025), section 5.3 (key expansion); Anthropic, Contextual
    Retrieval (2024), for headers.

    >>> import memlab
    >>> bench = memlab.Bench.of(memlab.sample(turns=60), encoder="hashing:64")
    >>> memlab.summaries.second_keys(memlab.retrieve.bm25(bench), bench, of="words")
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: of is 'words'; choose from facts, summaries, headers
    """
    require_turn_run(run, "second_keys")
    check_at_least(0, weight=weight)
    if of not in KEYS:
        raise DataError(f"of is {of!r}; choose from {', '.join(KEYS)}")
    documents = bench.documents("turn")
    turn_of, key_of, vectors = _turn_keys(bench, of, service)
    turn_vectors = documents.vectors()

    def scored() -> Scored:
        for rows, span in bench.by_scope("turn"):
            inside = (turn_of >= span.start) & (turn_of < span.stop)
            question_vectors = bench.query_vectors[rows]
            # A column for each turn, so that the best of a turn's keys is a maximum over rows.
            best = cosines(question_vectors, turn_vectors[span]).T.copy()
            np.maximum.at(
                best,
                turn_of[inside] - span.start,
                cosines(question_vectors, vectors[key_of[inside]]).T,
            )
            yield rows, span, best.T

    hits = rank(bench, scored(), level="turn", k=run_depth(run)).frame
    return fuse_hits(run, bench, hits, weight=weight, k=run_depth(run))


@cache_per_bench_by(keep_with_spending)
def _turn_keys(bench: Bench, of: str, service: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Extract and encode keys.

    Give pairs of turn and key, as two arrays, and the keys' vectors (n keys, d).
    """
    keys = _extract_keys(bench, of, service)
    texts = keys["text"].unique(maintain_order=True)
    number = pl.DataFrame({"text": texts, "key": np.arange(len(texts))})
    pairs = keys.explode("turn_id").drop_nulls().join(number, on="text", maintain_order="left")
    vectors = np.asarray(bench.embedder().encode(texts.to_list()))
    return bench.documents("turn").at(pairs["turn_id"]), pairs["key"].to_numpy(), vectors


def _extract_keys(bench: Bench, of: str, service: str) -> pl.DataFrame:
    """Extract the keys of a bench: ``text``, and ``turn_id``, the list of its turns."""
    documents = bench.documents("turn")
    turns = bench.turns[np.argsort(documents.at(bench.turns["turn_id"]), kind="stable")]
    if of == "facts":
        extracted = extraction.extract(turns, service=service)
        line = extracted.note
        keys = extracted.facts.select(text=fact_sentences(extracted.facts), turn_id="evidence")
    else:
        summaries = summarize_sessions(turns, service=service, language=bench.language)
        line = fallback_note(summaries, "summaries")
        written = summaries.filter(pl.col("reason") == "").select(
            "session_id", "sentences", "evidence"
        )
        if of == "summaries":
            keys = written.explode("sentences", "evidence").select(
                text="sentences", turn_id="evidence"
            )
        else:
            first = written.select("session_id", head=pl.col("sentences").list.first())
            named = turns.select("session_id", "turn_id").with_columns(
                own=pl.Series(documents.texts)
            )
            text = pl.format("[{}] {}", "head", "own")
            keys = named.join(first, on="session_id", maintain_order="left").select(
                text=text, turn_id=pl.concat_list("turn_id")
            )
    if line:
        warn_user(line)
    return keys
