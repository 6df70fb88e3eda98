"""What a run depends on, in the words of its provenance: equal words, equal run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import memlab

_KEY = ("dataset", "fingerprint", "encoder", "header", "pipeline", "level", "code", "files", "stages")
"""By their names in the provenance."""
RANKS = (
    "cluster", "embed", "knowledge", "llm", "pipelines", "records", "registry", "rerank", "retrieve", "select",
    "sessions", "store", "summaries", "text",
)  # fmt: skip
"""The packages and modules of memlab that a ranking depends on; an edit of any other invalidates no run."""
_KINDS = {".py", ".safetensors", ".toml"}


def key(about: Mapping[str, Any]) -> str:
    """Join what a run depends on."""
    return json.dumps([about.get(name) for name in _KEY], sort_keys=True)


@cache
def code() -> str:
    """Name the code that rankings depend on: memlab's version, and a hash of what ranks and of what it needs.

    What ranks is not Python alone, but the tables and the weights that come with memlab too.

    >>> from memlab.experiments import code
    >>> code()
    'memlab ... (...)'
    """
    root = Path(memlab.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in _KINDS):
        place = path.relative_to(root)
        if place.parts[0].removesuffix(".py") in RANKS:
            digest.update(place.as_posix().encode() + b"\0" + path.read_bytes())
    with suppress(PackageNotFoundError):
        needed = sorted(line for line in requires("memlab") or () if "extra ==" not in line)
        for package in (re.split(r"[^\w.-]", line)[0] for line in needed):
            digest.update(f"{package}=={version(package)}\n".encode())
    return f"memlab {memlab.__version__} ({digest.hexdigest()[:8]})"
