"""The HTTP of the proxy: aiohttp on 127.0.0.1, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

from memlab.errors import DataError, MemlabError, ModelError, install_command
from memlab.llm.proxy.openai_replies import (
    asks_for_usage,
    completion_of_exchange,
    embeddings_response,
    openai_error_body,
    read_texts_to_embed,
    stream_events,
)
from memlab.llm.proxy.recorded_exchanges import NotRecordedError, UnreadableAnswerError
from memlab.llm.response_bodies import JsonObject
from memlab.llm.service_faults import RefusedError

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.typedefs import Middleware

    from memlab.llm.proxy.model_proxy import ModelProxy

HOST = "127.0.0.1"
_LARGEST_REQUEST = 64 * 2**20
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


class InvalidRequestError(ModelError):
    """What was sent to the proxy is no request."""


def http_status_and_error_type(error: MemlabError) -> tuple[int, str]:
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
            self.port = asyncio.run_coroutine_threadsafe(
                self._listen_and_get_port(port), self._loop
            ).result(30)
        except OSError as error:
            self._stop_loop_and_thread()
            raise ModelError(
                f"port {port} of {HOST} cannot be listened on ({error.strerror}); "
                "give another, or 0 for a free one"
            ) from error

    async def _listen_and_get_port(self, port: int) -> int:
        web = self._web
        app = web.Application(
            client_max_size=_LARGEST_REQUEST, middlewares=[self._make_host_and_path_guard()]
        )
        app.router.add_post("/v1/chat/completions", self._answer_completion_request)
        app.router.add_post("/v1/embeddings", self._answer_embedding_request)
        app.router.add_get("/v1/models", self._list_models_response)
        app.router.add_get("/v1/models/{name:.*}", self._model_response)
        app.router.add_post("/memlab/phase/{phase}", self._set_phase_from_request)
        app.router.add_get("/memlab/counts", self._counts_response)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        tcp_site = web.TCPSite(self._runner, HOST, port)
        await tcp_site.start()
        return self._runner.addresses[0][1]

    def stop(self) -> None:
        """Stop listening, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(30)
        self._stop_loop_and_thread()

    def _stop_loop_and_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _make_host_and_path_guard(self) -> Middleware:
        """Refuse what comes under another host's name, and name what is not served."""
        web = self._web

        @web.middleware
        async def refuse_other_hosts_and_paths(request: Any, handler: Any) -> Any:
            host = request.host.rpartition(":")[0] or request.host
            if request.method == "CONNECT" or host not in _LOCAL_NAMES:
                self._proxy.counts.count_unserved_address(request.host)
                return self._error_response(
                    403, "host", f"{request.host} is not served here: loopback alone"
                )
            try:
                return await handler(request)
            except (web.HTTPNotFound, web.HTTPMethodNotAllowed):
                address = f"{request.method} {request.path}"
                self._proxy.counts.count_unserved_address(address)
                return self._error_response(
                    404,
                    "path",
                    f"{address} is not served: the proxy has chat/completions, embeddings and "
                    "models",
                )

        return refuse_other_hosts_and_paths

    def _error_response(self, status: int, error_type: str, message: str) -> web.Response:
        return self._web.json_response(openai_error_body(message, error_type), status=status)

    async def _read_json_object_or_refuse(self, request: web.Request) -> JsonObject:
        try:
            body = json.loads(await request.read())
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise InvalidRequestError("the request is no JSON object")
        return body

    async def _answer_completion_request(self, request: web.Request) -> web.Response:
        try:
            body = await self._read_json_object_or_refuse(request)
            if not isinstance(body.get("messages"), list):
                raise InvalidRequestError("messages is no list")
            exchange = await asyncio.to_thread(self._proxy.answer, body)
        except MemlabError as error:
            return self._error_response(*http_status_and_error_type(error), str(error))
        completion_object = completion_of_exchange(exchange, str(body.get("model")))
        if body.get("stream"):
            stream_body = b"".join(
                stream_events(completion_object, with_usage=asks_for_usage(body))
            )
            return self._web.Response(body=stream_body, content_type="text/event-stream")
        return self._web.json_response(completion_object)

    async def _answer_embedding_request(self, request: web.Request) -> web.Response:
        try:
            body = await self._read_json_object_or_refuse(request)
            texts = read_texts_to_embed(body)
            vectors = await asyncio.to_thread(self._proxy.embed, texts)
        except (ValueError, MemlabError) as error:
            return self._error_response(400, "invalid_request_error", str(error))
        return self._web.json_response(embeddings_response(vectors, body, sum(map(len, texts))))

    async def _list_models_response(self, _: web.Request) -> web.Response:
        model_rows = [
            self._model_entry(model_name) for model_name in self._proxy.exchanges.models()
        ]
        return self._web.json_response({"object": "list", "data": model_rows})

    async def _model_response(self, request: web.Request) -> web.Response:
        return self._web.json_response(self._model_entry(request.match_info["name"]))

    def _model_entry(self, model_name: str) -> JsonObject:
        return {"id": model_name, "object": "model", "created": 0, "owned_by": "memlab"}

    async def _set_phase_from_request(self, request: web.Request) -> web.Response:
        self._proxy.phase = request.match_info["phase"]
        return self._web.json_response({})

    async def _counts_response(self, _: web.Request) -> web.Response:
        return self._web.json_response(self._proxy.describe())
