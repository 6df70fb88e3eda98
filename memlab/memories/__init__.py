"""Memories from outside, on the same questions as memlab's pipelines.

:func:`memory` makes one of a function, a class, an object, a module's name or an address
(:class:`HttpMemory`). :func:`collect` runs it over a dataset, :func:`read_ranking` reads what was
returned elsewhere. :func:`attribute` finds the turns that texts come from,
:func:`rank_source_turns` ranks them, and :func:`fit_to_budget` takes what fits into a budget.
:class:`ProcessMemory` is one in a process of its own, :class:`ProxiedMemory` one whose calls of a
model are recorded and counted. :class:`Embeddings` lends an encoder to the vector stores of other
libraries, :func:`named_texts` gives the texts that pipelines encode.
"""

from memlab.errors import explain_arguments
from memlab.memories.encoder_for_frameworks import Embeddings, named_texts
from memlab.memories.http_client import HttpMemory, read_bearer_token
from memlab.memories.memory import TURNS, Memory, is_module_reference, memory
from memlab.memories.model_calls import ProxiedMemory
from memlab.memories.process_memory import ProcessMemory
from memlab.memories.ranking_files import read_ranking, run_to_returned_texts
from memlab.memories.returned_rows import list_returned_rows
from memlab.memories.running_a_memory import ReturnedTexts, collect, dated_lines, fit_to_budget
from memlab.memories.text_attribution import LEAST_SIMILARITY, attribute, rank_source_turns

__all__ = [
    "LEAST_SIMILARITY",
    "TURNS",
    "Embeddings",
    "HttpMemory",
    "Memory",
    "ProcessMemory",
    "ProxiedMemory",
    "ReturnedTexts",
    "attribute",
    "collect",
    "dated_lines",
    "fit_to_budget",
    "is_module_reference",
    "list_returned_rows",
    "memory",
    "named_texts",
    "rank_source_turns",
    "read_bearer_token",
    "read_ranking",
    "run_to_returned_texts",
]

explain_arguments(globals())
