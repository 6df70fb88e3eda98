#!/usr/bin/env bash
# organization=None does not keep the openai client from reading OPENAI_ORG_ID
#
# Versions: openai 3.57.0
# Date: 2026-11-29
#
# Behaviour: A client that is given its key, its address, organization=None and project=None sends
# OPENAI_ORG_ID, OPENAI_PROJECT_ID and every line of OPENAI_CUSTOM_HEADERS of the environment to
# that address, whoever's server it is. An empty text in place of None keeps the first two away;
# no argument keeps the third away.
#
# Guess: what is passed explicitly is what is used, and headers for one provider stay with it.
#
# Why it matters: a bench that compares a hosted model with a local server talks to both through
# this client, with an environment made for the first. Organisation, project and whatever a gateway
# wanted in its headers (a token, say) arrive at the second, and in its logs.
#
# Output seen:
#   None:  org-of-somebody proj-of-somebody kept-for-the-gateway
#   empty: None None kept-for-the-gateway
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check openai==3.57.0

export OPENAI_ORG_ID=org-of-somebody OPENAI_PROJECT_ID=proj-of-somebody
export OPENAI_CUSTOM_HEADERS="X-Gateway: kept-for-the-gateway"
"$work/venv/bin/python" - <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import openai

seen = []
message = {"role": "assistant", "content": "yes"}
answer = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
}


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        names = ("OpenAI-Organization", "OpenAI-Project", "X-Gateway")
        seen.append([self.headers[name] or None for name in names])
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/v1"
for nobody in (None, ""):
    client = openai.OpenAI(
        api_key="key", base_url=address, organization=nobody, project=nobody, max_retries=0
    )
    said = [{"role": "user", "content": "Is it so?"}]
    client.chat.completions.create(model="m", messages=said)
print("None: ", *seen[0])
print("empty:", *seen[1])
assert seen[0] == ["org-of-somebody", "proj-of-somebody", "kept-for-the-gateway"]
assert seen[1] == [None, None, "kept-for-the-gateway"]
PY
