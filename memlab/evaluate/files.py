"""Names of the files of a report."""

from __future__ import annotations

import re
from collections.abc import Sequence


def file_names(names: Sequence[str]) -> dict[str, str]:
    """Give each pipeline a short name that every file system takes, in the same order; alike ones are numbered.

    >>> from memlab.evaluate import file_names
    >>> file_names(["hybrid(k=200) | mmr(lambda_=0.7)", "bm25", "BM25"])
    {'hybrid(k=200) | mmr(lambda_=0.7)': 'hybrid-k-200-mmr-lambda_-0.7', 'bm25': 'bm25', 'BM25': 'bm25-2'}
    """
    given: dict[str, str] = {}
    for name in names:
        stem = re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-.")[:80] or "run"
        free, number = stem, 1
        while free in given.values():
            number += 1
            free = f"{stem}-{number}"
        given.setdefault(name, free)
    return given
