"""What a search through summaries finds, alone and fused with a ranking of turns."""

from __future__ import annotations

from dataclasses import replace

from memlab.evaluate import Table, compare_reports, evaluate
from memlab.pipelines import pipeline as read
from memlab.records import Dataset
from memlab.retrieve import DEFAULT, Bench, rrf
from memlab.terminal_text import count_noun

_WEIGHTS = (2, 1)


def compare_tree_searches(
    over: str,
    dataset: Dataset,
    bench: Bench,
    *,
    measure: str,
    service: str | None,
    seed: int = 0,
    fused_with: str = DEFAULT,
) -> Table:
    """Compare a ranking of turns with a search through summaries, and with both fused.

    Rankings are fused by reciprocal ranks, the ranking of turns with twice the weight. Its fusion
    with ``dense`` is the control: the cosines of the turns without those of summaries.

    :param over: what is searched through, ``weeks`` or ``clusters``; see
        :func:`memlab.summaries.tree`.
    :param measure: such as ``recall_all@10``.
    :param service: who wrote the summaries; see :func:`memlab.summaries.summary_tree`.
    :param fused_with: the ranking of turns, the baseline of all tests.
    :returns: what :func:`memlab.evaluate.compare_reports` gives, a row a ranking, its name with the
        number of memories, since those of several ``over`` stand beside each other.

    >>> import memlab
    >>> from memlab.experiments.tree_searches import compare_tree_searches
    >>> data = memlab.sample(scopes=["owen"])
    >>> bench = memlab.Bench.of(data, encoder="hashing:64")
    >>> about = {"measure": "recall_all@10", "service": "recorded", "fused_with": "bm25"}
    >>> compare_tree_searches("weeks", data, bench, **about)["system"].to_list()
    ['bm25 (1 memory)', 'tree, weeks (1 memory)', 'bm25 + dense (1 memory)',
     'bm25 + weeks (1 memory)']
    """
    tree_text = f"tree(over={over!r}, service={service!r}, seed={seed})"
    base, dense, tree = (read(text).run(bench) for text in (fused_with, "dense", tree_text))
    rankings = {
        fused_with: base,
        f"tree, {over}": tree,
        f"{fused_with} + dense": rrf([base, dense], weights=_WEIGHTS),
        f"{fused_with} + {over}": rrf([base, tree], weights=_WEIGHTS),
    }
    reports = []
    for name, ranking in rankings.items():
        named = replace(ranking, name=f"{name} ({count_noun(len(dataset.scopes), 'memories')})")
        reports.append(evaluate(named, dataset, measures=[measure], seed=seed))
    return compare_reports(reports, measure=measure)
