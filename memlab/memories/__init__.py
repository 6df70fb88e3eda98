"""Memories from outside: in goes a system of any kind, out comes what it returned, as turns, with what it cost.

``contract`` says what a memory is: four verbs. ``loading`` makes one of a function, a module's name or an address,
``http`` speaks the verbs as JSON in both directions, ``pipelines`` puts memlab's own stages behind them, ``retrievers``
those of LangChain and LlamaIndex, ``mem0`` mem0. :func:`collect` (``collecting``) runs a memory over a dataset, and
:func:`attribute` (``attribution``) finds the turns that its texts come from; ``rankings`` reads what was returned
elsewhere, and :func:`within` (``writing``) writes down what fits into a budget.
"""

from memlab.memories.attribution import THRESHOLD, attribute, ranked
from memlab.memories.collecting import Returned, collect
from memlab.memories.contract import TURNS, Memory
from memlab.memories.http import TOKEN_VARIABLE, HttpMemory, server
from memlab.memories.loading import memory
from memlab.memories.pipelines import PipelineMemory
from memlab.memories.rankings import as_returned, read_ranking
from memlab.memories.writing import within, written

__all__ = [
    "THRESHOLD",
    "TOKEN_VARIABLE",
    "TURNS",
    "HttpMemory",
    "Memory",
    "PipelineMemory",
    "Returned",
    "as_returned",
    "attribute",
    "collect",
    "memory",
    "ranked",
    "read_ranking",
    "server",
    "within",
    "written",
]
