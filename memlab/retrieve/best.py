"""The default pipeline: what finds most without training."""

from __future__ import annotations

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


@stage
def best(bench: Bench, *, level: Level = "turn", k: int = 200) -> Run:
    """Rank by the best untrained pipeline: :func:`combsum` of dense, BM25 and late interaction, which counts twice.

    It is ``combsum(turn=(1, 1, 2), session=(1, 1, 2), assistant=1)``, the best untrained pipeline
    on LoCoMo and on LongMemEval. An encoder that gives no token embeddings leaves late interaction
    out; a bench without an encoder ranks by BM25 alone.

    What it costs: token embeddings of every turn, encoded once, which takes about as long as
    encoding the turns and 1.5 kB a turn of LoCoMo in the store.

    >>> from memlab import retrieve, sample
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> retrieve.best(bench).frame.equals(retrieve.combsum(bench, assistant=1).frame)
    True
    """
    if bench.encoder is None:
        return bm25(bench, level=level, k=k)
    weights = WEIGHTS if isinstance(bench.encoder, TokenEncoder) else (*WEIGHTS[:2], 0.0)
    return combsum(bench, level=level, k=k, turn=weights, session=weights, assistant=ASSISTANT)
