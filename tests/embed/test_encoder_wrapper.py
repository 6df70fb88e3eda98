"""The wrapper of an encoder: its header, the cache of a store, texts that workers read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stand_in import StandIn
from store_data import FakeEncoder

from memlab import DataError, MemoryStore, ModelError
from memlab.embed import cache_encoder, describe_encoder, load, without_cache
from memlab.embed.contextual_headers import header_fields_or_empty
from memlab.embed.ray_workers import TEXTS, load_model_once_per_worker
from memlab.embed.token_vectors import TokenEncoder


def test_an_encoder_of_workers_is_its_encoder_and_a_worker_refuses_another_of_its_name() -> None:
    own, spread_out = load("hashing:64"), load("hashing:64", engine="ray")
    texts = [f"text {n}" for n in range(TEXTS - 1)]
    assert spread_out.identity == own.identity
    np.testing.assert_array_equal(
        spread_out.encode(texts, progress=False), own.encode(texts, progress=False)
    )
    headed = load(spread_out, header=("time",)).named_encoder()
    assert headed.header == ("time",)
    assert load_model_once_per_worker(own.named_encoder()) is load_model_once_per_worker(headed)
    other = replace(own.named_encoder(), identity=load("hashing:32").identity)
    with pytest.raises(ModelError, match="put the same model on every machine"):
        load_model_once_per_worker(other)
    with pytest.raises(ModelError, match="takes an encoder by its name"):
        load(own.model, engine="ray")


def test_the_wrapper_of_an_encoder_gives_tokens_where_its_model_does() -> None:
    for encoder in (load("minilm"), load("minilm", engine="ray"), load(StandIn())):
        assert isinstance(encoder, TokenEncoder)
        assert encoder.encode_tokens(["a red bicycle"]).start.tolist() == [0, 3]
    assert not isinstance(load("hashing:64"), TokenEncoder)


def test_a_header_is_that_of_the_encoder_else_named_else_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain, headed = StandIn(), load("hashing:64", header=["scope"])
    assert (header_fields_or_empty(plain), load(plain).header, headed.header) == (
        (),
        (),
        ("scope",),
    )
    (tmp_path / "memlab.toml").write_text('encoder = "hashing:32"\nheader = ["time"]\n')
    assert load().header == load("hashing:64").header == load(plain).header == ("time",)
    assert load("settings", header=()).header == ()
    assert load(headed) is headed
    assert "header scope" in repr(headed)
    assert describe_encoder(headed) == {
        "encoder": "hashing words-bigrams-trigrams (2), 64-d, sum pooling",
        "header": ["scope"],
    }
    with pytest.raises(DataError, match="header field 'topics' is not known; choose from scope"):
        load("hashing:64", header=["topics"])


@pytest.mark.parametrize("name", ["minilm", "hashing:64"])
@pytest.mark.slow
def test_equal_texts_have_equal_vectors_with_and_without_a_store(tmp_path: Path, name: str) -> None:
    """So many copies that a model reads them in two batches, one padded to the length of longer texts."""
    texts = [*(f"note {n} " * (n % 9 + 1) for n in range(30)), "tea"]
    texts += ["Ok, thanks, see you tomorrow!"] * 300
    stored = cache_encoder(MemoryStore.open(tmp_path / "store"), load(name))
    for encoder in (load(name), stored, stored):
        vectors = encoder.encode(texts, progress=False)
        assert vectors.shape == (331, encoder.dim)
        assert (vectors[31:] == vectors[31]).all()
        assert len(np.unique(vectors, axis=0)) == 32


def test_equal_tokens_are_read_once_with_what_stands_before_them() -> None:
    model = StandIn()
    asked = list[list[str]]()
    given = model.encode_tokens
    model.encode_tokens = lambda texts, **how: asked.append(list(texts)) or given(texts, **how)
    texts, before = ["tea", "milk", "tea", "tea"], ["", "a", "", "b"]
    tokens = load(model).encode_tokens(texts, before=before)
    assert asked == [["tea", "milk", "tea"]]
    expected = given(texts, before=before)
    np.testing.assert_array_equal(tokens.start, expected.start)
    np.testing.assert_array_equal(tokens.vectors, expected.vectors)


def test_a_cache_gives_what_it_holds_and_asks_the_model_for_the_rest(tmp_path: Path) -> None:
    store, model = MemoryStore.open(tmp_path / "store"), FakeEncoder()
    cached = cache_encoder(store, load(model, header=("time",)))
    assert cached.header == ("time",)
    expected = FakeEncoder().encode(["tea", "milk"])
    for _ in range(2):
        np.testing.assert_array_equal(cached.encode(["tea", "milk"]), expected)
    np.testing.assert_array_equal(store.encode(cached, ["milk"]), expected[1:])
    assert model.asked == [("document", "tea"), ("document", "milk")]
    np.testing.assert_array_equal(without_cache(cached).encode(["tea"]), expected[:1])
    assert len(model.asked) == 3


def test_tokens_come_from_another_encoder_and_vectors_from_its_own(tmp_path: Path) -> None:
    other = StandIn()
    encoder = load("hashing:32", token_encoder=other)
    assert isinstance(encoder, TokenEncoder)
    assert encoder.dim == 32
    np.testing.assert_array_equal(encoder.encode(["tea"]), load("hashing:32").encode(["tea"]))
    expected = other.encode_tokens(["a red bicycle"])
    np.testing.assert_array_equal(
        encoder.encode_tokens(["a red bicycle"]).vectors, expected.vectors
    )
    about = describe_encoder(encoder)
    assert about["encoder"] == encoder.identity.describe()
    assert about["token_encoder"] == other.identity.describe()
    assert "tokens by <Encoder minilm_" in repr(encoder)

    def fail(*args: object, **options: object) -> None:
        raise AssertionError("read from the model though the store holds it")

    store = MemoryStore.open(tmp_path / "store")
    stored = cache_encoder(store, encoder)
    first = stored.encode_tokens(["tea"], kind="document")
    store.tokens.compact_and_index_caches(stored)
    other.encode_tokens = fail  # type: ignore[method-assign,assignment]
    np.testing.assert_array_equal(stored.encode_tokens(["tea"]).vectors, first.vectors)
    own = cache_encoder(store, load(other))
    np.testing.assert_array_equal(own.encode_tokens(["tea"]).vectors, first.vectors)


def test_a_token_encoder_is_named_else_of_the_wrapper_else_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load("minilm", token_encoder="minilm").token_encoder is None
    assert "token_encoder" not in describe_encoder(load("minilm"))
    assert load(StandIn(), token_encoder=StandIn()).token_encoder is None
    (tmp_path / "memlab.toml").write_text('encoder = "hashing:32"\ntoken_encoder = "minilm"\n')
    found = load().token_encoder
    assert found is not None
    assert found.identity.key == "minilm_7353263a"
    assert load("minilm").token_encoder is None
    assert load("settings", token_encoder="").token_encoder is None
    assert load(load("settings", token_encoder="")).token_encoder is None
    named = load(engine="ray").named_encoder()
    assert named.tokens is not None
    assert (named.spec, named.tokens.spec) == ("hashing:32", "minilm")
    with pytest.raises(ModelError, match="gives one vector a text and none of its tokens"):
        load("minilm", token_encoder="hashing:32")
