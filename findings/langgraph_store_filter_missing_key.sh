#!/usr/bin/env bash
# One memory without a field ends a filtered search of langgraph's InMemoryStore
#
# Versions: langgraph 1.2.24, langgraph-checkpoint 4.3.2
# Date: 2026-11-28
#
# Behaviour: `search(namespace, filter={"confidence": {"$gt": 0.5}})` raises TypeError as soon as
# one item of the namespace lacks the field. `{"confidence": {"$ne": 0.9}}` returns the items that
# lack it, and `{"confidence": None}` returns only those. A number that is kept as text is
# compared as a number.
#
# Guess: An item without the field does not match a comparison, as in MongoDB, whose operators
# these are, and text is not a number.
#
# Why it matters: Memories of one user are written by several versions of an assistant, and fields
# are added later. The first search with a threshold on a new field fails for all old users, and
# works in every test on new data.
#
# Output seen:
#   all items have the field, one of them as text: ['home', 'year']
#   one item lacks it: TypeError: float() argument must be a string or a real number, not 'NoneType'
#   $ne 0.9: ['year', 'old']
#   None: ['old']
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check \
    langgraph==1.2.24 langgraph-checkpoint==4.3.2

"$work/venv/bin/python" - <<'PY'
from langgraph.store.memory import InMemoryStore

store = InMemoryStore()
store.put(("ann",), "home", {"text": "lives in Rome", "confidence": 0.9})
store.put(("ann",), "year", {"text": "born in spring", "confidence": "0.7"})
condition = {"confidence": {"$gt": 0.5}}
found = [row.key for row in store.search(("ann",), filter=condition)]
print("all items have the field, one of them as text:", found)
assert found == ["home", "year"]

store.put(("ann",), "old", {"text": "likes tea"})
try:
    store.search(("ann",), filter=condition)
    raise SystemExit("the comparison no longer fails")
except TypeError as error:
    print("one item lacks it: TypeError:", error)
unequal = [row.key for row in store.search(("ann",), filter={"confidence": {"$ne": 0.9}})]
none = [row.key for row in store.search(("ann",), filter={"confidence": None})]
print("$ne 0.9:", unequal)
print("None:", none)
assert unequal == ["year", "old"]
assert none == ["old"]
PY
