"""Benchmarks as they are published: one module each, with ``detect(file)`` and ``records(source)``.

``FILES`` of a module are patterns of the files that it reads out of a folder. The records are those of
:mod:`memlab.datasets.chatlog`, by place.
"""

from __future__ import annotations

from types import ModuleType

from memlab.datasets.benchmarks import beam, convomem, locomo, longmemeval, membench, realtalk, retrieval

BENCHMARKS: dict[str, ModuleType] = {
    "realtalk": realtalk,
    "beam": beam,
    "convomem": convomem,
    "membench": membench,
    "retrieval": retrieval,
    "locomo": locomo,
    "longmemeval": longmemeval,
}
"""Format name to the module that reads it; the first that knows a file has it."""
