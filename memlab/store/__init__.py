"""The store: conversations, vectors and runs in LanceDB, on a local disk or an object store.

>>> import tempfile
>>> from memlab.store import MemoryStore
>>> MemoryStore.open(tempfile.mkdtemp()).datasets().height
0
"""

from __future__ import annotations

from memlab.store.cached import CachedEncoder
from memlab.store.memory import MemoryStore

__all__ = ["CachedEncoder", "MemoryStore"]
