"""Codes of token vectors at equal bytes: `scripts/token_codes.py FILE … [--encoder minilm] [--scope SCOPE …]`.

Late interaction compares the exact tokens of a question with codes of those of turns. Each code is
decoded before it is compared, so that only what it loses counts. Each is compared with one bit a
dimension, which is what memlab keeps, over the questions of all files together.

The multivector column of LanceDB ranks by itself: it stores floats, and its index codes of the same
size beside them. It adds up the best cosines of all tokens of a question, whose weights by rarity
it does not take; codes without these weights stand beside it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

import memlab
from memlab.embed.token_vectors import TokenVectors
from memlab.evaluate.system_comparison import compare_question_outcomes
from memlab.records import Level
from memlab.retrieve import late_interaction
from memlab.retrieve.late_interaction import ScopeTokens, query_tokens, scope_tokens
from memlab.retrieve.passages import best_passage_scores
from memlab.retrieve.rankings_from_scores import ScopeScores, rank_scope_scores

MEASURE = "recall_all@10"
SAMPLE = 20_000
"""Tokens that a code is fitted on."""
SAME_SIZE = 48
"""Bytes of one bit for each of 384 dimensions."""
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


def multivector_table(folder: str, texts: TokenVectors, *, coded: bool) -> Any:
    """Write the tokens of some texts into a multivector column, half a float a number."""
    import lancedb
    import pyarrow as pa
    from lancedb.index import IvfPq

    width = texts.vectors.shape[1]
    tokens = pa.FixedSizeListArray.from_arrays(pa.array(texts.vectors.ravel()), width)
    column = pa.ListArray.from_arrays(pa.array(texts.start, pa.int32()), tokens)
    filled = np.diff(texts.start) > 0
    rows = pa.table({"row": np.arange(len(texts)), "vector": column}).filter(pa.array(filled))
    table = lancedb.connect(folder).create_table("tokens", rows)
    if coded:
        codes = IvfPq(distance_type="cosine", num_partitions=1, num_sub_vectors=SAME_SIZE)
        table.create_index("vector", config=codes)
    return table


def column_scores(bench: memlab.Bench, *, coded: bool) -> Iterator[ScopeScores]:
    """Score the turns of each scope by LanceDB's sums of best cosines."""
    asked = query_tokens(bench)
    for rows, turns in bench.by_scope("turn"):
        scope = scope_tokens(bench, turns)
        scores = np.full((len(rows), len(scope.texts)), -np.inf)
        with tempfile.TemporaryDirectory() as folder:
            table = multivector_table(folder, scope.texts, coded=coded)
            for place, row in enumerate(rows):
                vectors = asked.take(np.array([row])).vectors
                found = table.search(vectors).distance_type("cosine").limit(len(scope.texts))
                got = found.select(["row", "_distance"]).to_arrow()
                scores[place, got["row"].to_numpy()] = -got["_distance"].to_numpy()
        yield ScopeScores(rows, turns, best_passage_scores(scores[:, scope.inverse], scope.start))


@memlab.stage
def lance_floats(bench: memlab.Bench, *, level: Level = "turn", k: int = 200) -> memlab.Run:
    """Rank by a multivector column without an index."""
    return rank_scope_scores(bench, column_scores(bench, coded=False), level=level, k=k)


@memlab.stage
def lance_index(bench: memlab.Bench, *, level: Level = "turn", k: int = 200) -> memlab.Run:
    """Rank by a multivector column with an index of codes as large as memlab's."""
    return rank_scope_scores(bench, column_scores(bench, coded=True), level=level, k=k)


def equal_weights(self: ScopeTokens, asked: TokenVectors) -> np.ndarray:
    """Give every token of a question the same weight."""
    lengths = np.diff(asked.start)
    return np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)


@contextmanager
def exact_tokens() -> Iterator[None]:
    """Leave tokens as they are."""
    with patch.object(late_interaction, "compress_tokens", exact):
        yield


def ranked_otherwise(data: memlab.Dataset, encoder: str, system: str) -> pl.DataFrame:
    """Rank by LanceDB, or by memlab's codes without weights."""
    bench = memlab.Bench.of(data, encoder=encoder)
    if system == ONE_BIT_EQUAL:
        with patch.object(ScopeTokens, "weights", equal_weights):
            return outcomes("late", data, bench)
    with exact_tokens():
        return outcomes(OTHERWISE[system], data, bench)


def outcomes(pipeline: str, data: memlab.Dataset, bench: memlab.Bench) -> pl.DataFrame:
    """Give the outcome of each question."""
    done = memlab.run(pipeline, data, bench=bench, levels="turn", measures=[MEASURE])
    rows = done.reports[0].per_query
    return rows.select("query_id", "scope", hit=pl.col(MEASURE) == 1)


ONE_BIT_EQUAL = "1 bit × all dimensions, equal weights"
OTHERWISE = {
    ONE_BIT_EQUAL: "late",
    "LanceDB, floats of 16 bits": "lance_floats",
    "LanceDB, index of 48 × 8 bits": "lance_index",
}
"""What ranks by sums without weights, and the pipeline that does."""


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
        return outcomes("late", data, bench)
    with patch.multiple(
        late_interaction, compress_tokens=compress, best_token_cosine_per_text=best
    ):
        return outcomes("late", data, bench)


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
        for name in OTHERWISE:
            rows = ranked_otherwise(data, chosen.encoder, name)
            parts.append(rows.with_columns(system=pl.lit(name)))
    tested = compare_question_outcomes(pl.concat(parts), baseline=ONE_BIT, unit="question")
    columns = ["system", "n", "mean", "difference", "low", "high", "level", "p"]
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=3):
        print(tested.select(columns))


if __name__ == "__main__":
    main()
