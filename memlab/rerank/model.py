"""A trained reranker and its file."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import ModelError
from memlab.files import open_atomically
from memlab.records import LEVELS
from memlab.rerank.listwise import Network, array_shapes

FORMAT = 2
NETWORKS = ("turns", "sessions")


@dataclass(frozen=True, eq=False)
class Model:
    """A trained reranker.

    :param turns: scores turns by their features.
    :param sessions: scores turns so that they add up to their sessions.
    :param about: ``features``, ``encoder``, ``header``, ``scopes`` (what it learned from, as
        :func:`scope_fingerprints` names them), ``questions``, ``seed``, ``sum`` (how much of the untrained sum is added
        to the scores of each level; none where it is not there), and from ``memlab train`` ``data`` (names and
        fingerprints) and ``scores`` of each conversation by a network that did not learn from it.
    """

    turns: Network
    sessions: Network
    about: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write the model as safetensors, all of it or nothing: numbers and a JSON header, no code.

        :raises ExportError: when the file cannot be written.
        """
        from safetensors.numpy import save

        tensors = {f"{part}.{n}": np.ascontiguousarray(w) for part in NETWORKS for n, w in getattr(self, part).items()}
        about = json.dumps({"format": FORMAT, **self.about}, ensure_ascii=False)
        with open_atomically(Path(path)) as file:
            file.write(save(tensors, metadata={"memlab": about}))

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model.

        :raises ModelError: when there is none, or it is damaged or of another version.
        """
        from safetensors import safe_open

        if not os.path.isfile(path):
            raise ModelError(f"no model {str(path)!r}; make one: memlab train DATASET --out {path}")
        try:
            with safe_open(str(path), framework="numpy") as file:
                about = json.loads((file.metadata() or {})["memlab"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            version, added = about.pop("format", None), about.get("sum", dict.fromkeys(LEVELS, 0.0))
            parts = {p: {n.partition(".")[2]: w for n, w in tensors.items() if n.startswith(p + ".")} for p in NETWORKS}
            whole = {"features", "encoder", "header", "scopes"} <= set(about) and all(
                map(_is_valid_network, parts.values())
            )
            whole &= all(math.isfinite(added[level]) for level in LEVELS)
        except Exception as error:
            what = f"cannot be read ({type(error).__name__}: {error}); expected what memlab train writes"
            raise ModelError(f"model {str(path)!r} {what}") from error
        if version != FORMAT or not whole:
            what = "lacks a part" if version == FORMAT else "is of another version of memlab"
            raise ModelError(f"model {str(path)!r} {what}; train it again")
        return cls(**parts, about=about)


def _is_valid_network(network: Network) -> bool:
    """Say whether a network has every array, in its shape and finite."""
    wanted = array_shapes(network["mean"].size if "mean" in network else 0)
    return {n: w.shape for n, w in network.items()} == wanted and all(np.isfinite(w).all() for w in network.values())


def scope_fingerprints(turns: pl.DataFrame, scopes: Sequence[str]) -> dict[str, str]:
    """Name conversations by what was said in them, whatever their ids are.

    >>> import memlab
    >>> from memlab.rerank.model import scope_fingerprints
    >>> data = memlab.sample(turns=60)
    >>> len(scope_fingerprints(data.turns, data.scopes)[data.scopes[0]])
    16
    """
    said = turns.filter(pl.col("scope").is_in(list(scopes))).group_by("scope").agg("speaker", "text")
    return {
        scope: hashlib.blake2b(json.dumps([speakers, texts]).encode(), digest_size=8).hexdigest()
        for scope, speakers, texts in said.iter_rows()
    }
