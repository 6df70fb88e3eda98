"""Set encoders side by side: `scripts/encoders.py FILE … [--encoder NAME …] [--scope SCOPE …]`.

An encoder is a name that memlab.toml, `--encoder` and `memlab.embed.load` know, or two joined by a
plus sign: `hashing+minilm` takes vectors of the first and token vectors of the second. Each is
compared with the first, on the same questions, by complete recall of turns. Several files count as
one collection. Without files: the tables of `docs/evaluation/encoders.md`.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path

import polars as pl

import memlab
from memlab.evaluate.system_comparison import compare_question_outcomes
from memlab.interval_and_p_labels import interval_label_or_empty_of_each_row

ROOT = Path(__file__).parents[1]
ENCODERS = ("minilm", "multilingual", "multilingual+minilm", "hashing+minilm")
PIPELINES = ("dense", "late", "best", "best | learned")
MEASURE = "recall_all@10"
COLLECTIONS = {
    "sample": "data/sample/sample.jsonl",
    "long chats": "data/heldout/long.jsonl",
    "messengers": "data/heldout/messages.jsonl",
}
LANGUAGES = {
    "English": "data/sample/sample.jsonl",
    "German": "data/languages/owen.de.jsonl",
    "Spanish": "data/languages/owen.es.jsonl",
}


def measured(data: memlab.Dataset, encoder: str, store: str) -> pl.DataFrame:
    """Give the outcome of each question: ``query_id``, ``scope``, ``pipeline``, ``several``, ``hit``."""
    vectors, _, tokens = encoder.partition("+")
    bench = memlab.Bench.of(data, encoder=vectors, token_encoder=tokens or None, store=store)
    frames = []
    for pipeline in PIPELINES:
        done = memlab.run(pipeline, data, bench=bench, levels="turn", measures=[MEASURE])
        rows = done.reports[0].per_query
        frames.append(
            rows.select(
                pl.format("{}:{}", pl.lit(data.name), "query_id").alias("query_id"),
                pl.format("{}:{}", pl.lit(data.name), "scope").alias("scope"),
                pl.lit(pipeline).alias("pipeline"),
                (pl.col("n_evidence_sessions") >= 2).alias("several"),
                (pl.col(MEASURE) == 1).alias("hit"),
            )
        )
    return pl.concat(frames)


def side_by_side(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Compare encoders with the first, pipeline by pipeline, over all questions and those of several sessions."""
    rows = []
    for pipeline in PIPELINES:
        for group, asked in (("all", outcomes), ("≥ 2 sessions", outcomes.filter("several"))):
            part = asked.filter(pl.col("pipeline") == pipeline)
            tested = compare_question_outcomes(part.rename({"encoder": "system"}))
            labels = interval_label_or_empty_of_each_row(tested, "difference")
            for label, row in zip(labels, tested.iter_rows(named=True), strict=True):
                change = None
                if row["difference"] is not None:
                    change = (
                        f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}] {label}"
                    )
                rows.append(
                    (pipeline, group, row["system"], row["n"], row["mean"], change, row["p"])
                )
    names = ["pipeline", "questions", "encoder", "n", "mean", "change", "p"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


def collect(
    datasets: Sequence[memlab.Dataset], encoders: Sequence[str], store: str
) -> pl.DataFrame:
    """Rank every dataset with every encoder, and join the outcomes."""
    pairs = itertools.product(encoders, datasets)
    frames = [
        measured(data, encoder, store).with_columns(encoder=pl.lit(encoder))
        for encoder, data in pairs
    ]
    return pl.concat(frames)


def loaded(file: str | Path, scopes: Sequence[str]) -> memlab.Dataset:
    """Load a file, or some of its scopes."""
    data = memlab.load(file)
    if not scopes:
        return data
    return data.take(scopes)


def show(title: str, table: pl.DataFrame) -> None:
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=3, fmt_str_lengths=80
    ):
        print(f"{title}\n{table}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="collections of conversations with questions")
    parser.add_argument("--encoder", action="append", help="the first is the baseline")
    parser.add_argument("--scope", action="append", default=[])
    parser.add_argument("--store", default=".memlab/encoders")
    chosen = parser.parse_args()
    encoders = chosen.encoder or ENCODERS
    if chosen.files:
        datasets = [loaded(file, chosen.scope) for file in chosen.files]
        show(" + ".join(chosen.files), side_by_side(collect(datasets, encoders, chosen.store)))
        return
    for name, file in COLLECTIONS.items():
        table = side_by_side(collect([loaded(ROOT / file, [])], encoders, chosen.store))
        show(name, table)
    for name, file in LANGUAGES.items():
        table = side_by_side(collect([loaded(ROOT / file, ["owen"])], encoders, chosen.store))
        show(f"owen in {name}", table)


if __name__ == "__main__":
    main()
