"""plotly, loaded when the first figure is drawn: ``from memlab.figures._plotly import go``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from memlab.errors import needs

__all__ = ["go"]

if TYPE_CHECKING:
    import plotly.graph_objects as go
else:

    class _Late:
        def __getattr__(self, name: str) -> Any:
            with needs("figures", "a figure"):
                return getattr(importlib.import_module("plotly.graph_objects"), name)

    go = _Late()
