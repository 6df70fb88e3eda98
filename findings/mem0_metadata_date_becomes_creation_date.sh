#!/usr/bin/env bash
# A date among mem0's metadata replaces the date at which the memory was made
#
# Versions: mem0ai 2.2.1, qdrant-client 1.20.0
# Date: 2026-11-28
#
# Behaviour: `add(..., metadata={"created_at": ...})` overwrites the record's own created_at with
# the given text, whatever it says, and the key does not come back under metadata. Ids of the user
# in metadata are ignored with a log line; other keys come back as given.
#
# Guess: Metadata are the caller's and stay apart from the fields of the record.
#
# Why it matters: An importer that keeps the date of the original message under this name changes
# what decay and sorting by date see (which may be wanted: it is a way to backdate in the
# open-source class), and a text such as yesterday is stored as a date.
#
# Output seen:
#   created_at: some day last spring
#   metadata: {'source': 'letter'}
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


class Embedder:
    def embed(self, text, *arguments, **options):
        return [1.0, 0.0]

    def embed_batch(self, texts, *arguments, **options):
        return [[1.0, 0.0] for _ in texts]


memory.embedding_model = Embedder()
memory.add(
    "Ann moved to Rome",
    user_id="ann",
    metadata={"created_at": "some day last spring", "source": "letter"},
    infer=False,
)
(row,) = memory.get_all(filters={"user_id": "ann"})["results"]
print("created_at:", row["created_at"])
print("metadata:", row["metadata"])
assert row["created_at"] == "some day last spring"
assert row["metadata"] == {"source": "letter"}
memory.vector_store.client.close()
PY
