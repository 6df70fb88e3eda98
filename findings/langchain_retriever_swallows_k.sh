#!/usr/bin/env bash
# Whether a LangChain retriever refuses k depends on its other parameters
#
# Versions: langchain-core 1.8.3
# Date: 2026-11-28
#
# Behaviour: `retriever.invoke(query, k=20)` on a custom retriever whose method takes only the
# query and the run manager drops k in silence. Add any parameter with a default to that method,
# and the same call raises a TypeError that names k.
#
# Guess: An argument that no one takes is always an error, or never.
#
# Why it matters: A comparison of memories that asks each for 20 rows gets what the retriever
# likes, without a word; and code that was tried with a plain retriever fails with the next.
#
# Output seen:
#   plain retriever asked for 20: 4 rows and no error
#   one more parameter: WithSpeaker._get_relevant_documents() got an unexpected keyword argument 'k'
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    langchain-core==1.8.3

"$work/venv/bin/python" - <<'PY'
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

NOTES = [Document(page_content=f"note {number}") for number in range(4)]


class Plain(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return NOTES


class WithSpeaker(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager, speaker=None):
        return NOTES


rows = Plain().invoke("notes", k=20)
print("plain retriever asked for 20:", len(rows), "rows and no error")
assert len(rows) == 4
try:
    WithSpeaker().invoke("notes", k=20)
    raise SystemExit("k is no longer refused")
except TypeError as error:
    print("one more parameter:", error)
PY
