"""A server on this machine between a memory and its model: calls are recorded and read back.

:class:`ModelProxy` answers ``/v1/chat/completions``, ``/v1/embeddings`` and ``/v1/models`` as
OpenAI's servers do. ``exchanges`` is the file, ``rules`` (``rules.toml``) says what of a prompt is
not compared, ``counts`` has calls, tokens and seconds by phase, ``replies`` writes answers in
OpenAI's layout, ``server`` is the HTTP.
"""

from memlab.errors import explain_arguments
from memlab.llm.proxy.counts import PhaseCounts
from memlab.llm.proxy.exchanges import Exchange, Exchanges, NotRecordedError
from memlab.llm.proxy.model_proxy import ModelProxy

__all__ = ["Exchange", "Exchanges", "ModelProxy", "NotRecordedError", "PhaseCounts"]

explain_arguments(globals())
