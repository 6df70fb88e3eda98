"""What of a prompt differs from run to run: rules of ``rules.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memlab.errors import ModelError

RULES = Path(__file__).with_name("rules.toml")


@dataclass(frozen=True)
class Rules:
    """Patterns of what is not compared.

    :param name: what identifies something: numbered by first appearance, put back into answers.
    :param mask: what is left out of the comparison where it stands; group 1 where there is one.
    """

    name: tuple[re.Pattern[str], ...] = ()
    mask: tuple[re.Pattern[str], ...] = ()

    def find_names(self, text: str) -> list[str]:
        """Give the distinct names of a text by first appearance.

        >>> Rules(name=(re.compile("id-.."),)).find_names("id-ab, id-cd, id-ab")
        ['id-ab', 'id-cd']
        """
        name_matches = list[re.Match[str]]()
        for pattern in self.name:
            name_matches += pattern.finditer(text)
        name_matches.sort(key=re.Match.start)
        return list(dict.fromkeys(match[0] for match in name_matches))

    def normalise(self, text: str) -> str:
        """Replace what differs from run to run.

        >>> Rules(mask=(re.compile("on (....)"),)).normalise("on 2025, 2025")
        'on <masked>, 2025'
        """
        for pattern in self.mask:
            text = pattern.sub(_mask_matched_part, text)
        for number, found_name in enumerate(self.find_names(text), 1):
            text = text.replace(found_name, f"<name {number}>")
        return text


def _mask_matched_part(mask_match: re.Match[str]) -> str:
    if mask_match.re.groups == 0:
        return "<masked>"
    group_start, group_end = mask_match.span(1)
    match_start = mask_match.start()
    return (
        mask_match[0][: group_start - match_start]
        + "<masked>"
        + mask_match[0][group_end - match_start :]
    )


def replace_substrings(text: str, new_by_old: Mapping[str, str]) -> str:
    """Replace what a text holds, all at once: what was put in is not replaced again.

    >>> replace_substrings("id-1, id-2", {"id-1": "id-2", "id-2": "id-3"})
    'id-2, id-3'
    """
    changed_names = [old_name for old_name in new_by_old if new_by_old[old_name] != old_name]
    if not changed_names:
        return text
    pattern = "|".join(map(re.escape, changed_names))
    return re.sub(pattern, lambda match: new_by_old[match[0]], text)


@cache
def read_rules(rules_path: Path = RULES) -> Rules:
    """Read the rules of all frameworks together.

    :raises ModelError: when the file cannot be read, or a pattern is none.

    >>> len(read_rules().name)
    2
    """
    try:
        tables = tomllib.loads(rules_path.read_text(encoding="utf-8"))
        return Rules(
            _compile_patterns(table.get("name", ()) for table in tables.values()),
            _compile_patterns(table.get("mask", ()) for table in tables.values()),
        )
    except (OSError, ValueError, AttributeError, TypeError, re.error) as error:
        raise ModelError(
            f"{rules_path}: no rules ({error}); give tables of TOML with lists of patterns, name "
            "and mask"
        ) from error


def _compile_patterns(pattern_lists: Iterable[Iterable[str]]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for patterns in pattern_lists for pattern in patterns)
