"""A small conversation on a map that was made before."""

from __future__ import annotations

from functools import cache

import polars as pl
from talk import excerpt

import memlab
from memlab.explorer import build_scene
from memlab.explorer.scene import Scene

DATA = excerpt(120, scopes=["owen"])
BENCH = memlab.Bench.of(DATA, encoder="hashing")
SCOPE = DATA.scopes[0]
PLACES = DATA.turns.select(
    "turn_id", x=pl.int_range(pl.len()).cast(pl.Float64), y=pl.col("n").cast(pl.Float64), label=pl.col("n") % 3
)
ASKED = DATA.questions.filter((pl.col("scope") == SCOPE) & (pl.col("evidence").list.len() > 0)).row(0, named=True)


@cache
def scene() -> Scene:
    return build_scene(BENCH, SCOPE, places=PLACES)
