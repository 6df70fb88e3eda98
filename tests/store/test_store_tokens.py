"""The cache of token embeddings: what was read is not read again, also after an interruption."""

from __future__ import annotations

import numpy as np
import pytest
from store_data import Words

from memlab.embed.token_vectors import TokenVectors, compress_tokens
from memlab.store import MemoryStore, caches

TEXTS = ["we met old friends", "", "hi", "we met old friends", "x \x1e y", "no"]


def assert_equal(one: TokenVectors, two: TokenVectors) -> None:
    for name in ("ids", "vectors", "start"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_a_second_call_encodes_nothing(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "CHUNK", 1)
    store.tokens.arrange(Words())  # nothing yet
    first, again = Words(), Words()
    made = store.tokens.encode(first, TEXTS)
    assert len(first.asked) == 5  # one text stands twice
    assert_equal(made, compress_tokens(Words().encode_tokens(TEXTS)))
    assert_equal(MemoryStore.open(store.uri).tokens.encode(again, TEXTS), made)
    store.tokens.arrange(Words())
    table = store.table("tokens_fake_8")
    assert table.stats()["fragment_stats"]["num_fragments"] == 1
    assert [index.columns for index in table.list_indices()] == [["key"]]
    monkeypatch.setattr(caches, "LOOKUP", 2)  # many texts are read without a list of keys
    assert_equal(store.tokens.encode(again, TEXTS), made)
    assert again.asked == []


def test_other_words_before_another_kind_and_another_encoder_are_other_keys(store: MemoryStore) -> None:
    encoder, other = Words(), Words(name="other")
    alone = store.tokens.encode(encoder, ["hi"])
    after = store.tokens.encode(encoder, ["hi", "hi"], before=["", "we met"])
    assert encoder.asked == [("text", "document:|hi"), ("text", "document:we met|hi")]
    assert_equal(after.take(np.array([0])), alone)
    assert not np.array_equal(after.vectors[0], after.vectors[1])
    store.tokens.encode(encoder, ["hi"], kind="query")
    assert encoder.asked[-1] == ("text", "query:|hi")
    store.tokens.encode(other, ["hi"])
    assert len(other.asked) == 1
