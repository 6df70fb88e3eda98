#!/usr/bin/env bash
# onnxruntime reaches for a telemetry server seconds after it is imported, on Linux too
#
# Versions: onnxruntime 1.32.0 (the wheel for Linux)
# Date: 2026-11-30
#
# Behaviour: A process that imports onnxruntime and does nothing else asks for a connection to
# mobile.events.data.microsoft.com after some ten seconds, and again later. It does so after
# `onnxruntime.disable_telemetry_events()` as well. It takes the proxy of the environment.
#
# Guess: telemetry is a matter of the builds for Windows, and the call that disables it does.
#
# Why it matters: onnxruntime comes in as a dependency of a dependency: fastembed of a vector store
# brings it into a memory that is said to work without a network. Neither a test that ends within
# ten seconds nor the source of the memory shows it, only the traffic does.
#
# Output seen:
#   imported: CONNECT mobile.events.data.microsoft.com:443 HTTP/1.1
#   disabled: CONNECT mobile.events.data.microsoft.com:443 HTTP/1.1
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check onnxruntime==1.32.0

"$work/venv/bin/python" - <<'PY'
import os
import socket
import subprocess
import sys

IMPORT = "import onnxruntime, time; time.sleep(300)"
DISABLE = IMPORT.replace("time.sleep", "onnxruntime.disable_telemetry_events(); time.sleep")


def first_request(code: str) -> str:
    """Run code behind a proxy that answers nothing; give the first line that it is asked for."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        variables = {**os.environ, **dict.fromkeys(names, address)}
        proxy.settimeout(200)
        process = subprocess.Popen([sys.executable, "-c", code], env=variables)
        try:
            connection, _ = proxy.accept()
            with connection:
                return connection.recv(4096).split(b"\r\n")[0].decode()
        finally:
            process.kill()
            process.wait()


for name, code in (("imported", IMPORT), ("disabled", DISABLE)):
    asked = first_request(code)
    print(f"{name}: {asked}")
    assert asked.startswith("CONNECT mobile.events.data.microsoft.com:443"), asked
PY
