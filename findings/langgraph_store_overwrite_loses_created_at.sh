#!/usr/bin/env bash
# langgraph's InMemoryStore forgets when a memory was created as soon as it is updated
#
# Versions: langgraph 1.2.24, langgraph-checkpoint 4.3.2
# Date: 2026-11-28
#
# Behaviour: `put` on a key that exists sets created_at to the time of the update; created_at and
# updated_at are always the same moment. The item keeps its old place in the order of results.
# `get` returns the stored dictionary itself: a change to `item.value` changes the store, and
# updated_at stays.
#
# Guess: created_at is kept at an update and only updated_at moves (there would be no need of two
# fields), and what `get` returns is a copy.
#
# Why it matters: Decay of confidence, "first said on" and as-of reading need the time at which a
# fact was learned. Managers such as langmem update facts in place, so each confirmation makes an
# old fact new. Tests on the in-memory store see dates that say nothing.
#
# Output seen:
#   created_at kept at an update: False
#   created_at and updated_at within 10 ms after an update: True
#   after a change to what get returned: {'text': 'edited by the reader'}
#   updated_at moved: False
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check \
    langgraph==1.2.24 langgraph-checkpoint==4.3.2

"$work/venv/bin/python" - <<'PY'
import time

from langgraph.store.memory import InMemoryStore

store = InMemoryStore()
store.put(("ann",), "home", {"text": "lives in Oslo"})
first = store.get(("ann",), "home")
time.sleep(0.05)
store.put(("ann",), "home", {"text": "lives in Rome"})
second = store.get(("ann",), "home")
kept = second.created_at == first.created_at
apart = abs((second.updated_at - second.created_at).total_seconds())
print("created_at kept at an update:", kept)
print("created_at and updated_at within 10 ms after an update:", apart < 0.01)
assert not kept
assert apart < 0.01

second.value["text"] = "edited by the reader"
third = store.get(("ann",), "home")
print("after a change to what get returned:", third.value)
print("updated_at moved:", third.updated_at != second.updated_at)
assert third.value == {"text": "edited by the reader"}
assert third.updated_at == second.updated_at
PY
