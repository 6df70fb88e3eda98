"""Names that the settings declare to be one person's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.knowledge import believed, resolve
from memlab.knowledge.people import aliases, join_people, name_people
from memlab.records import Entity, Fact, frame

PEOPLE = {"Katharina": ["Kate", "Emi"], "b": {"Rafael": ["Emi's dad"]}}


def facts(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    day = [datetime(2026, 3, n + 1, tzinfo=UTC) for n in range(len(rows))]
    return frame(
        Fact,
        [
            Fact(f"{scope}/s1/{n + 1}/f", scope, who, relation, value, "stated", [f"{scope}/s1/{n + 1}"], day[n])
            for n, (scope, who, relation, value) in enumerate(rows)
        ],
    )


def test_two_names_of_a_person_are_one_subject_and_one_object() -> None:
    rows = facts(
        ("a", "emi", "lives in", "Leeds"), ("a", "Tom", "is friends with", "KATE"), ("a", "Ann", "has", "a cat")
    )
    joined = join_people(rows, PEOPLE)
    assert joined["subject"].to_list() == ["Katharina", "Tom", "Ann"]
    assert joined["object"].to_list() == ["Leeds", "Katharina", "a cat"]
    assert joined.drop("subject", "object").equals(rows.drop("subject", "object"))


def test_names_of_any_letters_are_joined() -> None:
    people = {"Jörg": ["WEIß", "Σοφός"]}
    rows = facts(("a", "Weiß", "has", "a cat"), ("a", "σοφός", "has", "a dog"))
    assert join_people(rows, people)["subject"].to_list() == ["Jörg", "Jörg"]
    assert name_people("Is Weiß here, or a Weißling?", people, "a") == "Is Jörg here, or a Weißling?"


def test_a_scope_has_names_of_its_own() -> None:
    rows = facts(("a", "Emi's dad", "works at", "the mill"), ("b", "Emi's dad", "works at", "the mill"))
    assert join_people(rows, PEOPLE)["subject"].to_list() == ["Emi's dad", "Rafael"]
    assert name_people("where does emi's dad work?", PEOPLE, "b") == "where does Rafael work?"
    assert name_people("Emily's and Emi's", PEOPLE, "a") == "Emily's and Katharina's"


def test_entities_of_declared_names_are_persons() -> None:
    rows = frame(Entity, [Entity("e1", "a", "a/s1", "Emi", "", "Emi came", ["a/s1/1"])])
    assert join_people(rows, PEOPLE).select("name", "type").rows() == [("Katharina", "person")]


@pytest.mark.parametrize(
    ("people", "says"),
    [
        ({"Kate": ["Emi"], "Ann": ["emi"]}, "gives 'emi' to 'Kate' and to 'Ann'"),
        ({"Kate": ["Emi"], "Ann": ["Kate"]}, "has 'Kate' as a person and as a name of 'Ann'"),
        ({"Kate": ["Emi", " "]}, "gives 'Kate' an empty name"),
    ],
)
def test_a_name_is_one_persons(people: dict[str, list[str]], says: str) -> None:
    with pytest.raises(DataError, match=says):
        aliases(people)


def test_what_one_name_says_ends_what_the_other_said() -> None:
    rows = facts(("a", "Emi", "lives in", "Leeds"), ("a", "Kate", "lives in", "Bergen"))
    assert believed(resolve(rows))["object"].to_list() == ["Leeds", "Bergen"]
    assert believed(resolve(join_people(rows, PEOPLE)))["object"].to_list() == ["Bergen"]


def test_the_command_line_knows_a_person_by_every_name(tmp_path: Path, memlab_cli: Any) -> None:
    lines = [("s1", "Emi", "I live in Leeds now.", 3), ("s2", "Kate", "I live in Bergen now.", 5)]
    rows = [
        {"scope": "a", "session": at, "sender": who, "text": text, "timestamp": f"2026-0{month}-01T10:00:00Z"}
        for at, who, text, month in lines
    ]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = 'encoder = "hashing:64"\n'
    (tmp_path / "memlab.toml").write_text(settings + '[people]\nKatharina = ["Kate", "Emi"]\n')
    for verb in (("ingest", "chat.jsonl"), ("index",)):
        assert memlab_cli(*verb, cwd=tmp_path).code == 0
    now = memlab_cli("facts", "--person", "emi", "--json", cwd=tmp_path)
    assert [json.loads(line)["object"] for line in now.out.splitlines()] == ["Bergen"]
    assert "names: Katharina" in memlab_cli("recall", "where does Emi live?", cwd=tmp_path).out
    assert "# Katharina" in memlab_cli("profile", "kate", cwd=tmp_path).out
    assert "Katharina (person), 2 sessions" in memlab_cli("entities", cwd=tmp_path).out
    (tmp_path / "memlab.toml").write_text(settings)
    assert memlab_cli("facts", "--person", "emi", "--json", cwd=tmp_path).out.count("Leeds") == 1
