"""Learning the rewriter's weights from questions that people rewrote.

The weights that come with memlab were made from half of CANARD's development set::

    contexts, references = canard("canard_dev_a.json")
    train([features(context) for context in contexts], references).save(FILE)
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.rewrite._context import Context
from memlab.rewrite.features import Features, features
from memlab.rewrite.measure import content_words, score
from memlab.rewrite.model import CLIP, Model, matrix
from memlab.rewrite.rewriting import offline
from memlab.rewrite.signals import signals

NETWORKS = 8
HIDDEN = 32
DECAY = 1.0
RATE = 2e-3
EPOCHS = 14
BATCH = 256


def canard(path: str | Path) -> tuple[list[Context], list[str]]:
    """Read questions and their rewrites from a file of CANARD: each with title and section as topics, and without.

    :raises DataError: when the file is not in CANARD's layout.
    """
    try:
        items = json.loads(Path(path).read_text(encoding="utf-8"))
        asked = [(item["Question"], item["History"], item["Rewrite"]) for item in items]
    except (OSError, ValueError, TypeError, KeyError) as error:
        what = f"{type(error).__name__}: {error}"
        raise DataError(
            f"{path} cannot be read as CANARD ({what}); expected a list with History, Question, Rewrite"
        ) from error
    titled = [Context.of(question, history[2:], history[:2]) for question, history, _ in asked]
    untitled = [Context.of(question, history[2:]) for question, history, _ in asked]
    return titled + untitled, 2 * [reference for *_, reference in asked]


def train(described: Sequence[Mapping[str, Features]], references: Sequence[str], *, seed: int = 0) -> Model:
    """Learn which words people add: an ensemble of perceptrons, each word of each context an example.

    :param described: the features of the words of each question's context.
    :param references: what people made of each question.
    :param seed: of the first network.

    Source: query resolution as term classification (Voskarides et al., SIGIR 2020), with features in the place of BERT.
    """
    wanted = [set(content_words(reference)) for reference in references]
    pairs = zip(described, wanted, strict=True)
    rows = [(values, word in added) for its, added in pairs for word, values in its.items()]
    return fit([values for values, _ in rows], [added for _, added in rows], seed=seed)


def cross_validate(path: str | Path, *, topics: bool = True, folds: int = 5, seed: int = 0) -> pl.DataFrame:
    """Score the rewriter on the follow-up questions of a file of CANARD, by models that learned from other articles.

    :param topics: whether the rewriter is told title and section.
    :param folds: so many parts, an article in one of them.
    :param seed: of each first network.
    :returns: rows as of :func:`memlab.rewrite.score`, for the ``system`` ``rewrite`` and, to compare, ``title``: the
        article's title appended to every question.
    :raises DataError: when the file is not in CANARD's layout.
    """
    from sklearn.model_selection import GroupKFold

    contexts, references = canard(path)
    n = len(contexts) // 2
    described = [features(context) for context in contexts]
    titles = [context.topic(0).text for context in contexts[:n]]
    rewritten: dict[int, str] = {}
    for learn, test in GroupKFold(folds).split(titles, groups=titles):
        both = [*learn, *(learn + n)]
        model = train([described[i] for i in both], [references[i] for i in both], seed=seed)
        for i in test:
            context = contexts[i if topics else i + n]
            if context.messages:
                signs = signals(context)
                rewritten[int(i)] = offline(context, signs, model) if signs else context.question.text
    asked, wanted = [contexts[i].question.text for i in rewritten], [references[i] for i in rewritten]
    titled = [f"{contexts[i].question.text} {titles[i]}" for i in rewritten]
    systems = {"rewrite": list(rewritten.values()), "title": titled}
    return pl.concat(
        score(asked, texts, wanted).select(pl.lit(name).alias("system"), pl.all()) for name, texts in systems.items()
    )


def fit(described: Sequence[Mapping[str, float]], added: Sequence[bool], *, seed: int = 0) -> Model:
    """Learn from the features of words, and whether each was added."""
    names = tuple(sorted({name for values in described for name in values}))
    values = matrix(described, names)
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-6
    scaled = np.clip((values - mean) / spread, -CLIP, CLIP)
    networks = [_fitted(scaled, np.array(added), seed + n) for n in range(NETWORKS)]
    return Model(
        names,
        {
            "mean": mean,
            "spread": spread,
            "w1": np.stack([n.coefs_[0] for n in networks]),
            "b1": np.stack([n.intercepts_[0] for n in networks]),
            "w2": np.stack([n.coefs_[1][:, 0] for n in networks]),
            "b2": np.array([n.intercepts_[1][0] for n in networks]),
        },
    )


def _fitted(values: np.ndarray, added: np.ndarray, seed: int) -> Any:
    """Fit for a fixed number of epochs, which is the early stop: no warning that it could go on."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier(
        (HIDDEN,), alpha=DECAY, learning_rate_init=RATE, max_iter=EPOCHS, batch_size=BATCH, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return network.fit(values, added)
