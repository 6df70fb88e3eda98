"""Language-model services: any OpenAI-compatible HTTP endpoint, and nothing unless the user named one.

:func:`ask` takes :class:`Request` and gives :class:`Answer`, from a :class:`Service` or from a recording of what one
answered; :func:`embeddings` gives vectors.
"""

from memlab.llm.asking import MISFIT, Answer, Request, ask, check, unanswered
from memlab.llm.embeddings import embeddings
from memlab.llm.service import RECORDED, Service, configured
from memlab.llm.spending import Spent, count, spending

__all__ = [
    "MISFIT", "RECORDED", "Answer", "Request", "Service", "Spent", "ask", "check", "configured", "count", "embeddings",
    "spending", "unanswered",
]  # fmt: skip
