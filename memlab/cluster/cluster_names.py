"""What clusters, sessions and weeks are about, in a few of their own phrases."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from math import log, sqrt
from typing import NamedTuple

import numpy as np
import polars as pl
from tqdm import tqdm

from memlab.cluster.clusterers import NOISE
from memlab.errors import DataError, require_extra
from memlab.text.analysis import stop_words
from memlab.text.languages import LANGUAGES, check_language
from memlab.text.tokens import Token, stem, tokens
from memlab.text.words import CONTRACTIONS, MODALS, NUMBERS, STOP_WORDS, TIMES, word_lists, wordset

# Weights of a word that every cluster has, of each further word of a phrase, and of a word that
# several speakers use: chosen on three conversations of LoCoMo.
_COMMON, _PER_WORD, _SHARED = 0.2, 0.5, 3.0
_MOST_CHARS, _MOST_WORDS, _SHORTEST_NICKNAME = 60, 4, 3
# Chats leave the apostrophe out: "dont". These five are words of their own without it.
_WITHOUT_APOSTROPHE = {word.replace("'", "") for word in CONTRACTIONS} - wordset(
    "hell id shed shell wed"
)
_NOT_ABOUT = STOP_WORDS.union(
    NUMBERS, TIMES, _WITHOUT_APOSTROPHE, word_lists()["not_about"].split()
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
    >>> texts = ["The cat sat.", "A cat and a dog.", "Old steam trains run late.", "I take steam trains!", "noise"]
    >>> cluster_terms(texts, np.array([0, 0, 1, 1, -1]), n_terms=1)["terms"].to_list()
    [['cat'], ['steam trains']]
    """
    numbers, who = (
        np.asarray(labels).tolist(),
        list(speakers if speakers is not None else [""] * len(texts)),
    )
    if not len(texts) == len(numbers) == len(who):
        raise DataError(
            f"{len(texts)} texts but {len(numbers)} labels and {len(who)} speakers; give one for each text"
        )
    # What people are called: the words of their names, and how these begin ("joan" of "Joanna").
    names = {
        word for name in set(speakers or ()) for word in re.findall(r"[^\W\d_]+", name.lower())
    }
    names |= {word[:n] for word in names for n in range(_SHORTEST_NICKNAME, len(word))}
    split = [tokens(text) for text in texts]
    forms = _read_forms({word.text for words in split for word in words}, names, language)
    lower = {text for text in forms if text.islower()}
    before_verbs = _BEFORE_VERBS if language == "en" else frozenset()

    sizes = Counter(number for number in numbers if number != NOISE)
    clusters = {number: _Cluster() for number in sorted(sizes)}
    rows = zip(numbers, who, texts, split, strict=True)
    for number, speaker, text, words in tqdm(
        rows, "naming", len(texts), unit=" texts", delay=2, leave=False
    ):
        if number == NOISE:
            continue
        cluster = clusters[number]
        for word in words:
            form = forms[word.text]
            if form.can_name:
                cluster.words[form.stem] += 1
                cluster.speakers[form.stem].add(speaker)
        for phrase in _phrases(text, words, forms, before_verbs):
            own = [forms[word.text] for word in phrase]
            if not all(form.can_name for form in own):
                continue
            start = phrase[0].start
            # It would begin in the middle of a word with a hyphen.
            if start and text[start - 1] == "-":
                continue
            written = _POSSESSIVE.sub("", text[start : phrase[-1].end])
            if (
                not start and phrase[0].text.lower() in lower
            ):  # a capital that begins a text is no name
                written = written[:1].lower() + written[1:]
            if len(written) <= _MOST_CHARS:
                cluster.forms[tuple(form.stem for form in own)][written] += 1
    frequency = Counter(word for cluster in clusters.values() for word in cluster.words)
    rarity = {
        word: log((len(clusters) + 1) / (df + 0.5)) + _COMMON for word, df in frequency.items()
    }
    occurrences = Counter[tuple[str, ...]]()
    for cluster in clusters.values():
        for stemmed, written_forms in cluster.forms.items():
            occurrences[stemmed] += written_forms.total()
    repeated = {stemmed for stemmed, count in occurrences.items() if count > 1}
    named = [
        (number, sizes[number], cluster.terms(rarity, n_terms, repeated))
        for number, cluster in clusters.items()
    ]
    return pl.DataFrame(
        named, {"label": pl.Int64, "size": pl.UInt32, "terms": pl.List(pl.String)}, orient="row"
    )


class _Cluster:
    """The stems of one cluster's words and who uses them, and its phrases in the forms in which they are written."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.speakers: defaultdict[str, set[str]] = defaultdict(set)
        self.forms: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)

    def terms(
        self, rarity: Mapping[str, float], n_terms: int, repeated: Set[tuple[str, ...]]
    ) -> list[str]:
        """Give the best phrases that share no word; one word alone is written with what mostly stands before it.

        :param repeated: phrases that the clusters have more than once between them.
        """

        by_word = {}
        for word, often in self.words.items():
            shared = _SHARED if len(self.speakers[word]) > 1 else 1.0
            by_word[word] = (often - 0.5) * rarity[word] * shared

        def weight(phrase: tuple[str, ...]) -> float:
            of_words = sum(by_word[word] for word in phrase)
            often = sqrt(count[phrase]) if len(phrase) > 1 else 1.0
            return of_words / len(phrase) * (1 + _PER_WORD * (len(phrase) - 1)) * often

        count = {
            phrase: forms.total()
            for phrase, forms in self.forms.items()
            if len(set(phrase)) == len(phrase)
        }
        known = [phrase for phrase in count if len(phrase) == 1 or phrase in repeated]
        # Of equals the longer: a long word says more.
        ranked = sorted(
            known, key=lambda phrase: (-round(weight(phrase), 9), -len("".join(phrase)), phrase)
        )
        chosen, taken = list[str](), set[str]()
        for phrase in ranked:
            if len(chosen) < n_terms and taken.isdisjoint(phrase):
                longer = [
                    p for p in ranked if len(p) > 1 and p[-1:] == phrase and taken.isdisjoint(p)
                ]
                best = max(longer, key=lambda p: count[p], default=phrase)
                chosen.append(self.forms[best].most_common(1)[0][0])
                taken |= set(best)
        return chosen


@cache
def content_word_filter(language: str) -> Callable[[Token], bool]:
    """Give what says whether a text in a language could be about a word.

    English leaves out function words, courtesy, times and vague words, other languages the stop
    words of ``stopwordsiso``. Without such a list there are no content words, and a line in the log
    says so.

    >>> from memlab.cluster.cluster_names import content_word_filter
    >>> from memlab.text.tokens import tokens
    >>> [word.text for word in tokens("Ich trinke jetzt jeden Tag Wasser") if content_word_filter("de")(word)]
    ['trinke', 'Wasser']
    """
    if check_language(language) == "en":
        return _is_content_word
    with require_extra("languages", f"text in {LANGUAGES[language]}"):
        import stopwordsiso

    stop = stopwordsiso.stopwords(language) | stop_words(language)
    if not stopwordsiso.has_lang(language):
        _log.warning(
            "no list of stop words in %s: clusters and topics stay without names",
            LANGUAGES[language],
        )
        return lambda word: False
    return lambda word: len(word.key) > 1 and word.key not in stop and word.text.isalpha()


def _is_content_word(word: Token) -> bool:
    bare = word.key.rstrip("stndrh") if word.key[0].isdigit() else word.key  # "12th" is a time
    return len(word.key) > 1 and word.key not in _NOT_ABOUT and any(map(str.isalpha, bare))


class _Form(NamedTuple):
    """What is known of a word in the form in which it is written.

    :param is_content: whether a text could be about it.
    :param can_name: whether it can stand in a name too: nobody is called so.
    """

    key: str
    stem: str
    is_content: bool
    can_name: bool


def _read_forms(written: Set[str], names: Set[str], language: str) -> dict[str, _Form]:
    """Look each different form of a word up once; a text has it again and again.

    :param names: what people are called, in lower case.
    """
    is_content_word = content_word_filter(language)
    words = [Token(text, 0, len(text)) for text in written]
    keys = [word.key for word in words]
    forms = {}
    for word, key, stemmed in zip(words, keys, stem(keys, language), strict=True):
        is_content = is_content_word(word)
        is_name = word.text[0].isupper() and key in names
        forms[word.text] = _Form(key, stemmed, is_content, is_content and not is_name)
    return forms


def _phrases(
    text: str, words: Sequence[Token], forms: Mapping[str, _Form], before_verbs: Set[str]
) -> Iterator[tuple[Token, ...]]:
    """Give the runs of up to four content words, and the ends of each run.

    Between the words of a run is nothing but a space or a hyphen.
    """
    run = list[Token]()
    before = ""
    for word in words:
        form = forms[word.text]
        if not form.is_content or before in before_verbs:
            run = []
        elif run and text[run[-1].end : word.start] in (" ", "-"):
            run = [*run[1 - _MOST_WORDS :], word]
        else:
            run = [word]
        before = form.key
        for start in range(len(run)):
            yield tuple(run[start:])
