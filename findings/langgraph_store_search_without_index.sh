#!/usr/bin/env bash
# langgraph's InMemoryStore answers a search that it cannot do
#
# Versions: langgraph 1.2.24, langgraph-checkpoint 4.3.2
# Date: 2026-11-28
#
# Behaviour: A store made without an index accepts `search(namespace, query="...")`, ignores the
# query and returns the first ten items in the order in which they were put, with score None and
# without an error or a warning. In a store with an index, an item put with index=False is
# returned as well, after the ranked items and with score None.
#
# Guess: A search by text in a store that has no embedding function raises an error, and what was
# kept out of the index is never a result of a search by text.
#
# Why it matters: The memory of an assistant looks as if it worked: it always answers, with the
# ten oldest notes. In an evaluation the recall is that of the oldest notes. Items kept out of the
# index on purpose (profiles, state) fill the places up to `limit`.
#
# Output seen:
#   no index: [('note0', None), ('note1', None), ('note2', None), ('note3', None), ('note4', None), ('note5', None), ('note6', None), ('note7', None), ('note8', None), ('note9', None)]
#   with an index: [('doctors', 1.0), ('cats', 0.14), ('profile', None)]
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check \
    langgraph==1.2.24 langgraph-checkpoint==4.3.2 numpy==2.4.6

"$work/venv/bin/python" - <<'PY'
from langgraph.store.memory import InMemoryStore

plain = InMemoryStore()
for number in range(15):
    topic = "doctors" if number == 13 else "cats"
    plain.put(("ann",), f"note{number}", {"text": f"a note about {topic}"})
rows = plain.search(("ann",), query="doctors")
print("no index:", [(row.key, row.score) for row in rows])
assert [row.key for row in rows] == [f"note{number}" for number in range(10)]
assert all(row.score is None for row in rows)


def embed(texts):
    return [[text.count("cat") + 0.1, text.count("doctor") + 0.1] for text in texts]


indexed = InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["text"]})
indexed.put(("ann",), "cats", {"text": "cat cat"})
indexed.put(("ann",), "doctors", {"text": "doctor doctor"})
indexed.put(("ann",), "profile", {"text": "doctor"}, index=False)
rows = indexed.search(("ann",), query="doctor", limit=3)
print("with an index:", [(row.key, row.score and round(row.score, 2)) for row in rows])
assert [row.key for row in rows] == ["doctors", "cats", "profile"]
assert rows[2].score is None
PY
