"""Names by a token-classification model: the wire, on a tiny model whose answers we set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memlab.errors import ModelError
from memlab.knowledge.extraction import extract
from memlab.knowledge.ner import tag
from memlab.records import Turn, frame

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "anna", "keller", "works", "at", "ac", "##me", "in", "oslo", ".", "rex"]
LABELS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MONEY"]
SAYS = {
    "anna": "B-PER",
    "keller": "I-PER",
    "ac": "B-ORG",
    "##me": "B-LOC",
    "oslo": "B-LOC",
    "rex": "B-PER",
    "at": "B-MONEY",
}


def _save(path: Path, labels: list[str] = LABELS) -> Path:
    """A BERT without layers that only looks at the word: its vector is its label."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(path)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=0, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32, id2label=dict(enumerate(labels)), label2id={x: i for i, x in enumerate(labels)},
    )  # fmt: skip
    model = BertForTokenClassification(config)
    with torch.no_grad():
        for parameter in model.bert.embeddings.parameters():
            parameter.zero_()
        model.bert.embeddings.LayerNorm.weight.fill_(1.0)
        model.classifier.weight.zero_()
        model.classifier.bias.zero_()
        for i in range(len(labels)):
            model.classifier.weight[i, i] = 1.0
        for word, i in vocabulary.items():
            model.bert.embeddings.word_embeddings.weight[
                i, labels.index(SAYS.get(word, "O")) if labels == LABELS else 0
            ] = 1.0
    model.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _save(tmp_path_factory.mktemp("ner"))


def test_pieces_are_words_and_words_are_names(model: Path) -> None:
    texts = ["Anna Keller works at Acme in Oslo.", "", "In Oslo.", "Anna Rex"]
    assert [name[:2] for name in tag(texts, str(model))] == [
        (0, "Anna Keller"), (0, "Acme"), (0, "Oslo"), (2, "Oslo"), (3, "Anna"), (3, "Rex"),
    ]  # fmt: skip
    assert [name[2][0][0] for name in tag(texts[:1], str(model))] == ["person", "organization", "place"]


def test_a_batch_gives_what_each_text_gives(model: Path) -> None:
    texts = ["Anna works.", "Oslo.", "Anna Keller works at Acme in Oslo in Oslo in Oslo."] * 20
    alone = [(i, *name[1:]) for i, text in enumerate(texts) for name in tag([text], str(model))]
    assert tag(texts, str(model)) == alone


def test_a_long_text_is_cut(model: Path) -> None:
    assert len(tag(["Oslo in " * 500], str(model))) < 32


def test_extraction_takes_the_names_of_the_model(model: Path) -> None:
    turn = Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "On 3 May anna keller works at acme. We flew to Lisbon.")
    found = extract(frame(Turn, [turn]), ner=str(model)).entities
    assert found.select("name", "type").rows() == [
        ("Mel", "person"), ("3 May", "date"), ("anna keller", "person"), ("acme", "organization"),
    ]  # fmt: skip


def test_a_directory_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json; expected a directory"):
        tag(["Anna"], str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(ModelError, match="transformers cannot load"):
        tag(["Anna"], str(tmp_path))


def test_a_model_that_labels_no_names(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="which are no names"):
        tag(["Anna"], str(_save(tmp_path, ["NOUN", "VERB"])))
