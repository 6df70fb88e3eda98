#!/usr/bin/env bash
# A typing error costs LanceDB's fuzzy search more where words are stemmed
#
# Versions: lancedb 0.40.0
# Date: 2026-11-28
#
# Behaviour: With the default full-text index the query is stemmed before its distance is taken,
# and the misspelt word is often stemmed otherwise than the right one. One missing letter in
# lighthouse is not found with fuzziness=1, only with 2; with stem=False 1 is enough. A fuzziness
# of 2 on short words in return finds other words.
#
# Guess: fuzziness=1 forgives one wrong letter, whatever the index does to words.
#
# Why it matters: Chats are full of typing errors, and fuzzy search is switched on for them.
# Whether it helps depends on the endings of the words, so that a test on three names passes and
# the memory still misses.
#
# Output seen:
#   pianno fuzziness 1 stemmed: ['a piano for my sister']
#   pianno fuzziness 2 stemmed: ['a piano for my sister']
#   lighthose fuzziness 1 stemmed: []
#   lighthose fuzziness 2 stemmed: ['the lighthouse keeper']
#   lighthose fuzziness 1 stem=False: ['the lighthouse keeper']
#   rome fuzziness 2 stemmed: ['name it']
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    lancedb==0.40.0 pyarrow==26.0.1

"$work/venv/bin/python" - <<'PY'
import os
import tempfile

os.environ["LANCEDB_LOG"] = "error"

import lancedb
from lancedb.index import FTS
from lancedb.query import MatchQuery


def found(query, fuzziness, **options):
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            {"text": "the lighthouse keeper"},
            {"text": "a piano for my sister"},
            {"text": "name it"},
        ]
        table = lancedb.connect(folder).create_table("turns", rows)
        table.create_index("text", config=FTS(**options))
        match = MatchQuery(query, "text", fuzziness=fuzziness)
        return [row["text"] for row in table.search(match, query_type="fts").limit(5).to_list()]


for query in ("pianno", "lighthose"):
    for fuzziness in (1, 2):
        print(query, "fuzziness", fuzziness, "stemmed:", found(query, fuzziness))
print("lighthose fuzziness 1 stem=False:", found("lighthose", 1, stem=False))
assert found("pianno", 1)
assert not found("lighthose", 1)
assert found("lighthose", 2)
assert found("lighthose", 1, stem=False)
print("rome fuzziness 2 stemmed:", found("rome", 2))
assert found("rome", 2) == ["name it"]
PY
