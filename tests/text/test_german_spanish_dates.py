"""Dates of German and Spanish texts."""

from __future__ import annotations

from itertools import pairwise

import pytest

from memlab.rerank.word_features import _first_year_month_day_or_nan
from memlab.text.date_expressions import dates
from memlab.text.german_spanish_dates import (
    DATE_PATTERNS,
    MONTH_NAMES,
    month_number_of_name_or_digits,
)
from memlab.text.question_patterns import QUESTIONS

WRITTEN = {
    "de": {
        "Seit Oktober, im Mai und Ende August": "10 05 08",
        "am 24. Dezember 2023 und am 3.4.": "2023-12-24 04-03",
        "vom 5. Jan. 2024 bis zum ersten März": "2024-01-05 03-01",
        "24.09.2025, 24/9/25 und 2024-05-07": "2025-09-24 2025-09-24 2024-05-07",
        "im Jahr 2019, seit Sept. 2020, 2024-05": "2019 2020-09 2024-05",
        "den 29. Februar": "02-29",
        "30. Februar, 31.4.2023, 2023-13-45": "",
        "Version 1.2.3 auf 192.168.1.10 um 10.30 Uhr": "",
        "der Jan kam mit 2000 Leuten, vor 2000 Jahren": "",
        "die Septemberliste, märzlich": "",
    },
    "es": {
        "desde septiembre, en Mayo y a finales de enero": "09 05 01",
        "el 24 de diciembre de 2023 y el 3 de abril": "2023-12-24 04-03",
        "1º de mayo, primero de junio del 2024, 5 ene 2024": "05-01 2024-06-01 2024-01-05",
        "24/9/2025, 24-09-25 y 2024-05-07": "2025-09-24 2025-09-24 2024-05-07",
        "de 1999 a 2001, en octubre de 2023": "1999 2001 2023-10",
        "el 29 de febrero": "02-29",
        "30 de febrero, 12/31/2024, 31 de junio": "",
        "Julio y Abril vinieron a ver el mar": "",
        "a 2000 personas, en 2000 años": "",
    },
}
PHRASES = [(language, text) for language, rows in WRITTEN.items() for text in rows]


@pytest.mark.parametrize(("language", "text"), PHRASES)
def test_days_months_and_years_are_read(language: str, text: str) -> None:
    rows = dates(text, language=language)
    assert " ".join(row.value for row in rows) == WRITTEN[language][text]
    assert all(text[row.start : row.end] == row.text for row in rows)
    assert all(one.end <= two.start for one, two in pairwise(rows))


def test_languages_whose_questions_are_read_have_dates_of_their_own() -> None:
    assert DATE_PATTERNS.keys() == MONTH_NAMES.keys() == QUESTIONS.keys() - {"en"}
    for language, rows in MONTH_NAMES.items():
        names = [name for row in rows for name in row.split()]
        assert len(rows) == 12
        assert len(set(names)) == len(names)
        assert [month_number_of_name_or_digits(row.split()[-1], language) for row in rows] == list(
            range(1, 13)
        )
    with pytest.raises(KeyError):
        month_number_of_name_or_digits("march", "de")


def test_a_question_names_the_same_date_in_each_language() -> None:
    asked = {
        "en": "What did I buy on 3 May 2023?",
        "de": "Was habe ich am 3. Mai 2023 gekauft?",
        "es": "¿Qué compré el 3 de mayo de 2023?",
    }
    named = [_first_year_month_day_or_nan(text, language) for language, text in asked.items()]
    assert named == [[2023.0, 5.0, 3.0]] * 3
