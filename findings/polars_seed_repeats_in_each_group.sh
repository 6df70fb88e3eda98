#!/usr/bin/env bash
# A seeded sample in Polars takes the same positions in every group
#
# Versions: polars 2.1.0
# Date: 2026-11-28
#
# Behaviour: `sample(n, seed=...)` and `shuffle(seed=...)` within `group_by` or `over` start from
# the seed again in each group: groups of one length are all sampled at the same positions and
# shuffled by the same permutation.
#
# Guess: The seed starts one stream of random numbers for the whole frame, and groups are drawn
# independently of each other.
#
# Why it matters: Turns or questions are sampled per conversation. Where conversations have one
# length, a sample that should be spread over the course of the talk holds turns 1, 3 and 4 of
# each, and a permutation test that shuffles labels in each conversation moves them all alike: its
# interval is too wide or its p-value wrong.
#
# Output seen:
#   sampled: [[4, 3, 0], [4, 3, 0], [4, 3, 0]]
#   shuffled: [[4, 2, 5, 1, 3, 0], [4, 2, 5, 1, 3, 0], [4, 2, 5, 1, 3, 0]]
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    polars==2.1.0

"$work/venv/bin/python" - <<'PY'
import polars as pl

turns = pl.DataFrame(
    {
        "chat": ["ann"] * 6 + ["bob"] * 6 + ["eve"] * 6,
        "turn": list(range(6)) * 3,
    }
)
sampled = turns.group_by("chat", maintain_order=True).agg(pl.col("turn").sample(3, seed=1))
shuffled = turns.with_columns(pl.col("turn").shuffle(seed=1).over("chat"))
permutations = shuffled.group_by("chat", maintain_order=True).agg("turn")["turn"].to_list()
print("sampled:", sampled["turn"].to_list())
print("shuffled:", permutations)
assert len(set(map(tuple, sampled["turn"].to_list()))) == 1
assert len(set(map(tuple, permutations))) == 1
PY
