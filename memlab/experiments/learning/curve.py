"""How much the learned reranker needs to learn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.significance import randomisation_test
from memlab.experiments.learning._lists import by_subset, complete
from memlab.rerank import Model, train
from memlab.rerank.training import Lists

FOLDS = 10


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
    plain = np.concatenate([complete(None, of, k=k) for of in lists])
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
                    sums[i] += complete(model, of, k=k)
                    times[i] += 1
        mean = np.concatenate([total / n for total, n in zip(sums, times, strict=True)])
        columns = np.stack([mean, mean - plain], axis=1)
        for subset, asked, (low, gain_low), (high, gain_high) in by_subset(lists, columns, seed):
            at = {"conversations": size, "questions": subset, "n": int(asked.sum()), "models": models}
            value, gain = columns[asked].mean(axis=0)
            measured = {"mean": value, "low": low, "high": high, "untrained": plain[asked].mean()}
            p = randomisation_test(columns[asked, 1], seed=seed)
            rows.append({**at, **measured, "gain": gain, "gain_low": gain_low, "gain_high": gain_high, "p": p})
    return pl.DataFrame(rows).fill_nan(None)
