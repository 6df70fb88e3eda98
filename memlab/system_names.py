"""Names of systems as tables and legends write them: short, and different from each other."""

from __future__ import annotations

import re
from collections.abc import Sequence


def hide_model_files(pipeline: str) -> str:
    """Leave the files of models out of a pipeline's text: they make it long and say nothing to a reader.

    >>> from memlab.system_names import hide_model_files
    >>> hide_model_files("best | learned(model='./results/a.safetensors')"), hide_model_files("learned(model='a', k=3)")
    ('best | learned', 'learned(k=3)')
    """
    model = r"""model=(?:'[^']*'|"[^"]*")"""
    return re.sub(rf"\({model}\)|{model}, |, {model}", "", pipeline)


def short_names(names: Sequence[str], *, width: int = 40) -> dict[str, str]:
    """Cut the middle out of long names, and no more of it than leaves them different.

    >>> from memlab.system_names import short_names
    >>> list(short_names(["best | mmr(lambda_=0.5)", "best | mmr(lambda_=0.7)"], width=12).values())
    ['best |…=0.5)', 'best |…=0.7)']
    """
    distinct = dict.fromkeys(names)
    for size in range(width, max(map(len, distinct), default=0)):
        head, tail = size // 2, size - size // 2 - 1
        short = {
            name: name if len(name) <= size else f"{name[:head]}…{name[-tail:]}"
            for name in distinct
        }
        if len(set(short.values())) == len(distinct):
            return short
    return {name: name for name in distinct}
