"""Encoders of one's own: what is taken from a folder, what settings add, and what is refused."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_bert import save_bert

from memlab import DataError, ModelError, retrieve, sample
from memlab.config import EmbedSettings
from memlab.embed import EncoderIdentity, encoder_prompts, load
from memlab.embed.encoder_description import encoder_description_lines
from memlab.embed.encoder_names import find_embed_settings
from memlab.embed.encoder_prompts import choose_query_and_document_prompt, find_prompt_family
from memlab.embed.model_kinds import own_code_name_or_empty
from memlab.embed.token_vectors import TokenEncoder
from memlab.retrieve import passages

TEXTS = [
    "I saw the dentist on Tuesday.",
    "hi",
    "Grüße aus Köln!",
    "three turtles, and a red bicycle " * 9,
    "",
]
Save = Callable[..., Path]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("bert") / "bert")


def save_model(path: Path, bert: Path, *behind: str, **config: Any) -> Path:
    """Save a SentenceTransformer with modules behind the tiny BERT: mean, dense, normalize."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(1)
    made = {
        "mean": lambda: Pooling(32, "mean"),
        "dense": lambda: Dense(32, 24, activation_function=torch.nn.Tanh()),
        "normalize": Normalize,
    }
    modules = [Transformer(str(bert)), *(made[name]() for name in behind)]
    model = SentenceTransformer(modules=modules, device="cpu", **config)
    model.save_pretrained(str(path), create_model_card=False)
    return path


def change(path: Path, name: str, **values: Any) -> None:
    """Change some values of a JSON file of a model; ``None`` takes a value away."""
    file = path / name
    table = json.loads(file.read_text()) if file.is_file() else {}
    table |= values
    kept = {key: value for key, value in table.items() if value is not None}
    file.write_text(json.dumps(kept))


def library(path: Path, texts: list[str], **options: Any) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(path), device="cpu", local_files_only=True)
    return model.encode(texts, normalize_embeddings=True, show_progress_bar=False, **options)


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write settings into the folder in which the test runs."""
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> None:
        (tmp_path / "memlab.toml").write_text(text, encoding="utf-8")

    return write


ARCHITECTURES: dict[str, tuple[dict[str, Any], str]] = {
    "XLMRoberta": ({"max_position_embeddings": 514}, "mean"),
    "ModernBert": ({}, "cls"),
    "Qwen3": ({"num_key_value_heads": 2, "head_dim": 16}, "lasttoken"),
    "Gemma3Text": (
        {"num_key_value_heads": 2, "head_dim": 16, "use_bidirectional_attention": True},
        "mean",
    ),
}
"""Of e5, gte and Nomic, Qwen3-Embedding, EmbeddingGemma."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_architectures_are_read_as_sentence_transformers_reads_them(
    tmp_path: Path, bert: Path, kind: str
) -> None:
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    own, pooling = ARCHITECTURES[kind]
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32}
    sizes |= {"intermediate_size": 64, "vocab_size": 30_522, "pad_token_id": 0}
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**sizes, initializer_range=0.5, **own)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path / "plain")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(bert / name, tmp_path / "plain")
    if pooling == "lasttoken":
        change(tmp_path / "plain", "tokenizer_config.json", padding_side="left")
    modules = [Transformer(str(tmp_path / "plain")), Pooling(32, pooling)]
    marks = {"query": "query: ", "document": "passage: "}
    model = SentenceTransformer(modules=modules, device="cpu", prompts=marks)
    path = tmp_path / "saved"
    model.save_pretrained(str(path), create_model_card=False)
    vectors = load(str(path)).encode(TEXTS)
    np.testing.assert_allclose(vectors, library(path, TEXTS, prompt="passage: "), atol=1e-5)
    assert (vectors[0] @ vectors[1:4].T).max() < 0.99


@pytest.mark.slow
def test_a_table_of_the_settings_completes_a_folder(
    tmp_path: Path, bert: Path, configured: Callable[[str], None]
) -> None:
    path = save_model(tmp_path / "plain", bert, "mean")
    bare = load(str(path))
    configured(
        f'encoder = "mine"\n[embed.mine]\npath = "{path}"\nquery_prompt = "query: "\n'
        'document_prompt = "passage: "\ndimensions = 16\nmax_length = 12\nbatch = 2\n'
    )
    for spec in ("mine", "settings", str(path), "plain/"):
        encoder = load(spec)
        identity = encoder.identity
        assert (identity.query_prompt, identity.document_prompt) == ("query: ", "passage: ")
        assert (encoder.dim, identity.cut_from, identity.max_length) == (16, 32, 12)
        assert identity.key != bare.identity.key
    expected = library(path, TEXTS[:3], prompt="query: ", truncate_dim=16)
    np.testing.assert_allclose(encoder.encode(TEXTS[:3], kind="query"), expected, atol=1e-5)
    sizes = []
    model: Any = encoder.model
    forward = model._run_model
    model._run_model = lambda given: sizes.append(len(given["input_ids"])) or forward(given)
    encoder.encode(TEXTS)
    assert (sum(sizes), max(sizes)) == (len(TEXTS), 2)
    assert model._token_ids([TEXTS[3]], truncation=True, max_length=12)[0][-1] == 102


def test_tables_that_contradict_are_refused(
    tmp_path: Path, bert: Path, configured: Callable[[str], None]
) -> None:
    path = save_model(tmp_path / "plain", bert, "mean")
    table = f'path = "{path}"\n'
    configured(f"[embed.minilm]\n{table}")
    with pytest.raises(ModelError, match=r"'minilm' is known already.*another name"):
        load("minilm")
    configured(f"[embed.a]\n{table}[embed.b]\n{table}")
    with pytest.raises(ModelError, match=r"several tables.*name one of a, b"):
        load(str(path))
    assert load("b").dim == 32
    configured(f"[embed.a]\n{table}pooling = 'cls'\n")
    with pytest.raises(DataError, match=r"a table of \[embed\] has path, query_prompt"):
        find_embed_settings("a")
    for line, said in (
        ("dimensions = 33", "gives 32 dimensions, and dimensions of the settings is 33"),
        ("max_length = 513", "has 512 positions, and max_length of the settings is 513"),
    ):
        configured(f"[embed.a]\n{table}{line}\n")
        with pytest.raises(ModelError, match=said):
            load("a")
    configured("")
    with pytest.raises(ModelError, match="no encoder 'a'"):
        load("a")


FAMILIES = {
    "multilingual-e5-small": "query: ",
    "e5-mistral-7b-instruct": "Instruct: ",
    "bge-small-en-v1.5": "Represent this sentence for searching relevant passages: ",
    "bge-base-zh-v1.5": "为这个句子生成表示以用于检索相关文章：",
    "nomic-embed-text-v1.5": "search_query: ",
    "embeddinggemma-300m": "task: search result | query: ",
    "snowflake-arctic-embed-m-v2.0": "query: ",
    "Qwen3-Embedding-0.6B": "Instruct: ",
    "bge-m3": None,
    "gte-small": None,
    "all-MiniLM-L6-v2": None,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_that_need_prompts_are_known_by_name_and_configuration(
    tmp_path: Path, name: str
) -> None:
    query = FAMILIES[name]
    (tmp_path / "config.json").write_text("{}")
    by_name = find_prompt_family(tmp_path, f"owner/{name}")
    change(tmp_path, "config.json", _name_or_path=f"/somewhere/{name}")
    for found in (by_name, find_prompt_family(tmp_path, "model")):
        if query is None:
            assert found is None
        else:
            assert found is not None
            assert found.query.startswith(query)


def test_a_family_without_its_prompts_is_warned_of_once(
    tmp_path: Path, bert: Path, configured: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_prompts, "_warned", set())
    path = save_model(tmp_path / "multilingual-e5-tiny", bert, "mean")
    with pytest.warns(UserWarning, match="no prompts in its files") as caught:
        load(str(path))
    said = str(caught[0].message)
    assert "[embed.multilingual-e5-tiny]" in said
    assert 'query_prompt = "query: " and document_prompt = "passage: "' in said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(str(path))
        encoder_prompts._warned.clear()
        configured(f'[embed.mine]\npath = "{path}"\nquery_prompt = ""\n')
        load("mine")
        change(path, "config_sentence_transformers.json", prompts={"query": "query: "})
        load(f"{path}/")


def test_a_prompt_for_passages_reaches_documents(tmp_path: Path, bert: Path) -> None:
    """In sentence-transformers it does not: it finds its own empty prompt for documents first."""
    path = save_model(tmp_path / "plain", bert, "mean", prompts={"passage": "passage: "})
    change(path, "config_sentence_transformers.json", prompts={"passage": "passage: "})
    encoder = load(str(path))
    assert encoder.identity.document_prompt == "passage: "
    expected = library(path, TEXTS[:3], prompt="passage: ")
    np.testing.assert_allclose(encoder.encode(TEXTS[:3]), expected, atol=1e-5)
    bare = EmbedSettings(path="x")
    assert choose_query_and_document_prompt(
        {"usual": "u: ", "query": "", "corpus": "c: "}, "usual", bare
    ) == (
        "u: ",
        "c: ",
    )
    own = bare.model_copy(update={"document_prompt": ""})
    assert choose_query_and_document_prompt({"document": "d: "}, None, own) == ("", "")


@pytest.mark.parametrize("behind", [("mean",), ("mean", "normalize")], ids=" ".join)
def test_vectors_are_cut_as_the_files_say_and_have_length_one(
    tmp_path: Path, bert: Path, behind: tuple[str, ...]
) -> None:
    path = save_model(tmp_path / "cut", bert, *behind)
    whole = load(str(path))
    change(path, "config_sentence_transformers.json", truncate_dim=8)
    encoder = load(str(path))
    vectors = encoder.encode(TEXTS)
    assert (vectors.shape, encoder.dim, encoder.identity.cut_from) == ((5, 8), 8, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors, library(path, TEXTS), atol=1e-5)
    assert encoder.identity.key != whole.identity.key
    assert "the first 8 of 32 dimensions" in encoder.identity.describe()
    change(path, "config_sentence_transformers.json", truncate_dim=32)
    assert load(str(path)).identity == whole.identity


def halve(path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    for file in path.rglob("model.safetensors"):
        small = {name: rows.to(torch.bfloat16) for name, rows in load_file(file).items()}
        save_file(small, file, {"format": "pt"})
    change(path, "config.json", dtype="bfloat16")


@pytest.mark.parametrize("behind", [("mean",), ("mean", "dense", "normalize")], ids=" ".join)
def test_weights_of_fewer_bits_are_computed_in_float32_unless_asked(
    tmp_path: Path, bert: Path, behind: tuple[str, ...], configured: Callable[[str], None]
) -> None:
    path = save_model(tmp_path / "half", bert, *behind)
    halve(path)
    exact = load(str(path))
    assert {p.dtype.itemsize for p in exact.model._model.parameters()} == {4}  # type: ignore[attr-defined]
    configured(f'[embed.mine]\npath = "{path}"\ndtype = "bfloat16"\n')
    coarse = load("mine")
    assert (exact.identity.dtype, coarse.identity.dtype) == ("float32", "bfloat16")
    assert exact.identity.key != coarse.identity.key
    assert "computed in bfloat16" in coarse.identity.describe()
    cosines = (exact.encode(TEXTS) * coarse.encode(TEXTS)).sum(1)
    assert 0.98 < cosines.min() < 0.9999999
    assert coarse.encode_tokens(TEXTS[:1]).vectors.shape[1] == 32  # type: ignore[attr-defined]


def test_fields_that_came_later_change_no_key() -> None:
    identity = EncoderIdentity("transformer", "m", "1", "mean", dim=8)
    keys = {
        identity.key,
        replace(identity, dtype="bfloat16").key,
        replace(identity, cut_from=16).key,
    }
    assert len(keys) == 3
    assert identity.key == "m_6951a7f5"


def save_colbert(path: Path, bert: Path, **options: Any) -> Path:
    import string

    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    torch.manual_seed(1)
    read = {
        "document_length": 24,
        "query_expansion": {"strategy": "fixed", "attend": False, "length": 12},
    }
    token = "token_embeddings"
    modules = [
        Transformer(str(bert), **(read | options)),
        Dense(32, 16, bias=False, activation_function=torch.nn.Identity(), module_input_name=token),
        MultiVectorMask(skiplist_words=list(string.punctuation)),
        Normalize(module_input_name=token),
    ]
    marks = {"query": "[Q] ", "document": "[D] "}
    model = MultiVectorEncoder(modules=modules, device="cpu", prompts=marks)
    model.save_pretrained(str(path), create_model_card=False)
    return path


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory, bert: Path) -> Path:
    return save_colbert(tmp_path_factory.mktemp("colbert") / "tiny-colbert", bert)


def test_a_colbert_gives_its_own_projected_tokens(colbert: Path) -> None:
    from sentence_transformers import MultiVectorEncoder

    theirs = MultiVectorEncoder(str(colbert), device="cpu", local_files_only=True)
    encoder = load(str(colbert))
    assert isinstance(encoder, TokenEncoder)
    identity = encoder.identity
    assert (identity.kind, encoder.dim, identity.max_length) == ("multi-vector", 16, 24)
    assert (identity.query_prompt, identity.document_prompt) == ("[Q] ", "[D] ")
    assert "queries expanded to 12 tokens" in identity.pooling
    for kind, method in (("query", theirs.encode_query), ("document", theirs.encode_document)):
        tokens = encoder.encode_tokens(TEXTS, kind=kind)  # type: ignore[arg-type]
        expected = method(TEXTS, convert_to_numpy=True, show_progress_bar=False)
        assert np.diff(tokens.start).tolist() == [len(rows) for rows in expected]
        np.testing.assert_allclose(tokens.vectors, np.concatenate(expected), atol=2e-3)
    assert set(np.diff(encoder.encode_tokens(TEXTS, kind="query").start)) == {12}
    vectors = encoder.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert encoder.encode([]).shape == (0, 16)


def test_a_colbert_reads_documents_behind_others(colbert: Path) -> None:
    encoder: Any = load(str(colbert))
    text, lead = "three turtles , and", "what did you see in the garden"
    alone = encoder.encode_tokens([text])
    behind = encoder.encode_tokens([text, text], before=[lead, ""])
    ids = behind.ids[: behind.start[1]].tolist()
    assert ids == alone.ids.tolist()  # with the markers, without the comma and what stands before
    assert not np.allclose(behind.vectors[: len(ids)], alone.vectors, atol=1e-2)
    np.testing.assert_allclose(behind.vectors[len(ids) :], alone.vectors, atol=2e-3)
    query = encoder.encode_tokens([text], kind="query")
    again = encoder.encode_tokens([text], before=[lead], kind="query")
    np.testing.assert_array_equal(query.vectors, again.vectors)


def test_late_ranks_by_the_plain_sums_of_a_colbert(colbert: Path) -> None:
    bench = retrieve.Bench.of(sample(turns=60), encoder=str(colbert), progress=False)
    found = retrieve.late(bench, k=5).frame
    assert found["rank"].max() == 5
    from memlab.retrieve.late_interaction import query_tokens, scope_tokens

    scope = scope_tokens(bench, slice(0, 60))
    asked = query_tokens(bench).take(np.array([0]))
    np.testing.assert_allclose(scope.token_weights(asked), 1 / 12)
    assert retrieve.dense(bench, k=5).frame.height


def test_a_colbert_embeds_the_tokens_of_another_encoder(
    colbert: Path, configured: Callable[[str], None]
) -> None:
    configured(f'[embed.mine]\npath = "{colbert}"\nmax_length = 40\n')
    from memlab.retrieve.late_interaction import query_tokens, scope_tokens

    encoder = load("hashing:32", token_encoder="mine")
    bench = retrieve.Bench.of(sample(turns=60), encoder=encoder, progress=False)
    asked = query_tokens(bench).take(np.array([0]))
    np.testing.assert_allclose(scope_tokens(bench, slice(0, 60)).token_weights(asked), 1 / 12)
    assert encoder.token_encoder is not None
    key = encoder.token_encoder.identity.key
    assert encoder_description_lines(encoder)[4:] == [
        f"tokens     vectors of single tokens, for late, by {key}",
        "centring   none",
    ]
    named = encoder.named_encoder()
    assert named.own is None
    assert named.tokens is not None
    assert named.tokens.own == find_embed_settings("mine")


def test_files_of_pylate_are_read_as_they_were_trained(tmp_path: Path, bert: Path) -> None:
    path = save_model(tmp_path / "late", bert, "dense")
    change(
        path,
        "config_sentence_transformers.json",
        model_type="ColBERT",
        query_prefix="[Q] ",
        document_prefix="[D] ",
        query_length=10,
        document_length=20,
        encoder_prompts=None,
    )
    change(path / "1_Dense", "config.json", module_input_name=None, module_output_name=None)
    encoder: Any = load(str(path))
    assert (encoder.identity.kind, encoder.dim, encoder.identity.max_length) == (
        "multi-vector",
        24,
        20,
    )
    assert encoder.encode_tokens(["hi"], kind="query").vectors.shape == (10, 24)


def save_static(path: Path, bert: Path, *, dtype: str = "float32") -> Path:
    """Save a table as model2vec does."""
    from safetensors.numpy import save_file

    path.mkdir()
    shutil.copy(bert / "tokenizer.json", path)
    rows = np.random.default_rng(0).normal(size=(30_522, 8))
    save_file({"embeddings": rows.astype(dtype)}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    return path


@pytest.mark.parametrize("layout", ["model2vec", "float16", "listed", "inner", "library"])
def test_static_tables_are_loaded(tmp_path: Path, bert: Path, layout: str) -> None:
    dtype = "float16" if layout == "float16" else "float32"
    path = save_static(tmp_path / "potion-tiny", bert, dtype=dtype)
    module = {
        "idx": 0,
        "name": "0",
        "path": ".",
        "type": "sentence_transformers.models.StaticEmbedding",
    }
    if layout == "inner":
        module["path"] = "0_StaticEmbedding"
        (path / "0_StaticEmbedding").mkdir()
        for name in ("model.safetensors", "tokenizer.json"):
            (path / name).rename(path / "0_StaticEmbedding" / name)
    if layout in ("listed", "inner"):
        (path / "modules.json").write_text(json.dumps([module]))
    if layout == "library":
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding

        static = StaticEmbedding.load(str(path), local_files_only=True)
        path = tmp_path / "saved"
        SentenceTransformer(modules=[static]).save_pretrained(str(path), create_model_card=False)
    encoder = load(str(path))
    assert (encoder.identity.kind, encoder.dim, encoder.identity.max_length) == ("static", 8, None)
    assert not isinstance(encoder, TokenEncoder)
    vectors = encoder.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    rows = np.random.default_rng(0).normal(size=(30_522, 8))
    mean = rows[json.loads((bert / "tokenizer.json").read_text())["model"]["vocab"]["hi"]]
    np.testing.assert_allclose(vectors[1], mean / np.linalg.norm(mean), atol=2e-3)


def as_sparse(path: Path) -> None:
    change(path, "config_sentence_transformers.json", model_type="SparseEncoder")


def as_old_splade(path: Path) -> None:
    (path / "modules.json").unlink()
    change(path, "config.json", architectures=["BertForMaskedLM"])
    path.rename(path.with_name("splade-tiny"))


def as_cross_encoder(path: Path) -> None:
    change(path, "config_sentence_transformers.json", model_type="CrossEncoder")


def with_foreign_activation(path: Path) -> None:
    change(path / "2_Dense", "config.json", activation_function="mine.Swish")


def with_unknown_architecture(path: Path) -> None:
    code = {"AutoConfig": "mine.MyConfig", "AutoModel": "mine.MyModel"}
    change(path, "config.json", model_type="mine", auto_map=code)
    (path / "mine.py").write_text("raise SystemExit('the code of the model was run')")


def as_classifier(path: Path) -> None:
    (path / "modules.json").unlink()
    change(path, "config.json", architectures=["BertForSequenceClassification"])


def without_weights(path: Path, *beside: str) -> None:
    """Take all weights away, and put files beside that hold others."""
    for file in path.rglob("model.safetensors"):
        file.unlink()
    for name in beside:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(b"weights")


def as_gguf(path: Path) -> None:
    without_weights(path, "tiny-q4.gguf")


def as_onnx(path: Path) -> None:
    without_weights(path, "onnx/model.onnx")


def as_adapter(path: Path) -> None:
    without_weights(path, "adapter_model.safetensors", "adapter_config.json")


def as_pointer(path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n"
    (path / "model.safetensors").write_text(pointer)


def without_vocabulary(path: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (path / name).unlink(missing_ok=True)


def with_router(path: Path) -> None:
    modules = json.loads((path / "modules.json").read_text())
    modules[-1]["type"] = "sentence_transformers.base.modules.router.Router"
    (path / "modules.json").write_text(json.dumps(modules))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (as_classifier, "is a cross-encoder or a classifier.*use it as a reranker"),
        (without_weights, r"tiny holds no weights; expected model\*\.safetensors or"),
        (as_gguf, "holds no weights, but GGUF.*serve it"),
        (as_onnx, "holds no weights, but ONNX"),
        (as_adapter, "holds no weights, but an adapter: merge it"),
        (as_pointer, "is a pointer of Git LFS: run git lfs pull"),
        (without_vocabulary, "its tokenizer knows no word.*expected tokenizer.json"),
        (with_router, r"modules of their own \(Router\)"),
        (as_sparse, r"is a sparse encoder \(SPLADE\)"),
        (as_old_splade, r"encoder splade-tiny is a sparse encoder \(SPLADE\)"),
        (as_cross_encoder, "is a cross-encoder.*use it as a reranker"),
        (with_foreign_activation, r"needs code of its own \(mine\.Swish\)"),
        (with_unknown_architecture, r"needs code of its own \(mine\.MyConfig\).*plug-in"),
    ],
)
def test_what_is_no_encoder_of_memlab_is_named(
    tmp_path: Path, bert: Path, harm: Callable[[Path], None], said: str
) -> None:
    path = save_model(tmp_path / "tiny", bert, "mean", "dense")
    harm(path)
    (folder,) = [each for each in tmp_path.iterdir() if each.is_dir()]
    with pytest.raises(ModelError, match=said):
        load(str(folder))


def test_a_file_is_no_directory_of_a_model(tmp_path: Path, bert: Path) -> None:
    with pytest.raises(ModelError, match="is a file; give the directory of a model"):
        load(str(bert / "model.safetensors"))
    (tmp_path / "tiny-q4.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="is a file, but GGUF"):
        load(str(tmp_path / "tiny-q4.gguf"))


def test_weights_of_every_module_are_part_of_the_revision(tmp_path: Path, bert: Path) -> None:
    import torch
    from safetensors.torch import load_file

    path = save_model(tmp_path / "mixed", bert, "mean", "dense")
    stored = load(str(path))
    folder = path / "2_Dense"
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    revisions = {stored.identity.revision}
    for factor in (1, 2):
        scaled = {name: rows * factor for name, rows in weights.items()}
        torch.save(scaled, folder / "pytorch_model.bin")
        encoder = load(str(path))
        revisions.add(encoder.identity.revision)
        np.testing.assert_allclose(encoder.encode(TEXTS), library(path, TEXTS), atol=1e-5)
    assert len(revisions) == 3


def test_a_model_reads_no_more_than_it_has_positions(tmp_path: Path, bert: Path) -> None:
    import transformers

    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 32}
    sizes |= {"intermediate_size": 64, "vocab_size": 30_522, "pad_token_id": 0}
    config = transformers.RobertaConfig(**sizes, max_position_embeddings=42)
    path = tmp_path / "roberta"
    transformers.RobertaModel(config).save_pretrained(path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(bert / name, path)
    change(path, "tokenizer_config.json", model_max_length=None)
    encoder = load(str(path))
    assert encoder.identity.max_length == 41  # positions are counted from behind the padding
    assert encoder.encode(["turtle " * 90]).shape == (1, 32)


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_a_similarity_that_is_no_cosine_is_warned_of(
    tmp_path: Path, bert: Path, similarity: str
) -> None:
    bare = save_model(tmp_path / "bare", bert, "mean", similarity_fn_name=similarity)
    unit = save_model(tmp_path / "unit", bert, "mean", "normalize", similarity_fn_name=similarity)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(str(unit))
        assert not caught
        load(str(bare))
    said = [str(warning.message) for warning in caught]
    if similarity == "cosine":
        assert not said
    else:
        assert len(said) == 1
        assert f"trained for the similarity '{similarity}'" in said[0]


def test_code_of_its_own_is_no_reason_where_transformers_knows_the_model(
    tmp_path: Path, bert: Path
) -> None:
    path = save_model(tmp_path / "tiny", bert, "mean")
    change(path, "config.json", auto_map={"AutoModel": "mine.MyModel"})
    assert own_code_name_or_empty(path) == "mine.MyModel"
    assert load(str(path)).dim == 32


def test_passages_are_no_longer_than_the_encoder_reads_and_than_turns_between_people(
    tmp_path: Path, bert: Path, configured: Callable[[str], None]
) -> None:
    path = save_model(tmp_path / "plain", bert, "mean")
    data = sample(turns=20)
    configured(f'[embed.short]\npath = "{path}"\nmax_length = 64\n')
    expected = {None: (220, 45), "hashing": (220, 45), "minilm": (220, 45), "short": (55, 11)}
    for name, limits in expected.items():
        bench = retrieve.Bench.of(data, encoder=name, progress=False)
        assert passages.max_words_of_turn_and_passage(bench) == limits
    long = load(str(path))
    wide = replace(long.identity, max_length=8192)
    bench = retrieve.Bench.of(data, encoder=None)
    bench.__dict__["encoder"] = type("Long", (), {"identity": wide})()
    assert passages.max_words_of_turn_and_passage(bench) == (220, 45)


@pytest.mark.slow
def test_six_lines_say_what_was_taken(
    memlab_cli: Any, tmp_path: Path, bert: Path, colbert: Path
) -> None:
    path = save_model(tmp_path / "cut", bert, "mean", prompts={"query": "q: "}, truncate_dim=8)
    assert encoder_description_lines(load(str(path))) == [
        "pooling    mean, the first 8 of 32 dimensions",
        "prompts    query 'q: '",
        "length     512 tokens",
        "dtype      float32",
        "tokens     vectors of single tokens, for late",
        "centring   vocabulary-512",
    ]
    done = memlab_cli("info", "--encoder", str(colbert), cwd=tmp_path)
    assert (done.code, len(done.out.splitlines())) == (0, 6), done.err
    assert "no (queries expanded to 12 tokens, unseen), 16 dimensions" in done.out
    assert memlab_cli("info", "--encoder", "nowhere", cwd=tmp_path).code == 2


def test_a_batch_is_as_large_as_suits_the_device_and_gives_the_same(
    tmp_path: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memlab.embed import transformer_encoder

    model: Any = load(str(save_model(tmp_path / "plain", bert, "mean"))).model
    texts = [f"note {n} of the day " * (n % 7 + 1) for n in range(90)]
    expected = model.encode(texts, progress=False)
    sizes = []
    forward = model._run_model
    model._run_model = lambda given: sizes.append(len(given["input_ids"])) or forward(given)
    counts = {}
    for budget in (100, 2_048, 32_768):
        monkeypatch.setattr(transformer_encoder, "_DEVICE_BUDGETS", {"cpu": budget})
        sizes.clear()
        np.testing.assert_allclose(model.encode(texts, progress=False), expected, atol=1e-5)
        assert sum(sizes) == 90
        counts[budget] = len(sizes)
    # On a processor texts of seven lengths are read apart.
    assert counts[100] > counts[2_048] == counts[32_768] == 7
    lengths = [len(text.split()) for text in texts]
    apart = transformer_encoder.batches_within_token_budget(lengths, budget=32_768, by_length=False)
    assert len(list(apart)) == 1
