"""What clusters, sessions and weeks are about, in a few of their own phrases."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import chain
from math import log, sqrt
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.cluster.clusterers import NOISE
from memlab.errors import DataError, require_extra
from memlab.progress_bars import progress_bar
from memlab.text.closed_word_classes import (
    CONTRACTIONS,
    MODALS,
    NUMBERS,
    STOP_WORDS,
    TIMES,
    read_word_lists,
    wordset,
)
from memlab.text.languages import LANGUAGES, check_language
from memlab.text.text_analyser import stop_words
from memlab.text.tokens_and_sentences import Token, stem, tokens

# Weights of a word that every cluster has, of each further word of a phrase, and of a word that
# several speakers use: chosen on three conversations of LoCoMo.
_COMMON, _PER_WORD, _SHARED = 0.2, 0.5, 3.0
_MOST_CHARS, _MOST_WORDS, _SHORTEST_NICKNAME = 60, 4, 3
# Chats leave the apostrophe out: "dont". These five are words of their own without it.
_WITHOUT_APOSTROPHE = {word.replace("'", "") for word in CONTRACTIONS} - wordset(
    "hell id shed shell wed"
)
_NOT_ABOUT = STOP_WORDS.union(
    NUMBERS, TIMES, _WITHOUT_APOSTROPHE, read_word_lists()["not_about"].split()
)
# After these an English word is a verb: "we show emotions".
_BEFORE_VERBS = wordset("i you he she we they") | MODALS | CONTRACTIONS
_POSSESSIVE = re.compile(r"['’]s$")
_log = logging.getLogger("memlab")


def cluster_terms(
    texts: Sequence[str],
    labels: np.ndarray,
    *,
    n_terms: int = 3,
    speakers: Sequence[str] | None = None,
    language: str = "en",
) -> pl.DataFrame:
    """Name each cluster by the phrases that set it apart: class-based TF-IDF.

    A cluster's texts count as one document; a word weighs how often the cluster has it, by how few
    other clusters do, three times as much where several speakers use it. A phrase weighs the mean
    of its words, more with each further word and with the root of how often it occurs; one of
    several words counts only where the texts have it twice. Of phrases that share a word the best
    stays.

    :param labels: (n,) integers, ``NOISE`` = −1 for noise, which gets no name.
    :param n_terms: how many terms to give; fewer where a cluster has fewer.
    :param speakers: of each text; their names are no terms.
    :param language: of the texts, ISO 639-1.
    :returns: ``label``, ``size``, ``terms`` (the best first), one row a cluster in order of label.
    :raises DataError: when the lengths differ.

    Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", 2022,
    section 3.3.

    >>> import numpy as np
    >>> from memlab.cluster import cluster_terms
    >>> texts = ["The cat sat.", "A cat and a dog.", "Old steam trains run late."]
    >>> texts += ["I take steam trains!", "noise"]
    >>> cluster_terms(texts, np.array([0, 0, 1, 1, -1]), n_terms=1)["terms"].to_list()
    [['cat'], ['steam trains']]
    """
    label_list = np.asarray(labels).tolist()
    speaker_list = [""] * len(texts) if speakers is None else list(speakers)
    if not len(texts) == len(label_list) == len(speaker_list):
        raise DataError(
            f"{len(texts)} texts but {len(label_list)} labels and {len(speaker_list)} speakers; "
            "give one for each text"
        )
    words_of_texts = [tokens(text) for text in texts]
    vocabulary = _Vocabulary(
        words_of_texts, _name_words_and_nicknames(set(speakers or ())), language
    )
    cluster_sizes = Counter(label_list)
    cluster_sizes.pop(NOISE, None)
    clusters = {label: _ClusterCounts() for label in sorted(cluster_sizes)}
    text_rows = zip(label_list, speaker_list, texts, words_of_texts, strict=True)
    progress = progress_bar(
        text_rows, what="naming", total=len(texts), unit="texts", delay=2, leave=False
    )
    for label, speaker, text, text_words in progress:
        if label != NOISE:
            clusters[label].count_text(text, text_words, speaker, vocabulary)

    rarity = _rarity_across_clusters_by_stem(clusters.values())
    repeated = _repeated_phrases(clusters.values())
    term_rows = []
    for label, cluster in clusters.items():
        term_rows.append(
            (label, cluster_sizes[label], cluster.best_terms(rarity, n_terms, repeated))
        )
    term_schema = pl.Schema({"label": pl.Int64(), "size": pl.UInt32(), "terms": pl.List(pl.String)})
    return pl.DataFrame(term_rows, term_schema, orient="row")


def _name_words_and_nicknames(speaker_names: Iterable[str]) -> set[str]:
    """List what people are called: words of their names, and how these begin ("joan": "Joanna")."""
    name_words: set[str] = set()
    for speaker in speaker_names:
        name_words.update(re.findall(r"[^\W\d_]+", speaker.lower()))
    known_names = set(name_words)
    for name_word in name_words:
        known_names.update(
            name_word[:n_letters] for n_letters in range(_SHORTEST_NICKNAME, len(name_word))
        )
    return known_names


class _Vocabulary:
    """What is known of each form of a word that the texts have, looked up once for all of them."""

    def __init__(
        self, words_of_texts: Sequence[Sequence[Token]], names: Set[str], language: str
    ) -> None:
        written_forms = {token.text for token in chain.from_iterable(words_of_texts)}
        self.forms = _look_up_word_forms(written_forms, names, language)
        self.lower_case = set(filter(str.islower, written_forms))
        self.before_verbs: Set[str] = frozenset()
        if language == "en":
            self.before_verbs = _BEFORE_VERBS


def _rarity_across_clusters_by_stem(clusters: Collection[_ClusterCounts]) -> dict[str, float]:
    """Weigh words by how few clusters have them."""
    n_clusters = Counter(chain.from_iterable(cluster.words for cluster in clusters))
    rarity_by_word = {}
    for word, count in n_clusters.items():
        rarity_by_word[word] = log((len(clusters) + 1) / (count + 0.5)) + _COMMON
    return rarity_by_word


def _repeated_phrases(clusters: Iterable[_ClusterCounts]) -> set[tuple[str, ...]]:
    """List the phrases that the clusters have more than once between them."""
    occurrences = Counter[tuple[str, ...]]()
    for cluster in clusters:
        for phrase, forms in cluster.forms.items():
            occurrences[phrase] += forms.total()
    return {phrase for phrase, count in occurrences.items() if count > 1}


class _ClusterCounts:
    """The stems of one cluster's words and who uses them, and its phrases as they are written."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.speakers: defaultdict[str, set[str]] = defaultdict(set)
        self.forms: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)

    def count_text(
        self, text: str, text_words: Sequence[Token], speaker: str, vocabulary: _Vocabulary
    ) -> None:
        """Count the words and phrases of a text that may be in a term."""
        forms = vocabulary.forms
        for word in text_words:
            word_form = forms[word.text]
            if word_form.can_name:
                self.words[word_form.stem] += 1
                self.speakers[word_form.stem].add(speaker)
        for phrase in _content_word_phrases(text, text_words, forms, vocabulary.before_verbs):
            phrase_stems = _phrase_stems_or_empty(phrase, forms)
            if not phrase_stems:
                continue
            phrase_start = phrase[0].start
            if phrase_start and text[phrase_start - 1] == "-":
                continue  # the end of a word
            written_phrase = _POSSESSIVE.sub("", text[phrase_start : phrase[-1].end])
            # A capital that begins a text is no name.
            if phrase_start == 0 and phrase[0].text.lower() in vocabulary.lower_case:
                written_phrase = written_phrase[:1].lower() + written_phrase[1:]
            if len(written_phrase) <= _MOST_CHARS:
                self.forms[phrase_stems][written_phrase] += 1

    def best_terms(
        self,
        rarity_by_stem: Mapping[str, float],
        n_terms: int,
        repeated_phrases: Set[tuple[str, ...]],
    ) -> list[str]:
        """List the best phrases that share no word.

        One word alone is written with what mostly stands before it.

        :param repeated_phrases: phrases that the clusters have more than once between them.
        """

        def phrase_rank_key(phrase: tuple[str, ...]) -> tuple[float, int, tuple[str, ...]]:
            # Of equals the longer: a long word says more.
            return (
                -round(self._phrase_weight(phrase, rarity_by_stem), 9),
                -len("".join(phrase)),
                phrase,
            )

        candidates = []
        for phrase in self.forms:
            if len(set(phrase)) < len(phrase):
                continue  # a word twice
            if len(phrase) == 1 or phrase in repeated_phrases:
                candidates.append(phrase)
        ranked_phrases = sorted(candidates, key=phrase_rank_key)
        chosen_terms: list[str] = []
        taken_words: set[str] = set()
        for phrase in ranked_phrases:
            if len(chosen_terms) == n_terms:
                break
            if taken_words.isdisjoint(phrase):
                best_phrase = self._most_frequent_phrase_ending_in(
                    phrase, ranked_phrases, taken_words
                )
                ((written_form, _),) = self.forms[best_phrase].most_common(1)
                chosen_terms.append(written_form)
                taken_words.update(best_phrase)
        return chosen_terms

    def _phrase_weight(
        self, phrase_stems: tuple[str, ...], rarity_by_stem: Mapping[str, float]
    ) -> float:
        """Weigh a phrase by its words, their number, and how often it occurs."""
        word_weights = []
        for phrase_word in phrase_stems:
            speaker_factor = _SHARED if len(self.speakers[phrase_word]) > 1 else 1.0
            word_weights.append(
                (self.words[phrase_word] - 0.5) * rarity_by_stem[phrase_word] * speaker_factor
            )
        frequency_factor = 1.0
        if len(phrase_stems) > 1:
            frequency_factor = sqrt(self.forms[phrase_stems].total())
        return (
            sum(word_weights)
            / len(phrase_stems)
            * (1 + _PER_WORD * (len(phrase_stems) - 1))
            * frequency_factor
        )

    def _most_frequent_phrase_ending_in(
        self,
        ending: tuple[str, ...],
        ranked_phrases: Sequence[tuple[str, ...]],
        taken_words: Set[str],
    ) -> tuple[str, ...]:
        """Find the phrase that mostly ends in a word; the word itself where there is none."""
        best_phrase = ending
        highest_count = 0
        for phrase in ranked_phrases:
            is_longer = len(phrase) > 1 and phrase[-1:] == ending
            if not is_longer or not taken_words.isdisjoint(phrase):
                continue
            phrase_count = self.forms[phrase].total()
            if phrase_count > highest_count:
                best_phrase = phrase
                highest_count = phrase_count
        return best_phrase


@cache
def content_word_test_of_language(language: str) -> Callable[[Token], bool]:
    """Give what says whether a text in a language could be about a word.

    English leaves out function words, courtesy, times and vague words, other languages the stop
    words of ``stopwordsiso``. Without such a list there are no content words, and a line in the log
    says so.

    >>> from memlab.cluster.key_terms import content_word_test_of_language
    >>> from memlab.text.tokens_and_sentences import tokens
    >>> is_content = content_word_test_of_language("de")
    >>> [word.text for word in tokens("Ich trinke jetzt jeden Tag Wasser") if is_content(word)]
    ['trinke', 'Wasser']
    """
    if check_language(language) == "en":
        return _is_english_content_word
    with require_extra("languages", f"text in {LANGUAGES[language]}"):
        import stopwordsiso

    excluded_words = stopwordsiso.stopwords(language) | stop_words(language)
    if not stopwordsiso.has_lang(language):
        _log.warning(
            "no list of stop words in %s: clusters and topics stay without names",
            LANGUAGES[language],
        )
        return lambda word: False
    return lambda word: len(word.key) > 1 and word.key not in excluded_words and word.text.isalpha()


def _is_english_content_word(word: Token) -> bool:
    if len(word.key) < 2 or word.key in _NOT_ABOUT:
        return False
    bare_form = word.key
    if bare_form[0].isdigit():
        bare_form = bare_form.rstrip("stndrh")  # "12th" is a time
    return any(map(str.isalpha, bare_form))


class _WordForm(NamedTuple):
    """What is known of a word in the form in which it is written.

    :param is_content: whether a text could be about it.
    :param can_name: whether it can stand in a name too: nobody is called so.
    """

    key: str
    stem: str
    is_content: bool
    can_name: bool


def _look_up_word_forms(
    written_words: Set[str], name_words: Set[str], language: str
) -> dict[str, _WordForm]:
    """Look each different form of a word up once; a text has it again and again.

    :param name_words: what people are called, in lower case.
    """
    is_content_word = content_word_test_of_language(language)
    written_tokens = [Token(text, 0, len(text)) for text in written_words]
    token_keys = [token.key for token in written_tokens]
    form_by_text = {}
    for token, token_key, token_stem in zip(
        written_tokens, token_keys, stem(token_keys, language), strict=True
    ):
        is_content = is_content_word(token)
        is_name = token.text[0].isupper() and token_key in name_words
        form_by_text[token.text] = _WordForm(
            token_key, token_stem, is_content, is_content and not is_name
        )
    return form_by_text


def _phrase_stems_or_empty(
    phrase: Iterable[Token], form_by_word: Mapping[str, _WordForm]
) -> tuple[str, ...]:
    """Give the stems of a phrase; none where one of its words cannot stand in a name."""
    phrase_stems: list[str] = []
    for phrase_word in phrase:
        word_form = form_by_word[phrase_word.text]
        if not word_form.can_name:
            return ()
        phrase_stems.append(word_form.stem)
    return tuple(phrase_stems)


def _content_word_phrases(
    text: str,
    text_words: Sequence[Token],
    form_by_word: Mapping[str, _WordForm],
    before_verbs: Set[str],
) -> Iterator[tuple[Token, ...]]:
    """Give the runs of up to four content words, and the ends of each run.

    Between the words of a run is nothing but a space or a hyphen.
    """
    content_run = list[Token]()
    previous_key = ""
    for word in text_words:
        word_form = form_by_word[word.text]
        if not word_form.is_content or previous_key in before_verbs:
            content_run = []
        elif content_run and text[content_run[-1].end : word.start] in (" ", "-"):
            content_run = [*content_run[1 - _MOST_WORDS :], word]
        else:
            content_run = [word]
        previous_key = word_form.key
        for run_start in range(len(content_run)):
            yield tuple(content_run[run_start:])
