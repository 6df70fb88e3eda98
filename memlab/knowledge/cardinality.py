"""One value or many: a person has one employer and many hobbies."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from memlab.errors import DataError
from memlab.knowledge._text import ASSERT, UPDATE, relation

ONE, MANY, UNKNOWN = "one", "many", "unknown"
_PRIOR, _SURE = 0.1, 0.9
_LATEST_IF_ONE, _LATEST_IF_MANY = 0.9, 0.5
_NEW_IF_ONE, _NEW_IF_MANY = 0.3, 0.05
_SAME_DAY_IF_ONE, _SAME_DAY_IF_MANY = 0.02, 0.2


def learn(keyed: pl.DataFrame) -> pl.DataFrame:
    """Learn, for each predicate of a scope, whether a subject has one value of it at a time, or many.

    Naive Bayes over what tells the two apart, in the order in which things were said of one subject. When a value that
    was said before is said again, it is the latest one with probability .9 if there is one at a time (A, B, B, C),
    and .5 if there are many (A, B, A, B; people do come back to what is recent). Another value on the same day has
    probability .02 and .2. Another value said to be new ("is now") has probability .3 and .05. Without such evidence
    a predicate stays unknown: mere sequences of different values (A, B, C) say nothing, and nothing is invalidated.
    A tenth of predicates are taken to have one value before anything is seen; a probability of .9 is sure enough. All
    of these are assumptions, not fits.

    :param keyed: the result of :func:`memlab.knowledge.matching.match`.
    :returns: ``scope``, ``predicate_key``, ``n_latest``, ``n_earlier`` (values said again), ``n_same_day``, ``n_new``,
        ``probability`` (of one value) and ``cardinality``.
    """
    group = ["scope", "subject_key", "predicate_key"]
    told = keyed.filter(pl.col("kind").is_in([ASSERT, UPDATE])).sort("said_at", maintain_order=True)
    told = told.with_columns(
        previous=pl.col("object_key").shift().over(group),
        again=~pl.struct("object_key", "said_at").is_duplicated().over(group)
        & ~pl.col("object_key").is_first_distinct().over(group),
        values=pl.col("object_key").is_first_distinct().cast(pl.Int32).cum_sum().over(group),
        day=pl.col("said_at").dt.date() == pl.col("said_at").dt.date().shift().over(group),
    )
    new = pl.col("previous").is_not_null() & (pl.col("previous") != pl.col("object_key"))
    counted = pl.col("again") & (pl.col("values") > 1)
    latest = counted & ~new
    earlier = counted & new
    same_day = new & pl.col("day")
    said_new = new & (pl.col("kind") == UPDATE)
    score = (
        pl.when(latest).then(math.log(_LATEST_IF_ONE / _LATEST_IF_MANY)).otherwise(0.0)
        + pl.when(earlier).then(math.log((1 - _LATEST_IF_ONE) / (1 - _LATEST_IF_MANY))).otherwise(0.0)
        + pl.when(same_day).then(math.log(_SAME_DAY_IF_ONE / _SAME_DAY_IF_MANY)).otherwise(0.0)
        + pl.when(said_new).then(math.log(_NEW_IF_ONE / _NEW_IF_MANY)).otherwise(0.0)
    )
    counts = told.group_by("scope", "predicate_key", maintain_order=True).agg(
        n_latest=latest.sum(),
        n_earlier=earlier.sum(),
        n_same_day=same_day.sum(),
        n_new=said_new.sum(),
        score=score.sum(),
    )
    odds = pl.col("score") + math.log(_PRIOR / (1 - _PRIOR))
    single = pl.col("probability") >= _SURE
    many = (pl.col("probability") <= 1 - _SURE) & (pl.col("score") < 0)
    return (
        counts.with_columns(probability=1 / (1 + (-odds).exp()))
        .with_columns(
            cardinality=pl.when(single).then(pl.lit(ONE)).when(many).then(pl.lit(MANY)).otherwise(pl.lit(UNKNOWN))
        )
        .drop("score")
    )


def assign(keyed: pl.DataFrame, declared: Mapping[str, str] | None, *, learned: bool = True) -> pl.DataFrame:
    """Give each statement its predicate's cardinality: declared, else learned, else unknown.

    :param declared: predicate in any wording to ``one`` or ``many``; matched by its normal form, or by the form of the
        group that it was merged into.
    :raises DataError: for a cardinality that is neither.
    """
    wrong = [v for v in (declared or {}).values() if v not in (ONE, MANY)]
    if wrong:
        raise DataError(f"cardinality {wrong[0]!r} is not known; declare 'one' or 'many'")
    by_relation = {relation(name): value for name, value in (declared or {}).items()}
    own = pl.col("relation").replace_strict(by_relation, default=None, return_dtype=pl.String)
    keyed = keyed.with_columns(declared=own).with_columns(
        declared=pl.coalesce("declared", pl.col("declared").drop_nulls().first().over("scope", "predicate_key"))
    )
    if learned and keyed.height:
        table = learn(keyed).select("scope", "predicate_key", guess="cardinality")
        keyed = keyed.join(table, on=["scope", "predicate_key"], how="left", maintain_order="left")
    else:
        keyed = keyed.with_columns(guess=pl.lit(None, pl.String))
    return keyed.with_columns(cardinality=pl.coalesce("declared", "guess", pl.lit(UNKNOWN))).drop("declared", "guess")
