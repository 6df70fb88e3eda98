"""From token vectors to one vector: the pooling modes of sentence-transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def pool(hidden: torch.Tensor, mask: torch.Tensor, modes: tuple[str, ...], *, skip: int = 0) -> torch.Tensor:
    """Pool the token vectors of right-padded texts.

    Raw mean pooling is wrong for a model that was trained with another: the mode comes from the model's own files.

    :param hidden: (texts, tokens, d).
    :param mask: (texts, tokens), 1 on tokens and 0 on padding, which stands on the right.
    :param modes: one or several of :data:`MODES`; several are concatenated in this order.
    :param skip: leading tokens (a prompt) that the model wants left out; a text with no others keeps them all.
    :returns: (texts, d × modes).
    """
    import torch

    kept = mask.clone()
    if skip:
        kept[:, :skip] = 0
        kept = torch.where(kept.sum(1, keepdim=True) == 0, mask, kept)
    return torch.cat([_pool_one(hidden, kept, mode) for mode in modes], dim=-1)


def _pool_one(hidden: torch.Tensor, kept: torch.Tensor, mode: str) -> torch.Tensor:
    import torch

    texts = torch.arange(len(hidden), device=hidden.device)
    weights = kept.unsqueeze(-1).to(hidden.dtype)
    if mode == "cls":
        return hidden[texts, kept.argmax(1)]
    if mode == "lasttoken":
        return hidden[texts, kept.shape[1] - 1 - kept.flip(1).argmax(1)]
    if mode == "max":
        return hidden.masked_fill(weights == 0, float("-inf")).amax(1)
    if mode == "weightedmean":
        weights = weights * torch.arange(1, hidden.shape[1] + 1, device=hidden.device).view(1, -1, 1)
    total = (hidden * weights).sum(1)
    length = weights.sum(1)
    return total / (length.sqrt() if mode == "mean_sqrt_len_tokens" else length)
