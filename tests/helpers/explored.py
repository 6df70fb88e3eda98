"""A small conversation on a map that was made before."""

from __future__ import annotations

from functools import cache

import polars as pl
from talk import excerpt

import memlab
from memlab.explorer import build_scene
from memlab.explorer.map_scene import Scene

DATA = excerpt(120, scopes=["owen"])
BENCH = memlab.Bench.of(DATA, encoder="hashing")
SCOPE = DATA.scopes[0]
# Turns lie on a grid, so that a lasso is known to hold some and no others; the middle of a cluster
# lies in a row of it.
ACROSS = 12
_AT = pl.int_range(pl.len())
PLACES = DATA.turns.select("turn_id", x=_AT % ACROSS, y=_AT // ACROSS, label=_AT // ACROSS % 3)
ASKED = DATA.questions.filter((pl.col("scope") == SCOPE) & (pl.col("evidence").list.len() > 0)).row(
    0, named=True
)


@cache
def scene() -> Scene:
    return build_scene(BENCH, SCOPE, places=PLACES)
