"""What is subtracted from the vectors of a speaker, by hand, and what few turns or speakers give."""

from __future__ import annotations

import numpy as np
import pytest

from memlab.embed.speaker_centring import SHRINKAGE, centre_by_speaker, sum_vectors_by_speaker
from memlab.errors import DataError


def unit(rows: np.ndarray) -> np.ndarray:
    wide = np.asarray(rows, dtype=np.float64)
    return wide / np.linalg.norm(wide, axis=-1, keepdims=True)


def test_the_mean_of_the_speaker_is_subtracted_by_the_formula() -> None:
    rng = np.random.default_rng(0)
    vectors = unit(rng.normal(size=(7, 5))).astype(np.float32)
    speakers = ["Mika", "Ana", "Mika", "Mika", "", "Ana", "Mika"]
    centred = centre_by_speaker(vectors, speakers)
    wide = vectors.astype(np.float64)
    scope = wide.sum(axis=0) / (7 + SHRINKAGE)
    for name in ("Mika", "Ana"):
        own = np.array([speaker == name for speaker in speakers])
        mean = (wide[own].sum(axis=0) + SHRINKAGE * scope) / (own.sum() + SHRINKAGE)
        np.testing.assert_allclose(centred[own], unit(wide[own] - mean), atol=1e-6)
    np.testing.assert_allclose(centred[4], unit(wide[4] - scope), atol=1e-6)


def test_a_name_that_all_turns_share_no_longer_makes_them_similar() -> None:
    rng = np.random.default_rng(1)
    names, topics = np.eye(22)[:2], np.eye(22)[2:]
    speaker, topic = np.repeat([0, 1], 100), np.tile(np.arange(20), 10)
    noise = 0.1 * rng.normal(size=(200, 22))
    vectors = unit(2 * names[speaker] + topics[topic] + noise).astype(np.float32)
    centred = centre_by_speaker(vectors, speaker.astype(str).tolist())
    for rows, lowest, highest in ((vectors, 0.95, 1.0), (centred, 0.4, 0.65)):
        similar = rows @ rows.T
        np.fill_diagonal(similar, -1)
        assert lowest <= (speaker[similar.argmax(axis=1)] == speaker).mean() <= highest
    similar = centred @ centred.T
    np.fill_diagonal(similar, -1)
    assert (topic[similar.argmax(axis=1)] == topic).mean() == 1.0


def test_few_turns_are_not_set_against_each_other() -> None:
    rng = np.random.default_rng(2)
    vectors = unit(rng.normal(size=(40, 30)) + 1).astype(np.float32)
    alone = centre_by_speaker(vectors[:1], ["Mika"])
    np.testing.assert_allclose(alone, vectors[:1], atol=1e-6)  # as it is encoded
    pair = centre_by_speaker(vectors[:2], ["Mika", "Mika"])
    assert pair[0] @ pair[1] > 0
    speakers = ["Ana"] * 37 + ["Mika", "Mika", "Joe"]
    centred = centre_by_speaker(vectors, speakers)
    assert abs(centred[37] @ centred[38]) < 0.5
    np.testing.assert_allclose(np.linalg.norm(centred, axis=1), 1, atol=1e-6)
    scope = vectors.sum(axis=0, dtype=np.float64) / (40 + SHRINKAGE)
    joe = vectors[39] - (vectors[39] + SHRINKAGE * scope) / (1 + SHRINKAGE)
    np.testing.assert_allclose(centred[39], unit(joe), atol=1e-6)
    np.testing.assert_allclose(centred[39], unit(vectors[39] - scope), atol=1e-6)


@pytest.mark.parametrize("copies", [1, 2, 3, 1000])
def test_equal_vectors_stay_equal_and_have_length_one(copies: int) -> None:
    same = unit(np.arange(1.0, 9.0)).astype(np.float32)
    centred = centre_by_speaker(np.tile(same, (copies, 1)), ["Mika"] * copies)
    assert (centred == centred[0]).all()
    np.testing.assert_allclose(centred[0], same, atol=1e-5)


def test_turns_of_nobody_are_centred_on_the_scope_and_zeros_stay_zero() -> None:
    vectors = np.vstack([unit(np.random.default_rng(3).normal(size=(5, 4))), np.zeros((1, 4))])
    centred = centre_by_speaker(vectors.astype(np.float32), [None, "", None, "", None, "Ana"])
    mean = vectors.sum(axis=0) / (6 + SHRINKAGE)
    np.testing.assert_allclose(centred[:5], unit(vectors[:5] - mean), atol=1e-6)
    assert not centred[5].any()
    assert centre_by_speaker(np.zeros((0, 4), np.float32), []).shape == (0, 4)


def test_some_turns_of_a_scope_are_centred_as_among_all() -> None:
    vectors = unit(np.random.default_rng(4).normal(size=(60, 8))).astype(np.float32)
    speakers = ["Mika", "Ana", "Joe"] * 20
    sums = sum_vectors_by_speaker(vectors, speakers)
    part = centre_by_speaker(vectors[10:20], speakers[10:20], sums=sums)
    assert np.array_equal(part, centre_by_speaker(vectors, speakers)[10:20])
    stranger = centre_by_speaker(vectors[:1], ["Zoe"], sums=sums)
    nobody = centre_by_speaker(vectors[:1], [""], sums=sums)
    assert np.array_equal(stranger, nobody)
    with pytest.raises(DataError, match="3 vectors but 2 speakers"):
        centre_by_speaker(vectors[:3], ["Mika", "Ana"])
