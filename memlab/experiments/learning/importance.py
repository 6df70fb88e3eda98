"""Which features carry the learned reranker: what is lost when they say nothing any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.significance import randomisation_test
from memlab.experiments.learning._lists import by_subset, complete, held_out
from memlab.rerank import Model
from memlab.rerank.ablation import group_of
from memlab.rerank.features import Candidates
from memlab.rerank.training import Lists


def importance(
    lists: Sequence[Lists], models: Sequence[Model], *, k: int = 10, repeats: int = 3, seed: int = 0
) -> pl.DataFrame:
    """Measure what is lost in complete recall when a feature, or a group of features, says nothing any more.

    The values of a feature are permuted over all candidates of all questions of a conversation, and a model that did
    not learn from the conversation ranks again. Correlated features stand in for each other, so that
    each alone may seem to be worth nothing: read the groups first. A group is permuted as one. What is the same all
    over a conversation, such as the shape of its only question, cannot be permuted and loses nothing.

    :param models: of a cross-validation, or of other data.
    :param repeats: permutations, over which the loss of a question is averaged.
    :param seed: of the permutations, which are the same for all features.
    :returns: a row a group and a feature (``kind``, ``name``, ``group``) and ``questions`` (``all``, ``≥ 2``), with
        ``n``, ``plain`` (complete recall with all features) and ``loss`` with its 95 % interval over questions,
        ``low``, ``high``, and ``p`` of a paired randomisation test, not corrected; the largest loss first.
    :raises DataError: when a model learned from what it is to rank, or ``repeats`` is not positive.

    Source: Breiman, Random Forests (2001), section 10; groups: Fisher, Rudin & Dominici, All Models are Wrong, but Many
    are Useful (JMLR 2019).
    """
    if repeats < 1:
        raise DataError(f"repeats is {repeats}; permute at least once")
    chosen = held_out(lists, models)
    names = lists[0].candidates.names
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        groups.setdefault(group_of(name), []).append(i)
    columns = [*groups.values(), *([i] for i in range(len(names)))]
    kinds = ["group"] * len(groups) + ["feature"] * len(names)
    about = {"kind": kinds, "name": [*groups, *names], "group": [*groups, *map(group_of, names)]}
    plain, losses = _losses(lists, chosen, columns, k=k, repeats=repeats, seed=seed)
    tables = [
        pl.DataFrame(about)
        .with_columns(
            *(pl.lit(subset).alias("questions"), pl.lit(int(asked.sum())).alias("n")),
            *(pl.lit(plain[asked].mean()).alias("plain"), pl.Series("loss", losses[asked].mean(axis=0))),
            *(pl.Series("low", low), pl.Series("high", high)),
            pl.Series("p", [randomisation_test(column, seed=seed) for column in losses[asked].T]),
        )
        .sort("kind", "loss", descending=True, maintain_order=True)
        for subset, asked, low, high in by_subset(lists, losses, seed)
    ]
    return pl.concat(tables).fill_nan(None)


def _losses(
    lists: Sequence[Lists], models: Sequence[Model], columns: Sequence[list[int]], *, k: int, repeats: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Give for each question whether it is complete (q,), and the mean loss from permuting some columns (q, parts)."""
    from tqdm.auto import tqdm

    plain, losses = [], []
    with tqdm(total=len(lists) * len(columns), desc="permuting features", mininterval=1) as bar:
        for number, (of, model) in enumerate(zip(lists, models, strict=True)):
            n, before = int(of.candidates.mask.sum()), complete(model, of, k=k)
            orders = [np.random.default_rng([seed, number, repeat]).permutation(n) for repeat in range(repeats)]
            loss = np.empty((len(before), len(columns)))
            for part, moved in enumerate(columns):
                after = [complete(model, of, k=k, found=_permuted(of.candidates, moved, order)) for order in orders]
                loss[:, part] = before - np.mean(after, axis=0)
                bar.update()
            plain.append(before)
            losses.append(loss)
    return np.concatenate(plain), np.concatenate(losses)


def _permuted(found: Candidates, columns: list[int], order: np.ndarray) -> Candidates:
    values = found.values.reshape(-1, found.values.shape[2]).copy()
    rows = np.flatnonzero(found.mask.ravel())[:, None]
    values[rows, columns] = values[rows[order], columns]
    return replace(found, values=values.reshape(found.values.shape))
