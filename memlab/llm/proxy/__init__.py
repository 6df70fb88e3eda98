"""A server on this machine between a memory and its model: calls are recorded and read back.

:class:`ModelProxy` answers ``/v1/chat/completions``, ``/v1/embeddings_response`` and
    ``/v1/models`` as
OpenAI's servers do. ``recorded_exchanges`` is the file, ``prompt_rules`` (``rules.toml``) says what
of a prompt is not compared, ``call_counts`` has calls, tokens and seconds by phase,
``openai_replies`` writes answers in OpenAI's layout, ``http_server`` is the HTTP.
"""

from memlab.errors import explain_arguments
from memlab.llm.proxy.call_counts import PhaseCounts
from memlab.llm.proxy.model_proxy import ModelProxy
from memlab.llm.proxy.recorded_exchanges import Exchange, Exchanges, NotRecordedError

__all__ = ["Exchange", "Exchanges", "ModelProxy", "NotRecordedError", "PhaseCounts"]

explain_arguments(globals())
