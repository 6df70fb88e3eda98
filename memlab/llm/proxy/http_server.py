"""The HTTP of the proxy: aiohttp on 127.0.0.1, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

from memlab.errors import DataError, MemlabError, ModelError, install_command
from memlab.llm.proxy.openai_replies import (
    asks_for_usage,
    completion,
    embedded_texts,
    embeddings,
    error_body,
    stream_events,
)
from memlab.llm.proxy.recorded_exchanges import NotRecordedError, UnreadableAnswerError
from memlab.llm.service_faults import RefusedError

if TYPE_CHECKING:
    from memlab.llm.proxy.model_proxy import ModelProxy

HOST = "127.0.0.1"
_LARGEST_REQUEST = 64 * 2**20
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


class InvalidRequestError(ModelError):
    """What was sent to the proxy is no request."""


def status_and_kind(error: MemlabError) -> tuple[int, str]:
    """Give the HTTP status of an error and its type: who made it can be read from them."""
    if isinstance(error, InvalidRequestError):
        return 400, "invalid_request_error"
    if isinstance(error, NotRecordedError):
        return 404, "not_recorded"
    if isinstance(error, DataError):
        return 500, "recording"
    if isinstance(error, UnreadableAnswerError):
        return 502, "service_answer"
    refused = error.__cause__ if isinstance(error.__cause__, RefusedError) else error
    if isinstance(refused, RefusedError) and 400 <= refused.fault.status < 500:
        return refused.fault.status, "service"
    return 502, "service"


class ProxyServer:
    """Serves a proxy until it is stopped.

    :raises ModelError: when aiohttp is missing, or the port is taken.
    """

    def __init__(self, proxy: ModelProxy, port: int) -> None:
        try:
            from aiohttp import web
        except ImportError as error:
            raise ModelError(f"the proxy needs {error.name}: {install_command('proxy')}") from error
        self._web = web
        self._proxy = proxy
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self.port = asyncio.run_coroutine_threadsafe(self._listen(port), self._loop).result(30)
        except OSError as error:
            self._end_loop()
            raise ModelError(
                f"port {port} of {HOST} cannot be listened on ({error.strerror}); "
                "give another, or 0 for a free one"
            ) from error

    async def _listen(self, port: int) -> int:
        web = self._web
        app = web.Application(client_max_size=_LARGEST_REQUEST, middlewares=[self._guard()])
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/models/{name:.*}", self._model)
        app.router.add_post("/memlab/phase/{phase}", self._set_phase)
        app.router.add_get("/memlab/counts", self._counts)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        tcp_site = web.TCPSite(self._runner, HOST, port)
        await tcp_site.start()
        return self._runner.addresses[0][1]

    def stop(self) -> None:
        """Stop listening, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(30)
        self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _guard(self) -> Any:
        """Refuse what comes under another host's name, and name what is not served."""
        web = self._web

        @web.middleware
        async def guard(request: Any, handler: Any) -> Any:
            host = request.host.rpartition(":")[0] or request.host
            if request.method == "CONNECT" or host not in _LOCAL_NAMES:
                self._proxy.counts.want(request.host)
                return self._error(
                    403, "host", f"{request.host} is not served here: loopback alone"
                )
            try:
                return await handler(request)
            except (web.HTTPNotFound, web.HTTPMethodNotAllowed):
                address = f"{request.method} {request.path}"
                self._proxy.counts.want(address)
                return self._error(
                    404,
                    "path",
                    f"{address} is not served: the proxy has chat/completions, embeddings and "
                    "models",
                )

        return guard

    def _error(self, status: int, kind: str, message: str) -> Any:
        return self._web.json_response(error_body(message, kind), status=status)

    async def _read_body(self, request: Any) -> dict[str, Any]:
        try:
            body = json.loads(await request.read())
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise InvalidRequestError("the request is no JSON object")
        return body

    async def _complete(self, request: Any) -> Any:
        try:
            body = await self._read_body(request)
            if not isinstance(body.get("messages"), list):
                raise InvalidRequestError("messages is no list")
            exchange = await asyncio.to_thread(self._proxy.answer, body)
        except MemlabError as error:
            return self._error(*status_and_kind(error), str(error))
        completion_object = completion(exchange, str(body.get("model")))
        if body.get("stream"):
            stream_body = b"".join(
                stream_events(completion_object, with_usage=asks_for_usage(body))
            )
            return self._web.Response(body=stream_body, content_type="text/event-stream")
        return self._web.json_response(completion_object)

    async def _embed(self, request: Any) -> Any:
        try:
            body = await self._read_body(request)
            texts = embedded_texts(body)
            vectors = await asyncio.to_thread(self._proxy.embed, texts)
        except (ValueError, MemlabError) as error:
            return self._error(400, "invalid_request_error", str(error))
        return self._web.json_response(embeddings(vectors, body, sum(map(len, texts))))

    async def _models(self, _: Any) -> Any:
        model_rows = [self._model_row(model_name) for model_name in self._proxy.exchanges.models()]
        return self._web.json_response({"object": "list", "data": model_rows})

    async def _model(self, request: Any) -> Any:
        return self._web.json_response(self._model_row(request.match_info["name"]))

    def _model_row(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 0, "owned_by": "memlab"}

    async def _set_phase(self, request: Any) -> Any:
        self._proxy.phase = request.match_info["phase"]
        return self._web.json_response({})

    async def _counts(self, _: Any) -> Any:
        return self._web.json_response(self._proxy.describe())
