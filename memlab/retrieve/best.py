"""The default pipeline: what finds most without training."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from memlab.embed.token_vectors import TokenEncoder
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.fusion import ASSISTANT, combsum

DEFAULT = "best"
"""The pipeline that ranks wherever none is named."""

WEIGHTS = (1.0, 1.0, 2.0)
"""Of dense, BM25 and late interaction."""

_log = logging.getLogger(__name__)


@stage
def best(bench: Bench, *, level: Level = "turn", k: int = 200) -> Run:
    """Rank by the best untrained pipeline: :func:`combsum` of dense, BM25 and late interaction, which counts twice.

    It is ``combsum(turn=(1, 1, 2), session=(1, 1, 2), assistant=1)``, the best untrained pipeline
    on LoCoMo and on LongMemEval. An encoder without token embeddings leaves late interaction out
    where no token encoder stands beside it; a bench without an encoder ranks by BM25 alone. What is
    left out is logged once, and stands in the provenance as ``left_out``.

    What it costs: token embeddings of every turn, encoded once, which takes about as long as
    encoding the turns and 1.5 kB a turn of LoCoMo in the store.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.best(bench).frame.equals(retrieve.combsum(bench, assistant=1).frame)
    True
    """
    if bench.encoder is None:
        return _without(("dense", "late"), bm25(bench, level=level, k=k), "there is no encoder")
    weights = WEIGHTS
    has_tokens = isinstance(bench.encoder, TokenEncoder)
    if not has_tokens:
        weights = (*WEIGHTS[:2], 0.0)
    run = combsum(bench, level=level, k=k, turn=weights, session=weights, assistant=ASSISTANT)
    if has_tokens:
        return run
    key = bench.encoder.identity.key
    return _without(
        ("late",), run, f"{key} gives no token vectors, which token_encoder = 'minilm' would"
    )


def _without(parts: Sequence[str], run: Run, reason: str) -> Run:
    """Say of a run which rankings were left out of it."""
    _warn_once(" and ".join(parts), reason)
    return replace(run, provenance={**run.provenance, "left_out": list(parts)})


@cache
def _warn_once(parts: str, reason: str) -> None:
    _log.warning("best is ranked without %s: %s", parts, reason)
