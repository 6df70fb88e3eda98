#!/usr/bin/env bash
# LlamaIndex's fusion of retrievers does not tell them how many rows it wants
#
# Versions: llama-index-core 0.14.25
# Date: 2026-11-28
#
# Behaviour: QueryFusionRetriever with similarity_top_k=20 around `index.as_retriever()` returns
# two rows: the inner retriever keeps its own default of two, and the outer number only cuts.
# Nothing is said.
#
# Guess: The number asked of the fusion is passed on to the retrievers in it, or more than that,
# because a fusion needs deep lists.
#
# Why it matters: Hybrid search of a memory is built like this. Recall at 20 is that of two rows a
# retriever, and a fusion of short lists hardly fuses: what looks like a weak method is a default.
#
# Output seen:
#   20 asked of the fusion: 2
#   20 asked of both: 20
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    llama-index-core==0.14.25

"$work/venv/bin/python" - <<'PY'
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode

nodes = [TextNode(text=f"note {number}") for number in range(30)]
index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))


def rows(**inner):
    fusion = QueryFusionRetriever(
        [index.as_retriever(**inner)],
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=20,
        use_async=False,
    )
    return len(fusion.retrieve("note"))


print("20 asked of the fusion:", rows())
print("20 asked of both:", rows(similarity_top_k=20))
assert rows() == 2
assert rows(similarity_top_k=20) == 20
PY
