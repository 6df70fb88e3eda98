"""Complete recall for ``ir_measures``: importing this module adds the measure ``RAll`` to that library.

``ir_measures`` (and what builds on it, such as PyTerrier) has no measure of *all* evidence among the first k. After
``import memlab.evaluate.ir``, ``ir_measures.parse_measure("RAll@10")`` gives it, and every function of the library
evaluates it. It needs the extra ``ir``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import ir_measures
import polars as pl
from ir_measures import measures, providers

from memlab.errors import DataError
from memlab.records import Qrels, Run


class _RAll(measures.Measure):
    """1 where every relevant document is among the first ``cutoff``, else 0."""

    __name__ = "RAll"
    NAME = __name__
    PRETTY_NAME = "Complete recall at k"
    SHORT_DESC = "An indicator if all relevant documents are retrieved in the top k results."
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": measures.ParamInfo(dtype=int, required=False, desc="ranking cutoff threshold"),
        "rel": measures.ParamInfo(dtype=int, default=1, desc="minimum relevance score to be considered relevant"),
    }


class _Evaluator(providers.Evaluator):
    def __init__(self, wanted: Iterable[Any], qrels: Any) -> None:
        self.judged = ir_measures.util.QrelsConverter(qrels).as_dict_of_dict()
        super().__init__(list(wanted), set(self.judged))

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        for query, scores in ir_measures.util.RunConverter(run).as_dict_of_dict().items():
            judged = self.judged.get(query)
            if judged is None:
                continue
            # Equal scores stand as trec_eval puts them.
            ranked = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)
            for measure in self.measures:
                relevant = {doc for doc, grade in judged.items() if grade >= measure["rel"]}
                cutoff = measure.params.get("cutoff")
                complete = bool(relevant) and relevant <= set(ranked[:cutoff])
                yield ir_measures.Metric(query_id=query, measure=measure, value=float(complete))


class _Provider(providers.Provider):
    NAME = "memlab"

    def supports(self, measure: Any) -> bool:
        measure.validate_params()
        return bool(measure.NAME == _RAll.NAME)

    def _evaluator(self, wanted: Any, qrels: Any) -> Any:
        return _Evaluator(wanted, qrels)


RAll = _RAll()
"""The measure: ``RAll @ 10``; a query without relevant documents has 0, as with the library's others."""

if _RAll.NAME not in measures.registry:
    measures.register(RAll)
    ir_measures.DefaultPipeline.providers.append(providers.register(_Provider()))


def ir_score(run: Run, qrels: Qrels, wanted: str | Any | Iterable[str | Any]) -> pl.DataFrame:
    """Score each query by measures of ``ir_measures``, as :func:`memlab.evaluate.score` does by memlab's.

    :param wanted: measures of that library, or their text: ``"nDCG@10"``, ``"RAll@10"``.
    :returns: one row a query in the order of the qrels: ``query_id`` and a Float64 column a measure.
    :raises DataError: when the levels differ, or the library has no such measure.

    >>> import memlab
    >>> from memlab.evaluate import score
    >>> from memlab.evaluate.ir import ir_score
    >>> data = memlab.sample(turns=200)
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> judged = memlab.records.qrels(data.questions, "turn")
    >>> theirs, ours = ir_score(run, judged, "RAll@10"), score(run, judged, "recall_all@10")
    >>> theirs["RAll@10"].to_list() == ours["recall_all@10"].to_list()
    True
    """
    if run.level != qrels.level:
        raise DataError(f"run {run.name!r} ranks {run.level}s and the qrels judge {qrels.level}s")
    listed: list[Any] = [wanted] if isinstance(wanted, (str, measures.Measure)) else list(wanted)
    try:
        asked = [ir_measures.parse_measure(each) for each in listed]
    except (NameError, ValueError) as error:
        raise DataError(f"ir_measures reads no measure in {listed}: {error}") from error
    judged = (
        ir_measures.Qrel(q, d, r) for q, d, r in qrels.frame.select("query_id", "doc_id", "relevance").iter_rows()
    )
    ranked = (ir_measures.ScoredDoc(*row) for row in run.frame.select("query_id", "doc_id", "score").iter_rows())
    values = [(m.query_id, str(m.measure), float(m.value)) for m in ir_measures.iter_calc(asked, judged, ranked)]
    types = {"query_id": pl.String, "measure": pl.String, "value": pl.Float64}
    wide = pl.DataFrame(values, schema=types, orient="row").pivot("measure", index="query_id", values="value")
    queries = qrels.frame.select("query_id").unique(maintain_order=True)
    return queries.join(wide, on="query_id", how="left", maintain_order="left").select("query_id", *map(str, asked))
