"""What a sentence is like, as numbers: the parts of the score that picks sentences for a summary."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from memlab.language import cues

# Content words after which more of them do not make a sentence more telling.
_ENOUGH = 8


@dataclass(frozen=True)
class Weights:
    """What a sentence gets for what it is; each part lies between 0 and 1.

    :param centrality: nearness to what its group is about (cosine of tf-idf with the group's sum).
    :param telling: content words, up to eight.
    :param specific: names, numbers and words of time, with less for each further one.
    :param event: something done, decided or planned.
    :param personal: "I", "my", "we".
    :param position: place within the group, 1 for its first sentence.
    :param addressed: "you", without "I": mostly praise.
    :param dangling: begins with "it" or "that", which nobody understands alone.
    :param question: asks.
    """

    centrality: float = 1.0
    telling: float = 1.5
    specific: float = 0.75
    event: float = 0.3
    personal: float = 0.3
    position: float = 0.2
    addressed: float = -0.6
    dangling: float = -0.4
    question: float = -0.6


def codes(column: pl.Series) -> np.ndarray:
    """Number the groups from 0 in order of first appearance."""
    names = column.unique(maintain_order=True)
    return column.replace_strict(names, range(names.len()), return_dtype=pl.Int64).to_numpy()


def vectors(tokens: pl.DataFrame, height: int) -> Any:
    """Give the tf-idf of each sentence's content words, unit rows; sentences of the scope are the documents."""
    from scipy import sparse
    from sklearn.preprocessing import normalize

    counts = tokens.filter("content").group_by("row", "scope", "stem", maintain_order=True).len("tf")
    counts = counts.with_columns(
        df=pl.len().over("scope", "stem"),
        total=pl.col("row").n_unique().over("scope"),
        column=pl.col("stem").rank("dense"),
    )
    idf = ((pl.col("total") + 1) / (pl.col("df") + 1)).log() + 1
    data = counts.select(weight=(pl.col("tf").log1p() * idf))["weight"].to_numpy()
    place = (counts["row"].to_numpy(), counts["column"].to_numpy().astype(np.int64) - 1)
    width = int(place[1].max()) + 1 if counts.height else 1
    return normalize(sparse.csr_matrix((data, place), shape=(height, width)))


def features(table: pl.DataFrame, tokens: pl.DataFrame, vectors: Any, group: np.ndarray) -> np.ndarray:
    """Give each sentence's parts of the score, a column for each field of :class:`Weights`.

    :param tokens: what :func:`memlab.summarize._words.words` gives for the table.
    :param group: number of each sentence's group.
    """
    size = np.bincount(group)
    text = pl.col("text")
    own = _counted(tokens, pl.col("own"), table.height) > 0
    flags = table.select(
        event=text.str.contains(cues.EVENT),
        personal=pl.Series(own),
        addressed=pl.Series(~own & (_counted(tokens, pl.col("other"), table.height) > 0)),
        dangling=text.str.contains(cues.DANGLING),
        question=text.str.contains(cues.ASKS),
    )
    columns = {
        "centrality": _centrality(vectors, group),
        "telling": np.minimum(_counted(tokens, pl.col("content"), table.height) / _ENOUGH, 1),
        "specific": 1 - 0.5 ** _counted(tokens, pl.col("name") | pl.col("number") | pl.col("time"), table.height),
        "position": 1 - _within(group) / size[group],
        **{name: flags[name].to_numpy().astype(float) for name in flags.columns},
    }
    return np.column_stack([columns[part.name] for part in fields(Weights)])


def phatic(tokens: pl.DataFrame, height: int) -> np.ndarray:
    """Mark sentences without two words that tell something: greetings, thanks, bare praise."""
    return _counted(tokens, pl.col("content"), height) < 2


def _counted(tokens: pl.DataFrame, kind: pl.Expr, height: int) -> np.ndarray:
    return np.bincount(tokens.filter(kind)["row"].to_numpy(), minlength=height)


def _centrality(vectors: Any, group: np.ndarray) -> np.ndarray:
    """Give each sentence's product with its group's sum, over the group's highest.

    Only words that a sentence has are looked up: the sum of a large group is dense.
    """
    held = vectors.tocoo()
    keys = group[held.row] * held.shape[1] + held.col
    _, place = np.unique(keys, return_inverse=True)
    sums = np.bincount(place, weights=held.data)
    central = np.bincount(held.row, weights=held.data * sums[place] if held.nnz else None, minlength=len(group))
    highest = np.zeros(int(group.max()) + 1)
    np.maximum.at(highest, group, central)
    return central / np.maximum(highest[group], 1e-12)


def _within(group: np.ndarray) -> np.ndarray:
    """Count each row's place within its group, from 0."""
    return pl.DataFrame({"group": group}).select(place=pl.int_range(pl.len()).over("group"))["place"].to_numpy()
