"""The same eight exchanges in four languages come to the same facts."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from memlab import datasets
from memlab.knowledge import active_facts, extract, resolve
from memlab.knowledge.supersession import Resolved

TWINS = Path("data/facts/twins")
CURRENT = {
    "en": ("Fjordbank", "Ingrid", "Bergen", "4471"),
    "de": ("Fjordbank", "Ingrid", "Bergen", "4471"),
    "es": ("Fjordbank", "Ingrid", "Bergen", "4471"),
    "ja": ("フィヨルド銀行", "イングリッド", "ベルゲン", "4471"),
}
OVER = {
    "en": ("Nordlys", "Henrik", "Oslo", "4417", "Lisbon"),
    "de": ("Nordlys", "Henrik", "Oslo", "4417", "Lissabon"),
    "es": ("Nordlys", "Henrik", "Oslo", "4417", "Lisboa"),
    "ja": ("ノルドリス", "ヘンリック", "オスロ", "4417", "リスボン"),
}


def _resolved(language: str, monkeypatch: pytest.MonkeyPatch) -> Resolved:
    recordings = json.dumps([str(TWINS / "recorded.jsonl")])
    monkeypatch.setenv("MEMLAB_LLM__RECORDINGS", recordings)
    turns = datasets.load(TWINS / f"{language}.jsonl").turns
    found = extract(turns, service="recorded")
    assert found.outcomes["reason"].null_count() == found.outcomes.height
    return resolve(found.facts)


@pytest.mark.parametrize("language", CURRENT)
def test_updates_resolve_as_one_in_each_language(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = _resolved(language, monkeypatch)
    active = active_facts(resolved).filter(kind="state")["value"]
    for value in CURRENT[language]:
        assert active.str.contains(value, literal=True).any(), value
    closed = resolved.facts.filter("superseded", pl.col("kind") != "event")["value"]
    for value in OVER[language]:
        assert closed.str.contains(value, literal=True).any(), value
        assert not active.str.contains(value, literal=True).any(), value
