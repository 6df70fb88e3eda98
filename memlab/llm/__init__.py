"""Language-model services: any OpenAI-compatible HTTP endpoint, and nothing unless the user named one.

In go a :class:`Service` (``service``: where it is, and its client) and texts; out come answers of a given shape
(``chat``) or vectors (``embeddings``).
"""

from memlab.llm.chat import Cost, Outcome, answers, chat
from memlab.llm.embeddings import BATCH_CHARS, BATCH_TEXTS, batches, embeddings
from memlab.llm.service import Service, client, configured

__all__ = [
    "BATCH_CHARS", "BATCH_TEXTS", "Cost", "Outcome", "Service", "answers", "batches", "chat", "client", "configured",
    "embeddings",
]  # fmt: skip
