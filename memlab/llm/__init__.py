"""Language-model services: any OpenAI-compatible HTTP endpoint, and nothing unless the user named one.

:func:`ask` takes :class:`Request` and gives :class:`Answer`, from a :class:`Service` or from a recording of what one
answered; :func:`embeddings` gives vectors.
"""

from memlab.llm.ask import MISFIT, RECORDED, ask, check, cost
from memlab.llm.embeddings import BATCH_CHARS, BATCH_TEXTS, batches, embeddings
from memlab.llm.request import Answer, Request, unanswered
from memlab.llm.service import Service, configured

__all__ = [
    "BATCH_CHARS", "BATCH_TEXTS", "MISFIT", "RECORDED", "Answer", "Request", "Service", "ask", "batches", "check",
    "configured", "cost", "embeddings", "unanswered",
]  # fmt: skip
