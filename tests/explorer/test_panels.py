"""The panels: what a control shows, what a button writes, and what stands where no widget runs."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from explored import DATA

from memlab.errors import DataError
from memlab.explorer import panels
from memlab.figures.origin import RUNNING
from memlab.knowledge import confidence, resolve
from memlab.records import Fact, frame
from memlab.summaries import rollup

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ASKED = pl.DataFrame({"scope": ["u", "u"], "text": ["Where does Ann live?", "What does Bo play?"]})


def facts() -> pl.DataFrame:
    told = [
        Fact("f1", "u", "Ann", "lives in", "Oslo", "stated", [], datetime(2025, 1, 1, tzinfo=UTC)),
        Fact("f2", "u", "Ann", "lives in", "Rome", "stated", [], NOW),
        Fact("f3", "u", "Bo", "plays", "chess <b>", "stated", [], NOW),
    ]
    return confidence.score(resolve(frame(Fact, told)).facts, now=NOW)


def test_what_no_longer_holds_is_marked_and_shown() -> None:
    html = panels.weigh(ASKED, facts()).html
    assert "<s>Ann lives in Oslo</s>" in html
    assert "● current" in html
    assert "<s>Ann lives in Rome</s>" not in html


def test_the_question_and_the_weights_change_the_order() -> None:
    panel = panels.weigh(ASKED, facts())
    first = [panel.html.index(name) for name in ("Rome", "chess")]
    panel.controls["question"].value = 1
    second = [panel.html.index(name) for name in ("Rome", "chess")]
    assert first[0] < first[1]
    assert second[0] > second[1]


def test_the_button_writes_the_weights_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "memlab.toml"
    file.write_text("# mine\n[index]\nm = 4\n", encoding="utf-8")
    panel = panels.weigh(ASKED, facts(), path=file)
    panel.controls["graph"].value = 0.5
    panel.controls["write"].click()
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    assert written == {"index": {"m": 4}, "recall": {"vector": 0.4, "graph": 0.5, "confidence": 0.3}}
    assert file.read_text(encoding="utf-8").startswith("# mine")


def test_a_file_that_cannot_be_written_is_told_and_left(tmp_path: Path) -> None:
    file = tmp_path / "memlab.toml"
    file.write_text("not toml", encoding="utf-8")
    panel = panels.weigh(ASKED, facts(), path=file)
    panel.controls["write"].click()
    assert "not valid TOML" in panel.problem
    assert file.read_text(encoding="utf-8") == "not toml"


def test_a_node_opens_to_what_is_below_and_a_session_to_its_turns() -> None:
    turns = DATA.turns
    nodes = rollup(turns)
    panel = panels.unfold(nodes, turns)
    assert {node for _, node in panel.controls["node"].options} == set(nodes["node_id"])
    panel.controls["node"].value = nodes.filter(kind="week")["node_id"][0]
    assert ">below<" in panel.html
    panel.controls["node"].value = nodes.filter(kind="session")["node_id"][0]
    assert ">its turns<" in panel.html


def test_a_conversation_grows_by_a_turn() -> None:
    panel = panels.play(
        pl.DataFrame({"asked": ["Who?", "When <i>?"], "found": [None, "a"]}), columns=["asked", "found"]
    )
    assert "When &lt;i&gt;?" in panel.html
    panel.controls["turn"].value = 1
    assert "When" not in panel.html


def test_without_a_screen_the_table_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNNING, "{}")
    shown = panels.play(pl.DataFrame({"asked": ["Who?"]}), columns=["asked"])._repr_mimebundle_()
    assert set(shown) == {"text/html", "text/plain"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: panels.weigh(ASKED.clear(), facts()),
        lambda: panels.unfold(pl.DataFrame(), DATA.turns),
        lambda: panels.play(ASKED, columns=["nothing"]),
        lambda: panels.play(ASKED.clear(), columns=["text"]),
    ],
)
def test_nothing_to_show_is_an_error(make: object) -> None:
    with pytest.raises(DataError):
        make()  # type: ignore[operator]
