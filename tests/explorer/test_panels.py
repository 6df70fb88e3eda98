"""The panel that unfolds a rollup: what its list and its table show, and what stands where no widget runs."""

from __future__ import annotations

import polars as pl
import pytest
from explored import DATA

from memlab.errors import DataError
from memlab.explorer.panels import unfold
from memlab.figures.provenance import NOTEBOOK_VARIABLE
from memlab.summaries import rollup


def test_a_node_opens_to_what_is_below_and_a_session_to_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = DATA.turns
    nodes = rollup(turns)
    panel = unfold(nodes, turns)
    assert {node for _, node in panel.node.options} == set(nodes["node_id"])
    panel.node.value = nodes.filter(kind="week")["node_id"][0]
    assert ">below<" in panel.html
    panel.node.value = nodes.filter(kind="session")["node_id"][0]
    assert ">its turns<" in panel.widget.children[1].value
    monkeypatch.setenv(NOTEBOOK_VARIABLE, "{}")
    assert set(panel._repr_mimebundle_()) == {"text/html", "text/plain"}
    with pytest.raises(DataError, match="no node"):
        unfold(pl.DataFrame(), turns)
