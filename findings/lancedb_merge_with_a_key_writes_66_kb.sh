#!/usr/bin/env bash
# With a primary key, each merge_insert into LanceDB writes 66 kB beside the row
#
# Versions: lancedb 0.40.0
# Date: 2026-11-29
#
# Behaviour: On a table with `set_unenforced_primary_key`, `merge_insert` on that key writes a
# filter of 32 KiB for the keys it inserted, once into the transaction and once into the manifest
# of the new version. Its size is the same for one row, a thousand rows and a row that was only
# updated. Without the key, or merged on another column, the two files are below 1 kB, as they are
# for `add`, `update` and `delete` on the same table. The filter lets concurrent merges notice
# that they insert the same key.
#
# Guess: A key that is not enforced is a note in the schema, which costs bytes once.
#
# Why it matters: Assistants write their memory turn by turn, with `merge_insert` so that a repeat
# does no harm. A hundred turns of 20 words, merged one by one, are 7.1 MB with a key and .5 MB
# without, until old versions are cleaned.
#
# Output seen (kB of manifest, transaction, data):
#   without a key: add 1 row 0.4 0.1 0.5
#   without a key: merge 1 new row 0.5 0.1 0.5
#   without a key: merge 1 old row 0.5 0.1 0.5
#   without a key: merge 1000 new rows 0.6 0.1 24.5
#   without a key: merge on text 0.6 0.1 0.5
#   without a key: update 0.6 0.1 0.5
#   without a key: delete 0.5 0.1 0.0
#   with a key: add 1 row 0.4 0.1 0.5
#   with a key: merge 1 new row 33.3 32.9 0.5
#   with a key: merge 1 old row 33.3 32.9 0.5
#   with a key: merge 1000 new rows 33.4 32.9 24.5
#   with a key: merge on text 0.7 0.1 0.5
#   with a key: update 0.7 0.1 0.5
#   with a key: delete 0.5 0.1 0.0
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    lancedb==0.40.0 pyarrow==26.0.1

"$work/venv/bin/python" - <<'PY'
import os
import tempfile
from pathlib import Path

os.environ["LANCEDB_LOG"] = "error"

import lancedb
import pyarrow as pa

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("text", pa.string())])
KINDS = ("_versions", "_transactions", "data")


def rows(*ids):
    texts = [f"text of {name}" for name in ids]
    return pa.table({"id": list(ids), "text": texts}, schema=SCHEMA)


def bytes_by_call(key):
    with tempfile.TemporaryDirectory() as folder:
        table = lancedb.connect(folder).create_table("turns", schema=SCHEMA)
        if key:
            table.set_unenforced_primary_key("id")

        def merge(data, on="id"):
            builder = table.merge_insert(on).when_matched_update_all()
            builder.when_not_matched_insert_all().execute(data)

        calls = {
            "add 1 row": lambda: table.add(rows("a")),
            "merge 1 new row": lambda: merge(rows("b")),
            "merge 1 old row": lambda: merge(rows("b")),
            "merge 1000 new rows": lambda: merge(rows(*(f"c{n}" for n in range(1000)))),
            "merge on text": lambda: merge(rows("d"), on="text"),
            "update": lambda: table.update(where="id = 'a'", values={"text": "other"}),
            "delete": lambda: table.delete("id = 'a'"),
        }
        root = Path(folder) / "turns.lance"
        written = {}
        before = {path for path in root.rglob("*") if path.is_file()}
        for name, call in calls.items():
            call()
            after = {path for path in root.rglob("*") if path.is_file()}
            sizes = dict.fromkeys(KINDS, 0)
            for path in after - before:
                kind = path.relative_to(root).parts[0]
                if kind in sizes:
                    sizes[kind] += path.stat().st_size
            written[name] = tuple(sizes.values())
            before = after
        return written


for key, title in ((False, "without a key"), (True, "with a key")):
    for name, sizes in bytes_by_call(key).items():
        print(f"{title}: {name}", *(f"{size / 1000:.1f}" for size in sizes))
        filtered = key and name.startswith("merge 1")
        for size in sizes[:2]:
            assert 32_768 < size < 35_000 if filtered else 0 < size < 1000, (name, size)
PY
