"""Language-model services: any OpenAI-compatible HTTP endpoint, and nothing unless the user named one.

:func:`ask` takes :class:`Request` and gives :class:`Answer`, from a :class:`Service` or from a recording of what one
answered; :func:`embeddings` gives vectors.
"""

from memlab.llm.asking import MISFIT, RECORDED, Answer, Request, ask, check, cost, unanswered
from memlab.llm.embeddings import embeddings
from memlab.llm.service import Service, configured

__all__ = [
    "MISFIT", "RECORDED", "Answer", "Request", "Service", "ask", "check", "configured", "cost", "embeddings",
    "unanswered",
]  # fmt: skip
