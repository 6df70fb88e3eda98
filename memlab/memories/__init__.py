"""Memories from outside, on the same questions as memlab's pipelines.

:func:`memory` makes one of a function, a class, an object, a module's name or an address (:class:`HttpMemory`;
:func:`server` is the other side, :class:`PipelineMemory` puts memlab's own stages there). :func:`collect` runs it over
a dataset, :func:`read_ranking` reads what was returned elsewhere. :func:`attribute` finds the turns that texts come
from, :func:`ranked` ranks them, and :func:`within` takes what fits into a budget. :class:`Embeddings` lends an
encoder to the vector stores of other libraries.
"""

from memlab.memories.attribution import THRESHOLD, attribute, ranked
from memlab.memories.budgets import within, written
from memlab.memories.client import HttpMemory, bearer
from memlab.memories.collecting import Returned, collect
from memlab.memories.embeddings import Embeddings
from memlab.memories.memory import TURNS, Memory, memory, names_module
from memlab.memories.pipelines import PipelineMemory
from memlab.memories.rankings import as_returned, read_ranking
from memlab.memories.reading import rows_of
from memlab.memories.server import server

__all__ = [
    "THRESHOLD", "TURNS", "Embeddings", "HttpMemory", "Memory", "PipelineMemory", "Returned", "as_returned",
    "attribute", "bearer", "collect", "memory", "names_module", "ranked", "read_ranking", "rows_of", "server", "within",
    "written",
]  # fmt: skip
