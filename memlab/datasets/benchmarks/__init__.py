"""Benchmarks as they are published: one module each, with ``records(source)``.

``KEYS`` of a module are those by which the first record of a file is known, ``FILES`` patterns of
the files that it reads out of a folder. The records are those of :mod:`memlab.datasets.chatlog`, by
place.
"""

from __future__ import annotations

from importlib import import_module

_NAMES = "realtalk beam convomem membench retrieval locomo longmemeval"
BENCHMARKS = {name: import_module(f"{__name__}.{name}") for name in _NAMES.split()}
"""Format name to the module that reads it; the first that knows a file has it."""
