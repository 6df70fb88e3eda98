"""Names in sentences by a token-classification model of transformers, read from a directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from tqdm import tqdm

from memlab.errors import ModelError

BATCH = 32
_PROGRESS_FROM = 256
_MOST_TOKENS = 512

# The label sets of CoNLL-2003 and OntoNotes 5, and spellings that models use; what is not here is "other".
TYPES = {
    "per": "person", "person": "person", "org": "organization", "organization": "organization", "loc": "place",
    "location": "place", "gpe": "place", "fac": "place", "date": "date", "time": "date", "event": "event",
    "product": "product", "prod": "product", "work_of_art": "work", "work": "work", "misc": "other", "norp": "other",
}  # fmt: skip
# OntoNotes marks amounts too, which are no entities.
_NO_ENTITIES = {"cardinal", "ordinal", "percent", "quantity", "money"}

Votes = tuple[tuple[str, int], ...]


def tag(texts: Sequence[str], path: str) -> list[tuple[int, str, Votes]]:
    """Find the names in texts.

    A word has the label of its first piece; neighbouring words of one type are one name, unless the model says that a
    new one begins (``B-``).

    :param path: directory of a model with config.json, weights and a fast tokenizer.
    :returns: for each name the place of its text, the name as it is written, and its type with a weight.
    :raises ModelError: when the directory holds no such model.
    """
    tokenizer, model, labels = _load(str(Path(path)))
    mentions: list[tuple[int, str, Votes]] = []
    # By length, so that little of a batch is padding.
    order = sorted((i for i, text in enumerate(texts) if text.strip()), key=lambda i: len(texts[i]))
    with tqdm(total=len(order), unit="sentence", desc="names", disable=len(order) < _PROGRESS_FROM) as bar:
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            for row, spans in zip(rows, _words(tokenizer, model, [texts[i] for i in rows]), strict=True):
                mentions.extend((row, name, ((kind, 9),)) for name, kind in _names(texts[row], spans, labels))
            bar.update(len(rows))
    return sorted(mentions, key=lambda name: name[0])


def _names(text: str, words: list[tuple[int, int, int]], labels: dict[int, str]) -> Iterator[tuple[str, str]]:
    """Join words (start, end, label) to names with their types."""
    start, end, open_kind = 0, 0, ""
    for a, b, label in [*words, (len(text), len(text), -1)]:
        prefix, _, name = labels.get(label, "O").rpartition("-")
        kind = "" if name == "O" or name.casefold() in _NO_ENTITIES else TYPES.get(name.casefold(), "other")
        if open_kind and (kind != open_kind or prefix in ("B", "S", "U")):
            yield text[start:end].strip(" ,.;:!?\"'"), open_kind
            open_kind = ""
        if not open_kind:
            start = a
        open_kind, end = kind, b


def _words(tokenizer: Any, model: Any, texts: list[str]) -> Iterator[list[tuple[int, int, int]]]:
    """Label the words of some texts: start, end and label of each."""
    batch = tokenizer(
        texts, return_tensors="pt", padding=True, truncation=True, max_length=_limit(tokenizer, model),
        return_offsets_mapping=True,
    )  # fmt: skip
    offsets = batch.pop("offset_mapping").tolist()
    best = model(**batch).logits.argmax(-1).tolist()
    for i in range(len(texts)):
        pieces = groupby(enumerate(batch.word_ids(i)), key=lambda piece: piece[1])
        places = [[place for place, _ in word] for of, word in pieces if of is not None]
        yield [(offsets[i][word[0]][0], offsets[i][word[-1]][1], best[i][word[0]]) for word in places]


def _limit(tokenizer: Any, model: Any) -> int:
    longest = getattr(model.config, "max_position_embeddings", _MOST_TOKENS) or _MOST_TOKENS
    return int(min(tokenizer.model_max_length, longest, _MOST_TOKENS))


@lru_cache(maxsize=2)
def _load(path: str) -> tuple[Any, Any, dict[int, str]]:
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

    needed = (
        "expected a directory with config.json, model.safetensors and tokenizer.json of a token-classification model"
    )
    if not (Path(path) / "config.json").is_file():
        raise ModelError(f"names: {path} has no config.json; {needed}")
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        model, info = AutoModelForTokenClassification.from_pretrained(
            path, config=config, local_files_only=True, dtype="float32", output_loading_info=True
        )
    except Exception as error:
        raise ModelError(
            f"names: transformers cannot load {path} ({type(error).__name__}: {error}); {needed}"
        ) from error
    if info["missing_keys"]:
        first = min(info["missing_keys"])
        raise ModelError(f"names: the weights in {path} lack {first!r}, so the model finds no names; {needed}")
    if not tokenizer.is_fast:
        raise ModelError(f"names: the tokenizer in {path} cannot say where its tokens stand; add its tokenizer.json")
    labels = {int(i): str(label) for i, label in model.config.id2label.items()}
    if not any(label.rpartition("-")[2].casefold() in TYPES for label in labels.values()):
        raise ModelError(
            f"names: the model in {path} labels {', '.join(list(labels.values())[:4])}, which are no names; choose a "
            "model with labels such as PER, ORG, LOC"
        )
    return tokenizer, model.eval().requires_grad_(False), labels
