"""What centring does to token vectors: `scripts/centring.py FILE … --encoder NAME … [--scope SCOPE …]`.

An encoder is a name or a folder that memlab loads: a transformer, or a static table, whose rows are
taken as the vectors of tokens here. For each: the length of
the mean token, which decides whether memlab centres; of the tokens of questions the share whose
best match among the turns stays the best by codes of one bit a dimension; and the complete recall
of turns by `late`. Both as the encoder gives its tokens, and centred.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

import numpy as np
import polars as pl

import memlab
from memlab import embed
from memlab.embed.encoder import Kind
from memlab.embed.static_encoder import StaticEncoder
from memlab.embed.token_centring import centre_tokens, choose_probe_tokens, mean_unit_vector
from memlab.embed.token_vectors import (
    TokenVectors,
    compress_tokens,
    concat_tokens,
    token_cosines,
)
from memlab.embed.transformer_encoder import unit_token_vectors
from memlab.evaluate.system_comparison import compare_question_outcomes

SPACES = "Ġ▁Ċ"
MEASURE = "recall_all@10"
TOGETHER = 256
"""Tokens of questions that are compared at once, which bounds memory."""
AS_GIVEN, CENTRED = "as given", "centred"


class StaticTokens:
    """The rows of a static model for the tokens of a text, whatever stands before it.

    :param model: whose table is read.
    """

    def __init__(self, model: StaticEncoder) -> None:
        self.identity, self.dim, self.encode = model.identity, model.dim, model.encode
        table = model._model[0]
        self.rows = table.embedding.weight.detach().numpy()
        self.tokenizer = table.tokenizer
        vocabulary = self.tokenizer.get_vocab()
        self.words = np.zeros(len(self.rows), bool)
        for token, number in vocabulary.items():
            self.words[number] = re.search(r"[^\W_]", token.lstrip(SPACES)) is not None
        self.token_mean = mean_unit_vector(self.rows[choose_probe_tokens(self.words)])

    def encode_tokens(self, texts: Sequence[str], **options: object) -> TokenVectors:
        read = []
        for text in texts:
            ids = np.array(self.tokenizer.encode(text, add_special_tokens=False).ids, np.int64)
            known = ids[self.words[ids]]
            read.append(unit_token_vectors(known, self.rows[known]))
        return concat_tokens(read, self.dim)


class TokensOf:
    """An encoder's tokens, as it gives them or centred; what it has read once is not read again.

    :param model: a transformer or a static encoder, whose own centring is set aside.
    """

    def __init__(self, model: embed.Encoder) -> None:
        self.model = getattr(model, "model", model)
        if isinstance(self.model, StaticEncoder):
            self.model = StaticTokens(self.model)
        self.mean = self.model.token_mean
        self.model.identity = embed.EncoderIdentity(
            **(vars(self.model.identity) | {"token_mean": ""})
        )
        self.identity = self.model.identity
        self.dim = self.model.dim
        self.is_centred = False
        self.read: dict[tuple[str, ...], TokenVectors] = {}

    def encode(self, texts: Sequence[str], **options: object) -> np.ndarray:
        return self.model.encode(texts, **options)

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        asked = (kind, *texts, *(before or ()))
        if asked not in self.read:
            self.read[asked] = self.model.encode_tokens(
                texts, before=before, kind=kind, progress=progress
            )
        if self.is_centred:
            return centre_tokens(self.read[asked], self.mean)
        return self.read[asked]


def surviving_share(tokens: TokensOf) -> float:
    """Give the share of question tokens whose best token of a turn is the best by codes too."""
    asked, turns = [], []
    for (kind, *_), read in tokens.read.items():
        given = centre_tokens(read, tokens.mean) if tokens.is_centred else read
        (asked if kind == "query" else turns).append(given)
    kept = 0
    for questions, documents in zip(asked, turns, strict=True):
        codes = compress_tokens(documents).vectors
        whole = documents.vectors.astype(np.float32).T
        for start in range(0, len(questions.ids), TOGETHER):
            rows = questions.vectors[start : start + TOGETHER]
            exact = rows.astype(np.float32) @ whole
            kept += int((exact.argmax(axis=1) == token_cosines(rows, codes).argmax(axis=1)).sum())
    return kept / sum(len(questions.ids) for questions in asked)


def ranked(data: memlab.Dataset, tokens: TokensOf) -> pl.DataFrame:
    """Rank by late interaction, and give the outcome of each question."""
    bench = memlab.Bench.of(data, encoder=tokens, progress=False)
    done = memlab.run("late", data, bench=bench, levels="turn", measures=[MEASURE])
    rows = done.reports[0].per_query
    return rows.select(
        pl.format("{}:{}", pl.lit(data.name), "query_id").alias("query_id"),
        pl.format("{}:{}", pl.lit(data.name), "scope").alias("scope"),
        hit=pl.col(MEASURE) == 1,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--encoder", action="append", required=True)
    parser.add_argument("--scope", action="append", default=[])
    chosen = parser.parse_args()
    datasets = []
    for file in chosen.files:
        data = memlab.load(file)
        known = [scope for scope in chosen.scope if scope in data.scopes]
        datasets.append(data.take(known) if known else data)
    for name in chosen.encoder:
        parts, shares = [], []
        tokens = TokensOf(embed.load(name))
        for system in (AS_GIVEN, CENTRED):
            tokens.is_centred = system == CENTRED
            rows = [ranked(data, tokens) for data in datasets]
            parts.append(pl.concat(rows).with_columns(system=pl.lit(system)))
            shares.append(surviving_share(tokens))
        tested = compare_question_outcomes(pl.concat(parts), baseline=AS_GIVEN, unit="question")
        length = float(np.linalg.norm(tokens.mean))
        print(f"{name}: mean token {length:.2f}, surviving {shares[0]:.3f} → {shares[1]:.3f}")
        columns = ["system", "n", "mean", "difference", "low", "high", "level", "p"]
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=3):
            print(tested.select(columns), flush=True)


if __name__ == "__main__":
    main()
