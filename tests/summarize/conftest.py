"""Conversations written out as turns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import polars as pl
import pytest

from memlab.embed.text import ROLES
from memlab.records import Turn, frame


@pytest.fixture(scope="session")
def chat() -> Callable[..., pl.DataFrame]:
    """Write lines of ``Speaker: text`` as the turns of one session."""

    def make(*lines: str, session: str = "u/s", day: int = 8) -> pl.DataFrame:
        scope = session.split("/")[0]
        said = [line.split(": ", 1) for line in lines]
        when = datetime(2023, 5, day, 12, tzinfo=UTC)
        return frame(
            Turn,
            [
                Turn(f"{session}/{n}", scope, session, n, who, who if who in ROLES else "user", text, None, when)
                for n, (who, text) in enumerate(said, 1)
            ],
        )

    return make
