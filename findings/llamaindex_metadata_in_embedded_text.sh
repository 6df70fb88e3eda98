#!/usr/bin/env bash
# LlamaIndex embeds ids that were given for tracing
#
# Versions: llama-index-core 0.14.25
# Date: 2026-11-28
#
# Behaviour: The metadata of a node (session, turn, label) are written in front of its text when
# it is embedded. Nodes with equal texts and other ids have other vectors. Only keys named in
# `excluded_embed_metadata_keys` are left out.
#
# Guess: Metadata serve filters and tracing, the vector is that of the text.
#
# Why it matters: Ids change the ranking, and they leak labels where ids hold them: in LongMemEval
# the ids of gold sessions contain the word answer. Two runs with other ids are not comparable,
# and every node is nearer to those of the same session.
#
# Output seen:
#   'session_id: answer_17\nturn: 3\n\nI moved to Rome'
#   'I moved to Rome'
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    llama-index-core==0.14.25

"$work/venv/bin/python" - <<'PY'
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode

embedded = []


class Recorder(BaseEmbedding):
    def _get_text_embedding(self, text):
        embedded.append(text)
        return [1.0, float(len(text))]

    def _get_query_embedding(self, query):
        return [1.0, float(len(query))]

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


metadata = {"session_id": "answer_17", "turn": 3}
plain = TextNode(text="I moved to Rome", metadata=metadata)
hidden = TextNode(
    text="I moved to Rome", metadata=metadata, excluded_embed_metadata_keys=list(metadata)
)
VectorStoreIndex([plain, hidden], embed_model=Recorder())
for text in embedded:
    print(repr(text))
assert embedded[0] == "session_id: answer_17\nturn: 3\n\nI moved to Rome"
assert embedded[1] == "I moved to Rome"
PY
