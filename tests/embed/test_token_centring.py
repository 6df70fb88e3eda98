"""Token vectors are centred where an encoder gives all tokens one direction, and only there."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_bert import change_weights, save_bert

from memlab.embed import load
from memlab.embed.encoder import EncoderIdentity
from memlab.embed.encoder_description import encoder_description_lines
from memlab.embed.token_centring import (
    CENTRE_FROM,
    PROBES,
    VOCABULARY,
    centre_tokens,
    choose_probe_tokens,
    has_common_direction,
    mean_unit_vector,
)
from memlab.embed.token_vectors import TokenVectors, compress_tokens, token_cosines

SAID = ["I saw the dentist on Tuesday.", "a red bicycle", "we went home early"]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def tokens_of(rows: np.ndarray) -> TokenVectors:
    return TokenVectors(np.arange(len(rows)), rows.astype(np.float16), np.array([0, len(rows)]))


def kept_best(asked: np.ndarray, said: np.ndarray) -> float:
    """Share of asked tokens whose best said token is still the best of the codes."""
    codes = compress_tokens(tokens_of(said)).vectors
    found = token_cosines(asked, codes).argmax(axis=1)
    return float((found == (asked @ said.T).argmax(axis=1)).mean())


@pytest.mark.parametrize("kind", ["hashed words", "clusters"])
@pytest.mark.parametrize("common", [0.0, 3.0])
def test_codes_keep_more_of_centred_tokens_where_all_have_one_direction(
    kind: str, common: float
) -> None:
    """Two geometries: words hashed to columns, and topics of similar vectors, with a common direction and without."""
    random = np.random.default_rng(3)
    if kind == "hashed words":
        own = load("hashing:128").encode([f"word{n} of {n % 40}" for n in range(600)])
    else:
        topics = unit(random.standard_normal((30, 128)))
        own = unit(topics[np.arange(600) % 30] + 0.05 * random.standard_normal((600, 128)))
    shared = unit(random.standard_normal((1, 128)))
    said = unit(own + common * shared)
    noise = 0.05 * random.standard_normal((200, 128))
    asked = unit(unit(own[::3] + noise) + common * shared)
    mean = mean_unit_vector(said[:PROBES])
    assert has_common_direction(mean) == (common > 0)
    centred = [
        centre_tokens(tokens_of(rows), mean).vectors.astype(np.float32) for rows in (asked, said)
    ]
    before, after = kept_best(asked, said), kept_best(*centred)
    if common:
        assert after > before + 0.1
    else:
        assert after == pytest.approx(before, abs=0.05)


def spread_out(weights: dict[str, Any]) -> dict[str, Any]:
    """Let a token count for more than where it stands, and than what random layers make of it."""
    weights["embeddings.word_embeddings.weight"] *= 20
    for name, weight in weights.items():
        if ".output.dense." in name:
            weight *= 0.05
    return weights


def one_direction(weights: dict[str, Any]) -> dict[str, Any]:
    """Add one vector to every hidden state that the model gives."""
    weights["encoder.layer.1.output.LayerNorm.bias"] += 2.0
    return weights


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny model, and one of which all tokens have one direction besides."""
    plain = save_bert(tmp_path_factory.mktemp("model") / "tiny")
    other = save_bert(tmp_path_factory.mktemp("model") / "one_direction")
    for path in (plain, other):
        change_weights(spread_out)(path)
    change_weights(one_direction)(other)
    return plain, other


def test_a_folder_is_centred_by_its_own_vocabulary_and_says_so(
    folders: tuple[Path, Path],
) -> None:
    plain, other = (load(str(path)) for path in folders)
    models: list[Any] = [plain.model, other.model]
    lengths = [float(np.linalg.norm(model.token_mean)) for model in models]
    assert lengths[0] < CENTRE_FROM < lengths[1]
    assert (plain.identity.token_mean, other.identity.token_mean) == ("", VOCABULARY)
    assert "tokens centred" not in plain.identity.describe()
    assert "tokens centred" in other.identity.describe()
    assert encoder_description_lines(plain)[-1] == "centring   none"
    assert encoder_description_lines(other)[-1] == f"centring   {VOCABULARY}"
    again = load(str(folders[1]))
    assert again.identity == other.identity
    np.testing.assert_array_equal(again.model.token_mean, models[1].token_mean)


@pytest.mark.parametrize("kind", ["document", "query"])
def test_questions_and_turns_are_centred_by_the_same_mean(
    folders: tuple[Path, Path], kind: Any
) -> None:
    encoder = load(str(folders[1]))
    model: Any = encoder.model
    centred = encoder.encode_tokens(SAID, kind=kind)
    model.identity = replace(model.identity, token_mean="")
    raw = model.encode_tokens(SAID, kind=kind)
    expected = unit(raw.vectors.astype(np.float32) - model.token_mean)
    np.testing.assert_array_equal(centred.ids, raw.ids)
    np.testing.assert_allclose(centred.vectors.astype(np.float32), expected, atol=2e-3)
    apart = expected @ expected.T
    together = raw.vectors.astype(np.float32) @ raw.vectors.astype(np.float32).T
    assert together.mean() > 0.6
    assert apart.mean() < 0.3


def test_the_key_of_what_is_not_centred_is_what_it_was_without_the_field() -> None:
    minilm = load("minilm").identity
    assert minilm.token_mean == ""
    assert minilm.key == "minilm_7353263a"
    assert EncoderIdentity(**asdict(minilm)) == minilm
    assert replace(minilm, token_mean=VOCABULARY).key != minilm.key


def test_probes_are_spread_evenly_over_the_words_of_a_vocabulary() -> None:
    words = np.arange(30_000) % 3 > 0
    probes = choose_probe_tokens(words)
    assert len(set(probes.tolist())) == PROBES
    assert words[probes].all()
    assert np.diff(probes).max() < 2 * 30_000 / PROBES
    assert choose_probe_tokens(np.zeros(5, bool)).tolist() == []
    assert not has_common_direction(mean_unit_vector(np.zeros((0, 8), np.float32)))
