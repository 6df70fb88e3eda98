"""A comparison of systems as a page that needs no network: the tables, and what each returned, question by question."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.evaluate.misses import CAUSES
from memlab.evaluate.printing import to_html
from memlab.terminal import short

if TYPE_CHECKING:
    from memlab.experiments.systems import Comparison

_SHOWN, _LONGEST = 10, 400


def comparison_page(done: Comparison) -> str:
    """Write the page: what was said stands in it as data, never as markup."""
    about = done.about
    head = f"{about['dataset']}, {done.data.questions.height:,} questions; tests against {about['baseline']}"
    tables = "".join(
        f'<h2>{html.escape(title)}</h2><div class="wide">{to_html(table)}</div>'
        for title, table in done.tables().items()
    )
    content = json.dumps(_page_content(done), ensure_ascii=False).replace("<", "\\u003c")
    blank = (files("memlab.experiments") / "page.html").read_text(encoding="utf-8")
    title = f"Memories on {about['dataset']}"
    parts = {"ABOUT": html.escape(head), "TABLES": tables, "TITLE": html.escape(title), "DATA": content}
    # In one go, since a name may look like a place.
    return re.sub(r"__([A-Z]+)__", lambda place: parts[place[1]], blank)


def _page_content(done: Comparison) -> dict[str, Any]:
    """Give what the page shows, each text once."""
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(short(text, _LONGEST), len(texts))

    def of_system(name: str, query_id: str, wanted: list[str]) -> dict[str, Any]:
        key = name, query_id
        rows = [(number(text), not set(turns or ()).isdisjoint(wanted)) for text, turns in returned.get(key, ())]
        lost = [(number(spoken.get(turn, turn)), *place) for turn, *place in missed.get(key, ())]
        right = {"complete": values[key][0] == 1, "answer": values[key][1] == 1}
        return right | {"pieces": len(wanted) - len(lost), "rows": rows, "missed": lost}

    keys = ["system", "query_id"]
    spoken = dict(done.data.turns.select("turn_id", "text").iter_rows())
    names = done.systems["system"].to_list()
    values = done.per_query.select(*keys, "recall_all@10", "answer@1000 tokens").rows_by_key(keys, unique=True)
    first = done.returned.filter(pl.col("rank") <= _SHOWN)
    returned = first.select(*keys, "text", "turn_ids").rows_by_key(keys)
    missed = done.missed.rows_by_key(keys)
    questions = []
    for asked in done.data.questions.filter(pl.col("query_id").is_in(done.per_query["query_id"].implode())).to_dicts():
        wanted = list(dict.fromkeys(asked["evidence"]))
        each = [of_system(name, asked["query_id"], wanted) for name in names]
        about = {"id": asked["query_id"], "text": asked["text"], "answer": asked["answer"]}
        evidence = [number(spoken.get(turn, turn)) for turn in wanted]
        questions.append(about | {"kind": asked["question_type"], "evidence": evidence, "systems": each})
    return {"systems": names, "questions": questions, "texts": list(texts), "causes": CAUSES}
