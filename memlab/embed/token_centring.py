"""Token vectors without what all tokens of an encoder have in common.

Some encoders give all tokens nearly one direction: the cosine of two random tokens of
multilingual-e5-small is .73 on average. One bit a dimension, which is what is kept of a token (see
:func:`memlab.embed.token_vectors.compress_tokens`), then says mostly that direction, and little of
what distinguishes two tokens. So the mean token is subtracted from those of questions and of turns.
An encoder whose tokens have no such direction ranks better as it is.

The mean is that of some tokens of the encoder's own vocabulary, each read alone: what an encoder is
does not depend on whose conversations it reads first.
"""

from __future__ import annotations

import numpy as np

from memlab.embed.token_vectors import TokenVectors

CENTRE_FROM = 0.6
"""Length of the mean of unit token vectors from which they are centred: two tokens then have a
cosine of .36 on average. It is .31 for MiniLM, and .85 for multilingual-e5-small. A common
direction was added to MiniLM's tokens: up to a mean of .5 late interaction found more of them as
they are, at .63 as much either way, above it more centred.
"""

PROBES = 512
"""Tokens of the vocabulary that the mean is estimated from.

Its length then errs by 1/√512 = .04 at most.
"""

VOCABULARY = "vocabulary-512"
"""How it is called in an encoder's identity, which says so that other vectors are another
encoder's.
"""


def choose_probe_tokens(holds_word: np.ndarray) -> np.ndarray:
    """Choose tokens to estimate the mean from, evenly from the vocabulary, which is mostly in order
    of frequency.

    :param holds_word: (v,) bool, which tokens of the vocabulary hold a letter or a digit.
    :returns: (p,) ids, p at most :data:`PROBES`.

    >>> import numpy as np
    >>> from memlab.embed.token_centring import choose_probe_tokens
    >>> choose_probe_tokens(np.array([False, True, True, False, True])).tolist()
    [1, 2, 4]
    """
    word_ids = np.flatnonzero(holds_word)
    count = min(PROBES, len(word_ids))
    places = np.linspace(0, len(word_ids) - 1, count)
    return word_ids[places.astype(np.int64)]


def has_common_direction(mean_token: np.ndarray) -> bool:
    """Say whether token vectors of this mean are to be centred.

    :param mean_token: (d,) of unit vectors.
    """
    return float(np.linalg.norm(mean_token)) >= CENTRE_FROM


def mean_unit_vector(token_vectors: np.ndarray) -> np.ndarray:
    """Give the mean of some vectors at length 1: (n, d) → (d,) float32; of none it is zero."""
    if not len(token_vectors):
        return np.zeros(token_vectors.shape[1], np.float32)
    return _scale_rows_to_unit(token_vectors.astype(np.float32)).mean(axis=0)


def centre_tokens(tokens: TokenVectors, mean_token: np.ndarray) -> TokenVectors:
    """Subtract the mean token from token vectors, and scale them to length 1 again.

    :param tokens: not yet compressed.
    :param mean_token: (d,) of the encoder.

    Source: Mu and Viswanath, "All-but-the-Top: Simple and Effective Postprocessing for Word
    Representations" (ICLR 2018), without the leading directions.

    >>> import numpy as np
    >>> from memlab.embed.token_centring import centre_tokens
    >>> from memlab.embed.token_vectors import TokenVectors
    >>> rows = np.array([[0.6, 0.8], [-0.6, 0.8]], np.float16)
    >>> two = TokenVectors(np.array([7, 8]), rows, np.array([0, 2]))
    >>> centre_tokens(two, np.array([0.0, 0.8])).vectors.round().astype(int).tolist()
    [[1, 0], [-1, 0]]
    """
    centred = _scale_rows_to_unit(tokens.vectors.astype(np.float32) - mean_token)
    return TokenVectors(tokens.ids, centred.astype(np.float16), tokens.start)


def _scale_rows_to_unit(rows: np.ndarray) -> np.ndarray:
    """Scale rows to length 1; one of zeros stays."""
    row_lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit_vectors: np.ndarray = rows / np.maximum(row_lengths, 1e-12)
    return unit_vectors
