#!/usr/bin/env bash
# Windows of 7d and of 1w begin on different weekdays in Polars
#
# Versions: polars 2.1.0
# Date: 2026-11-28
#
# Behaviour: `truncate` and `group_by_dynamic` align every="1w" to Monday and every="7d" to the
# first of January 1970, a Thursday. "30d" is aligned to the same day, so that its windows begin
# on no first of a month and not at the first row.
#
# Guess: A week is seven days; or windows begin with the data.
#
# Why it matters: Weekly digests of a memory that are named by the two spellings hold other turns:
# a weekend and the Monday after it are in one window of 7d. What was summarised under one
# spelling is not found under the other.
#
# Output seen:
#   1w ['Mon 04 May', 'Mon 04 May', 'Mon 11 May']
#   7d ['Thu 30 Apr', 'Thu 07 May', 'Thu 07 May']
#   30d ['Tue 07 Apr', 'Thu 07 May', 'Thu 07 May']
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    polars==2.1.0

"$work/venv/bin/python" - <<'PY'
import datetime

import polars as pl

days = pl.Series(
    "day", [datetime.date(2026, 5, 6), datetime.date(2026, 5, 10), datetime.date(2026, 5, 11)]
)
starts = {every: days.dt.truncate(every) for every in ("1w", "7d", "30d")}
for every, start in starts.items():
    print(every, [f"{day:%a %d %b}" for day in start.to_list()])
assert starts["1w"].dt.weekday().to_list() == [1, 1, 1]
assert starts["7d"].dt.weekday().to_list() == [4, 4, 4]
assert starts["1w"].to_list()[1] != starts["1w"].to_list()[2]
assert starts["7d"].to_list()[1] == starts["7d"].to_list()[2]
dynamic = days.to_frame().group_by_dynamic("day", every="7d").agg(pl.len())
assert dynamic["day"].dt.weekday().to_list() == [4, 4]
PY
