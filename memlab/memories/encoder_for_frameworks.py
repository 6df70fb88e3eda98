"""An encoder, lent to the vector stores of other libraries."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.embed import Encoder


class Embeddings:
    """An encoder with the methods that LangChain and mem0 call.

    LangChain calls ``embed_documents`` and ``embed_query``, mem0 ``embed`` and ``embed_batch``.
    With it a memory from outside is compared on the same vectors as memlab's pipelines. Vectors of
    documents are kept, so that a memory that adds turn by turn does not wait for what another has
    encoded at once.

    :param encoder: of documents; the one of a bench reads what the store holds already.
    :param queries: of queries, where it is another: one without a store, where the time of a search
        is measured.

    >>> import memlab
    >>> from memlab.memories import Embeddings
    >>> vectors = Embeddings(memlab.embed.load("hashing:64"))
    >>> len(vectors.embed_documents(["tea", "coffee"])), len(vectors.embed_query("tea?"))
    (2, 64)
    """

    def __init__(self, encoder: Encoder, *, queries: Encoder | None = None) -> None:
        self.encoder = encoder
        self.queries = encoder
        if queries is not None:
            self.queries = queries
        self.dim = encoder.dim
        self._kept = dict[str, np.ndarray]()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Encode texts that are searched for."""
        missing_texts = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if missing_texts:
            new_vectors = self.encoder.encode(missing_texts, progress=False)
            self._kept.update(zip(missing_texts, new_vectors, strict=True))
        return [self._kept[text].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Encode a question."""
        vectors = self.queries.encode([text], kind="query", progress=False)
        query_vector: list[float] = vectors[0].tolist()
        return query_vector

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Encode a text for mem0, which says whether it searches, adds or updates."""
        if memory_action == "search":
            return self.embed_query(text)
        return self.embed_documents([text])[0]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """Encode several texts for mem0."""
        return [self.embed(text, memory_action) for text in texts]


def named_texts(turns: pl.DataFrame) -> list[str]:
    """Give the texts of turns as the pipelines encode them, with their speakers: ``Ann: …``.

    :param turns: as a memory is given them, with ``speaker`` and ``text``.

    >>> import polars as pl
    >>> from memlab.memories import named_texts
    >>> named_texts(pl.DataFrame({"speaker": ["Ann", None], "text": ["Tea?", "Yes."]}))
    ['Ann: Tea?', 'Yes.']
    """
    named = pl.concat_str("speaker", "text", separator=": ", ignore_nulls=True)
    return turns.select(named.alias("text"))["text"].to_list()
