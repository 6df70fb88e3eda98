#!/usr/bin/env bash
# How much pyversity diversifies depends on the unit of the scores
#
# Versions: pyversity 0.2.0
# Date: 2026-11-28
#
# Behaviour: MMR takes scores as they are and weighs them against cosines. With scores 6, 5, 4 …
# (as BM25 gives them) and diversity=0.5 it returns the plain ranking with its three copies of one
# text; with the same ranking as .6, .5, .4 … it returns no copy. MSD changes as well. DPP and SSD
# give one answer for both.
#
# Guess: A parameter between 0 and 1 called diversity trades ranking against similarity on one
# scale: the scores are normalised first, or the ranks are used.
#
# Why it matters: Whoever swaps a dense retriever for BM25 behind the same diversity=0.5 switches
# diversification off without knowing, and a comparison of first stages with MMR compares units.
#
# Output seen:
#   MMR: scores 6 to 1 [0, 1, 2, 3], scores .6 to .1 [0, 3, 4, 5]
#   MSD: scores 6 to 1 [0, 1, 3, 2], scores .6 to .1 [0, 3, 4, 5]
#   DPP: scores 6 to 1 [0, 3, 4, 5], scores .6 to .1 [0, 3, 4, 5]
#   SSD: scores 6 to 1 [0, 3, 1, 2], scores .6 to .1 [0, 3, 1, 2]
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    pyversity==0.2.0

"$work/venv/bin/python" - <<'PY'
import numpy as np
from pyversity import Strategy, diversify

# Six candidates: three copies of one text, then three that are orthogonal to all others.
vectors = np.eye(4)[[0, 0, 0, 1, 2, 3]]
large = np.array([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])


def first_four(scores, strategy):
    done = diversify(
        embeddings=vectors, scores=scores, k=4, strategy=strategy, diversity=0.5
    )
    return [int(index) for index in done.indices]


seen = {}
for strategy in (Strategy.MMR, Strategy.MSD, Strategy.DPP, Strategy.SSD):
    seen[strategy] = first_four(large, strategy), first_four(large / 10, strategy)
    print(f"{strategy.name}: scores 6 to 1 {seen[strategy][0]}, scores .6 to .1 {seen[strategy][1]}")
assert seen[Strategy.MMR] == ([0, 1, 2, 3], [0, 3, 4, 5])
assert seen[Strategy.MSD][0] != seen[Strategy.MSD][1]
assert seen[Strategy.DPP][0] == seen[Strategy.DPP][1]
assert seen[Strategy.SSD][0] == seen[Strategy.SSD][1]
PY
