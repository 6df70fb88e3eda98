"""Confidence of facts, computed when they are read from source, repetitions and age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, ConfigDict, Discriminator, Field, ValidationError

from memlab.errors import DataError
from memlab.knowledge.decay_curves import AnyCurve, PlateauLinear
from memlab.records.dataset import convert_to_polars, in_utc

_DAY_MICROSECONDS = 86_400_000_000
Share = Annotated[float, Field(ge=0, le=1)]
CurveSetting = Annotated[AnyCurve, Discriminator("family")]


class SourceSettings(BaseModel, extra="forbid", frozen=True):
    """Confidence of a new fact, by how it was established; ``reported``: on words of others."""

    stated: Share = 1.0
    system: Share = 0.9
    observed: Share = 0.7
    inferred: Share = 0.5
    reported: Share = 0.4


class ConfidenceSettings(BaseModel):
    """The constants of the confidence: the table ``[confidence]`` of ``memlab.toml``.

    :param base: confidence by source, the table ``[confidence.base]``.
    :param reinforcement_step: what each repetition adds to the factor, up to
        ``reinforcement_limit``.
    :param decay: the curve of retention (1 is fresh): ``family`` and its parameters.
    :param unknown_age: the retention of a fact of which nothing says when it was stated.

    >>> from memlab.knowledge.confidence import ConfidenceSettings
    >>> table = {"decay": {"family": "exponential", "half_life_days": 90}}
    >>> ConfidenceSettings.from_table(table).decay
    Exponential(half_life_days=90.0, family='exponential')
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: SourceSettings = SourceSettings()
    reinforcement_step: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    reinforcement_limit: float = Field(default=1.5, ge=1, allow_inf_nan=False)
    decay: CurveSetting = PlateauLinear()
    unknown_age: Share = 0.5

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> ConfidenceSettings:
        """Read the settings from a table, such as ``[confidence]`` in ``memlab.toml``.

        :raises DataError: for an unknown name or a wrong value, naming it.
        """
        try:
            return cls.model_validate(dict(table))
        except ValidationError as error:
            first_error = error.errors()[0]
            setting_name = ".".join(map(str, ("confidence", *first_error["loc"])))
            known_names = ", ".join(cls.model_fields)
            raise DataError(
                f"setting {setting_name!r}: {first_error['msg']}; the table [confidence] has "
                f"{known_names}"
            ) from None


def score(
    facts: pl.DataFrame, *, now: datetime, settings: ConfidenceSettings | None = None
) -> pl.DataFrame:
    """Score the confidence of facts: base(source) · reinforcement · retention; 0 if superseded.

    The product is clipped to [0, 1]: reinforcement can lift it above 1, so for a stated and fresh
    fact repetition changes nothing, and later it makes up for age. The score is for ranking; it is
    a probability only where base and reinforcement are 1 and the curve was fitted. A fact without
    any time has the retention ``unknown_age``.

    :param facts: ``source``, ``n_reinforced`` (repetitions after the first), ``last_access``,
        ``superseded``.
    :param now: when the facts are read; with a time zone if the column has one.
    :param settings: the constants; those of memlab where not given.
    :returns: the facts in their order with ``age_days`` (null where not known; 0 for what is yet to
        come), ``base``, ``reinforcement``, ``retention`` and ``confidence``.
    :raises DataError: for a missing column, an unknown source, or times that are zoned on one side
        only.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> from memlab.knowledge import confidence
    >>> facts = pl.DataFrame({"source": ["stated", "inferred"], "n_reinforced": [0, 2]})
    >>> facts = facts.with_columns(superseded=False, last_access=pl.lit(datetime(2026, 1, 1)))
    >>> confidence.score(facts, now=datetime(2026, 1, 8))["confidence"].to_list()
    [1.0, 0.6]
    >>> confidence.score(facts, now=datetime(2028, 1, 1))["confidence"].to_list()
    [0.5, 0.3]
    """
    settings = settings or ConfidenceSettings()
    facts = convert_to_polars(facts, "facts")
    _refuse_unscorable_facts(facts, now)
    now = in_utc(now) if now.tzinfo else now
    last_access = pl.col("last_access").cast(pl.Datetime("us", "UTC" if now.tzinfo else None))
    age_in_days = (pl.lit(now) - last_access).dt.total_microseconds() / _DAY_MICROSECONDS
    aged_facts = facts.with_columns(age_days=age_in_days.clip(0))
    base_confidence = pl.col("source").cast(pl.String)
    base_confidence = base_confidence.replace_strict(
        settings.base.model_dump(), return_dtype=pl.Float64
    )
    reinforcement = 1.0 + settings.reinforcement_step * pl.col("n_reinforced")
    reinforcement = reinforcement.clip(None, settings.reinforcement_limit).cast(pl.Float64)
    retained_shares = pl.Series(
        settings.decay.retention(aged_facts["age_days"].fill_null(0.0).to_numpy())
    )
    is_unknown = pl.col("age_days").is_null()
    retention = pl.when(is_unknown).then(settings.unknown_age).otherwise(retained_shares)
    fact_factors = aged_facts.with_columns(
        base=base_confidence, reinforcement=reinforcement, retention=retention
    )
    product = pl.col("base") * pl.col("reinforcement") * pl.col("retention")
    confidence = pl.when("superseded").then(0.0).otherwise(product.clip(0.0, 1.0))
    return fact_factors.with_columns(confidence=confidence)


def trajectory(
    curves: Mapping[str, AnyCurve],
    *,
    accesses_days: Sequence[float] = (0.0,),
    source: str = "stated",
    days: int = 365,
) -> pl.DataFrame:
    """Compute the confidence of one fact over time under several curves; repetitions are jumps.

    :param curves: by the name to show.
    :param accesses_days: when the fact was heard, in days; the first is when it became known, the
        others reinforce.
    :param days: how long to follow it.
    :returns: ``family``, ``day``, ``n_reinforced``, ``retention`` and ``confidence``; two rows at a
        jump.

    >>> from memlab.knowledge import confidence
    >>> from memlab.knowledge.decay_curves import Exponential
    >>> path = confidence.trajectory({"a": Exponential(100)}, accesses_days=(0, 100), days=200)
    >>> path.filter(day=100)["confidence"].to_list()
    [0.5, 1.0]
    """
    accesses = sorted(accesses_days)
    end_time = datetime(2000, 1, 1)
    last_day = accesses[0] + days
    # A jump has two rows: without the access of that day, and with it.
    moments = {(accesses[0] + day, True) for day in range(days + 1)}
    for day in accesses[1:]:
        if day <= last_day:
            moments |= {(day, False), (day, True)}
    moment_rows = []
    for day, is_included in sorted(moments):
        accesses_before = [access_day for access_day in accesses if access_day < day]
        if is_included:
            accesses_before += [access_day for access_day in accesses if access_day == day]
        last_access = end_time - timedelta(days=day - accesses_before[-1])
        moment_rows.append((float(day), len(accesses_before) - 1, last_access, source, False))
    columns = ["day", "n_reinforced", "last_access", "source", "superseded"]
    facts = pl.DataFrame(moment_rows, schema=columns, orient="row")
    scored_curves = []
    for name, curve in curves.items():
        scored = score(facts, now=end_time, settings=ConfidenceSettings(decay=curve))
        scored_curves.append(scored.with_columns(family=pl.lit(name)))
    return pl.concat(scored_curves).select(
        "family", "day", "n_reinforced", "retention", "confidence"
    )


def _refuse_unscorable_facts(facts: pl.DataFrame, read_at: datetime) -> None:
    needed_columns = ("source", "n_reinforced", "last_access", "superseded")
    missing_columns = [name for name in needed_columns if name not in facts.columns]
    if missing_columns:
        raise DataError(
            f"confidence needs the column(s) {', '.join(missing_columns)}; the frame has "
            f"{facts.columns}"
        )
    sources = list(SourceSettings.model_fields)
    wrong_sources = facts.filter(~pl.col("source").cast(pl.String).is_in(sources).fill_null(False))[
        "source"
    ]
    if wrong_sources.len():
        raise DataError(
            f"source is {wrong_sources[0]!r} in {wrong_sources.len()} facts; expected one of "
            f"{', '.join(sources)}"
        )
    column_type = facts.schema["last_access"]
    if isinstance(column_type, pl.Datetime) and (column_type.time_zone is None) != (
        read_at.tzinfo is None
    ):
        raise DataError(
            f"last_access has {column_type.time_zone or 'no time zone'} and now is "
            f"{read_at.isoformat()}"
        )
