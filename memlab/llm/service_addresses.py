"""Where language models are served: addresses, names and limits, never a secret."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import get_args

from memlab.atomic_files import make_absolute
from memlab.config import FILE, Parameter, settings
from memlab.errors import ModelError

RECORDED = "recorded"
"""What stands for a service where only recorded answers are read."""

PARAMETERS: tuple[str, ...] = get_args(Parameter)
"""What can be left out of a request; all that is sent beside the model and what is asked."""


@dataclass(frozen=True)
class Service:
    """Where a model is served; the key stays in the environment.

    :param name: how settings, ``--service`` and ``endpoint:NAME`` call it.
    :param base_url: the address up to and including ``/v1``.
    :param model: the model's name at the server.
    :param api_key_env: *name* of the environment variable that holds the key; ``None`` for a server
        without one.
    :param timeout: seconds for one attempt, from connecting to the last byte; retries and the
        repair of one answer end after ``max_retries + 2`` times that.
    :param max_retries: further attempts after 408, 409, 429, 5xx, a time-out or a lost connection,
        with back-off.
    :param max_input: characters; a longer prompt is refused, a longer text to embed is cut.
    :param query_prompt: text put in front of a query that is embedded.
    :param document_prompt: text put in front of a document that is embedded.
    :param max_output: longest answer in tokens; ``None`` leaves it to the server.
    :param record: a JSONL file that answers are read from, and appended to when they come from the
        model; a relative path is of the working directory where the service is made.
    :param input_price: of a million tokens read, in whatever currency; ``output_price``: of a
        million written.
    :param concurrency: requests under way at once.
    :param batch: texts of one request for embeddings.
    :param dimensions: of a vector, as many as the server is asked for; ``None`` leaves it to the
        model.
    :param leave_out: of :data:`PARAMETERS`, what the server does not take. What it names as unknown
        is left out without it, once the server has said so.

    >>> from memlab.llm import Service
    >>> str(Service("local", "http://127.0.0.1:8080/v1", "qwen"))
    "service 'local' (http://127.0.0.1:8080/v1, model 'qwen')"
    """

    name: str
    base_url: str
    model: str
    api_key_env: str | None = None
    timeout: float = 60.0
    max_retries: int = 3
    max_input: int | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    max_output: int | None = 1024
    record: str | None = None
    input_price: float | None = None
    output_price: float | None = None
    concurrency: int = 4
    batch: int = 32
    dimensions: int | None = None
    leave_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Keep the place of the recording, whatever the working directory is later."""
        if self.record:
            object.__setattr__(self, "record", str(make_absolute(self.record)))

    def __str__(self) -> str:
        """Name it in a message, without what an address may carry besides the host: user, password,
        query.
        """
        address = re.sub("//[^/]*@", "//", re.split("[?#]", self.base_url)[0])
        return f"service {self.name!r} ({address}, model {self.model!r})"


def configured_service(name: str) -> Service:
    """Give a service of the settings: ``[llm.services.NAME]`` in ``memlab.toml``.

    :raises ModelError: when there is none of that name; says what to write.
    """
    services = settings()[0].llm.services
    if name in services:
        return Service(name, **services[name].model_dump())
    service_names = ", ".join(services) or "none"
    raise ModelError(
        f"no language model {name!r} is set (the settings have {service_names}); write in {FILE}: "
        f"[llm.services.{name}] "
        'with base_url = "http://127.0.0.1:8080/v1" and model = "the model there"; '
        "or use what needs no model"
    )


def resolve_service(service: str | Service | None) -> Service | None:
    """Give the service that is asked, by its name or as it is.

    ``None`` where only recordings are read.
    """
    if isinstance(service, str):
        return None if service == RECORDED else configured_service(service)
    return service
