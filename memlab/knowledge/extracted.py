"""What an extraction gives, by rule or by a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

RULES = "rules"
OUTCOME: dict[str, Any] = {"session_id": pl.String, "status": pl.String, "reason": pl.String, "service": pl.String}


@dataclass(frozen=True)
class Extracted:
    """What sessions say.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param entities: rows of :class:`memlab.records.Entity`.
    :param relations: rows of :class:`memlab.records.Relation`.
    :param outcomes: for each session ``session_id``, ``status`` (``ok``; ``fallback`` where a model answered badly and
        the rules were used; ``failed`` where its service did not answer: such a session has no rows), ``reason`` and
        ``service``, what made the rows.
    """

    facts: pl.DataFrame
    entities: pl.DataFrame
    relations: pl.DataFrame
    outcomes: pl.DataFrame
