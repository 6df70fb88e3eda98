"""The cache of token embeddings: what was read is not read again, also after an interruption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_data import FakeEncoder, build

from memlab.embed.tokens import TokenVectors
from memlab.store import MemoryStore, tokens
from memlab.store.tokens import encode_tokens

TEXTS = ["we met old friends", "", "hi", "we met old friends", "x \x1e y", "no"]


class Words(FakeEncoder):
    """One token a word; a text's vector is wider than a token's, as with two poolings."""

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: str = "document",
        progress: bool = True,
    ) -> TokenVectors:
        keys = [f"{lead}|{text}" for lead, text in zip(before or [""] * len(texts), texts, strict=True)]
        words = [text.split() for text in texts]
        vectors = [
            self.encode([f"{key} {word}" for word in held], kind=kind)[:, : self.dim // 2]
            for key, held in zip(keys, words, strict=True)
        ]
        self.asked = [one for one in self.asked if one[0] == "text"] + [("text", f"{kind}:{key}") for key in keys]
        start = np.r_[0, np.cumsum([len(held) for held in words])]
        ids = np.array([len(word) for held in words for word in held], np.int32)
        return TokenVectors(ids, np.concatenate(vectors).astype(np.float16), start)


def assert_equal(one: TokenVectors, two: TokenVectors) -> None:
    for name in ("ids", "vectors", "start"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_a_second_call_encodes_nothing(store: MemoryStore) -> None:
    first, again = Words(), Words()
    made = encode_tokens(store, first, TEXTS)
    assert len(first.asked) == 5  # one text stands twice
    assert_equal(made, Words().encode_tokens(TEXTS))
    assert_equal(encode_tokens(MemoryStore.open(store.uri), again, TEXTS), made)
    assert again.asked == []


def test_other_words_before_another_kind_and_another_encoder_are_other_keys(store: MemoryStore) -> None:
    encoder = Words()
    alone = encode_tokens(store, encoder, ["hi"])
    after = encode_tokens(store, encoder, ["hi", "hi"], before=["", "we met"])
    assert encoder.asked == [("text", "document:|hi"), ("text", "document:we met|hi")]
    assert_equal(after.take(np.array([0])), alone)
    assert not np.array_equal(after.vectors[0], after.vectors[1])
    encode_tokens(store, encoder, ["hi"], kind="query")
    assert encoder.asked[-1] == ("text", "query:|hi")
    other = Words(name="other")
    encode_tokens(store, other, ["hi"])
    assert len(other.asked) == 1


def test_only_what_is_missing_is_encoded(store: MemoryStore) -> None:
    encoder = Words()
    encode_tokens(store, encoder, TEXTS[:3])
    encoder.asked.clear()
    assert_equal(encode_tokens(store, encoder, TEXTS), Words().encode_tokens(TEXTS))
    assert encoder.asked == [("text", "document:|x \x1e y"), ("text", "document:|no")]


def test_an_interruption_keeps_what_was_there(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "CHUNK", 4)
    texts = [f"text number {i}" for i in range(11)]
    stopped = Words()
    stopped.fail_after = 16  # within the third chunk: the first two leave 8 texts, the third asks for 9 words more
    with pytest.raises(KeyboardInterrupt):
        encode_tokens(store, stopped, texts)
    assert len(stopped.asked) >= 8
    rest = Words()
    made = encode_tokens(MemoryStore.open(store.uri), rest, texts)
    assert [text for _, text in rest.asked] == [f"document:|{text}" for text in texts[8:]]
    assert_equal(made, Words().encode_tokens(texts))


def test_a_view_is_read_and_not_written(store: MemoryStore) -> None:
    store.ingest(build())
    store.tag("before")
    view = store.at("before")
    encoder = Words()
    assert_equal(encode_tokens(view, encoder, TEXTS), Words().encode_tokens(TEXTS))  # no cache yet, and none is made
    assert not [name for name in store.table_names() if name.startswith("tokens_")]
    encode_tokens(store, Words(), TEXTS[:2])
    encoder.asked.clear()
    encode_tokens(store.at("before"), encoder, TEXTS)
    assert len(encoder.asked) == 3
    again = Words()
    encode_tokens(store, again, TEXTS)
    assert len(again.asked) == 3


def test_many_texts_are_read_without_a_list_of_keys(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    encode_tokens(store, Words(), TEXTS)
    monkeypatch.setattr(tokens, "_LOOKUP", 2)
    encoder = Words()
    assert_equal(encode_tokens(store, encoder, TEXTS[::-1]), Words().encode_tokens(TEXTS[::-1]))
    assert encoder.asked == []


def test_lone_surrogates_are_read_as_the_replacement_character(store: MemoryStore) -> None:
    encoder = Words()
    one, two = (encode_tokens(store, encoder, [text], before=[text]) for text in ("it \ud83d", "it \ufffd"))
    assert_equal(one, two)
    assert len(encoder.asked) == 1


@pytest.mark.parametrize("texts", [[], [""], ["", " "]], ids=["none", "empty", "blank"])
def test_nothing_to_read(store: MemoryStore, texts: list[str]) -> None:
    for _ in range(2):
        made: Any = encode_tokens(store, Words(), texts)
        assert (len(made), len(made.ids)) == (len(texts), 0)


def test_token_embeddings_in_a_store_on_disk_are_those_of_the_model(tmp_path: Path) -> None:
    from memlab.embed import load

    encoder: Any = load("minilm")
    texts, before = ["They were lovely", "hi"], ["I fed the dogs.", ""]
    store = MemoryStore.open(tmp_path / "store")
    direct = encoder.encode_tokens(texts, before=before)
    for _ in range(2):
        assert_equal(encode_tokens(store, encoder, texts, before=before), direct)
