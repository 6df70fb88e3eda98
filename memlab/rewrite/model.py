"""The small networks that say which words of the context a question lacks, and their file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from memlab.errors import ModelError
from memlab.files import atomic

FILE = Path(__file__).parent / "weights.safetensors"
CLIP = 4.0
TENSORS = ("mean", "spread", "w1", "b1", "w2", "b2")

# What precision weighs (recall the rest), the words that people add from nowhere, the longest addition,
# and the least likely word that is added.
BALANCE = 0.5
UNSEEN = 0.3
LONGEST = 12
FLOOR = 0.2
# Where no word is likely, the best are added all the same down to this, with what is nearly as likely.
UNSURE = 0.1
RELATIVE = 0.6


@dataclass(frozen=True, eq=False)
class Model:
    """An ensemble of perceptrons with one hidden layer.

    :param names: the features, in their order.
    :param tensors: ``mean`` and ``spread`` (f,), ``w1`` (n, f, h), ``b1`` (n, h), ``w2`` (n, h), ``b2`` (n,).
    """

    names: tuple[str, ...]
    tensors: Mapping[str, np.ndarray]

    def probabilities(self, described: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """Give for each word the probability that a person would add it.

        :param described: the features of each word; features that the model does not know are left out.
        """
        if not described:
            return {}
        t = self.tensors
        values = np.clip((matrix(described.values(), self.names) - t["mean"]) / t["spread"], -CLIP, CLIP)
        hidden = np.maximum(np.einsum("wf,nfh->nwh", values, t["w1"], optimize=True) + t["b1"][:, None], 0)
        scores = np.einsum("nwh,nh->nw", hidden, t["w2"]) + t["b2"][:, None]
        return dict(zip(described, (1 / (1 + np.exp(-scores))).mean(axis=0).tolist(), strict=True))

    def save(self, path: str | Path) -> None:
        """Write the model: numbers in half precision, and the names of its features."""
        from safetensors.numpy import save

        tensors = {name: np.ascontiguousarray(w, dtype=np.float16) for name, w in self.tensors.items()}
        with atomic(Path(path)) as file:
            file.write(save(tensors, metadata={"features": json.dumps(self.names)}))

    @classmethod
    def load(cls, path: str | Path = FILE) -> Model:
        """Read a model.

        :raises ModelError: when there is none, or it is damaged.
        """
        from safetensors import safe_open

        try:
            with safe_open(str(path), framework="numpy") as file:
                names = tuple(json.loads((file.metadata() or {})["features"]))
                tensors = {name: file.get_tensor(name).astype(np.float32) for name in TENSORS}
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise ModelError(f"the rewriter's weights {path} cannot be read ({what}); install memlab again") from error
        return cls(names, tensors)


@lru_cache(maxsize=1)
def shipped() -> Model:
    """Give the model that comes with memlab, read once."""
    return Model.load()


def matrix(described: Iterable[Mapping[str, float]], names: Sequence[str]) -> np.ndarray:
    """Put features into a matrix, a row for each word."""
    cells = (features.get(name, 0.0) for features in described for name in names)
    return np.fromiter(cells, np.float32).reshape(-1, len(names))


def choose(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Take the likeliest words, as many as serve recall and precision best.

    The expected precision of the first k is their mean probability; their expected recall is their sum over the sum
    of all. A fixed threshold would add much to a question that lacks much, and nothing to one that is unclear.

    >>> from memlab.rewrite.model import choose
    >>> choose({"king": 0.9, "crimson": 0.8, "tour": 0.1})
    {'king': 0.9, 'crimson': 0.8}
    """
    # Equal probabilities keep the order of the context, where the title stands first.
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])[:LONGEST]
    if not ranked or ranked[0][1] < UNSURE:
        return {}
    least = min(FLOOR, RELATIVE * ranked[0][1])
    ranked = [(word, p) for word, p in ranked if p >= least]
    sums = np.cumsum([p for _, p in ranked])
    whole = sum(probabilities.values()) + UNSEEN
    worth = BALANCE * sums / np.arange(1, len(sums) + 1) + (1 - BALANCE) * sums / whole
    return dict(ranked[: int(worth.argmax()) + 1])
