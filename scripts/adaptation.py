"""What a fine-tuned encoder gains: `scripts/adaptation.py FILE --hold SCOPE … [--also FILE]`.

Fine-tunes MiniLM on the other conversations of a file and measures it beside MiniLM on those that are held out, and on
all of another dataset (a LongMemEval file is pooled); each line has its paired interval over questions.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import memlab
from memlab.datasets import longmemeval
from memlab.embed.finetuning import finetune
from memlab.evaluate import compare
from memlab.rerank import finetuning_examples

PIPELINES = ("dense", "late", "best")
MEASURES = {"turn": ("recall@10", "recall_all@10", "recall_all@20"), "session": ("recall_all@5", "recall_all@10")}
GROUPS = {"all": None, "≥ 2": pl.col("n_evidence_sessions") >= 2}


def beside(data: memlab.Dataset, encoders: dict[str, str], place: Path) -> pl.DataFrame:
    """Measure the same pipelines with several encoders; each is compared with the first."""
    ranked = {
        name: memlab.run(PIPELINES, data, encoder=encoder, store=place / name).reports
        for name, encoder in encoders.items()
    }
    rows = []
    for reports in zip(*ranked.values(), strict=True):
        named = [replace(report, name=name) for name, report in zip(ranked, reports, strict=True)]
        for measure in MEASURES[reports[0].level]:
            for group, where in GROUPS.items():
                table = compare(named, measure=measure, where=where)
                first, last = table.row(0, named=True), table.row(-1, named=True)
                change = f"{last['difference']:+.3f} [{last['low']:+.3f}, {last['high']:+.3f}]"
                pair = (last["n"], first["mean"], last["mean"], change, last["p"])
                rows.append((data.name, reports[0].name, f"{reports[0].level}s, {group}", measure, *pair))
    names = ["data", "pipeline", "what", "measure", "n", *encoders, "change [95 %]", "p"]
    return pl.DataFrame(rows, schema=names, orient="row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--hold", nargs="+", required=True)
    parser.add_argument("--also")
    parser.add_argument("--epochs", type=int, default=2)
    chosen = parser.parse_args()
    data = memlab.datasets.load(chosen.file)
    shown = data.take([scope for scope in data.scopes if scope not in chosen.hold])
    with TemporaryDirectory() as folder:
        place = Path(folder)
        bench = memlab.Bench.of(shown, encoder="minilm", store=str(place / "minilm"))
        made = finetune(
            memlab.embed.load("minilm"), [finetuning_examples(bench, shown)], place / "tuned", epochs=chosen.epochs
        )
        tables = [beside(data.take(chosen.hold), {"minilm": "minilm", "tuned": str(made)}, place)]
        if chosen.also:
            other = memlab.datasets.load(chosen.also)
            other = longmemeval.pool(chosen.also) if other.format == "longmemeval" else other
            tables.append(beside(other, {"minilm": "minilm", "tuned": str(made)}, place))
    shown_as = {"tbl_formatting": "MARKDOWN", "tbl_hide_dataframe_shape": True, "tbl_hide_column_data_types": True}
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, fmt_str_lengths=60, float_precision=3, **shown_as):
        print(pl.concat(tables))


if __name__ == "__main__":
    main()
