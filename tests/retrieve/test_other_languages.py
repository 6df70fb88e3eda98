"""Conversations in German: retrieval, selection and evaluation read their words."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from memlab import datasets, evaluate
from memlab.errors import DataError
from memlab.pipelines import pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench

GERMAN = [
    ("Anna", "Ich habe gestern zwei Wohnungen besichtigt, beide lagen am Fluss."),
    ("Bernd", "Wann ziehst du denn um?"),
    ("Anna", "Im März, wenn die Ärzte im Krankenhaus mir freigeben."),
    ("Bernd", "Ich habe mir ein Fahrrad gekauft und war damit an der Küste."),
    ("Anna", "Meine Schwester spielt jetzt Geige im Orchester."),
    ("Bernd", "Und wie geht es dem Hund? Die Hunde meiner Nachbarn bellen jede Nacht."),
    ("Anna", "Er war beim Tierarzt und hat neue Tabletten bekommen."),
]
ASKED = {"Welche Wohnung hat Anna besichtigt?": 1, "Welcher Arzt gab Anna frei?": 3, "Wessen Hund bellt?": 6}


def log(folder: Path, *, header: bool = True) -> Path:
    lines: list[dict[str, object]] = [{"memlab": {"format": "chatlog", "language": "de"}}] if header else []
    for n, (sender, text) in enumerate(GERMAN, 1):
        when = {"session": f"s{1 + (n > 4)}", "timestamp": f"2026-03-0{1 + (n > 4)}T09:{n:02}:00Z"}
        lines.append({"scope": "x", "sender": sender, "text": text, "id": f"m{n}"} | when)
    lines += [{"question": q, "scope": "x", "answer": "?", "evidence": [f"m{n}"]} for q, n in ASKED.items()]
    file = folder / "german.jsonl"
    file.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    return file


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return datasets.load(log(tmp_path))


def test_the_language_of_a_file(tmp_path: Path) -> None:
    german = datasets.load(log(tmp_path))
    unnamed = log(tmp_path, header=False)
    assert (german.language, datasets.load(unnamed).language) == ("de", "en")
    assert datasets.load(unnamed, language="de").language == "de"
    assert datasets.load(unnamed, language="de").fingerprint() != datasets.load(unnamed).fingerprint()
    assert datasets.load(unnamed, language="de").take(["x"]).language == "de"
    assert Bench.of(german, encoder=None).provenance["language"] == "de"
    with pytest.raises(DataError, match="choose from"):
        datasets.load(unnamed, language="deutsch")
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"memlab": {"language": "xx"}}\n{"scope": "x", "sender": "a", "text": "b"}')
    with pytest.raises(DataError, match=r"memlab\.language"):
        datasets.load(wrong)


def test_bm25_reads_the_stems_of_the_language(data: Dataset) -> None:
    run = pipeline("bm25").run(Bench.of(data, encoder=None))
    assert evaluate.evaluate(run, data, measures=["recall_all@1"]).per_query["recall_all@1"].to_list() == [1, 1, 1]
    assert run.provenance["language"] == data.language


@pytest.mark.parametrize(
    "text", ["combsum | prf | multi_hop", "bm25 | budget(tokens=30, content='sentences', limit=40)"]
)
def test_pipelines_work(data: Dataset, text: str) -> None:
    report = evaluate.evaluate(pipeline(text).run(Bench.of(data, encoder="hashing:64")), data)
    assert report.per_query.height == 3


def test_english_rules_say_so_once(data: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    from memlab.text.analysis import english_rules_apply

    english_rules_apply.cache_clear()
    bench = Bench.of(data, encoder="hashing:64")
    with caplog.at_level(logging.WARNING, "memlab"):
        for _ in range(2):
            plain, split = pipeline("bm25").run(bench), pipeline("bm25 | decompose(retriever='bm25')").run(bench)
        pipeline("bm25 | coverage").run(bench)
    assert [record.getMessage() for record in caplog.records] == [
        "the splitting of questions knows English alone and is left out of conversations in German; all else works"
    ]
    assert plain.frame["doc_id"].equals(split.frame["doc_id"])
