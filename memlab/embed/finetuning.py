"""Fine-tuning: an encoder learns, from questions with evidence, what people ask and where it is answered."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from memlab.embed.base import Encoder
from memlab.embed.loading import load_parts, quiet
from memlab.embed.pooling import pool
from memlab.embed.transformer import TransformerEncoder
from memlab.errors import DataError, at_least
from memlab.files import atomic_folder

RATE = 3e-5
QUESTIONS, OTHERS = 8, 3
"""Of a step: questions, and for each of them turns that a ranking places high and that are no evidence."""

HARDEST = 10
TOKENS_AT, VECTORS_AT = 0.03, 0.05
"""Temperatures of the two losses: of late interaction, and of one vector a text."""

FROZEN = 1 / 3
"""Share of the layers, the first, that stay as they were, as the embeddings of the vocabulary do."""

ABOUT = "memlab.json"


@dataclass(frozen=True, eq=False)
class Examples:
    """Questions with evidence, and what an encoder has to tell it from; of one bench.

    :param questions: (q,) their texts.
    :param evidence: (q,) places of the turns that are.
    :param others: (q,) places of turns that a ranking puts first and that are not, the first first.
    :param rarity: (q,) weights of the vocabulary's tokens in the question's scope, see
        :func:`memlab.retrieve.late_scores`.
    :param turns: (n,) what is read of each turn for its one vector.
    :param passages: (p,) what is read of it for the vectors of its tokens.
    :param before: (p,) what is read before that.
    :param start: (n + 1,) where the passages of each turn begin.
    """

    questions: Sequence[str]
    evidence: Sequence[Sequence[int]]
    others: Sequence[Sequence[int]]
    rarity: Sequence[np.ndarray]
    turns: Sequence[str]
    passages: Sequence[str]
    before: Sequence[str]
    start: np.ndarray


def finetune(
    encoder: Encoder,
    examples: Sequence[Examples],
    out: str | Path,
    *,
    epochs: int = 2,
    seed: int = 0,
    about: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> Path:
    """Train an encoder further, for its one vector a text and for late interaction at once; write it as a folder.

    Each question learns to score its evidence above hard others and above what the other questions of the step are
    about: the sum of two softmax losses over cosines. The folder is a model like any other: give it as ``encoder``.

    :param out: a folder that is not there yet.
    :param about: noted in its ``memlab.json``.
    :raises DataError: for an encoder that is no transformer of this process, fewer questions than a step takes, or a
        folder that is there.

    Source: in-batch and hard negatives: Karpukhin et al., Dense Passage Retrieval (EMNLP 2020), section 3.2; late
    interaction: Khattab and Zaharia, ColBERT (SIGIR 2020), section 3.3.
    """
    import torch

    at_least(1, epochs=epochs)
    if not isinstance(encoder, TransformerEncoder):
        raise DataError(f"encoder {encoder.identity} cannot be fine-tuned; take minilm, or the folder of a transformer")
    out = Path(out)
    if out.exists():
        raise DataError(f"{out} is there already; name a folder that is not, or remove it")
    pairs = [(part, i) for part in examples for i in range(len(part.questions))]
    if len(pairs) < QUESTIONS:
        raise DataError(f"{len(pairs)} questions have evidence; fine-tuning takes at least {QUESTIONS}")
    rng = random.Random(seed)
    _, model = load_parts(encoder.path, encoder.identity.model)
    trained = _trained(model)
    optimiser = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
    steps = epochs * (len(pairs) // QUESTIONS)
    losses = []
    with tqdm(total=steps, desc=f"fine-tune {encoder.identity.model}", unit=" steps", disable=not progress) as bar:
        for _ in range(epochs):
            rng.shuffle(pairs)
            for first in range(0, len(pairs) - QUESTIONS + 1, QUESTIONS):
                share = bar.n / steps
                for group in optimiser.param_groups:
                    group["lr"] = RATE * min(1.0, (bar.n + 1) / max(1, steps // 10)) * max(0.05, 1.0 - share)
                loss = _loss(encoder, model, pairs[first : first + QUESTIONS], rng)
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(trained, 1.0)
                optimiser.step()
                losses.append(float(loss.detach()))
                bar.update()
    notes = {"base": encoder.identity.describe(), "questions": len(pairs), "epochs": epochs, "seed": seed}
    last = losses[-max(1, len(losses) // 5) :]
    _write(encoder.path, model, out, {**notes, "loss": round(float(np.mean(last)), 3), **(about or {})})
    return out


def learned_from(path: Path | None) -> tuple[str, ...]:
    """Name the conversations that the encoder of a folder has learned from: none but for a fine-tuned one."""
    try:
        if path is None:
            return ()
        return tuple(json.loads((path / ABOUT).read_text(encoding="utf-8")).get("scopes", ()))
    except (OSError, ValueError, AttributeError):
        return ()


def _trained(model: Any) -> list[Any]:
    """Give the weights that learn: those of the upper layers."""
    number = re.compile(r"\blayers?\.(\d+)\.")
    layers = [int(match[1]) if (match := number.search(name)) else -1 for name, _ in model.named_parameters()]
    first = round(FROZEN * (1 + max(layers, default=-1)))
    for layer, (name, weights) in zip(layers, model.named_parameters(), strict=True):
        weights.requires_grad = layer >= first and "embeddings" not in name
    return [weights for weights in model.parameters() if weights.requires_grad]


def _loss(encoder: TransformerEncoder, model: Any, asked: list[tuple[Examples, int]], rng: random.Random) -> Any:
    """Give the loss of a step: what its questions do not yet tell apart."""
    import torch

    turns: list[tuple[Examples, int]] = []
    for part, i in asked:
        some = [*part.others[i][:HARDEST], *part.others[i]]  # those placed first are drawn more often
        turns += [(part, rng.choice(part.evidence[i])), *((part, t) for t in rng.sample(some, min(OTHERS, len(some))))]
    turns = list({(id(part), t): (part, t) for part, t in turns}.values())
    passages = [(part, rng.randrange(int(part.start[t]), int(part.start[t + 1]))) for part, t in turns]
    wanted = torch.tensor([[other is part and t in part.evidence[i] for other, t in turns] for part, i in asked])
    questions = [part.questions[i] for part, i in asked]

    said, here, _ = _tokens(encoder, model, [p.passages[t] for p, t in passages], [p.before[t] for p, t in passages])
    queries, words, ids = _tokens(encoder, model, questions, None)
    known = [part.rarity[i] for part, i in asked]
    weights = torch.stack([torch.from_numpy(w[np.minimum(row, len(w) - 1)]) for w, row in zip(known, ids, strict=True)])
    weights = weights.to(words.device) * words
    weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-6)
    cosines = torch.einsum("qid,njd->qnij", queries, said).masked_fill(~here[None, :, None, :], -1.0).amax(-1)
    late = (cosines * weights[:, None, :]).sum(-1) / TOKENS_AT
    asked_vectors = _vectors(encoder, model, [encoder.prompt("query") + text for text in questions])
    turn_vectors = _vectors(encoder, model, [encoder.prompt("document") + part.turns[t] for part, t in turns])
    losses = []
    for scores in (late, asked_vectors @ turn_vectors.T / VECTORS_AT):
        chances = torch.log_softmax(scores, 1).masked_fill(~wanted.to(scores.device), -1e9)
        losses.append(-torch.logsumexp(chances, 1).mean())
    return sum(losses)


def _tokens(
    encoder: TransformerEncoder, model: Any, texts: list[str], before: list[str] | None
) -> tuple[Any, Any, Any]:
    """Embed tokens: unit vectors (n, t, d), which are words of the text itself (n, t), and ids (n, t) in numpy."""
    import torch

    sequences, places = encoder.sequences(texts, before=before, kind="query" if before is None else "document")
    ids, mask = encoder.padded(sequences)
    numbers = ids.cpu().numpy()
    own = np.zeros(numbers.shape, bool)
    for row, place in zip(own, places, strict=True):
        row[place] = True
    own &= encoder.words[numbers]
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    return torch.nn.functional.normalize(hidden, dim=-1), torch.from_numpy(own).to(ids.device), numbers


def _vectors(encoder: TransformerEncoder, model: Any, texts: list[str]) -> Any:
    """Embed texts: unit vectors (n, d)."""
    import torch

    ids, mask = encoder.padded(encoder.ids(texts))
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    return torch.nn.functional.normalize(pool(hidden, mask, encoder.pooling), dim=-1)


def _write(source: Path, model: Any, out: Path, about: Mapping[str, Any]) -> None:
    """Write a folder that is there whole or not at all: the base model's files with other weights."""
    with atomic_folder(out) as folder:
        others = shutil.ignore_patterns("*.safetensors", "*.bin", "onnx", "openvino", "README.md")
        shutil.copytree(source, folder, ignore=others, dirs_exist_ok=True)
        with quiet():
            model.save_pretrained(folder)
        (folder / ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")
