"""Names of systems as tables and legends write them: short, and different from each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from memlab.errors import DataError


def hide_model_files(pipeline: str) -> str:
    """Leave the files of models out of a pipeline's text.

    They make it long and say nothing to a reader.

    >>> from memlab.system_names import hide_model_files
    >>> hidden = hide_model_files("best | learned(model='./results/a.safetensors')")
    >>> hidden, hide_model_files("learned(model='a', k=3)")
    ('best | learned', 'learned(k=3)')
    """
    model_pattern = r"""model=(?:'[^']*'|"[^"]*")"""
    return re.sub(rf"\({model_pattern}\)|{model_pattern}, |, {model_pattern}", "", pipeline)


def short_names(names: Sequence[str], *, width: int = 40) -> dict[str, str]:
    """Cut the middle out of long names, and no more of it than leaves them different.

    >>> from memlab.system_names import short_names
    >>> list(short_names(["best | mmr(lambda_=0.5)", "best | mmr(lambda_=0.7)"], width=12).values())
    ['best |…=0.5)', 'best |…=0.7)']
    """
    distinct_names = dict.fromkeys(names)
    for name_length in range(width, max(map(len, distinct_names), default=0)):
        short_by_name = {name: _cut_middle(name, name_length) for name in distinct_names}
        if len(set(short_by_name.values())) == len(distinct_names):
            return short_by_name
    return {name: name for name in distinct_names}


def _cut_middle(name: str, size: int) -> str:
    if len(name) <= size:
        return name
    head_length = size // 2
    tail_length = size - head_length - 1
    return f"{name[:head_length]}…{name[-tail_length:]}"


def _is_one_line(name: Any) -> bool:
    if not isinstance(name, str) or not name.strip():
        return False
    return len(name.splitlines()) == 1


def check_system_names(names: Iterable[Any], *, reserved: Collection[str] = ()) -> None:
    """Refuse names of systems that tables and legends cannot show.

    :param reserved: what other rows of the tables are called.
    :raises DataError: for no name, one that is no text, is empty or has several lines, one that
        another system has, and one that is reserved.

    >>> from memlab.system_names import check_system_names
    >>> check_system_names(["MMR", "chance"], reserved=["ceiling", "chance"])
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: a row of the tables is called 'chance'; give that system another name
    """
    name_list = [*names]
    for name in name_list:
        if not _is_one_line(name):
            raise DataError(
                f"a system is called {name!r}; its name is a text of one line, and not empty"
            )
        if name in reserved:
            raise DataError(
                f"a row of the tables is called {name!r}; give that system another name"
            )
    if not name_list or len(set(name_list)) < len(name_list):
        raise DataError(f"systems are {name_list}; give at least one, each its own name, a text")
