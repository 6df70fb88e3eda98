"""An encoder lent to the vector stores of others: documents and queries are encoded each as what they are."""

from __future__ import annotations

import numpy as np

import memlab
from memlab.memories import Embeddings


def test_documents_and_queries_are_encoded_by_their_own_encoder() -> None:
    stored, fresh = memlab.embed.load("hashing:64"), memlab.embed.load("hashing:64")
    vectors = Embeddings(stored, queries=fresh)
    told = stored.encode(["tea", "coffee"], progress=False)
    assert np.allclose(vectors.embed_documents(["tea", "coffee"]), told)
    assert vectors.embed_batch(["tea", "coffee"], "add") == vectors.embed_documents(["tea", "coffee"])
    assert vectors.embed("tea", memory_action="search") == vectors.embed_query("tea")
    assert vectors.dim == 64
