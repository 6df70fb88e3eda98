"""Tokens are counted as the model's own tokenizer does, and nothing slips through."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.context import count


def test_counts_are_those_of_a_tokenizer_built_anew() -> None:
    from tokenizers import BertWordPieceTokenizer

    from memlab.embed.transformer import minilm_path

    texts = ["I saw Dr. Lee at 3 p.m.; it cost $1,250!", "", "naïve Überraschung", "word " * 700]
    path = minilm_path()
    assert path is not None
    reference = BertWordPieceTokenizer(vocab=str(path / "vocab.txt"), lowercase=True)
    expected = [len(reference.encode(text, add_special_tokens=False).ids) for text in texts]
    assert count(texts).tolist() == expected


def test_what_the_vocabulary_lacks_costs_its_characters() -> None:
    assert count(["x" * 5_000, "🙂" * 40, "a 🙂 b"]).tolist() == [5_000, 40, 3]


def test_a_batch_counts_as_one_by_one() -> None:
    texts = [f"text number {n}" * (n % 5) for n in range(100)]
    assert count(texts).tolist() == [int(count([text])[0]) for text in texts]


@given(st.lists(st.text(), max_size=4))
@settings(max_examples=50, deadline=None)
def test_lines_add_up(texts: list[str]) -> None:
    lines = [" ".join(text.split()) for text in texts]
    assert int(count(["\n".join(lines)])[0]) <= sum(count(lines))
