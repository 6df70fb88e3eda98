"""Complete recall for ``ir_measures``, which has no measure of *all* evidence among the first k (the extra ``ir``).

>>> import ir_measures
>>> from memlab.evaluate.ir import RAll
>>> judged = [ir_measures.Qrel("q", "a", 1), ir_measures.Qrel("q", "b", 1)]
>>> ranked = [ir_measures.ScoredDoc("q", "b", 2.0), ir_measures.ScoredDoc("q", "a", 1.0)]
>>> [ir_measures.calc_aggregate([RAll @ k], judged, ranked)[RAll @ k] for k in (1, 2)]
[0.0, 1.0]
"""

from collections.abc import Iterator
from typing import Any

import ir_measures
from ir_measures import measures, providers, util


class _RAll(measures.Measure):
    __name__ = NAME = "RAll"
    SUPPORTED_PARAMS = {"cutoff": measures.ParamInfo(dtype=int, required=False)}  # noqa: RUF012


class _Evaluator(providers.Evaluator):
    qrel_qids: dict[str, dict[str, int]]

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        for query, scores in util.RunConverter(run).as_dict_of_dict().items():
            relevant = {doc for doc, grade in self.qrel_qids.get(query, {}).items() if grade > 0}
            ranked = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)  # ties as in trec_eval
            for measure in self.measures if relevant else ():
                complete = relevant <= set(ranked[: measure.params.get("cutoff")])
                yield ir_measures.Metric(query_id=query, measure=measure, value=float(complete))


class _Provider(providers.Provider):
    NAME = "memlab"
    SUPPORTED_MEASURES = [_RAll()]  # noqa: RUF012

    def _evaluator(self, wanted: Any, qrels: Any) -> Any:
        return _Evaluator(list(wanted), util.QrelsConverter(qrels).as_dict_of_dict())


RAll = _RAll()
"""1 where every relevant document is among the first k: ``RAll @ 10``, in every function of the library."""
if "RAll" not in measures.registry:
    measures.register(RAll)
    ir_measures.DefaultPipeline.providers.append(providers.register(_Provider()))
