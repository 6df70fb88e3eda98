#!/usr/bin/env bash
# LangChain's helpers for messages mix up people of one role
#
# Versions: langchain-core 1.8.3
# Date: 2026-11-28
#
# Behaviour: `get_buffer_string` writes the role and leaves out `name`, so that two people are
# both Human. `merge_message_runs` joins consecutive messages of two people into one: the text of
# both, the id of the first, no name.
#
# Guess: A run is a run of one speaker, and a transcript says who spoke where the messages say it.
#
# Why it matters: These two make the text that is summarised or from which facts are drawn. In a
# group chat the model is shown one person who contradicts himself, and facts go to the wrong
# person or to nobody.
#
# Output seen:
#   Human: I am allergic to nuts
#   Human: I eat everything
#   1 message, id 1 name None 'I am allergic to nuts\nI eat everything'
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    langchain-core==1.8.3

"$work/venv/bin/python" - <<'PY'
from langchain_core.messages import HumanMessage, get_buffer_string, merge_message_runs

talk = [
    HumanMessage("I am allergic to nuts", name="Ann", id="1"),
    HumanMessage("I eat everything", name="Bob", id="2"),
]
transcript = get_buffer_string(talk)
print(transcript)
assert transcript == "Human: I am allergic to nuts\nHuman: I eat everything"

merged = merge_message_runs(talk)
print(len(merged), "message, id", merged[0].id, "name", merged[0].name, repr(merged[0].content))
assert len(merged) == 1
assert merged[0].name is None
assert merged[0].id == "1"
PY
