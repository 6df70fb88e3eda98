"""A comparison of systems as a page that needs no network: the tables, and what each returned, question by question."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.evaluate import CAUSES, to_html
from memlab.terminal import short

if TYPE_CHECKING:
    from memlab.experiments.systems import Comparison

_SHOWN, _LONGEST = 10, 400


def page(done: Comparison) -> str:
    """Write the page: what was said stands in it as data, never as markup."""
    about = done.about
    head = f"{about['dataset']}, {done.data.questions.height:,} questions; tests against {about['baseline']}"
    tables = "".join(
        f'<h2>{html.escape(title)}</h2><div class="wide">{to_html(table)}</div>'
        for title, table in done.tables().items()
    )
    content = json.dumps(_content(done), ensure_ascii=False).replace("<", "\\u003c")
    blank = (files("memlab.experiments") / "systems.html").read_text(encoding="utf-8")
    title = f"Memories on {about['dataset']}"
    parts = {"ABOUT": html.escape(head), "TABLES": tables, "TITLE": html.escape(title), "DATA": content}
    # In one go, since a name may look like a place.
    return re.sub(r"__([A-Z]+)__", lambda place: parts[place[1]], blank)


def _content(done: Comparison) -> dict[str, Any]:
    """Give what the page shows, each text once."""
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(short(text, _LONGEST), len(texts))

    spoken = dict(done.data.turns.select("turn_id", "text").iter_rows())
    names = done.systems["system"].to_list()
    values = {(row["system"], row["query_id"]): row for row in done.per_query.iter_rows(named=True)}
    first = done.returned.filter(pl.col("rank") <= _SHOWN).group_by("system", "query_id", maintain_order=True)
    rows = {key: part for key, *part in first.agg("text", "turn_ids").rows_by_key(["system", "query_id"]).items()}
    missed = done.missed.rows_by_key(["system", "query_id"])
    questions = []
    for asked in done.data.questions.filter(pl.col("query_id").is_in(done.per_query["query_id"].implode())).to_dicts():
        wanted, each = list(dict.fromkeys(asked["evidence"])), []
        for name in names:
            key = name, asked["query_id"]
            lost = missed.get(key, [])
            ((returned, sources),) = rows[key][0] if key in rows else (((), ()),)
            each.append(
                {
                    "complete": values[key]["recall_all@10"] == 1,
                    "answer": values[key].get("answer@1000 tokens") == 1,
                    "pieces": len(wanted) - len(lost),
                    "rows": [
                        (number(text), not set(turns or ()).isdisjoint(wanted))
                        for text, turns in zip(returned, sources, strict=True)
                    ],
                    "missed": [
                        (number(spoken.get(turn, turn)), rank, cause, nearest) for turn, rank, cause, nearest in lost
                    ],
                }
            )
        questions.append(
            {
                "id": asked["query_id"],
                "text": asked["text"],
                "answer": asked["answer"],
                "kind": asked["question_type"],
                "evidence": [number(spoken.get(turn, turn)) for turn in wanted],
                "systems": each,
            }
        )
    return {"systems": names, "questions": questions, "texts": list(texts), "causes": CAUSES}
