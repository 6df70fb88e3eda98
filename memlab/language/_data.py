"""Lists, tables and patterns of the language that are kept as data."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def data(name: str) -> dict[str, Any]:
    """Read ``NAME.toml`` of this folder."""
    return tomllib.loads(files("memlab.language").joinpath(f"{name}.toml").read_text(encoding="utf-8"))
