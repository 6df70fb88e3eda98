"""Make the model that comes with memlab, and measure it: `scripts/box.py [--out FILE] [--on FILE …] [--pool 48]`.

It learns from the conversations of `data/train` alone. What it reaches elsewhere is set beside
the untrained `best`, paired, over questions and over conversations where there are five or more.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import polars as pl

import memlab
from memlab.evaluate import compare_reports
from memlab.interval_and_p_labels import interval_label_or_empty_of_each_row
from memlab.rerank import train, training_lists
from memlab.rerank.learned_reranker import BUNDLED_MODEL

SUM = {"turn": 0.5, "session": 1.0}
"""How much of the untrained sum it keeps, of 0, .25, .5, 1, 2 and 4: see the card."""
MEASURES = {
    "turn": ("recall_all@5", "recall_all@10", "recall_all@20"),
    "session": ("recall_all@5", "recall_all@10"),
}
GROUPS = {"all": None, "≥ 2 sessions": pl.col("n_evidence_sessions") >= 2}


def made(folder: Path, out: Path, store: str) -> None:
    """Learn from all conversations of a folder, and write the model."""
    lists, about = [], []
    for file in sorted(folder.glob("*.jsonl")):
        data = memlab.datasets.load(file)
        lists += training_lists(memlab.Bench.of(data, encoder="minilm", store=store), data)
        about.append({"name": data.name, "fingerprint": data.fingerprint()})
    model = train(lists)
    replace(model, about={**model.about, "data": about, "sum": SUM}).save(out)
    print(f"{out}: {model.about['questions']} questions of {len(lists)} conversations")


def measured(data: memlab.Dataset, model: Path, store: str) -> pl.DataFrame:
    """Set the model beside the untrained sum."""
    texts = (
        "best",
        f"best | learned(model={model.as_posix()!r})"
        if model != BUNDLED_MODEL
        else "best | learned",
    )
    done = memlab.run(texts, data, encoder="minilm", store=store)
    rows, labels = [], []
    for level, measures in MEASURES.items():
        for measure in measures:
            for group, where in GROUPS.items():
                table = compare_reports(done.at(level), measure=measure, where=where)
                labels += [
                    label
                    for label in interval_label_or_empty_of_each_row(table, "difference")
                    if label
                ]
                first, last = table.row(0, named=True), table.row(-1, named=True)
                change = f"{last['difference']:+.3f} [{last['low']:+.3f}, {last['high']:+.3f}]"
                rows.append(
                    (
                        f"{level}s, {group}",
                        measure,
                        last["n"],
                        first["mean"],
                        last["mean"],
                        change,
                        last["p"],
                    )
                )
    change = f"change [{' or '.join(dict.fromkeys(labels))}]"
    names = ["what", "measure", "n", "best", "learned", change, "p"]
    return pl.DataFrame(rows, schema=names, orient="row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--talk", default="data/train", help="conversations to learn from")
    parser.add_argument("--out", type=Path, help="make the model again, here")
    parser.add_argument("--on", nargs="*", default=[], help="files to measure it on")
    parser.add_argument(
        "--pool", type=int, default=48, help="sessions a question of a LongMemEval file"
    )
    parser.add_argument("--store", default=".memlab/box")
    chosen = parser.parse_args()
    if chosen.out:
        made(Path(chosen.talk), chosen.out, chosen.store)
    for file in chosen.on:
        data = memlab.datasets.load(file)
        if data.format == "longmemeval":
            data = memlab.datasets.load(file, pool=chosen.pool)
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=3):
            print(data.name, measured(data, chosen.out or BUNDLED_MODEL, chosen.store))


if __name__ == "__main__":
    main()
