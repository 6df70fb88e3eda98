"""What a fine-tuned encoder gains: `scripts/adaptation.py FILE --hold SCOPE … [--also FILE]`, or `FILE --made FOLDER`.

Fine-tunes MiniLM on the other conversations of a file and measures it beside MiniLM on those that are held out, and on
all of another dataset (a LongMemEval file is pooled); each line has its paired interval over questions. With a folder
that `memlab finetune` made elsewhere, that encoder is measured on all of the file.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import memlab
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


def loaded(file: str) -> memlab.Dataset:
    """Load a dataset; of LongMemEval pooled."""
    data = memlab.datasets.load(file)
    return memlab.datasets.pool(data) if data.format == "longmemeval" else data


def learned(data: memlab.Dataset, held: list[str], place: Path, epochs: int) -> Path:
    """Fine-tune MiniLM on what is not held out."""
    shown = data.take([scope for scope in data.scopes if scope not in held])
    bench = memlab.Bench.of(shown, encoder="minilm", store=str(place / "minilm"))
    return finetune(memlab.embed.load("minilm"), [finetuning_examples(bench, shown)], place / "tuned", epochs=epochs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--hold", nargs="+", default=[])
    parser.add_argument("--made")
    parser.add_argument("--also")
    parser.add_argument("--epochs", type=int, default=2)
    chosen = parser.parse_args()
    if not chosen.made and not chosen.hold:
        parser.error("name what is held out (--hold SCOPE …), or an encoder (--made FOLDER)")
    data = loaded(chosen.file)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        made = chosen.made or learned(data, chosen.hold, place, chosen.epochs)
        measured = [data.take(chosen.hold) if chosen.hold else data, *([loaded(chosen.also)] if chosen.also else [])]
        tables = [beside(part, {"minilm": "minilm", "tuned": str(made)}, place) for part in measured]
    shown_as = {"tbl_formatting": "MARKDOWN", "tbl_hide_dataframe_shape": True, "tbl_hide_column_data_types": True}
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, fmt_str_lengths=60, float_precision=3, **shown_as):
        print(pl.concat(tables))


if __name__ == "__main__":
    main()
