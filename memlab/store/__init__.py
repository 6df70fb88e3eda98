"""The store: datasets and encoders come in; turns, vectors, rankings and what is known of sessions
come out again, from LanceDB tables on a local disk or an object store. :class:`MemoryStore`
composes the small stores of the other modules.
"""

from memlab.errors import explain_arguments
from memlab.store.memory_store import MemoryStore

__all__ = ["MemoryStore"]

explain_arguments(globals())
