"""Where a ranking may end: a language model reads the first turns and says whether they give the complete answer."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from memlab import llm
from memlab.errors import check_at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.multi_hop import READS, read_first_turns
from memlab.retrieve.ranking import require_turn_run


@stage
def enough(run: Run, bench: Bench, *, k: int = READS, service: str = llm.RECORDED) -> Run:
    """End a ranking after its first turns, where a language model that reads them calls the answer complete.

    Every other question keeps its whole ranking: a memory reads on there. Compare precision and complete recall with
    a fixed number of turns, see ``n_retrieved`` of a report.

    :param k: turns that are read; recorded answers of :func:`multi_hop` are those of its first hop for 10.
    :param service: what reads, see :func:`memlab.llm.ask`.
    :raises DataError: for a ranking of sessions, or a number of turns below 1.
    :raises ModelError: when no such service is set.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve import enough
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> plain = retrieve.bm25(bench, k=3)
    >>> enough(plain, bench).frame.height == plain.frame.height
    True
    """
    require_turn_run(run, "enough")
    check_at_least(1, k=k)
    done = read_first_turns(run.frame, bench, service, searched={}, k=k).filter("complete")
    ends = pl.col("query_id").is_in(done["query_id"].implode())
    return replace(run, frame=run.frame.filter(~ends | (pl.col("rank") <= k)))
