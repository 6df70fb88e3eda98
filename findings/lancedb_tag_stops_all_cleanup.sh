#!/usr/bin/env bash
# One tag on an old version stops LanceDB's whole cleanup; a branch from that version does not
#
# Versions: lancedb 0.40.0
# Date: 2026-11-29
#
# Behaviour: Once a tagged version is older than `cleanup_older_than`, and not the latest,
# `optimize` raises and removes no version, neither those before nor those after the tagged one.
# `optimize` has no option to go on. It has merged the small files by then, so that the call which
# was to free bytes leaves two more versions and more bytes. A branch made from the same version
# keeps that version and its files, and the versions between are removed.
# The guide says that a tag can stop cleanup; the docstring of `optimize` does not.
#
# Guess: A tag keeps its version and nothing else, and a branch costs at least as much.
#
# Why it matters: A memory whose states are tagged, to repeat a measurement on last month's state,
# works for the seven days of the default. From then on every maintenance run fails, and every
# write since the beginning stays on disk.
#
# Output seen:
#   20 writes: 20 versions, 830 kB
#   tags on 5 and 12: RuntimeError: 2 tagged version(s) have been marked for cleanup
#   after it: 22 versions, 1636 kB
#   branches from 5 and 12 in place of the tags: versions 5, 12, 22, 1292 kB
#   rows of the branches: 5, 12
#   without branches: versions 22, 804 kB
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    lancedb==0.40.0 pyarrow==26.0.1 numpy==2.4.6

"$work/venv/bin/python" - <<'PY'
import os
import tempfile
import warnings
from datetime import timedelta
from pathlib import Path

os.environ["LANCEDB_LOG"] = "error"
warnings.filterwarnings("ignore", message=".*cleanup_older_than=0.*")

import lancedb
import numpy as np
import pyarrow as pa

OLD = (5, 12)
WIDTH = 10_000
numbers = np.random.default_rng(0)


def one_row():
    vector = numbers.normal(size=WIDTH).astype("float32")
    return pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(vector), WIDTH)})


def versions(table):
    return [found["version"] for found in table.list_versions()]


def joined(values):
    return ", ".join(str(value) for value in values)


with tempfile.TemporaryDirectory() as folder:

    def size():
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())

    def kilobytes():
        return f"{size() / 1000:.0f} kB"

    table = lancedb.connect(folder).create_table("turns", one_row())
    for _ in range(19):
        table.add(one_row())
    written = size()
    print("20 writes:", len(versions(table)), "versions,", kilobytes())

    for version in OLD:
        table.tags.create(f"tag{version}", version)
    raised = ""
    try:
        table.optimize(cleanup_older_than=timedelta(0))
    except RuntimeError as error:
        raised = str(error).split("Cleanup error: ")[-1].split(".")[0]
    print("tags on 5 and 12: RuntimeError:", raised)
    print("after it:", len(versions(table)), "versions,", kilobytes())
    assert "2 tagged version(s)" in raised
    assert set(range(1, 21)) < set(versions(table))
    assert size() > written

    for version in OLD:
        table.tags.delete(f"tag{version}")
        table.branches.create(f"branch{version}", from_version=version)
    table.optimize(cleanup_older_than=timedelta(0))
    kept = versions(table)
    print("branches from 5 and 12 in place of the tags: versions", joined(kept) + ",", kilobytes())
    rows = [table.branches.checkout(f"branch{version}").count_rows() for version in OLD]
    print("rows of the branches:", joined(rows))
    assert kept == [*OLD, table.version]
    assert rows == list(OLD)

    for version in OLD:
        table.branches.delete(f"branch{version}")
    table.optimize(cleanup_older_than=timedelta(0))
    print("without branches: versions", joined(versions(table)) + ",", kilobytes())
    assert versions(table) == [table.version]
    assert table.count_rows() == 20
    assert size() < written
PY
