#!/usr/bin/env bash
# langmem's memory tool erases a memory that is updated without text, and deletes what is not
# there
#
# Versions: langmem 0.0.30, langgraph 1.2.24, langchain-core 1.8.3
# Date: 2026-11-28
#
# Behaviour: The tool that a model calls to manage memories accepts action update with an id and
# no content, and sets the content of that memory to null. Delete with an id that does not exist
# answers that it was deleted. Both replies read like success.
#
# Guess: An update without a text is refused or leaves the text as it is, and the deletion of an
# unknown id is reported, so that the model can try again.
#
# Why it matters: The caller is a language model, which leaves out optional arguments and invents
# ids. A fact is gone without a trace, and the model tells the user that it has forgotten what is
# still stored.
#
# Output seen:
#   update without content: updated memory ID {'content': None}
#   delete of an unknown id: Deleted memory 00000000-0000-0000-0000-000000000000
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    langmem==0.0.30 langgraph==1.2.24 langchain-core==1.8.3

"$work/venv/bin/python" - <<'PY'
from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool

store = InMemoryStore()
tool = create_manage_memory_tool(namespace=("ann",), store=store)
tool.invoke({"action": "create", "content": "Ann is allergic to nuts"})
(memory,) = store.search(("ann",))
reply = tool.invoke({"action": "update", "id": memory.key}).replace(memory.key, "ID")
(after,) = store.search(("ann",))
print("update without content:", reply, after.value)
assert after.value == {"content": None}

unknown = "00000000-0000-0000-0000-000000000000"
reply = tool.invoke({"action": "delete", "id": unknown})
print("delete of an unknown id:", reply)
assert reply.lower().startswith("deleted")
assert len(store.search(("ann",))) == 1
PY
