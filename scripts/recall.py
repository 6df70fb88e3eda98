"""How the ranking of facts fares with its graph on two scales: `scripts/recall.py [FILE …]`.

Facts are read from recorded answers and resolved at the end of the talk. A question's relevant facts
are those that stand on one of its evidence turns. Printed are, for each way to rank, the reciprocal
rank of the first relevant fact (mean over all questions with evidence), and how many questions have a
first fact that lies more than .2 in similarity below the most similar one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

import memlab
from memlab.config import RecallSettings
from memlab.evaluate.printed_tables import Table
from memlab.knowledge import extract, resolve, score, search_facts

FAR = 0.2
WAYS = {
    "calibrated": RecallSettings(),
    "weighted sum": RecallSettings(calibrated=False),
    "similarity alone": RecallSettings(graph=0, confidence=0),
}


def main() -> None:
    """Print a table a file."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("files", nargs="*", default=["data/sample/sample.jsonl"])
    for file in asked.parse_args().files:
        print(f"\n**{Path(file).stem}**\n")
        print(measure(memlab.load(file)))


def measure(data: memlab.Dataset) -> Table:
    """Rank the facts of a dataset for its questions in each way."""
    encoder = memlab.embed.load("minilm")
    known = extract(data.turns, service="recorded")
    resolved = resolve(known.facts, encoder=encoder).facts
    questions = data.questions.filter(pl.col("evidence").list.len() > 0)
    held = score(resolved, now=data.turns["timestamp"].max())
    relevant = relevant_facts(questions, resolved)
    rows = []
    for name, settings in WAYS.items():
        found = search_facts(
            questions, held, encoder=encoder, entities=known.entities, settings=settings, k=100_000
        )
        rows.append({"ranking": name, **measure_ranking(found, relevant, questions.height)})
    return Table(pl.DataFrame(rows))


def relevant_facts(questions: pl.DataFrame, resolved: pl.DataFrame) -> pl.DataFrame:
    """Give the facts on evidence turns, ``query_id`` and ``fact_id``; what is repeated stands for a repeat."""
    head = pl.coalesce("repeats", "fact_id")
    of_turn = resolved.select(turn="evidence", fact_id=head).explode("turn")
    evidence = questions.select("query_id", turn="evidence").explode("turn")
    return evidence.join(of_turn, on="turn").select("query_id", "fact_id").unique()


def measure_ranking(
    found: pl.DataFrame, relevant: pl.DataFrame, n_questions: int
) -> dict[str, float]:
    """Give the mean reciprocal rank, and how many first facts are far from the most similar one."""
    hits = found.join(relevant, on=["query_id", "fact_id"]).group_by("query_id")
    best_ranks = hits.agg(rank=pl.col("rank").min())["rank"]
    most_similar = found.group_by("query_id").agg(best=pl.col("vector").max())
    first = found.filter(rank=1).join(most_similar, on="query_id")
    far = first.filter(pl.col("best") - pl.col("vector") > FAR)
    return {
        "n": n_questions,
        "mrr": (1 / best_ranks).sum() / n_questions,
        "first is far": far.height,
    }


if __name__ == "__main__":
    main()
