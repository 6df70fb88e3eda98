#!/usr/bin/env bash
# mem0's search cannot be asked for all memories
#
# Versions: mem0ai 2.2.1, qdrant-client 1.20.0
# Date: 2026-11-28
#
# Behaviour: search(threshold=None) behaves as the default of 0.1. With threshold=0.0 memories
# whose cosine with the query is below 0 are still left out, although fewer than top_k were found,
# and a threshold below 0 is refused. There is no setting with which top_k=20 gives 20 of 20
# memories whatever they say.
#
# Guess: None switches the threshold off, and with 0.0 the 20 nearest of 20 memories are all of
# them.
#
# Why it matters: Small sentence encoders give cosines around 0, some of them negative, between a
# question and turns that share no word with it. Recall at k is computed over a list that stops
# early, and a reranker behind it never sees what the encoder misjudged.
#
# Output seen:
#   stored: 3
#   default: ['near']
#   threshold=None: ['near']
#   threshold=0.0: ['near', 'at .05']
#   threshold=-1.0: ValueError: Invalid threshold: -1.0. Must be between 0 and 1 (inclusive).
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    mem0ai==2.2.1 qdrant-client==1.20.0

export WORK="$work"
"$work/venv/bin/python" - <<'PY'
import logging
import os
import tempfile

folder = tempfile.mkdtemp(dir=os.environ["WORK"])
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder, "HF_HUB_OFFLINE": "1"}
logging.disable(logging.WARNING)
from mem0 import Memory

memory = Memory.from_config(
    {
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": f"{folder}/vectors",
                "collection_name": "notes",
                "embedding_model_dims": 2,
            },
        },
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "embedder": {"provider": "openai", "config": {"api_key": "none", "embedding_dims": 2}},
        "history_db_path": f"{folder}/history.db",
    }
)


VECTORS = {
    "question": [1.0, 0.0],
    "near": [0.9, 0.4359],
    "at .05": [0.05, 0.9987],
    "at -.2": [-0.2, 0.9798],
}


class Embedder:
    def embed(self, text, *arguments, **options):
        return VECTORS[text]

    def embed_batch(self, texts, *arguments, **options):
        return [VECTORS[text] for text in texts]


memory.embedding_model = Embedder()
for text in ("near", "at .05", "at -.2"):
    memory.add(text, user_id="ann", infer=False)


def found(**options):
    rows = memory.search("question", filters={"user_id": "ann"}, top_k=20, **options)["results"]
    return [row["memory"] for row in rows]


print("stored:", len(memory.get_all(filters={"user_id": "ann"})["results"]))
print("default:", found())
print("threshold=None:", found(threshold=None))
print("threshold=0.0:", found(threshold=0.0))
assert found() == found(threshold=None) == ["near"]
assert found(threshold=0.0) == ["near", "at .05"]
try:
    found(threshold=-1.0)
    raise SystemExit("a negative threshold is no longer refused")
except ValueError as error:
    print("threshold=-1.0: ValueError:", error)
memory.vector_store.client.close()
PY
