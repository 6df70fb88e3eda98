"""Codes of token vectors at equal bytes: `scripts/token_codes.py FILE … [--encoder minilm] [--scope SCOPE …]`.

Late interaction compares the exact tokens of a question with codes of those of turns. Each code is
decoded before it is compared, so that only what it loses counts. Each is compared with one bit a
dimension, which is what memlab keeps, over the questions of all files together.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import numpy as np
import polars as pl

import memlab
from memlab.embed.token_vectors import TokenVectors
from memlab.evaluate.comparison import compare_outcomes
from memlab.retrieve import late_interaction

MEASURE = "recall_all@10"
SAMPLE = 20_000
"""Tokens that a code is fitted on."""
Code = Callable[[np.ndarray], np.ndarray]


def exact(vectors: np.ndarray) -> np.ndarray:
    return vectors


def rotation(rows: int, columns: int) -> np.ndarray:
    """Give a random matrix with orthonormal columns: (rows, columns) float32."""
    basis, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((rows, columns)))
    return basis.astype(np.float32)


def drawn(vectors: np.ndarray) -> np.ndarray:
    order = np.random.default_rng(0).permutation(len(vectors))
    return vectors[order[:SAMPLE]]


def scalar_code(vectors: np.ndarray, *, bits: int, dimensions: int) -> np.ndarray:
    """Round the largest principal dimensions, evenly rotated, to a number of bits each, and decode them."""
    rows = vectors.astype(np.float32)
    turned = rotation(rows.shape[1], dimensions)
    if dimensions < rows.shape[1]:
        _, _, principal = np.linalg.svd(drawn(rows), full_matrices=False)
        turned = principal[:dimensions].T @ rotation(dimensions, dimensions)
    coordinates = rows @ turned
    low, high = np.quantile(drawn(coordinates), [0.005, 0.995], axis=0)
    steps = 2**bits - 1
    rounded = np.clip(np.round((coordinates - low) / (high - low) * steps), 0, steps)
    return ((rounded / steps * (high - low) + low) @ turned.T).astype(np.float16)


def product_code(vectors: np.ndarray, *, parts: int) -> np.ndarray:
    """Replace each part of the rotated dimensions by the nearest of 256 centres, and decode them."""
    from sklearn.cluster import MiniBatchKMeans

    rows = vectors.astype(np.float32)
    turned = rotation(rows.shape[1], rows.shape[1])
    coordinates = rows @ turned
    decoded = np.empty_like(coordinates)
    for columns in np.array_split(np.arange(rows.shape[1]), parts):
        means = MiniBatchKMeans(256, batch_size=4096, n_init=1, max_iter=30, random_state=0)
        means.fit(drawn(coordinates)[:, columns])
        decoded[:, columns] = means.cluster_centers_[means.predict(coordinates[:, columns])]
    return (decoded @ turned.T).astype(np.float16)


ONE_BIT = "1 bit × all dimensions"
CODES: dict[str, Code | None] = {
    ONE_BIT: None,
    "exact, 16 bits": exact,
    "2 bits × 192": partial(scalar_code, bits=2, dimensions=192),
    "4 bits × 96": partial(scalar_code, bits=4, dimensions=96),
    "product quantisation, 48 × 8 bits": partial(product_code, parts=48),
    "4 bits × all dimensions": partial(scalar_code, bits=4, dimensions=384),
}


def ranked(data: memlab.Dataset, encoder: str, code: Code | None) -> pl.DataFrame:
    """Rank by late interaction with a code, and give the outcome of each question."""
    bench = memlab.Bench.of(data, encoder=encoder)

    def compress(tokens: TokenVectors) -> TokenVectors:
        assert code is not None
        return TokenVectors(tokens.ids, code(tokens.vectors), tokens.start)

    def best(asked: np.ndarray, decoded: np.ndarray, start: np.ndarray) -> np.ndarray:
        cosines = asked.astype(np.float32) @ decoded.astype(np.float32).T
        found = np.zeros((len(asked), len(start) - 1), np.float32)
        filled = np.flatnonzero(np.diff(start))
        found[:, filled] = np.maximum.reduceat(cosines, start[filled], axis=1)
        return found

    if code is None:
        done = memlab.run("late", data, bench=bench, levels="turn", measures=[MEASURE])
    else:
        changed = {"compress_tokens": compress, "best_token_cosines": best}
        with patch.multiple(late_interaction, **changed):
            done = memlab.run("late", data, bench=bench, levels="turn", measures=[MEASURE])
    rows = done.reports[0].per_query
    return rows.select("query_id", "scope", hit=pl.col(MEASURE) == 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--scope", action="append", default=[])
    chosen = parser.parse_args()
    parts = []
    for file in chosen.files:
        data = memlab.load(file)
        known = [scope for scope in chosen.scope if scope in data.scopes]
        if known:
            data = data.take(known)
        for name, code in CODES.items():
            rows = ranked(data, chosen.encoder, code)
            parts.append(rows.with_columns(system=pl.lit(name)))
    tested = compare_outcomes(pl.concat(parts), baseline=ONE_BIT, unit="question")
    columns = ["system", "n", "mean", "difference", "low", "high", "level", "p"]
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=3):
        print(tested.select(columns))


if __name__ == "__main__":
    main()
