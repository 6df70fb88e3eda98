"""What memories lost when they wrote and when they searched."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from talk import dialogue

import memlab
from memlab.experiments.recorded_memories import (
    files_of_recorded_returns,
    memory_loss_table,
    read_recorded_memories,
    writing_and_searching_costs,
)

TALK = """
== ann 2026-03-01
Ann: I adopted a grey cat called Juniper from the shelter
Ann: my brother Felix moved to Lisbon in February
== ann 2026-03-08
Ann: the boiler was repaired for ninety euros by Marta
Ann: I have signed up for the pottery evening class
? listing: What did Ann say of cat, brother and boiler? = all < 1.1 1.2 2.1
? single: Which class is it? = pottery < 2.2
"""


def written_down(folder: Path, name: str, stored: list[dict], returned: list[dict]) -> None:
    for part in ("about", "stored", "returned"):
        (folder / part).mkdir(exist_ok=True)
    counts = {"calls": 2, "read": 400, "written": 40, "estimated": 1}
    about = {"versions": ["x 1"], "scope": "ann", "turns": 4, "questions": 2}
    about["phases"] = {"writing": counts}
    (folder / "about" / f"{name}.json").write_text(json.dumps(about))
    for part, rows in (("stored", stored), ("returned", returned)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / part / f"{name}.jsonl").write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = dialogue(TALK)
    first, second = data.questions["query_id"]
    cat = {"text": "I adopted a grey cat called Juniper from the shelter", "session": "ann/s1"}
    boiler = {"text": "the boiler was repaired for ninety euros by Marta", "session": "ann/s1"}
    returned = [{"query_id": first, "text": cat["text"]}, {"query_id": second, "text": "nothing"}]
    written_down(tmp_path, "notes", [cat, boiler], returned)
    return tmp_path


def test_losses_at_writing_and_at_searching_add_up(folder: Path) -> None:
    done = memlab.compare(
        ["bm25"], dialogue(TALK), runs=files_of_recorded_returns(folder), encoder=None
    )
    table = memory_loss_table(done, read_recorded_memories(folder))
    rows = {row["system"]: row for row in table.iter_rows(named=True)}
    own = rows["notes"]
    # Of the first question's three items one is found, one stored, one not; of the other's none.
    assert own["found"] == pytest.approx((1 / 3 + 0) / 2)
    assert own["lost at searching"] == pytest.approx((1 / 3 + 0) / 2)
    assert own["lost at writing"] == pytest.approx((1 / 3 + 1) / 2)
    assert (own["n"], own["items"], own["stored"]) == (2, 4, 2)
    assert own["same session"] == 0.5
    base = rows["bm25"]
    assert (base["lost at writing"], base["stored"]) == (0.0, None)


def test_costs_are_for_a_thousand(folder: Path) -> None:
    table = writing_and_searching_costs(
        read_recorded_memories(folder), input_price=1.0, output_price=10.0
    )
    writing, searching = table.iter_rows(named=True)
    assert (writing["calls"], writing["tokens read"], writing["tokens written"]) == (500, 1e5, 1e4)
    assert writing["price"] == pytest.approx(0.2)
    assert writing["estimated"] == 0.5
    assert (searching["phase"], searching["calls"]) == ("searching 1,000 questions", 0)


def test_what_is_not_there_is_said(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(memlab.DataError, match="holds no recorded memory"):
        read_recorded_memories(tmp_path / "none")
    (folder / "stored" / "notes.jsonl").write_text("{")
    with pytest.raises(memlab.DataError, match=r"run scripts/memories.py notes again"):
        read_recorded_memories(folder)


def test_what_is_written_down_stays_where_a_framework_does_not_repeat(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "scripts" / "memories.py"
    spec = importlib.util.spec_from_file_location("memories_script", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    place = tmp_path / "returned" / "notes.jsonl"
    place.parent.mkdir()
    first = '{"query_id": "q0", "text": "a"}\n{"query_id": "q1", "text": "b"}\n'
    other = first.replace('"b"', '"c"')
    assert module._write_or_compare(place, first, False).endswith("written")
    assert module._write_or_compare(place, first, False).endswith("the same bytes")
    kept = module._write_or_compare(place, other, False)
    assert kept.endswith("this run differs; the same first ten for 1 of 2 questions")
    assert place.read_text() == first
    module._write_or_compare(place, other, True)
    assert place.read_text() == other
