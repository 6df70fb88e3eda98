"""Decay tuned to labelled observations: whether a fact of some age was still true.

The chance of "still true" is the curve read as a survival function, so the likelihood is Bernoulli (current-status
data). Intervals come from the profile likelihood. Families are compared on facts that they have not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.config import write_settings
from memlab.errors import DataError
from memlab.knowledge.confidence import ConfidenceSettings
from memlab.knowledge.decay import FAMILIES, SPACE, Accesses, AnyCurve, PlateauLinear, family, parameters

CONSTANT, DEFAULT, POOLED, OWN = "constant", "default", "pooled", "per predicate"
MIN_OBSERVATIONS, MIN_LABELS = 20, 100
CLIP = 1e-6  # chances are kept this far from 0 and 1: a curve that is sure and wrong costs 13.8 nats, not infinity
_SCREENED, _STARTS, _CONFIDENCE = 64, 3, 0.9
LABELS: dict[str, Any] = {
    "fact_id": pl.String(), "predicate": pl.String(), "age_days": pl.Float64(), "accesses_days": pl.List(pl.Float64()),
    "still_true": pl.Boolean(),
}  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """A fitted curve.

    :param intervals: ``parameter``, ``estimate``, ``low`` and ``high``; empty where none were asked for.
    :param log_loss: mean over the observations, in nats.
    """

    curve: AnyCurve
    intervals: pl.DataFrame
    log_loss: float


@dataclass(frozen=True)
class Comparison:
    """Families compared on held-out facts.

    :param table: ``predicate`` (null: all), ``family``, ``fit``, ``n``, ``log_loss`` with ``low`` and ``high``,
        and the paired ``difference`` of log-loss to the best with ``difference_low`` and ``difference_high`` (90 %,
        groups taken as independent).
    :param predictions: every observation under every candidate: ``family``, ``fit``, ``group``, ``predicate``,
        ``age_days``, ``still_true`` and ``chance``, given by curves that saw nothing of its group.
    """

    table: pl.DataFrame
    predictions: pl.DataFrame


@dataclass(frozen=True)
class Recommendation:
    """A setting for ``memlab.toml``: a curve fitted to all observations, those of some predicates, and why these."""

    pooled: Fit
    why: str
    own: dict[str, Fit] = field(default_factory=dict)

    @property
    def table(self) -> dict[str, Any]:
        """The keys ``decay`` and ``decay_by_predicate`` of the table ``[confidence]``."""
        own = {predicate: _rounded(fitted.curve) for predicate, fitted in self.own.items()}
        return {"decay": _rounded(self.pooled.curve), "decay_by_predicate": own}

    @property
    def settings(self) -> ConfidenceSettings:
        """The settings of memlab with these curves."""
        return ConfidenceSettings.of(self.table)

    def write(self, path: str | Path = "memlab.toml") -> Path:
        """Write the curves into a settings file; see :func:`memlab.config.write_settings`."""
        return write_settings(Path(path), "confidence", self.table)


def read_labels(path: str | Path) -> pl.DataFrame:
    """Read labelled observations from a file: CSV, JSON lines or Parquet.

    :param path: a row an observation: ``fact_id``, ``predicate``, ``age_days`` (days since the last access) and
        ``still_true``; ``accesses_days`` (the age of each access) where known: a list, in CSV numbers with ";" between.
    :raises DataError: when the file cannot be read, or a column is missing or holds something else.
    """
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".csv": pl.read_csv, ".jsonl": pl.read_ndjson, ".parquet": pl.read_parquet,
    }  # fmt: skip
    path = Path(path)
    try:
        frame = readers[path.suffix](path)
        if "accesses_days" not in frame.columns:
            frame = frame.with_columns(accesses_days=pl.lit(None))
        elif not isinstance(frame.schema["accesses_days"], pl.List):
            frame = frame.with_columns(pl.col("accesses_days").cast(pl.String).str.split(";"))
        frame = frame.select(pl.col(name).cast(kind) for name, kind in LABELS.items())
    except (OSError, pl.exceptions.PolarsError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: {reason}; labels are a .csv, .jsonl or .parquet with {', '.join(LABELS)}") from error
    _observed(frame)
    return frame


def simulate(
    curve: AnyCurve, *, n: int, seed: int = 0, max_age_days: float = 730.0, predicate: str = "simulated"
) -> pl.DataFrame:
    """Draw labelled observations whose chance of "still true" is exactly the curve.

    Ages of the last access are uniform up to ``max_age_days``. Before it each fact was accessed up to five times more,
    each number as likely, at ages that are uniform between the last access and twice the maximum.

    :returns: ``fact_id``, ``predicate``, ``age_days``, ``accesses_days`` and ``still_true``.

    >>> from memlab.knowledge import tuning
    >>> from memlab.knowledge.decay import Exponential
    >>> float(tuning.simulate(Exponential(100), n=4000, max_age_days=100, seed=0)["still_true"].mean().__round__(2))
    0.72
    """
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, max_age_days, n)
    older = np.repeat(np.arange(n), rng.integers(0, 6, n))
    row = np.concatenate([np.arange(n), older])
    each = np.concatenate([age, rng.uniform(age[older], 2 * max_age_days)])
    true = rng.uniform(size=n) < curve.retention(age, Accesses(row, each))
    lists = pl.DataFrame({"row": row, "each": each}).group_by("row", maintain_order=True).agg("each").sort("row")
    ids = pl.Series("fact_id", [f"{predicate}/{i}" for i in range(n)], dtype=pl.String)
    return pl.DataFrame({"fact_id": ids, "age_days": age, "accesses_days": lists["each"], "still_true": true}).select(
        "fact_id", pl.lit(predicate).alias("predicate"), "age_days", "accesses_days", "still_true"
    )


def fit(observations: pl.DataFrame, name: str, *, intervals: bool = True, seed: int = 0) -> Fit:
    """Fit a decay family by maximum likelihood, with 90 % intervals from the profile likelihood.

    The best of 64 places drawn within the bounds start a Nelder–Mead search each, since the plateau has corners. An
    observation counts as independent of the others: with many of one fact the intervals are too narrow.

    :param observations: ``age_days`` and ``still_true``; ``accesses_days`` (a list of ages) for base-level activation.
    :param name: the family: plateau_linear, exponential, power_law, weibull or base_level.
    :param intervals: whether to find intervals too, which takes most of the time.
    :raises DataError: for fewer than 20 observations, all of one label, or a bad column.

    >>> from memlab.knowledge import tuning
    >>> from memlab.knowledge.decay import Exponential
    >>> fitted = tuning.fit(tuning.simulate(Exponential(200), n=2000, seed=0), "exponential")
    >>> low, high = fitted.intervals.select("low", "high").row(0)
    >>> 180 < low < 200 < high < 225
    True
    """
    likelihood = _Likelihood.of(name, observations)
    n, n_true = observations.height, int(observations["still_true"].sum())
    if n < MIN_OBSERVATIONS or n_true in (0, n):
        raise DataError(
            f"{n} observations, {n_true} of them still true, do not determine a {name} curve; give at least "
            f"{MIN_OBSERVATIONS}, of both kinds"
        )
    top = likelihood.maximum(seed)
    rows = []
    if intervals:
        top, ends = likelihood.ends(top)
        rows = [(p.name, p.at(top[i]), *(p.at(end) for end in ends[i])) for i, p in enumerate(SPACE[name])]
    columns = {"parameter": pl.String(), "estimate": pl.Float64(), "low": pl.Float64(), "high": pl.Float64()}
    return Fit(likelihood.curve(top), pl.DataFrame(rows, schema=columns, orient="row"), likelihood.loss(top) / n)


def _observed(observations: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, Accesses | None]:
    """Check observations and give ages, labels and all accesses as arrays.

    :raises DataError: for a missing column, an age or label that is missing or out of range.
    """
    missing = {"age_days", "still_true"} - set(observations.columns)
    if missing:
        raise DataError(f"observations need the column {min(missing)}; the frame has {observations.columns}")
    age, label = observations["age_days"].cast(pl.Float64).fill_null(np.nan).to_numpy(), observations["still_true"]
    wrong = np.flatnonzero(~((age >= 0) & np.isfinite(age)))
    if wrong.size:
        raise DataError(f"age_days is {age[wrong[0]]} in row {wrong[0]}; expected a number of days from 0")
    if label.dtype != pl.Boolean or label.null_count():
        raise DataError(f"still_true is {label.dtype}, {label.null_count()} missing; expected true or false")
    if "accesses_days" not in observations.columns:
        return age, label.to_numpy(), None
    lists = observations.select("accesses_days", last="age_days").with_row_index("row")
    flat = lists.explode("accesses_days", empty_as_null=True)
    each = flat["accesses_days"].fill_null(flat["last"]).to_numpy()
    return age, label.to_numpy(), Accesses(flat["row"].cast(pl.Int64).to_numpy(), each)


def _chances(curve: AnyCurve, observations: pl.DataFrame) -> np.ndarray:
    age, _, accesses = _observed(observations)
    return np.clip(curve.retention(age, accesses), CLIP, 1 - CLIP)


@dataclass(frozen=True)
class _Likelihood:
    """The loss of a family on observations. A place is an array of its parameters, on the scale they are sought on."""

    name: str
    age: np.ndarray
    true: np.ndarray
    accesses: Accesses | None
    bounds: np.ndarray

    @classmethod
    def of(cls, name: str, observations: pl.DataFrame) -> _Likelihood:
        family(name)
        bounds = np.array([[np.log(x) if p.log else x for x in (p.low, p.high)] for p in SPACE[name]])
        return cls(name, *_observed(observations), bounds)

    def curve(self, place: np.ndarray) -> AnyCurve:
        make: Callable[..., AnyCurve] = FAMILIES[self.name]
        return make(**{p.name: p.at(x) for p, x in zip(SPACE[self.name], place, strict=True)})

    def loss(self, place: np.ndarray) -> float:
        if self.name == "plateau_linear" and place[0] >= place[1] - 1e-6:
            return np.inf
        chance = np.clip(self.curve(place).retention(self.age, self.accesses), CLIP, 1 - CLIP)
        return float(_losses(chance, self.true).sum())

    def maximum(self, seed: int) -> np.ndarray:
        """Find the most likely place from the best of many; days are drawn where there are ages."""
        from scipy.stats import qmc

        box = self.bounds.copy()
        ages = np.log(np.quantile(self.age, [0.02, 1.0]).clip(0.1) * [0.5, 2.0])
        for i, p in enumerate(SPACE[self.name]):
            if p.name.endswith("_days"):
                box[i] = np.clip(ages, *self.bounds[i])
        drawn = qmc.Sobol(len(box), rng=np.random.default_rng(seed)).random(_SCREENED)
        places = np.clip(qmc.scale(drawn, box[:, 0], box[:, 1] + 1e-9), self.bounds[:, 0], self.bounds[:, 1])
        starts = places[np.argsort([self.loss(place) for place in places], kind="stable")][:_STARTS]
        best = min((_minimise(self.loss, start, self.bounds, step=0.3) for start in starts), key=self.loss)
        return _minimise(self.loss, best, self.bounds, step=0.05)

    def ends(self, top: np.ndarray) -> tuple[np.ndarray, list[list[float]]]:
        """Find where the best with one parameter fixed falls short of the top by half a chi-square.

        A better top that comes to light on the way replaces the first one, and the search begins again.
        """
        from scipy.stats import chi2

        for _ in range(3):
            limit = self.loss(top) + float(chi2.ppf(_CONFIDENCE, 1)) / 2
            found = [[self._end(top, i, bound, limit) for bound in self.bounds[i]] for i in range(len(top))]
            better = min((place for pair in found for _, place in pair), key=self.loss)
            if self.loss(better) > self.loss(top) - 1e-3:
                break
            top = _minimise(self.loss, better, self.bounds, step=0.05)
        return top, [[end for end, _ in pair] for pair in found]

    def _end(self, top: np.ndarray, i: int, bound: float, limit: float) -> tuple[float, np.ndarray]:
        """Follow the profile of parameter i from the top to where it crosses the limit; also give its best place."""
        from scipy.optimize import brentq

        others = np.delete(np.arange(len(top)), i)
        warm, best = top[others], top

        def excess(value: float) -> float:
            nonlocal warm, best

            def fixed(rest: np.ndarray) -> float:
                return self.loss(np.insert(rest, i, value))

            rest = _minimise(fixed, warm, self.bounds[others], step=0.1)
            least = fixed(rest)
            warm = rest if np.isfinite(least) else warm
            best = min(best, np.insert(rest, i, value), key=self.loss)
            return min(least, 1e9) - limit

        inner, step = float(top[i]), 0.05
        while inner != bound:
            outer = float(np.clip(inner + np.copysign(step, bound - top[i]), *self.bounds[i]))
            if excess(outer) > 0:
                return (float(brentq(excess, inner, outer, xtol=1e-3)) if excess(inner) < 0 else inner), best
            inner, step = outer, step * 2
        return float(bound), best


def _minimise(loss: Callable[[np.ndarray], float], start: np.ndarray, bounds: np.ndarray, *, step: float) -> np.ndarray:
    from scipy.optimize import minimize

    if not len(start):
        return start
    # The simplex points inwards, so that it keeps its size at a bound.
    shift = np.where(start + step > bounds[:, 1], -step, step)
    simplex = np.vstack([start, start + np.diag(shift)])
    options = {"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-4, "maxiter": 400}
    return np.asarray(minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options).x)


def _losses(chance: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Give the log-loss of each observation in nats."""
    return -np.log(np.where(true, chance, 1 - chance))


def _own(observations: pl.DataFrame, name: str, *, min_labels: int, intervals: bool, seed: int) -> dict[str, Fit]:
    """Fit a family to each predicate with enough labels of both kinds."""
    return {
        str(key[0]): fit(part, name, intervals=intervals, seed=seed)
        for key, part in observations.drop_nulls("predicate").group_by("predicate", maintain_order=True)
        if part.height >= max(min_labels, MIN_OBSERVATIONS) and part["still_true"].n_unique() == 2
    }


def compare(
    observations: pl.DataFrame,
    *,
    families: Sequence[str] = tuple(FAMILIES),
    folds: int = 5,
    group: str = "fact_id",
    min_labels: int = MIN_LABELS,
    seed: int = 0,
) -> Comparison:
    """Predict each fact by curves fitted without it, for every family, pooled and by predicate.

    Beside the families stand ``constant``, the share still true whatever the age, which a curve must beat to say
    anything, and ``default``, the plateau-linear curve of memlab, not fitted.

    :param observations: ``predicate``, ``age_days``, ``still_true``, the column named by ``group``, and
        ``accesses_days`` where known.
    :param group: what is never split between fitting and testing: ``fact_id``, or ``scope`` to carry over to other
        people.
    :param min_labels: what a predicate needs for a curve of its own; the others have the pooled one.
    :raises DataError: for a missing column, fewer groups than folds, or a fold without enough to fit.
    """
    from sklearn.model_selection import GroupKFold

    missing = {"predicate", group} - set(observations.columns)
    if missing or not 2 <= folds <= observations[group].n_unique():
        raise DataError(f"observations need predicate, {group} and at least {folds} different {group}, 2 folds or more")
    _observed(observations)
    several = observations["predicate"].n_unique() > 1
    chance: dict[tuple[str, str], np.ndarray] = {}
    splits = GroupKFold(folds, shuffle=True, random_state=seed).split(
        observations, groups=observations[group].to_list()
    )
    for learn, test in splits:
        train, its = observations[learn], observations[test]
        given = {(CONSTANT, POOLED): np.full(len(test), train["still_true"].mean())}
        given[DEFAULT, POOLED] = _chances(PlateauLinear(), its)
        for name in families:
            given[name, POOLED] = pooled = _chances(fit(train, name, intervals=False, seed=seed).curve, its)
            if several:
                given[name, OWN] = pooled.copy()
                for predicate, fitted in _own(train, name, min_labels=min_labels, intervals=False, seed=seed).items():
                    where = its["predicate"].eq_missing(pl.Series([predicate])).to_numpy()
                    given[name, OWN] = np.where(where, _chances(fitted.curve, its), given[name, OWN])
        for key, values in given.items():
            chance.setdefault(key, np.zeros(observations.height))[test] = values
    rows = observations.select(pl.col(group).alias("group"), "predicate", "age_days", "still_true")
    predictions = pl.concat(
        rows.select(pl.lit(name).alias("family"), pl.lit(how).alias("fit"), pl.all(), pl.Series("chance", values))
        for (name, how), values in chance.items()
    )
    parts: list[tuple[str | None, pl.DataFrame]] = [(None, predictions)]
    if several:
        named = predictions.drop_nulls("predicate").partition_by("predicate", as_dict=True, maintain_order=True)
        parts += [(str(key[0]), part) for key, part in named.items()]
    table = pl.DataFrame([row for name, part in parts for row in _scored(name, part)], infer_schema_length=None)
    return Comparison(table.with_columns(pl.col("predicate").cast(pl.String)), predictions)


def _scored(predicate: str | None, part: pl.DataFrame) -> list[dict[str, Any]]:
    candidates = part.partition_by("family", "fit", as_dict=True, maintain_order=True)
    loss = {key: _losses(rows["chance"].to_numpy(), rows["still_true"].to_numpy()) for key, rows in candidates.items()}
    best = min((key for key in loss if key[0] not in (CONSTANT, DEFAULT)), key=lambda key: loss[key].mean())
    table = []
    for key, rows in candidates.items():
        group = rows["group"].rank("dense").to_numpy().astype(np.int64) - 1
        low, high = _interval(loss[key], group)
        apart_low, apart_high = _interval(loss[key] - loss[best], group)
        table.append(
            {"predicate": predicate, "family": key[0], "fit": key[1], "n": rows.height,
             "log_loss": float(loss[key].mean()), "low": low, "high": high,
             "difference": float((loss[key] - loss[best]).mean()), "difference_low": apart_low,
             "difference_high": apart_high}
        )  # fmt: skip
    return table


def _interval(values: np.ndarray, group: np.ndarray) -> tuple[float | None, float | None]:
    """Give the normal interval of a mean over observations that are independent only between groups."""
    from scipy.stats import norm

    mean, groups = values.mean(), int(group.max()) + 1
    if groups < 2:
        return None, None
    off = np.bincount(group, weights=values - mean, minlength=groups)
    half = float(norm.ppf((1 + _CONFIDENCE) / 2)) * np.sqrt((off**2).sum() * groups / (groups - 1)) / len(values)
    return float(mean - half), float(mean + half)


def recommend(
    observations: pl.DataFrame, *, comparison: Comparison | None = None, min_labels: int = MIN_LABELS, seed: int = 0
) -> Recommendation:
    """Choose the simplest family that is not surely worse than the best, and fit it to all observations.

    Not surely worse: the 90 % interval of its held-out log-loss over the best one's includes 0. Simplest: fewest
    parameters, counted over all its curves; then the lower log-loss.

    :param comparison: what :func:`compare` gave for these observations; made here where not given.

    >>> from memlab.knowledge import tuning
    >>> from memlab.knowledge.decay import Exponential
    >>> advice = tuning.recommend(tuning.simulate(Exponential(100), n=300, seed=0))
    >>> advice.table["decay"]["family"], advice.settings.decay.family
    ('exponential', 'exponential')
    """
    comparison = comparison or compare(observations, min_labels=min_labels, seed=seed)
    n_own = observations["predicate"].drop_nulls().value_counts().filter(pl.col("count") >= min_labels).height
    n_curves = pl.when(pl.col("fit") == OWN).then(1 + n_own).otherwise(1)
    n_each = pl.col("family").replace_strict({name: len(space) for name, space in SPACE.items()})
    fitted = comparison.table.filter(pl.col("predicate").is_null(), pl.col("family").is_in(list(FAMILIES)))
    fitted = fitted.with_columns(parameters=n_each * n_curves).sort("log_loss")
    best = fitted.row(0, named=True)
    near = fitted.filter(pl.col("difference_low").fill_null(0) <= 0)
    chosen = near.sort("parameters", "log_loss", maintain_order=True).row(0, named=True)
    name, own = chosen["family"], dict[str, Fit]()
    if chosen["fit"] == OWN:
        own = _own(observations, name, min_labels=min_labels, intervals=True, seed=seed)
    place = "the best of all" if chosen == best else f"not surely worse than {best['family']} ({best['fit']})"
    why = (
        f"{name} ({chosen['fit']}): held-out log-loss {chosen['log_loss']:.4f}, {place}, with "
        f"{chosen['parameters']} parameters, on {chosen['n']:,} observations"
    )
    return Recommendation(fit(observations, name, seed=seed), why, own)


def _rounded(curve: AnyCurve) -> dict[str, Any]:
    """Give four significant digits: more than any data know, and readable in a file."""
    return {"family": curve.family} | {k: float(f"{v:.4g}") for k, v in parameters(curve).items()}
