"""What passages gain where one speaker writes long messages; prints the table of docs/evaluation/results.md.

    python tests/bench/long_messages.py LOCOMO FILLER --scope conv-41 --characters 3000

In every conversation the last speaker by name has each turn put anywhere into a run of sentences of another dataset's
sessions, half to one and a half times so many characters in all. Without ``FILLER`` the file is taken as it is.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import polars as pl

import memlab
from memlab.retrieve import passages
from memlab.text.sentences import sentences

PIPELINES = ("dense", "late", "bm25", "combsum", "best")
MEASURES = {"turn": "recall_all@10", "session": "recall_all@5"}


def drawn_out(data: memlab.Dataset, filler: memlab.Dataset, *, characters: int, seed: int = 0) -> memlab.Dataset:
    """Draw out the turns of one speaker of each scope."""
    sessions = filler.turns.unique("text", keep="first", maintain_order=True)
    sessions = sessions.group_by("session_id", maintain_order=True).agg("text")["text"].to_list()
    library = [[sentence for text in texts for sentence in sentences(text)] for texts in sessions]
    rng = np.random.default_rng(seed)

    def longer(text: str) -> str:
        wanted = characters * (0.5 + rng.random()) - len(text)
        around: list[str] = []
        while wanted > 0:
            session = library[int(rng.integers(len(library)))]
            for sentence in session[int(rng.integers(len(session))) if not around else 0 :]:
                around.append(sentence)
                wanted -= len(sentence) + 1
                if wanted <= 0:
                    break
        at = int(rng.integers(len(around) + 1))
        return " ".join([*around[:at], text, *around[at:]])

    verbose = (data.turns["speaker"] == data.turns.select(pl.col("speaker").max().over("scope")).to_series()).to_list()
    texts = [longer(text) if long else text for text, long in zip(data.turns["text"], verbose, strict=True)]
    return replace(data, name=f"{data.name}-{characters}", turns=data.turns.with_columns(text=pl.Series(texts)))


def main() -> None:
    """Rank with long turns read to what the encoder takes, and by their passages."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file")
    options.add_argument("filler", nargs="?")
    options.add_argument("--scope", action="append")
    options.add_argument("--characters", type=int, default=3000)
    options.add_argument("--store")
    given = options.parse_args()
    data = memlab.datasets.load(given.file)
    data = data.take(given.scope) if given.scope else data
    if given.filler:
        data = drawn_out(data, memlab.datasets.load(given.filler), characters=given.characters)
    ways = {"head": 10**9, "passages": passages.LONG}
    for level, measure in MEASURES.items():
        for name in PIPELINES:
            reports = []
            for way, passages.LONG in ways.items():
                bench = memlab.Bench.of(data, store=given.store)
                run = memlab.pipeline(name).run(bench, level=level)
                reports.append(replace(memlab.evaluate.evaluate(run, data, measures=[measure]), name=way))
            print(f"{level}s {measure}, {name}\n{memlab.evaluate.compare(reports, measure=measure)}\n", flush=True)


if __name__ == "__main__":
    main()
