"""The default pipeline: what finds most without training."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from memlab.embed.encoder import Encoder
from memlab.embed.token_vectors import TokenEncoder
from memlab.records import Level, Run
from memlab.registry import Count, stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.rank_fusion import ASSISTANT, combsum

DEFAULT = "best"
"""The pipeline that ranks wherever none is named."""

WEIGHTS = (1.0, 1.0, 2.0)
"""Of dense, BM25 and late interaction."""

_log = logging.getLogger(__name__)


@stage
def best(bench: Bench, *, level: Level = "turn", k: Count = 200) -> Run:
    """Rank by the best untrained pipeline: :func:`combsum` of dense, BM25 and late interaction,
    which counts twice.

    It is ``combsum(turn=(1, 1, 2), session=(1, 1, 2), assistant=1)``, the best untrained pipeline
    on LoCoMo and on LongMemEval. An encoder without token embeddings leaves late interaction out
    where no token encoder stands beside it; a bench without an encoder ranks by BM25 alone. What is
    left out is logged once, stands in the provenance as ``left_out``, and in the name that tables
    show.

    What it costs: token embeddings of every turn, encoded once, which takes about as long as
    encoding the turns and 1.5 kB a turn of LoCoMo in the store.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.best(bench).frame.equals(retrieve.combsum(bench, assistant=1).frame)
    True
    """
    if bench.encoder is None:
        ranking = bm25(bench, level=level, k=k)
        return log_and_note_left_out_scorers(
            ranking, DEFAULT, ("dense", "late"), "there is no encoder"
        )
    weights = WEIGHTS
    has_tokens = isinstance(bench.encoder, TokenEncoder)
    if not has_tokens:
        weights = (*WEIGHTS[:2], 0.0)
    ranking = combsum(bench, level=level, k=k, turn=weights, session=weights, assistant=ASSISTANT)
    if has_tokens:
        return ranking
    return log_and_note_left_out_scorers(
        ranking, DEFAULT, ("late",), no_token_vectors_message(bench.encoder)
    )


def log_and_note_left_out_scorers(
    run: Run, stage_name: str, scorer_names: Sequence[str], reason: str
) -> Run:
    """Say of a run what was left out of it: once in a log, and in its provenance."""
    _log_left_out_scorers_once(stage_name, " and ".join(scorer_names), reason)
    return replace(run, provenance={**run.provenance, "left_out": list(scorer_names)})


def no_token_vectors_message(encoder: Encoder) -> str:
    """Say why late interaction is left out, and what would bring it."""
    key = encoder.identity.key
    return f"{key} gives no token vectors, which token_encoder = 'minilm' would"


@cache
def _log_left_out_scorers_once(stage_name: str, scorer_names: str, reason: str) -> None:
    _log.warning("%s is ranked without %s: %s", stage_name, scorer_names, reason)
