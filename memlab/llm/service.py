"""Where language models are served, and the client that talks to them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from memlab.errors import ModelError

# Sent where a service has no key: the client insists on one.
NO_KEY = "none"


@dataclass(frozen=True)
class Service:
    """Where a model is served, without its secret: the key stays in the environment.

    :param name: how settings and ``endpoint:NAME`` call it.
    :param base_url: the address up to and including ``/v1``.
    :param model: the model's name at the server.
    :param api_key_env: *name* of the environment variable that holds the key; ``None`` for a server without one.
    :param timeout: seconds for one request.
    :param max_retries: further attempts after 408, 409, 429, 5xx, a time-out or a lost connection, with back-off.
    :param max_input: longest text sent, in characters; the rest of a longer text is left out.
    :param query_prompt: text put before a query that is embedded.
    :param document_prompt: text put before a document that is embedded.
    :param max_output: longest answer of a chat, in tokens; ``None`` leaves it to the server.
    :param input_price: of a million tokens that are sent, in whatever currency.
    :param output_price: of a million tokens that come.
    :param cache: a file of JSON lines that answers are kept in and read from again; ``None`` or empty keeps none.

    >>> from memlab.llm import Service
    >>> Service("local", "http://127.0.0.1:8080/v1", "nomic-embed-text").api_key_env is None
    True
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
    cache: str | None = None
    input_price: float | None = None
    output_price: float | None = None


def configured(name: str | None = None) -> Service:
    """Give a service that the settings name: ``[llm.services.NAME]`` in ``memlab.toml``.

    :param name: which one; ``None`` where there is only one.
    :raises ModelError: when there is none of that name, or several and no name; says what to write.
    """
    from memlab.config import FILE, settings

    services = settings()[0].llm.services
    if name is None and len(services) == 1:
        (name,) = services
    if name in services:
        return Service(name, **services[name].model_dump())
    asked = f"no language model {name!r} is set" if name else "no language model is named by service='NAME'"
    names = ", ".join(services) or "none"
    raise ModelError(
        f"{asked} (the settings have {names}); write in {FILE}: [llm.services.{name or 'NAME'}] "
        'with base_url = "http://127.0.0.1:8080/v1" and model = "the model there"; or use a stage that needs no model'
    )


def client(service: Service) -> Any:
    """Make the ``openai`` client of a service.

    :raises ModelError: when the client is not installed, the address is none, or the key's variable is not set.
    """
    try:
        from openai import OpenAI
    except ImportError as error:
        raise ModelError(
            f'service {service.name!r} needs the openai client, which is not installed; run: pip install "memlab[llm]"'
        ) from error
    if urlsplit(service.base_url).scheme not in ("http", "https"):
        raise ModelError(f"{where(service)}: base_url is no address; expected http://… or https://…")
    return OpenAI(
        base_url=service.base_url,
        # Never the client's own default, the variable OPENAI_API_KEY: a key goes only where the user sent it.
        api_key=_key(service) or NO_KEY,
        timeout=service.timeout,
        max_retries=service.max_retries,
    )


def explain(error: Exception) -> str:
    """Say what the client's error was, the low-level cause with it."""
    text = f"{type(error).__name__}: {error}"
    cause = error.__cause__
    return text if cause is None or str(cause) in text else f"{text} ({type(cause).__name__}: {cause})"


def where(service: Service) -> str:
    """Name a service in a message, without what an address may carry besides the host: user, password, query."""
    url = urlsplit(service.base_url)
    host = url.netloc.rpartition("@")[2]
    return f"service {service.name!r} ({url.scheme}://{host}{url.path}, model {service.model!r})"


def _key(service: Service) -> str | None:
    if service.api_key_env is None:
        return None
    key = os.environ.get(service.api_key_env, "").strip()
    if not key:
        raise ModelError(
            f"service {service.name!r} takes its key from the environment variable {service.api_key_env}, which is not "
            "set; set it, or leave api_key_env out for a server without keys"
        )
    return key


def redact(key: str, text: str) -> str:
    """Take the key out of a text, and bound the text: a server may echo anything."""
    shown = text if key == NO_KEY else text.replace(key, "***")
    return shown if len(shown) <= 500 else shown[:499] + "…"
