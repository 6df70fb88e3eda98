#!/usr/bin/env bash
# pyarrow's reader of JSON lines does not look at lines
#
# Versions: pyarrow 26.0.1, polars 2.1.0
# Date: 2026-11-29
#
# Behaviour: pyarrow.json.read_json, documented as a reader of line-delimited JSON, gives two rows
# for a line that holds two objects, also with the strictest schema and options. polars'
# read_ndjson refuses it, as json.loads does.
#
# Guess: a line is a record, and one that holds more is refused.
#
# Why it matters: logs of chats are appended to by several processes, and a lost line break is their
# commonest damage. Whoever counts lines to name the bad one ("line 31,207"), or takes row n for
# line n, is wrong from there on. Of two readers of one file one refuses what the other reads.
#
# Output seen:
#   json    error: Extra data
#   pyarrow ['a', 'b', 'c']
#   polars  error
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    pyarrow==26.0.1 polars==2.1.0

"$work/venv/bin/python" - <<'PY'
import io
import json

import polars as pl
import pyarrow as pa
from pyarrow import json as arrow_json

lines = b'{"text": "a"}{"text": "b"}\n{"text": "c"}\n'
try:
    json.loads(lines.splitlines()[0])
except json.JSONDecodeError as error:
    print("json    error:", error.msg)
    assert error.msg == "Extra data"
strict = arrow_json.ParseOptions(
    explicit_schema=pa.schema({"text": pa.string()}), unexpected_field_behavior="error"
)
arrow = arrow_json.read_json(io.BytesIO(lines), parse_options=strict)["text"].to_pylist()
print("pyarrow", arrow)
assert arrow == ["a", "b", "c"]
try:
    frame = pl.read_ndjson(io.BytesIO(lines), schema={"text": pl.String})["text"].to_list()
except pl.exceptions.ComputeError:
    frame = "error"
print("polars ", frame)
assert frame == "error"
PY
