"""Second keys: turns are also found by facts or summaries that a language model extracted from
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from memlab import llm
from memlab.errors import DataError, check_at_least, warn_user
from memlab.knowledge import fact_extraction
from memlab.knowledge.fact_search import write_fact_sentences_or_statements
from memlab.llm.token_spending import get_or_make_result_with_spending
from memlab.records import Run
from memlab.registry import Weight, stage
from memlab.retrieve import Bench
from memlab.retrieve.bench import cache_per_bench_with
from memlab.retrieve.cosine import cosines
from memlab.retrieve.rankings_from_scores import (
    ScopeScores,
    deepest_rank_or_one,
    rank_scope_scores,
    refuse_session_run,
)
from memlab.retrieve.subquery_search import fuse_run_with_hits
from memlab.summaries.period_rollups import summarize_sessions
from memlab.summaries.summary_rows import fallback_note

KeyKind = Literal["facts", "summaries", "headers"]
KEYS = get_args(KeyKind)


@stage
def second_keys(
    run: Run,
    bench: Bench,
    *,
    of: KeyKind = "facts",
    weight: Weight = 0.5,
    service: str = llm.RECORDED,
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
    refuse_session_run(run, "second_keys")
    check_at_least(0, weight=weight)
    if of not in KEYS:
        raise DataError(f"of is {of!r}; choose from {', '.join(KEYS)}")
    documents = bench.documents("turn")
    turn_of, key_of, vectors = _extract_and_encode_keys(bench, of, service)
    turn_vectors = documents.vectors()

    def key_scores() -> Iterator[ScopeScores]:
        for question_rows, turn_span in bench.by_scope("turn"):
            in_span = (turn_of >= turn_span.start) & (turn_of < turn_span.stop)
            question_vectors = bench.require_query_vectors()[question_rows]
            # A column for each turn, so that the best of a turn's keys is a maximum over rows.
            best_scores = cosines(question_vectors, turn_vectors[turn_span]).T.copy()
            np.maximum.at(
                best_scores,
                turn_of[in_span] - turn_span.start,
                cosines(question_vectors, vectors[key_of[in_span]]).T,
            )
            yield ScopeScores(question_rows, turn_span, best_scores.T)

    key_hits = rank_scope_scores(
        bench, key_scores(), level="turn", k=deepest_rank_or_one(run)
    ).frame
    return fuse_run_with_hits(run, bench, key_hits, weight=weight, k=deepest_rank_or_one(run))


class _TurnKeys(NamedTuple):
    """Pairs of a turn and a key of it: the turns' places (m,), the keys' numbers (m,); and the
    vectors of the keys (n keys, d).
    """

    turn_places: np.ndarray
    key_numbers: np.ndarray
    key_vectors: np.ndarray


@cache_per_bench_with(get_or_make_result_with_spending)
def _extract_and_encode_keys(bench: Bench, key_kind: str, service: str) -> _TurnKeys:
    """Extract and encode keys."""
    key_rows = _extract_key_texts_with_turns(bench, key_kind, service)
    key_texts = key_rows["text"].unique(maintain_order=True)
    number_of_text = pl.DataFrame({"text": key_texts, "key": np.arange(len(key_texts))})
    turn_key_pairs = (
        key_rows.explode("turn_id")
        .drop_nulls()
        .join(number_of_text, on="text", maintain_order="left")
    )
    key_vectors = np.asarray(bench.embedder().encode(key_texts.to_list()))
    return _TurnKeys(
        bench.documents("turn").at(turn_key_pairs["turn_id"]),
        turn_key_pairs["key"].to_numpy(),
        key_vectors,
    )


def _extract_key_texts_with_turns(bench: Bench, key_kind: str, service: str) -> pl.DataFrame:
    """Extract the keys of a bench: ``text``, and ``turn_id``, the list of its turns."""
    documents = bench.documents("turn")
    ordered = bench.turns[np.argsort(documents.at(bench.turns["turn_id"]), kind="stable")]
    if key_kind == "facts":
        extracted = fact_extraction.extract(ordered, service=service)
        fallback_line = extracted.note
        key_rows = extracted.facts.select(
            text=write_fact_sentences_or_statements(extracted.facts), turn_id="evidence"
        )
    else:
        summaries = summarize_sessions(ordered, service=service, language=bench.language)
        fallback_line = fallback_note(summaries, "summaries")
        written_summaries = summaries.filter(pl.col("reason") == "").select(
            "session_id", "sentences", "evidence"
        )
        if key_kind == "summaries":
            key_rows = written_summaries.explode("sentences", "evidence").select(
                text="sentences", turn_id="evidence"
            )
        else:
            first_sentences = written_summaries.select(
                "session_id", head=pl.col("sentences").list.first()
            )
            turn_texts = ordered.select("session_id", "turn_id").with_columns(
                own=pl.Series(documents.texts)
            )
            headed_text = pl.format("[{}] {}", "head", "own")
            key_rows = turn_texts.join(
                first_sentences, on="session_id", maintain_order="left"
            ).select(text=headed_text, turn_id=pl.concat_list("turn_id"))
    if fallback_line:
        warn_user(fallback_line)
    return key_rows
