#!/usr/bin/env bash
# In a folder that was copied or moved, LanceDB's cleanup removes the versions that branches start at
#
# Versions: lancedb 0.40.0
# Date: 2026-11-30
#
# Behaviour: While a branch starts at a version, `optimize(cleanup_older_than=0)` leaves that
# version, so branches can hold versions of the main line. After the folder of the database was
# copied (or moved) the branches are listed as before, and the versions can be read; the first
# cleanup there removes them all, without an error or a warning. The branches are listed still.
#
# Guess: a folder of LanceDB is self-contained: what a branch holds it holds wherever the folder is.
#
# Why it matters: evaluations pin the state of a memory that they were run on. After a backup is
# restored, or a project folder is renamed, the first routine cleanup destroys these states. A
# branch that is created anew in the new place holds its version again.
#
# Output seen:
#   first place: v2 holds [1], v3 holds [2]
#   copied, before a cleanup: v2 holds [1], v3 holds [2]
#   copied, after a cleanup: v2 holds nothing, v3 holds nothing
#   copied, branches created anew, after a cleanup: w2 holds [1], w3 holds [2]
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check lancedb==0.40.0

cd "$work"
"$work/venv/bin/python" - <<'PY'
import shutil
import warnings
from datetime import timedelta

import lancedb
import pyarrow as pa

warnings.simplefilter("ignore")


def held(place):
    """What can be read of the version that each branch starts at."""
    branches = lancedb.connect(place).open_table("notes").branches.list()
    found = []
    for name, about in sorted(branches.items()):
        table = lancedb.connect(place).open_table("notes")
        try:
            table.checkout(about["parent_version"])
            rows = table.to_arrow()["n"].to_pylist()
        except RuntimeError:
            rows = "nothing"
        except ValueError:
            rows = "nothing"
        found.append(f"{name} holds {rows}")
    return ", ".join(found)


def clean(place):
    lancedb.connect(place).open_table("notes").optimize(cleanup_older_than=timedelta(0))


table = lancedb.connect("first").create_table("notes", pa.table({"n": [1]}))
for n in (2, 3):
    table.branches.create(f"v{n}", from_version=table.version)
    table.delete(f"n = {n - 1}")
    table.add(pa.table({"n": [n]}))

shutil.copytree("first", "copied")
shutil.copytree("first", "renewed")
clean("first")
lines = [f"first place: {held('first')}", f"copied, before a cleanup: {held('copied')}"]
clean("copied")
lines.append(f"copied, after a cleanup: {held('copied')}")

renewed = lancedb.connect("renewed").open_table("notes")
for name, about in renewed.branches.list().items():
    renewed.branches.create(f"w{name[1:]}", from_version=about["parent_version"])
    renewed.branches.delete(name)
clean("renewed")
lines.append(f"copied, branches created anew, after a cleanup: {held('renewed')}")
print("\n".join(lines))
assert lines == [
    "first place: v2 holds [1], v3 holds [2]",
    "copied, before a cleanup: v2 holds [1], v3 holds [2]",
    "copied, after a cleanup: v2 holds nothing, v3 holds nothing",
    "copied, branches created anew, after a cleanup: w2 holds [1], w3 holds [2]",
], "the behaviour has changed"
PY
