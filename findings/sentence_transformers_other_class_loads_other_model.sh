#!/usr/bin/env bash
# A folder opened with the other class of sentence-transformers is another model
#
# Versions: sentence-transformers 6.2.0, transformers 5.24.0, torch 2.13.0
# Date: 2026-11-29
#
# Behaviour: A dense model's folder without a Dense module opens as `MultiVectorEncoder`, with a
# projection to 128 dimensions of random weights, other on each load. A folder of transformers
# (no modules.json) opens so in silence; one of sentence-transformers warns that it is being
# converted, not that weights are random (a line at level INFO says that). The other way round, a
# MultiVectorEncoder's folder opens as `SentenceTransformer` after such a warning, and loses its
# projection and prompts: what is left is the mean of the backbone's last layer.
#
# Guess: A class that cannot find the weights that it needs refuses, or warns of random ones, and
# one folder gives one vector per text.
#
# Why it matters: One configured path and a wrong class is all it takes. Within one process
# nothing looks wrong, as each text still finds itself; after a restart, questions are projected
# by other weights than the stored turns, and the ranking means nothing. The mean of a ColBERT
# backbone was never trained as a vector of the text, yet has a plausible size and similarities.
# Look at `model_type` in config_sentence_transformers.json before loading.
#
# Output seen:
#   dense as MultiVectorEncoder: ['Transformer', 'Dense', 'MultiVectorMask', 'Normalize']
#   warnings: ['Converting SentenceTransformer model FOLDER to MultiVectorEncoder.']
#   cosine of a token with itself: same load 1.0, next load -0.02
#   transformers as MultiVectorEncoder: ['Transformer', 'Dense', 'MultiVectorMask', 'Normalize']
#   warnings: []
#   cosine of a token with itself: same load 1.0, next load 0.03
#   multi as MultiVectorEncoder, twice: equal True, warnings []
#   multi as SentenceTransformer: ['Transformer', 'Pooling'], shape (2, 32)
#   warnings: ['Converting MultiVectorEncoder model FOLDER to SentenceTransformer.']
#   prompts: {'query': '[Q] ', 'document': '[D] '} became {'query': '', 'document': ''}
#   equals the mean of the backbone: True
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    torch==2.13.0
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    sentence-transformers==6.2.0 transformers==5.24.0

HF_HUB_OFFLINE=1 "$work/venv/bin/python" - "$work" <<'PY'
import logging
import pathlib
import sys
import warnings

import numpy as np
import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import BertConfig, BertModel, BertTokenizerFast
from transformers.utils import logging as progress

progress.disable_progress_bar()
torch.manual_seed(0)
work = pathlib.Path(sys.argv[1])
words = "[PAD] [UNK] [CLS] [SEP] [MASK] [Q] [D] my sister moved to rome i love tea".split()
(work / "vocab.txt").write_text("\n".join(words))
shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
config = BertConfig(vocab_size=len(words), num_attention_heads=4, **shape)
BertModel(config).save_pretrained(work / "transformers")
BertTokenizerFast(str(work / "vocab.txt")).save_pretrained(work / "transformers")
texts = ["My sister moved to Rome", "I love tea"]
dense = SentenceTransformer(
    modules=[Transformer(str(work / "transformers")), Pooling(32, "mean")], device="cpu"
)
dense.save_pretrained(str(work / "dense"))


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.seen = []

    def emit(self, record):
        self.seen.append(record.getMessage())


lines = Lines()
for name in ("", "transformers"):  # the logger of transformers does not propagate
    logging.getLogger(name).addHandler(lines)


def load(kind, folder, **options):
    """The model, and every warning or log line from level WARNING while it loads."""
    lines.seen.clear()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model = kind(str(work / folder), device="cpu", **options)
    said = lines.seen + [str(warning.message) for warning in raised]
    return model, [line.replace(str(work / folder), "FOLDER") for line in said]


def names(model):
    return [type(module).__name__ for module in model]


def cosine(left, right):
    """The mean over tokens; the vectors have length 1."""
    return round(float((left[0] * right[0]).sum(axis=1).mean()), 2)


for folder, expected in (("dense", 1), ("transformers", 0)):
    first, said = load(MultiVectorEncoder, folder)
    second, _ = load(MultiVectorEncoder, folder)
    stored, asked = first.encode_document(texts), second.encode_document(texts)
    same, other = cosine(stored, first.encode_document(texts)), cosine(stored, asked)
    print(f"{folder} as MultiVectorEncoder:", names(first))
    print("warnings:", said)
    print(f"cosine of a token with itself: same load {same}, next load {other}")
    assert len(said) == expected and not any("random" in line.lower() for line in said)
    assert same == 1.0 and abs(other) < 0.5
    scores = first.similarity(stored, stored)
    assert scores.argmax(dim=1).tolist() == [0, 1]

prompts = {"query": "[Q] ", "document": "[D] "}
multi, _ = load(MultiVectorEncoder, "transformers", prompts=prompts)
multi.save_pretrained(str(work / "multi"))
(first, said), (second, _) = (load(MultiVectorEncoder, "multi") for _ in range(2))
equal = cosine(first.encode_document(texts), second.encode_document(texts)) == 1.0
print(f"multi as MultiVectorEncoder, twice: equal {equal}, warnings {said}")
assert equal and not said
single, said = load(SentenceTransformer, "multi")
vectors = single.encode_document(texts)
mean = bool(np.allclose(vectors, dense.encode(texts), atol=1e-5))
print(f"multi as SentenceTransformer: {names(single)}, shape {vectors.shape}")
print("warnings:", said)
print("prompts:", first.prompts, "became", single.prompts)
print("equals the mean of the backbone:", mean)
assert names(single) == ["Transformer", "Pooling"] and mean
assert len(said) == 1 and first.prompts == prompts and not any(single.prompts.values())
PY
