"""Language-model services: any OpenAI-compatible HTTP endpoint, and nothing unless the user named
one.

:func:`ask` takes :class:`Request` and gives :class:`Answer`, from a :class:`Service` or from a
recording of what one answered; :func:`embed_texts` gives vectors. :func:`track_spending` counts
what answers cost.
"""

from memlab.errors import explain_arguments
from memlab.llm.answer_parsing import fitting_items
from memlab.llm.embedding_requests import embed_texts
from memlab.llm.service_addresses import RECORDED, Service, configured_service
from memlab.llm.structured_answers import (
    MISFIT,
    Answer,
    Request,
    ask,
    check_service,
    describe_unanswered,
)
from memlab.llm.token_spending import ModelSpending, add_to_spending, track_spending

__all__ = [
    "MISFIT",
    "RECORDED",
    "Answer",
    "ModelSpending",
    "Request",
    "Service",
    "add_to_spending",
    "ask",
    "check_service",
    "configured_service",
    "describe_unanswered",
    "embed_texts",
    "fitting_items",
    "track_spending",
]

explain_arguments(globals())
