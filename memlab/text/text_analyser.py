"""The analyser of retrieval: lower-case words, stemmed, without stop words.

One analyser for documents and questions, BM25, the full-text index and every stage that compares
words. A language brings its stemmer (Snowball's), its stop words and the letters of its alphabet;
accents on other letters are left out before the stemmer, so that "resume" finds "résumé". The
tokens are the same everywhere: runs of two letters or digits, or more.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise

import numpy as np
import polars as pl

from memlab.errors import require_extra
from memlab.text import tokens_and_sentences
from memlab.text.closed_word_classes import FUNCTION_WORDS, read_word_lists
from memlab.text.languages import LANGUAGES, check_language

_log = logging.getLogger("memlab")

ANALYSER = 2
"""Raised by whoever changes what :func:`tokenize` gives; a store then makes its words again."""

_WORD = r"\w{2,}"  # in Rust's syntax, whose \w holds the vowel signs of Hindi or Tamil too
_MAX_STOP_WORDS = 500  # longer lists of stop words hold words with a meaning

OWN_LETTERS: Mapping[str, str] = {
    "ca": "àçèéíïòóúü",
    "cs": "áčďéěíňóřšťúůýž",
    "da": "åæø",
    "de": "äöüß",
    "eo": "ĉĝĥĵŝŭ",
    "es": "áéíñóúü",
    "et": "äõöüšž",
    "eu": "ñü",
    "fi": "åäö",
    "fr": "àâæçèéêëîïôœùûüÿ",
    "ga": "áéíóú",
    "hu": "áéíóöőúüű",
    "it": "àèéìíîòóùú",
    "lt": "ąčęėįšųūž",
    "nl": "áäèéëíïóöúü",
    "no": "åæø",
    "pl": "ąćęłńóśźż",
    "pt": "àáâãçéêíóôõúü",
    "ro": "ăâîșțşţ",
    "sr": "čćđšž",
    "sv": "åäö",
    "tr": "çğıöşü",
}
"""The letters of an alphabet beside a to z, which its stemmer knows: a Swedish "får" is no "far".
"""

OFTEN_BARE = frozenset({"ca", "es", "fr", "it", "pt"})
"""Languages whose accents are often left out in chats: those go after the stemmer.

They show stress or sound.
"""

# Another letter to those who read these languages, not an n with an accent.
_APART = "ñ"

_UNDECOMPOSED = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ß": "ss", "ı": "i"}
)


@lru_cache(maxsize=256)
def english_rules_apply_or_warn(language: str, rules_subject: str) -> bool:
    """Say whether rules for English apply to a language; that they do not is logged, once for each.

    :param rules_subject: what they do, as the subject of a sentence: "the splitting of questions".
    """
    if language != "en":
        language_name = LANGUAGES.get(language, language)
        _log.warning(
            "%s knows English alone and is left out of conversations in %s; all else works",
            rules_subject,
            language_name,
        )
    return language == "en"


def tokenize(texts: Sequence[str], *, language: str = "en", stem: bool = True) -> list[list[str]]:
    """Split texts into words without stop words, the same way for documents and questions.

    :param language: a code of :data:`LANGUAGES`.
    :param stem: whether to cut the words to their stems.
    :returns: the words of each text, in its order.
    :raises DataError: for an unknown language.

    >>> from memlab.text.text_analyser import tokenize
    >>> tokenize(["How many doctors did I see when I moved?"])
    [['doctor', 'see', 'move']]
    >>> tokenize(["Wie viele Ärzte habe ich besucht?"], language="de")
    [['viel', 'arzt', 'besucht']]
    >>> tokenize(["her résumé", "her resume"])
    [['resum'], ['resum']]
    """
    # One row for each word, with the place of its text.
    extracted = pl.col("word").str.to_lowercase().str.extract_all(_WORD)
    is_stop_word = pl.col("word").is_in(_stop_words_as_series(language))
    word_rows = (
        pl.LazyFrame({"word": texts}, schema={"word": pl.String})
        .select(text=pl.int_range(pl.len()), word=extracted)
        .explode("word")
        .filter(pl.col("word").is_not_null() & ~is_stop_word)
        .collect()
    )
    # Each different word is folded and stemmed once.
    different_words = word_rows["word"].unique(maintain_order=True).to_list()
    folded_words = _fold_accents_of_words(different_words, OWN_LETTERS.get(language, ""))
    if stem:
        folded_words = tokens_and_sentences.stem(folded_words, language)
    if language in OFTEN_BARE:
        folded_words = _fold_accents_of_words(folded_words, _APART)
    form_by_word = dict(zip(different_words, folded_words, strict=True))
    words = [form_by_word[word] for word in word_rows["word"].to_list()]
    text_bounds = np.searchsorted(word_rows["text"].to_numpy(), np.arange(len(texts) + 1)).tolist()
    return [words[start:end] for start, end in pairwise(text_bounds)]


def _fold_accents_of_words(words: list[str], kept_letters: str) -> list[str]:
    return [word if word.isascii() else fold_accents(word, kept_letters) for word in words]


@lru_cache(maxsize=100_000)
def fold_accents(word: str, kept_letters: str = "") -> str:
    """Write the Latin letters of a word without accents; letters of other scripts stay as they are.

    :param kept_letters: letters that stay too, lower-case and composed.

    >>> from memlab.text.text_analyser import fold_accents
    >>> fold_accents("café"), fold_accents("łódź"), fold_accents("får", "åäö"), fold_accents("мой")
    ('cafe', 'lodz', 'får', 'мой')
    """
    composed = unicodedata.normalize("NFC", word)
    return "".join(_fold_accent_of_letter(letter, kept_letters) for letter in composed)


def _fold_accent_of_letter(letter: str, kept_letters: str) -> str:
    """Write a letter without its accent; one that is kept or not Latin stays as it is."""
    if letter in kept_letters:
        return letter
    decomposed = unicodedata.normalize("NFKD", letter.translate(_UNDECOMPOSED))
    base_letters = "".join(part for part in decomposed if not unicodedata.combining(part))
    if base_letters and base_letters.isascii():
        return base_letters
    return letter


@lru_cache(maxsize=len(LANGUAGES))
def _stop_words_as_series(language: str) -> pl.Series:
    return pl.Series(sorted(stop_words(language)), dtype=pl.String).implode()


@lru_cache(maxsize=len(LANGUAGES))
def stop_words(language: str = "en") -> frozenset[str]:
    """List the stop words of a language: function words alone.

    Any other word may matter to a question.

    English has the closed classes of :mod:`memlab.text.closed_word_classes`, eleven languages have
    NLTK's lists as ``bm25s`` brings them, thirteen those of ``stopwordsiso``, and all these the
    words that questions begin with. Finnish, Greek, Hungarian and Indonesian leave out the latter
    alone, and Persian, Nepali, Serbian, Tamil and Yiddish nothing: there is no list, or one of more
    than 700 words, with "year" and "place" among them.

    :raises DataError: for an unknown language.
    """
    language_name = LANGUAGES[check_language(language)]
    if language == "en":
        return FUNCTION_WORDS
    with require_extra("languages", f"text in {language_name}"):
        import stopwordsiso
        from bm25s import stopwords
    listed_words = getattr(stopwords, f"STOPWORDS_{language_name.upper()}", None)
    if not listed_words:
        listed_words = stopwordsiso.stopwords(language)
    if language == "lt":  # its list was read in a wrong encoding
        listed_words = [word.encode("latin-1").decode("iso8859-13") for word in listed_words]
    if len(listed_words) > _MAX_STOP_WORDS:
        listed_words = ()
    question_words = read_word_lists()["asking"].get(language, "").split()
    return frozenset(listed_words).union(question_words)


def snippet(text: str, question: str, *, length: int = 260, language: str = "en") -> str:
    """Cut a message to the sentence that shares most words with a question, and what is around it.

    >>> from memlab.text.text_analyser import snippet
    >>> text = "Hello. " * 30 + "Dr. Ruiz saw my knee. " + "Bye. " * 30
    >>> snippet(text, "which doctors saw my knee", length=40)
    '… Dr. Ruiz saw my knee. Bye. Bye. Bye. …'
    """
    return snippets([text], question, length=length, language=language)[0]


def snippets(
    texts: Sequence[str], question: str, *, length: int = 260, language: str = "en"
) -> list[str]:
    """Cut many messages as :func:`snippet` does one."""
    sentences = [_nonblank_sentences_or_whole(text) for text in texts]
    # The words of all sentences at once, and then by text again.
    question_words, *sentence_words = tokenize(
        [question, *chain.from_iterable(sentences)], language=language
    )
    wanted_words = set(question_words)
    shared_counts = (len(wanted_words.intersection(words)) for words in sentence_words)
    cut_texts = []
    for text, text_sentences in zip(texts, sentences, strict=True):
        sentence_counts = list(islice(shared_counts, len(text_sentences)))
        best_place = int(np.argmax(sentence_counts))
        cut_texts.append(_cut_to_best_sentence(text, text_sentences, best_place, length))
    return cut_texts


def _nonblank_sentences_or_whole(text: str) -> list[str]:
    sentences = [sentence for sentence in tokens_and_sentences.sentences(text) if sentence.strip()]
    return sentences or [text]


def _cut_to_best_sentence(text: str, sentences: list[str], best_place: int, max_length: int) -> str:
    """Cut a text to the best of its sentences and as many behind it as have room."""
    if len(text) <= max_length:
        return text
    end_place = best_place + 1
    while (
        end_place < len(sentences)
        and len(" ".join(sentences[best_place : end_place + 1])) <= max_length
    ):
        end_place += 1
    shown_text = " ".join(sentences[best_place:end_place])
    if len(shown_text) > max_length:
        shown_text = shown_text[: max_length - 1].rstrip() + "…"
    if end_place < len(sentences) and not shown_text.endswith("…"):
        shown_text += " …"
    if best_place > 0:
        shown_text = f"… {shown_text}"
    return shown_text
