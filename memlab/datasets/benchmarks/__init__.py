"""Benchmarks as they are published: a module each, a generator of chat-log records by place.

Each is registered in :data:`memlab.formats` with how its files are recognised
(:class:`memlab.registry.Format`): the keys of which the first record has one, and patterns of the
files that it reads out of a folder. The first that recognises a file has it. The records are those
of :mod:`memlab.datasets.chatlog`, by place.

- ``realtalk``, ``beam``, ``convomem``, ``membench``, ``beir_mteb_folders`` (MTEB, BEIR, LMEB),
  ``locomo``, ``longmemeval``: a benchmark each.
- ``longmemeval_haystacks``: larger haystacks for LongMemEval. ``locomo_corrections``: of LoCoMo's
  evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from memlab.datasets.benchmarks import (
    beam,
    beir_mteb_folders,
    convomem,
    locomo,
    longmemeval,
    membench,
    realtalk,
)
from memlab.datasets.benchmarks.longmemeval_haystacks import pool_haystacks
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source
from memlab.registry import formats


def _register_benchmark(
    format_name: str,
    read_format: Callable[[Source], Iterator[Record]],
    first_record_keys: Collection[str],
    **format_options: Any,
) -> None:
    formats.register(
        read_format, name=format_name, kind="benchmark", keys=first_record_keys, **format_options
    )


_register_benchmark("realtalk", realtalk.read_realtalk, realtalk.KEYS, files=realtalk.FILES)
_register_benchmark("beam", beam.read_beam, beam.KEYS, files=beam.FILES)
_register_benchmark("convomem", convomem.read_convomem, convomem.KEYS, files=convomem.FILES)
_register_benchmark("membench", membench.read_membench, membench.KEYS, files=membench.FILES)
_register_benchmark(
    "retrieval",
    beir_mteb_folders.read_retrieval_folder,
    first_record_keys=(),
    detect=beir_mteb_folders.is_retrieval_file,
    files=beir_mteb_folders.FILES,
    by_name=True,  # a question of LMEB has the keys of many a log
)
_register_benchmark("locomo", locomo.read_locomo, locomo.KEYS)
_register_benchmark(
    "longmemeval", longmemeval.read_longmemeval, longmemeval.KEYS, pool=pool_haystacks
)
