"""Conversations of any size: the sample's messages again and again, with other names and days."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import memlab
from memlab.datasets import chatlog

SAMPLE = Path(__file__).parents[1] / "data" / "sample" / "sample.jsonl"
NAMES = "Ada Bo Cleo Dan Eve Finn Gus Hana Ivo June Karl Lena Max Nora Otto Pia Quinn Rosa Sven Tess Ugo Vera Will"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"


def repeated(turns: int, *, first: int = 0, one_scope: bool = False) -> memlab.Dataset:
    """Give a dataset of exactly ``turns`` turns.

    :param first: number of its first copy of the sample; each copy has names, days and ids of its own, and stands 300
        days after the one before.
    :param one_scope: whether all of it is one memory; else each memory of each copy is one.
    """
    lines = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    messages = [line for line in lines if "text" in line]
    senders = sorted({line["sender"] for line in messages} - {"assistant"})
    names, days, records = NAMES.split(), DAYS.split(), list[dict[str, Any]]()
    words = re.compile(rf"\b({'|'.join([*senders, *days])})\b", re.IGNORECASE)
    number, left = first, turns
    while left > 0:
        other = {name.lower(): names[(number + 5 * i) % len(names)] for i, name in enumerate(senders)}
        other |= {day.lower(): days[(number + i) % 7] for i, day in enumerate(days)}

        def changed(line: dict[str, Any], key: str, other: dict[str, str] = other, number: int = number) -> Any:
            text = words.sub(lambda word: other[word[0].lower()] if word[0][0].isupper() else word[0], line[key])
            prefix = f"{number}-{line['scope']}-"
            when = datetime.fromisoformat(line["timestamp"]) + timedelta(days=300 * (number - first))
            new = {"scope": "everything" if one_scope else prefix[:-1], key: text, "timestamp": when.isoformat()}
            new |= {name: prefix + line[name] for name in ("id", "session", "query_id") if name in line}
            cited = {name: [prefix + id for id in line[name]] for name in ("evidence", "stale") if name in line}
            return line | new | cited

        kept = [changed(line, "text") for line in messages[:left]]
        records += [line | {"sender": other.get(line["sender"].lower(), line["sender"])} for line in kept]
        scopes, there = {line["scope"] for line in kept}, {line["id"] for line in kept}
        for line in (changed(line, "question") for line in lines if "question" in line):
            if line["scope"] in scopes and there.issuperset(line.get("evidence", []) + line.get("stale", [])):
                records.append(line)
        number, left = number + 1, left - len(messages)
    return chatlog.dataset(records, f"repeated-{turns}")
