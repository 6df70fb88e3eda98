#!/usr/bin/env bash
# A prompt named passage never reaches encode_document in sentence-transformers
#
# Versions: sentence-transformers 6.2.0, transformers 5.24.0, torch 2.13.0
# Date: 2026-11-29
#
# Behaviour: `encode_document` is documented to take the first of the prompts `document`,
# `passage` and `corpus` that the model has. Every model is given a prompt `document`, empty where
# its configuration has none, so that the other two are never reached, and no line says so.
# `default_prompt_name` does not help either, as an empty prompt counts as a prompt (a line logged
# on loading says that). `encode(..., prompt_name="passage")` does apply the prefix. Saving writes
# the empty `document` into the folder. Deleting it from `model.prompts` mends it.
#
# Guess: A model whose only prompt for the document side is `passage` gets that prefix before its
# documents. `{"query": "query: ", "passage": "passage: "}` is the class's own example of prompts.
#
# Why it matters: Models of the e5 kind were trained with a prefix on both sides. A memory filled
# by `encode_document` and asked by `encode_query` has the prefix on the questions alone: no
# error, only worse rankings. Public folders name their prompt so, such as
# nomic-embed-text-v2-moe-unsupervised ("passage": "search_document: "). Who moves from
# encode(prompt_name="passage") to encode_document indexes the same turns under other vectors.
#
# Output seen:
#   prompts in the folder: {'query': 'query: ', 'passage': 'passage: '}
#   prompts of the loaded model: {'query': 'query: ', 'document': '', 'passage': 'passage: '}
#   passage: encode_document equals no prompt: True
#   passage: encode(prompt_name='passage') equals no prompt: False
#   passage: encode_query equals no prompt: False
#   passage as default: encode_document equals no prompt: True
#   passage as default: encode equals no prompt: False
#   corpus: encode_document equals no prompt: True
#   corpus: encode(prompt_name='corpus') equals no prompt: False
#   prompts after saving: {'document': '', 'passage': 'passage: ', 'query': 'query: '}
#   without 'document', encode_document equals prompt_name='passage': True
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    torch==2.13.0
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    sentence-transformers==6.2.0 transformers==5.24.0

HF_HUB_OFFLINE=1 "$work/venv/bin/python" - "$work" <<'PY'
import json
import logging
import pathlib
import sys

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import BertConfig, BertModel, BertTokenizerFast
from transformers.utils import logging as progress

logging.disable(logging.WARNING)
progress.disable_progress_bar()
torch.manual_seed(0)
work = pathlib.Path(sys.argv[1])
words = "[PAD] [UNK] [CLS] [SEP] [MASK] : query passage my sister moved to rome i love tea".split()
(work / "vocab.txt").write_text("\n".join(words))
shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
config = BertConfig(vocab_size=len(words), num_attention_heads=4, **shape)
BertModel(config).save_pretrained(work / "bert")
BertTokenizerFast(str(work / "vocab.txt")).save_pretrained(work / "bert")
texts = ["My sister moved to Rome", "I love tea"]
bare = SentenceTransformer(
    modules=[Transformer(str(work / "bert")), Pooling(32, "mean")], device="cpu"
)
bare.save_pretrained(str(work / "model"))
plain = bare.encode(texts)
settings = work / "model" / "config_sentence_transformers.json"


def load(prompts, default=None):
    saved = json.loads(settings.read_text())
    settings.write_text(json.dumps(saved | {"prompts": prompts, "default_prompt_name": default}))
    return SentenceTransformer(str(work / "model"), device="cpu")


def equal(left, right):
    return bool(np.allclose(left, right, atol=1e-5))


def show(what, vectors, expected):
    print(f"{what} equals no prompt:", equal(vectors, plain))
    assert equal(vectors, plain) == expected


passage = {"query": "query: ", "passage": "passage: "}
model = load(passage)
print("prompts in the folder:", passage)
print("prompts of the loaded model:", model.prompts)
show("passage: encode_document", model.encode_document(texts), True)
wanted = model.encode(texts, prompt_name="passage")
show("passage: encode(prompt_name='passage')", wanted, False)
show("passage: encode_query", model.encode_query(texts), False)

default = load(passage, "passage")
show("passage as default: encode_document", default.encode_document(texts), True)
show("passage as default: encode", default.encode(texts), False)

corpus = load({"query": "query: ", "corpus": "passage: "})
show("corpus: encode_document", corpus.encode_document(texts), True)
named = corpus.encode(texts, prompt_name="corpus")
show("corpus: encode(prompt_name='corpus')", named, False)

model.save_pretrained(str(work / "again"))
again = json.loads((work / "again" / "config_sentence_transformers.json").read_text())
print("prompts after saving:", again["prompts"])
assert again["prompts"]["document"] == ""
del model.prompts["document"]
mended = equal(model.encode_document(texts), wanted)
print("without 'document', encode_document equals prompt_name='passage':", mended)
assert mended
PY
