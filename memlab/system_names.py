"""Names of systems as tables and legends write them: short, and different from each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from memlab.errors import DataError


def hide_model_files_in_pipeline_text(pipeline_text: str) -> str:
    """Leave the files of models out of a pipeline's text.

    They make it long and say nothing to a reader.

    >>> from memlab.system_names import hide_model_files_in_pipeline_text
    >>> hide_model_files_in_pipeline_text("best | learned(model='./results/a.safetensors')")
    'best | learned'
    >>> hide_model_files_in_pipeline_text("learned(model='a', k=3)")
    'learned(k=3)'
    """
    model_pattern = r"""model=(?:'[^']*'|"[^"]*")"""
    return re.sub(rf"\({model_pattern}\)|{model_pattern}, |, {model_pattern}", "", pipeline_text)


def shorten_names_distinctly(names: Sequence[str], *, width: int = 40) -> dict[str, str]:
    """Cut the middle out of long names, and no more of it than leaves them different.

    >>> from memlab.system_names import shorten_names_distinctly
    >>> names = ["best | mmr(lambda_=0.5)", "best | mmr(lambda_=0.7)"]
    >>> list(shorten_names_distinctly(names, width=12).values())
    ['best |…=0.5)', 'best |…=0.7)']
    """
    distinct_names = dict.fromkeys(names)
    for name_length in range(width, max(map(len, distinct_names), default=0)):
        short_by_name = {name: _cut_middle(name, name_length) for name in distinct_names}
        if len(set(short_by_name.values())) == len(distinct_names):
            return short_by_name
    return {name: name for name in distinct_names}


def _cut_middle(name: str, max_characters: int) -> str:
    if len(name) <= max_characters:
        return name
    head_length = max_characters // 2
    tail_length = max_characters - head_length - 1
    return f"{name[:head_length]}…{name[-tail_length:]}"


def _is_one_line_text(value: object) -> bool:
    if not isinstance(value, str) or not value.strip():
        return False
    return len(value.splitlines()) == 1


def check_system_names(names: Iterable[object], *, reserved: Collection[str] = ()) -> None:
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
        if not _is_one_line_text(name):
            raise DataError(
                f"a system is called {name!r}; its name is a text of one line, and not empty"
            )
        if name in reserved:
            raise DataError(
                f"a row of the tables is called {name!r}; give that system another name"
            )
    if not name_list or len(set(name_list)) < len(name_list):
        raise DataError(f"systems are {name_list}; give at least one, each its own name, a text")
