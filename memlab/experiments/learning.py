"""What the learned reranker learned: which features carry it, how much data it needs, and where it carries over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate import MULTI_SESSION, bootstrap_interval, compare, randomisation_test
from memlab.evaluate.groups import SEVERAL
from memlab.experiments.running import run_pipelines
from memlab.records import LEVELS, Dataset, Level
from memlab.rerank import Model, train
from memlab.rerank.ablation import group_of
from memlab.rerank.features import Candidates
from memlab.rerank.learned import apply
from memlab.rerank.training import Lists
from memlab.retrieve import DEFAULT, Bench

FOLDS = 10
UNTRAINED = DEFAULT
"""What the reranker takes its candidates from, and what it has to beat."""
TRANSFER: Mapping[Level, tuple[str, ...]] = {"turn": ("recall_all@10",), "session": ("recall_all@5", "recall_all@10")}

__all__ = ["UNTRAINED", "curve", "group_of", "importance", "transfer"]


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
    chosen = _held_out(lists, models)
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
        for subset, asked, low, high in _by_subset(lists, losses, seed)
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
            n, before = int(of.candidates.mask.sum()), _complete(model, of, k=k)
            orders = [np.random.default_rng([seed, number, repeat]).permutation(n) for repeat in range(repeats)]
            loss = np.empty((len(before), len(columns)))
            for part, moved in enumerate(columns):
                after = [_complete(model, of, k=k, found=_permuted(of.candidates, moved, order)) for order in orders]
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


def curve(
    lists: Sequence[Lists],
    *,
    sizes: Sequence[int] = (1, 2, 3, 5, 10, 20, 50, 100),
    repeats: int = 1,
    k: int = 10,
    seed: int = 0,
    known: Sequence[Model] = (),
) -> pl.DataFrame:
    """Measure complete recall on other conversations by how many conversations a model learned from.

    The conversations are split into ten folds, or as many as there are. Again and again the fold that was measured
    least is left out, conversations are drawn from the others, and the model that learned from them ranks all that it
    did not learn from, until each conversation was ranked ``repeats`` times. The last size is all conversations
    outside a fold, which is drawn once.

    :param sizes: numbers of conversations; those that cannot be drawn are left out, and the largest possible added.
    :param seed: of the draws and the training.
    :param known: models that were trained before with this seed, such as those of a cross-validation, used where they
        learned from what is drawn.
    :returns: ``conversations``, ``questions`` (``all``, ``≥ 2``), ``n``, ``models`` (how many were trained), ``mean``
        with ``low``, ``high`` (95 % over questions), ``untrained`` (the sum of scores), and the paired ``gain`` over it
        with ``gain_low``, ``gain_high`` and ``p`` of a paired randomisation test, not corrected.
    :raises DataError: when there is one conversation only, or ``sizes`` or ``repeats`` are not positive.
    """
    from tqdm.auto import tqdm

    distinct = np.unique([of.scope for of in lists])
    if len(distinct) < 2:
        raise DataError("a learning curve needs two conversations with evidence, and there is one; add others")
    if repeats < 1 or not sizes or min(sizes) < 1:
        raise DataError(f"sizes are {list(sizes)} and repeats {repeats}; give positive numbers")
    fold = dict(zip(distinct.tolist(), (np.arange(len(distinct)) % FOLDS).tolist(), strict=True))
    useful = {of.scope for of in lists if of.turns.any()}
    most = min(sum(fold[s] != f for s in useful) for f in set(fold.values()))
    if most < 1:
        raise DataError("a learning curve needs two conversations with evidence among the candidates; add others")
    trained = {frozenset(useful.intersection(m.about["scopes"])): m for m in known if m.about.get("seed") == seed}
    plain = np.concatenate([_complete(None, of, k=k) for of in lists])
    rows = list[dict[str, object]]()
    for size in tqdm(sorted({s for s in sizes if s < most} | {most}), desc="training on more conversations"):
        rng = np.random.default_rng([seed, size])
        sums, times, models = [np.zeros(len(of.turns)) for of in lists], np.zeros(len(lists)), 0
        while times.min() < (repeats if size < most else 1):
            outside = fold[lists[int(times.argmin())].scope]
            drawn = set(rng.choice(sorted(s for s in useful if fold[s] != outside), size, replace=False).tolist())
            model = trained.get(frozenset(drawn)) or train([of for of in lists if of.scope in drawn], seed=seed)
            models += 1
            for i, of in enumerate(lists):
                if of.scope not in drawn:
                    sums[i] += _complete(model, of, k=k)
                    times[i] += 1
        mean = np.concatenate([total / n for total, n in zip(sums, times, strict=True)])
        columns = np.stack([mean, mean - plain], axis=1)
        for subset, asked, (low, gain_low), (high, gain_high) in _by_subset(lists, columns, seed):
            at = {"conversations": size, "questions": subset, "n": int(asked.sum()), "models": models}
            value, gain = columns[asked].mean(axis=0)
            measured = {"mean": value, "low": low, "high": high, "untrained": plain[asked].mean()}
            p = randomisation_test(columns[asked, 1], seed=seed)
            rows.append({**at, **measured, "gain": gain, "gain_low": gain_low, "gain_high": gain_high, "p": p})
    return pl.DataFrame(rows).fill_nan(None)


def transfer(models: Mapping[str, str | Path], bench: Bench, dataset: Dataset, *, seed: int = 0) -> pl.DataFrame:
    """Measure models on a dataset beside the untrained sum of scores that they reorder.

    :param models: a file or the folder of a cross-validation by what it was trained on, as it is to be called.
    :param seed: of the intervals and tests.
    :returns: ``trained`` (``nothing`` for the untrained sum), ``measured``, ``level``, ``measure``, ``questions``, and
        the columns of :func:`memlab.evaluate.compare`.
    """
    systems = [UNTRAINED, *(f"{UNTRAINED} | learned(model={Path(path).as_posix()!r})" for path in models.values())]
    tables = []
    for level in LEVELS:
        done = run_pipelines(systems, bench, dataset, levels=[level], measures=TRANSFER[level], seed=seed)
        subsets = {"all": pl.lit(True), MULTI_SESSION: SEVERAL}
        for measure, (subset, where) in product(TRANSFER[level], subsets.items()):
            if done.reports[0].per_query.filter(where).height:
                about = {"measured": dataset.name, "level": level, "measure": measure, "questions": subset}
                table = compare(done.reports, measure=measure, where=where, seed=seed).drop("system")
                trained = pl.Series("trained", ["nothing", *models])
                tables.append(table.select(trained, *(pl.lit(v).alias(name) for name, v in about.items()), pl.all()))
    return pl.concat(tables)


def _complete(model: Model | None, of: Lists, *, k: int, found: Candidates | None = None) -> np.ndarray:
    """Say which questions have all their evidence in the first k turns: (q,).

    :param model: ``None`` for the untrained sum, in whose order the candidates come.
    :param found: the candidates as the model is to see them; those of the lists by default.
    """
    turns = of.turns
    if model is not None:
        turns = np.take_along_axis(
            turns, np.argsort(-apply(model, found or of.candidates), axis=1, kind="stable"), axis=1
        )
    return (turns[:, :k].sum(axis=1) == of.n_evidence).astype(np.float64)


def _held_out(lists: Sequence[Lists], models: Sequence[Model]) -> list[Model]:
    """Give each conversation the first model that did not learn from it.

    :raises DataError: when all of them learned from one.
    """
    chosen = []
    for of in lists:
        others = [model for model in models if of.scope not in model.about["scopes"]]
        if not others:
            raise DataError(
                f"each of {len(models)} models learned from conversation {of.scope!r}; give those of a cross-validation"
            )
        chosen.append(others[0])
    return chosen


def _by_subset(
    lists: Sequence[Lists], values: np.ndarray, seed: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Give values (q, m) of all questions, then of those with evidence in several sessions, with their intervals."""
    several = np.concatenate([of.sessions.sum(axis=1) >= 2 for of in lists])
    for subset, rows in (("all", np.ones(len(several), bool)), (MULTI_SESSION, several)):
        if rows.any():
            yield subset, rows, *bootstrap_interval(values[rows], np.ones(rows.sum()), seed=seed)
