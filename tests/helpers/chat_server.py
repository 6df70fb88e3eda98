"""A local chat endpoint that answers by schema, or misbehaves as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memlab.llm import Service

KEY = "sk-very-secret-1234567890"

Answer = Callable[[dict], tuple[int, Any]]


def said(text: str | None, **choice: Any) -> tuple[int, Any]:
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}, **choice}]}


def fitting(request: dict) -> tuple[int, Any]:
    """Answer with the smallest thing that fits the schema: one item in each list, 1 for each number."""
    return said(_fitting(request))


def huge(request: dict) -> tuple[int, Any]:
    """Answer with what fits, but for texts of 9 MB."""
    return said(_fitting(request).replace("tea", "tea" * 3_000_000, 1))


def _fitting(request: dict) -> str:
    schema = request["response_format"]["json_schema"]["schema"]
    return json.dumps(_instance(schema, schema.get("$defs", {})))


def _instance(schema: dict, named: dict) -> Any:
    if "$ref" in schema:
        return _instance(named[schema["$ref"].rsplit("/", 1)[-1]], named)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return _instance(schema["anyOf"][0], named)
    kind = schema.get("type")
    if kind == "object":
        return {name: _instance(inner, named) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [_instance(schema["items"], named)] * max(1, schema.get("minItems", 1))
    return {"integer": 1, "number": 1.0, "boolean": True, "null": None}.get(kind, "Anna bought tea.")


_closing = threading.Event()


def silent(request: dict) -> tuple[int, Any]:
    """Answer when the server is closed, however long a busy machine takes to notice that nothing came."""
    _closing.wait()
    raise ConnectionAbortedError


def dropped(request: dict) -> tuple[int, Any]:
    raise ConnectionAbortedError


def echoing(request: dict) -> tuple[int, Any]:
    """Fail as servers do that print what they were sent."""
    return 400, {"error": {"message": f"bad request with headers Authorization: Bearer {KEY}"}}


FAULTS: dict[str, Answer] = {
    "time-out": silent,
    "429": lambda request: (429, {"error": {"message": "slow down"}}),
    "500": lambda request: (500, {"error": {"message": "broken"}}),
    "echoed key": echoing,
    "dropped connection": dropped,
    "no JSON": lambda request: (200, b"<html>proxy</html>"),
    "truncated JSON": lambda request: said('{"sentences": [{"text": "Ann', finish_reason="length"),
    "wrong schema": lambda request: said('{"n": "many"}'),
    "empty answer": lambda request: said(""),
    "no text": lambda request: said(None),
    "10 MB": lambda request: said("x" * 10_000_000),
    "10 MB of JSON": huge,
}
UNANSWERED = ("time-out", "429", "500", "echoed key", "dropped connection", "no JSON")
"""Faults after which no answer came: worth another try later. After the others the answer is of no use."""


class ChatServer:
    """Answers with a list of answers, the last one for ever; remembers what it was sent, and the keys with it."""

    def __init__(self, answer: Answer = fitting) -> None:
        _closing.clear()
        self.answers: list[Answer] = [answer]
        self.requests: list[dict] = []
        self.keys: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(request)
                outer.keys.add(self.headers.get("Authorization", ""))
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                try:
                    status, body = answer(request)
                except ConnectionAbortedError:
                    self.close_connection = True
                    return
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.send_header("Retry-After-Ms", "10")
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    """The client gave up."""

            def log_message(self, *args: object) -> None:
                """Stay quiet."""

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}/v1"
        threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True).start()

    def service(self, **changes: Any) -> Service:
        """Give a service that talks to this server with the key of the variable LAB_TEST_KEY.

        It waits long, since a busy machine is no failure, but where the server is silent.
        """
        patience = 0.5 if self.answers[0] is silent else 600
        given = {"name": "lab", "base_url": self.url, "model": "m", "timeout": patience, "max_retries": 1}
        return Service(**{**given, "api_key_env": "LAB_TEST_KEY", **changes})

    def close(self) -> None:
        _closing.set()
        self.httpd.shutdown()
        self.httpd.server_close()
