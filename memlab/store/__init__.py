"""The store: datasets and encoders come in; turns, vectors, rankings and what is known of sessions come out again, from
LanceDB tables on a local disk or an object store. ``memory`` composes the small stores and is what a user opens.

``schemas`` lists every table and the schema version; ``opening`` opens a store and migrates an older one; ``database``
reads, writes and words errors; ``conversations`` is what a user ingests and reads, by ``writing`` and ``reading``;
``vectors``, ``tokens``, ``search``, ``runs`` (with grids) and ``knowledge`` are the small stores; ``caches`` keeps what
encoders gave; ``versions`` tags and cleans up.

>>> import tempfile
>>> from memlab.store import MemoryStore
>>> MemoryStore.open(tempfile.mkdtemp()).datasets().height
0
"""

from __future__ import annotations

from memlab.store.memory import CachedEncoder, MemoryStore, cached, uncached

__all__ = ["CachedEncoder", "MemoryStore", "cached", "uncached"]
