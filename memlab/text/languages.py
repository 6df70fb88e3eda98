"""The languages that people may speak in a dataset: those that there is a Snowball stemmer for."""

from __future__ import annotations

from collections.abc import Mapping

from memlab.errors import DataError

LANGUAGES: Mapping[str, str] = {
    "ar": "Arabic",
    "hy": "Armenian",
    "eu": "Basque",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "nl": "Dutch",
    "en": "English",
    "eo": "Esperanto",
    "et": "Estonian",
    "fi": "Finnish",
    "fr": "French",
    "de": "German",
    "el": "Greek",
    "hi": "Hindi",
    "hu": "Hungarian",
    "id": "Indonesian",
    "ga": "Irish",
    "it": "Italian",
    "lt": "Lithuanian",
    "ne": "Nepali",
    "no": "Norwegian",
    "fa": "Persian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sr": "Serbian",
    "st": "Sesotho",
    "es": "Spanish",
    "sv": "Swedish",
    "ta": "Tamil",
    "tr": "Turkish",
    "yi": "Yiddish",
}
"""ISO 639-1 code → name of every language that there is a Snowball stemmer for."""


def check_language(language: str) -> str:
    """Raise for an unknown language; else give its code back.

    :raises DataError: for another, with the codes that are known.
    """
    if language not in LANGUAGES:
        known_languages = ", ".join(
            f"{language_code} ({language_name})"
            for language_code, language_name in LANGUAGES.items()
        )
        raise DataError(f"language is {language!r}; choose from {known_languages}")
    return language
