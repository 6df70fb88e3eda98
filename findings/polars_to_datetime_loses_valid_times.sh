#!/usr/bin/env bash
# With strict=False Polars turns valid timestamps into null, and which ones depends on the way of
# calling
#
# Versions: polars 2.1.0
# Date: 2026-11-28
#
# Behaviour: A text with an offset (ISO 8601) is read by `Series.str.to_datetime(strict=False)`;
# the same call as an expression on a DataFrame gives null for every value, without a warning, and
# on a LazyFrame it is an error. In a Series in which some values carry an offset and others none,
# those of the kind of the first row stay and the rest become null. American dates are read day
# first, and those whose day is above 12 are null. With time_zone="UTC" the expression reads all
# that carry an offset.
#
# Guess: strict=False reads what can be read, every value by itself, and a method of a Series does
# what the expression of the same name does.
#
# Why it matters: Merged logs hold both kinds (an export in UTC, a tool in local time). Turns
# without a time drop out of sessions and of every filter by date, in silence; another order of
# the rows, or a refactoring from Series to expressions, gives another data set.
#
# Output seen:
#   Series: ['2026-05-01 15:00:00+00:00', '2026-05-01 15:00:00+00:00']
#   expression on a DataFrame: [None, None]
#   expression with time_zone: ['2026-05-01 15:00:00+00:00', '2026-05-01 15:00:00+00:00']
#   expression on a LazyFrame: ComputeError
#   Series, offset first: ['2026-05-01 15:00:00+00:00', 'None']
#   Series, no offset first: ['2026-05-01 10:00:00', 'None']
#   Series, American: ['2026-01-05 10:00:00', 'None']
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    polars==2.1.0

"$work/venv/bin/python" - <<'PY'
import polars as pl

zoned = "2026-05-01T10:00:00-05:00"
naive = "2026-05-01T10:00:00"


def read(*texts):
    times = pl.Series(texts).str.to_datetime(strict=False)
    return [str(time) for time in times.to_list()]


frame = pl.DataFrame({"time": [zoned, zoned]})
lenient = pl.col("time").str.to_datetime(strict=False)
in_frame = frame.select(lenient)["time"].to_list()
with_zone = frame.select(pl.col("time").str.to_datetime(strict=False, time_zone="UTC"))
print("Series:", read(zoned, zoned))
print("expression on a DataFrame:", in_frame)
print("expression with time_zone:", [str(time) for time in with_zone["time"].to_list()])
assert read(zoned, zoned) == ["2026-05-01 15:00:00+00:00"] * 2
assert in_frame == [None, None]
assert with_zone["time"].null_count() == 0
try:
    frame.lazy().select(lenient).collect()
    raise SystemExit("the lazy frame no longer refuses")
except pl.exceptions.ComputeError:
    print("expression on a LazyFrame: ComputeError")

print("Series, offset first:", read(zoned, naive))
print("Series, no offset first:", read(naive, zoned))
print("Series, American:", read("05/01/2026 10:00", "05/13/2026 10:00"))
assert read(zoned, naive) == ["2026-05-01 15:00:00+00:00", "None"]
assert read(naive, zoned) == ["2026-05-01 10:00:00", "None"]
assert read("05/01/2026 10:00", "05/13/2026 10:00") == ["2026-01-05 10:00:00", "None"]
PY
