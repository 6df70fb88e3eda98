"""A trained reranker and its file: an ensemble of small networks that learn to rank a list, with a
listwise loss.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.atomic_files import open_atomically
from memlab.errors import ModelError
from memlab.records import LEVELS

if TYPE_CHECKING:
    import torch

ENSEMBLE = 4
HIDDEN = 64
DROPOUT = (0.1, 0.3, 0.3)
CLIP = 4.0
EPOCHS = 12
BATCH = 32
RATE = 2e-3
DECAY = 0.05

Network = Mapping[str, np.ndarray]
"""The weights of an ensemble by name, with the mean and the spread of every feature."""


def fit_ranking_networks(
    features: np.ndarray,
    is_positive: np.ndarray,
    is_item: np.ndarray,
    *,
    group_of_item: np.ndarray | None = None,
    seed: int = 0,
) -> Network:
    """Learn to put the positive items of each list first.

    The loss of a list is the cross-entropy between its positives, at equal weight, and the softmax
    of the scores: what matters is the order within a list, and a list counts the same however long
    it is. With groups, such as the sessions that turns stand in, the same loss over groups is
    added; the softmax of a group is the sum of its items'.

    :param features: (q, c, f) features, padded to one length; NaN where one is not known.
    :param is_positive: (q, c) which items are to come first; each list needs one.
    :param is_item: (q, c) whether there is an item.
    :param group_of_item: (q, c) number of each item's group within its list.
    :returns: what :func:`predict_scores` reads.

    Source: Cao et al., Learning to Rank: From Pairwise Approach to Listwise Approach (ICML 2007),
    top-one ListNet.

    >>> import numpy as np
    >>> from memlab.rerank.network_ensemble import fit_ranking_networks, predict_scores
    >>> values = np.random.default_rng(0).normal(size=(40, 8, 2)).astype(np.float32)
    >>> best = values[..., 0] == values[..., 0].max(axis=1, keepdims=True)
    >>> scores = predict_scores(fit_ranking_networks(values, best, np.ones_like(best)), values)
    >>> float((scores.argmax(axis=1) == values[..., 0].argmax(axis=1)).mean()) > 0.5
    True
    """
    import torch

    mean, spread = _mean_and_spread_of_features(features[is_item])
    items = torch.from_numpy(_scale_features(features, mean, spread))
    wanted_shares = _equal_target_shares_per_list(is_positive & is_item)
    group_tensor = None
    wanted_groups = None
    if group_of_item is not None:
        positive_rows, positive_columns = np.nonzero(is_positive & is_item)
        is_wanted = np.zeros((len(group_of_item), int(group_of_item.max(initial=0)) + 1), bool)
        is_wanted[positive_rows, group_of_item[positive_rows, positive_columns]] = True
        group_tensor = torch.from_numpy(group_of_item.astype(np.int64))
        wanted_groups = _equal_target_shares_per_list(is_wanted)
    # Where there is no item, its share is 0.
    empty_penalty = torch.from_numpy(np.where(is_item, 0.0, -1e4).astype(np.float32))
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, (shape, n_inputs) in _weight_shape_and_n_inputs_by_layer(features.shape[2]).items():
        uniform = torch.rand(shape, generator=generator) * 2 - 1
        weights[name] = (uniform / n_inputs**0.5).requires_grad_()
    optimiser = torch.optim.AdamW(weights.values(), lr=RATE, weight_decay=DECAY)
    steps_of_training = EPOCHS * math.ceil(len(items) / BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, RATE, total_steps=steps_of_training + 1
    )
    with _limited_to_one_torch_thread():
        for batch_rows in _shuffled_batches_of_all_epochs(len(items), generator):
            scores = (
                _scores_by_each_member(weights, items[batch_rows], generator)
                + empty_penalty[batch_rows]
            )
            log_shares = torch.log_softmax(scores, dim=-1)
            item_loss = -(log_shares * wanted_shares[batch_rows]).sum(-1).mean(1).sum()
            if group_tensor is not None and wanted_groups is not None:
                group_sums = torch.zeros((*log_shares.shape[:2], wanted_groups.shape[1]))
                batch_groups = group_tensor[batch_rows].expand_as(log_shares)
                group_sums = group_sums.scatter_add(2, batch_groups, log_shares.exp())
                group_loss = (torch.log(group_sums + 1e-9) * wanted_groups[batch_rows]).sum(-1)
                item_loss = item_loss - group_loss.mean(1).sum()
            optimiser.zero_grad()
            item_loss.backward()
            optimiser.step()
            schedule.step()
    network = {"mean": mean, "spread": spread}
    for name, weight in weights.items():
        network[name] = weight.detach().numpy()
    return network


def _shuffled_batches_of_all_epochs(
    n_lists: int, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    """Draw the rows of each batch, of all epochs one after the other."""
    import torch

    for _ in range(EPOCHS):
        yield from torch.randperm(n_lists, generator=generator).split(BATCH)


def predict_scores(network: Network, features: np.ndarray) -> np.ndarray:
    """Score items by the mean over the ensemble: (q, c, f) → (q, c) float32.

    Only differences within a list count.
    """
    import torch

    weights = {}
    for name, array in network.items():
        if name not in ("mean", "spread"):
            weights[name] = torch.from_numpy(np.array(array))
    items = torch.from_numpy(_scale_features(features, network["mean"], network["spread"]))
    with torch.inference_mode():
        scores = [
            _scores_by_each_member(weights, item_batch, None).mean(0)
            for item_batch in items.split(BATCH)
        ]
        if not scores:
            return np.zeros(features.shape[:2], np.float32)
        return torch.cat(scores).numpy()


def network_array_shape_by_name(n_features: int) -> dict[str, tuple[int, ...]]:
    """List the shapes of all arrays of a network."""
    weight_shapes = {
        name: shape for name, (shape, _) in _weight_shape_and_n_inputs_by_layer(n_features).items()
    }
    return {"mean": (n_features,), "spread": (n_features,), **weight_shapes}


def _weight_shape_and_n_inputs_by_layer(n_features: int) -> dict[str, tuple[tuple[int, ...], int]]:
    """List the shapes of each layer's weights, with the number of its inputs.

    (members, in, out) and (members, 1, out).
    """
    weight_shapes: dict[str, tuple[tuple[int, ...], int]] = {}
    layer_sizes = (n_features, HIDDEN, HIDDEN // 2, 1)
    for layer, (n_inputs, n_outputs) in enumerate(itertools.pairwise(layer_sizes)):
        weight_shapes[f"weight_{layer}"] = ((ENSEMBLE, n_inputs, n_outputs), n_inputs)
        weight_shapes[f"bias_{layer}"] = ((ENSEMBLE, 1, n_outputs), n_inputs)
    return weight_shapes


def _equal_target_shares_per_list(is_wanted: np.ndarray) -> torch.Tensor:
    """Give what is wanted of each list equal shares: (q, n) float32."""
    import torch

    target_shares = torch.from_numpy(is_wanted.astype(np.float32))
    return target_shares / target_shares.sum(1, keepdim=True)


def _mean_and_spread_of_features(feature_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Measure mean and spread of each feature over the rows where it is known.

    (n, f) → (f,) each.
    """
    is_known = ~np.isnan(feature_rows)
    known_counts = np.maximum(is_known.sum(axis=0), 1)
    column_means = np.where(is_known, feature_rows, 0.0).sum(axis=0) / known_counts
    deviation = np.where(is_known, feature_rows - column_means, 0.0)
    column_spreads = np.sqrt((deviation**2).sum(axis=0) / known_counts) + 1e-6
    return column_means.astype(np.float32), column_spreads.astype(np.float32)


def _scale_features(features: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Put features in standard deviations from their means; an unknown one is at its mean."""
    scaled_values = np.clip((features - mean) / spread, -CLIP, CLIP)
    return np.nan_to_num(scaled_values, nan=0.0).astype(np.float32)


@contextmanager
def _limited_to_one_torch_thread() -> Iterator[None]:
    """Keep torch to one thread.

    On small arrays threads wait for each other, and sums would depend on their number.
    """
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def _scores_by_each_member(
    weights: Mapping[str, torch.Tensor],
    features: torch.Tensor,
    dropout_generator: torch.Generator | None,
) -> torch.Tensor:
    """Score lists by every member: (q, c, f) → (members, q, c).

    With a generator, some inputs are dropped.
    """
    import torch

    hidden = features.reshape(1, -1, features.shape[2]).expand(ENSEMBLE, -1, -1)
    for layer, rate in enumerate(DROPOUT):
        if layer:
            hidden = torch.nn.functional.gelu(hidden)
        if dropout_generator is not None:
            hidden = (
                hidden
                * (torch.rand(hidden.shape, generator=dropout_generator) >= rate)
                / (1 - rate)
            )
        hidden = torch.baddbmm(weights[f"bias_{layer}"], hidden, weights[f"weight_{layer}"])
    return hidden.reshape(ENSEMBLE, *features.shape[:2])


FORMAT = 2
NETWORKS = ("turns", "sessions")


@dataclass(frozen=True, eq=False)
class Model:
    """A trained reranker.

    :param turns: scores turns by their features.
    :param sessions: scores turns so that they add up to their sessions.
    :param about: ``features``, which a ranking must have; ``encoder`` and ``header``, with which it
        learned and which it may differ from; ``scopes`` (what it learned from, as
        :func:`content_fingerprint_by_scope` names them), ``questions``, ``seed``, ``sum`` (how much
        of the untrained sum is added to the scores of each level; none where it is not there), and
        from ``memlab train`` ``data`` (names and fingerprints) and ``held_out``, what
        :func:`memlab.rerank.held_out_recall` gives; empty where nothing was held out.
    """

    turns: Network
    sessions: Network
    about: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write the model as safetensors, all of it or nothing: numbers and a JSON header, no code.

        :raises ExportError: when the file cannot be written.
        """
        from safetensors.numpy import save

        tensors = {}
        for network_name in NETWORKS:
            for name, array in getattr(self, network_name).items():
                tensors[f"{network_name}.{name}"] = np.ascontiguousarray(array)
        description = json.dumps({"format": FORMAT, **self.about}, ensure_ascii=False)
        with open_atomically(Path(path)) as byte_stream:
            byte_stream.write(save(tensors, metadata={"memlab": description}))

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model.

        :raises ModelError: when there is none, or it is damaged or of another version.
        """
        from safetensors import safe_open

        if not os.path.isfile(path):
            raise ModelError(f"no model {str(path)!r}; make one: memlab train DATASET --out {path}")
        try:
            with safe_open(str(path), framework="numpy") as tensor_file:
                description = json.loads((tensor_file.metadata() or {})["memlab"])
                names = tensor_file.keys()
                tensors = {name: tensor_file.get_tensor(name) for name in names}
            version = description.pop("format", None)
            networks: dict[str, Any] = {network_name: {} for network_name in NETWORKS}
            for name, array in tensors.items():
                network_name, _, own_name = name.partition(".")
                if network_name in networks:
                    networks[network_name][own_name] = array
            is_whole = _is_valid_model_description(description)
            is_whole &= all(map(_has_all_finite_arrays, networks.values()))
        except Exception as error:
            fault_text = (
                f"cannot be read ({type(error).__name__}: {error}); "
                "expected what memlab train writes"
            )
            raise ModelError(f"model {str(path)!r} {fault_text}") from error
        if version != FORMAT:
            raise ModelError(f"model {str(path)!r} is of another version of memlab; train it again")
        if not is_whole:
            raise ModelError(f"model {str(path)!r} lacks a part; train it again")
        return cls(**networks, about=description)


def _is_valid_model_description(description: Mapping[str, Any]) -> bool:
    """Say whether all that a model has to tell of itself is there, and its sums are numbers."""
    sum_weights = description.get("sum", dict.fromkeys(LEVELS, 0.0))
    are_finite = all(math.isfinite(sum_weights[level]) for level in LEVELS)
    return are_finite and set(description) >= {"features", "encoder", "header", "scopes"}


def _has_all_finite_arrays(network: Network) -> bool:
    """Say whether a network has every array, in its shape and finite."""
    n_features = network["mean"].size if "mean" in network else 0
    if {name: array.shape for name, array in network.items()} != network_array_shape_by_name(
        n_features
    ):
        return False
    return all(np.isfinite(array).all() for array in network.values())


def content_fingerprint_by_scope(turns: pl.DataFrame, scopes: Sequence[str]) -> dict[str, str]:
    """Name conversations by what was said in them, whatever their ids are.

    >>> import memlab
    >>> from memlab.rerank.network_ensemble import content_fingerprint_by_scope
    >>> data = memlab.sample(turns=60)
    >>> len(content_fingerprint_by_scope(data.turns, data.scopes)[data.scopes[0]])
    16
    """
    scope_turns = turns.filter(pl.col("scope").is_in(list(scopes)))
    fingerprints = {}
    for scope, *speakers_and_texts in (
        scope_turns.group_by("scope").agg("speaker", "text").iter_rows()
    ):
        digest = hashlib.blake2b(json.dumps(speakers_and_texts).encode(), digest_size=8)
        fingerprints[scope] = digest.hexdigest()
    return fingerprints
