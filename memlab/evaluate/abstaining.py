"""When to answer and when to say that it is not known: by the scores of a ranking alone, with what it risks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.errors import DataError

DEPTHS = (2, 5, 10)
LEARNED = "all, learned"
BEST = "best order"
_RESAMPLES, _FOLDS = 1_000, 5


@dataclass(frozen=True, eq=False)
class Abstention:
    """How well scores tell which questions had better not be answered.

    :param table: a row a signal: ``signal``, ``n``, ``errors``, the area under its risk–coverage curve (``aurc``) with
        ``low`` and ``high`` (bootstrap over questions, 95 %), of an order by chance (``aurc_chance``) and of the best
        order (``aurc_best``); and at the threshold that the other scopes chose: ``coverage``, ``risk``, ``refused``
        (share of the errors that are refused) and ``lost`` (share of the rest that are).
    :param curves: ``signal``, ``coverage``, ``risk`` and its ``low`` and ``high`` (the same bootstrap, point by point);
        with the :data:`BEST` order, which knows the errors and has no interval.
    :param per_query: ``query_id``, ``error``, and each signal's confidence.
    """

    table: pl.DataFrame
    curves: pl.DataFrame
    per_query: pl.DataFrame


def score_signals(scored: pl.DataFrame) -> pl.DataFrame:
    """Read off each question's scores how sure a ranking is.

    :param scored: ``query_id``, ``rank`` and ``score``, such as ``Run.frame``.
    :returns: ``query_id``, the ``top score``, and its ``margin to @2``, ``@5`` and ``@10`` (the last score, where there
        are fewer).

    >>> import polars as pl
    >>> from memlab.evaluate import score_signals
    >>> scored = pl.DataFrame({"query_id": "q", "rank": [1, 2, 3], "score": [0.9, 0.5, 0.4]})
    >>> score_signals(scored).row(0)
    ('q', 0.9, 0.4, 0.5, 0.5)
    """
    best = pl.col("score").first()
    margins = [(best - pl.col("score").head(k).last()).alias(f"margin to @{k}") for k in DEPTHS]
    ordered = scored.drop_nulls("score").sort("query_id", "rank", maintain_order=True)
    return ordered.group_by("query_id", maintain_order=True).agg(best.alias("top score"), *margins)


def risk_coverage(confidence: np.ndarray, errors: np.ndarray) -> pl.DataFrame:
    """Give the risk of answering only the questions that one is surest of.

    Equal confidence stands for the mean of every order.

    :param confidence: (n,) higher is surer.
    :param errors: (n,) 1 where an answer would be wrong, or what it costs.
    :returns: n rows: ``coverage`` (share of questions answered) and ``risk`` (mean error of those answered). The
        mean of ``risk`` is the area under the curve.

    Source: El-Yaniv and Wiener (JMLR 2010); Geifman and El-Yaniv, Selective classification for deep neural networks
    (NeurIPS 2017); the area is of Geifman, Uziel and El-Yaniv (ICLR 2019).

    >>> import numpy as np
    >>> from memlab.evaluate import risk_coverage
    >>> risk_coverage(np.array([0.9, 0.1, 0.5]), np.array([0, 1, 0]))["risk"].round(2).to_list()
    [0.0, 0.0, 0.33]
    """
    n = len(confidence)
    rows = pl.DataFrame({"confidence": confidence, "error": np.asarray(errors, float)})
    rows = rows.with_columns(pl.col("error").mean().over("confidence")).sort("confidence", descending=True)
    count = np.arange(1, n + 1)
    return pl.DataFrame({"coverage": count / max(n, 1), "risk": rows["error"].to_numpy().cumsum() / count})


def abstention(
    scored: pl.DataFrame,
    questions: pl.DataFrame,
    *,
    errors: pl.DataFrame | None = None,
    seed: int = 0,
) -> Abstention:
    """Measure how well the scores of a ranking tell which questions had better not be answered.

    Each signal of :func:`score_signals` alone, and all together in a logistic regression. What is learned, and each
    threshold (where the shares of errors refused and of others kept sum to most), comes from other scopes than it is
    measured on.

    :param scored: ``query_id``, ``rank`` and ``score``; a question without a score is the least sure.
    :param questions: ``query_id``, ``scope`` and ``abstention``.
    :param errors: ``query_id`` and ``error``, true where an answer would be wrong; by default the questions that the
        conversations hold no answer to.
    :raises DataError: without scores, with one scope, or where nothing, or everything, is an error in what a fold
        learns from.

    >>> import memlab
    >>> data = memlab.sample(turns=400)
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> memlab.evaluate.abstention(run.frame, data.questions).table["signal"].to_list()
    ['top score', 'margin to @2', 'margin to @5', 'margin to @10', 'all, learned']
    """
    if scored["score"].null_count() == scored.height:
        raise DataError("no row has a score; abstention is measured on systems that score what they return")
    wrong = questions.select("query_id", error="abstention") if errors is None else errors.drop_nulls("error")
    rows = wrong.join(questions.select("query_id", "scope"), on="query_id", maintain_order="left")
    rows = rows.join(score_signals(scored), on="query_id", how="left", maintain_order="left")
    signals = [name for name in rows.columns if name not in ("query_id", "error", "scope")]
    least = rows.select(pl.col(signals).min().fill_null(0.0)).row(0, named=True)
    rows = rows.with_columns(pl.col(name).fill_null(least[name]) for name in signals)
    error, features = rows["error"].cast(pl.Float64).to_numpy(), rows.select(signals).to_numpy()
    parts = _folds(rows["scope"].to_numpy(), error)
    learned = _learned(features, error, parts)
    confidence = {**{name: rows[name].to_numpy() for name in signals}, LEARNED: np.full(len(rows), np.nan)}
    for (_, test), (own, _) in zip(parts, learned, strict=True):
        confidence[LEARNED][test] = own
    best = risk_coverage(-error, error)
    none = pl.lit(None, pl.Float64)
    table, curves = [], [best.select(pl.lit(BEST).alias("signal"), "coverage", "risk", low=none, high=none)]
    for name, values in confidence.items():
        training = [values[train] for train, _ in parts] if name != LEARNED else [own for _, own in learned]
        answered = np.zeros(len(rows), bool)
        for (train, test), seen in zip(parts, training, strict=True):
            answered[test] = values[test] >= _threshold(seen, error[train])
        curve = risk_coverage(values, error)
        resampled = _resampled(values, error, seed)
        low, high = np.quantile(resampled.mean(1), [0.025, 0.975]).tolist()
        lows, highs = np.quantile(resampled, [0.025, 0.975], axis=0)
        table.append(
            {
                "signal": name,
                "n": len(rows),
                "errors": int(error.sum()),
                "aurc": float(curve["risk"].mean()),  # type: ignore[arg-type]
                "low": low,
                "high": high,
                "aurc_chance": float(error.mean()),
                "aurc_best": float(best["risk"].mean()),  # type: ignore[arg-type]
                "coverage": float(answered.mean()),
                "risk": float(error[answered].mean()) if answered.any() else None,
                "refused": float((~answered[error > 0]).mean()),
                "lost": float((~answered[error == 0]).mean()),
            }
        )
        curves.append(curve.select(pl.lit(name).alias("signal"), "coverage", "risk", low=lows, high=highs))
    per_query = rows.select("query_id", "error").with_columns(pl.Series(name, v) for name, v in confidence.items())
    return Abstention(pl.DataFrame(table), pl.concat(curves), per_query)


def _folds(scopes: np.ndarray, error: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import GroupKFold

    n_scopes = len(np.unique(scopes))
    if n_scopes < 2:
        raise DataError(f"abstention is cross-validated over scopes: {n_scopes} scopes; two or more")
    parts = list(GroupKFold(min(_FOLDS, n_scopes)).split(error, groups=scopes))
    if any(len(np.unique(error[train])) < 2 for train, _ in parts):
        raise DataError(
            f"{int(error.sum())} of {len(error)} questions had better not be answered; to learn from, each part of the "
            "scopes needs some that had and some that had not"
        )
    return parts


def _learned(
    features: np.ndarray, error: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray]]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Give for each fold the learned confidence of what it holds out, and of what it learned from.

    Errors weigh as much as the rest: else a fold with many of them, which leaves few to learn from, would seem surer.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    given = []
    for train, test in parts:
        model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
        model.fit(features[train], error[train] == 0)
        given.append((model.predict_proba(features[test])[:, 1], model.predict_proba(features[train])[:, 1]))
    return given


def _threshold(confidence: np.ndarray, error: np.ndarray) -> float:
    """Choose, between two values, where the shares of errors refused and of others kept sum to most (Youden 1950)."""
    values = np.unique(confidence)
    kept = confidence[:, None] >= values
    wrong = error > 0
    at = int(np.argmax(kept[~wrong].mean(0) - kept[wrong].mean(0)))
    return float(values[max(at - 1, 0) : at + 1].mean())


def _resampled(confidence: np.ndarray, error: np.ndarray, seed: int) -> np.ndarray:
    """Give the risk at each coverage, (n resamples, n questions)."""
    n = len(error)
    drawn = np.random.default_rng(seed).integers(n, size=(_RESAMPLES, n))
    order = np.argsort(-confidence[drawn], axis=1, kind="stable")
    sorted_errors = np.take_along_axis(error[drawn], order, axis=1)
    risks: np.ndarray = sorted_errors.cumsum(1) / np.arange(1, n + 1)
    return risks
