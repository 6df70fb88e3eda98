#!/usr/bin/env bash
# pytrec_eval sees ties between scores that differ
#
# Versions: pytrec_eval-terrier 0.5.11, ir_measures 0.4.3
# Date: 2026-11-28
#
# Behaviour: Scores are Python floats of 64 bits, but trec_eval's code keeps 32. Two scores near
# 20 that differ by 1e-7, or near .8 that differ by 1e-8, are a tie, and a tie is broken by the
# document's id, descending: the better document falls behind. The reciprocal rank is .5 instead
# of 1.
#
# Guess: Scores of double precision are compared in double precision, so a ranking with strictly
# decreasing scores is kept.
#
# Why it matters: Rescored or fused rankings, and those whose ties were parted by a tiny epsilon,
# are reordered by the ids when they are evaluated. With ids in the order of time, newer turns win
# the ties. An epsilon has to be relative to float32, or the score has to be the negative rank.
#
# Output seen:
#   first 20.0 + 1e-05, second 20.0: {'P@1': 1.0, 'RR': 1.0, 'nDCG@2': 1.0}
#   first 20.0 + 1e-07, second 20.0: {'P@1': 0.0, 'RR': 0.5, 'nDCG@2': 0.631}
#   first 0.8 + 1e-07, second 0.8: {'P@1': 1.0, 'RR': 1.0, 'nDCG@2': 1.0}
#   first 0.8 + 1e-08, second 0.8: {'P@1': 0.0, 'RR': 0.5, 'nDCG@2': 0.631}
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    ir_measures==0.4.3 pytrec_eval-terrier==0.5.11

"$work/venv/bin/python" - <<'PY'
import ir_measures
from ir_measures import RR, P, Qrel, ScoredDoc, nDCG

evidence = [Qrel("q", "turn_1", 1)]


def measured(score, gap):
    run = [ScoredDoc("q", "turn_1", score + gap), ScoredDoc("q", "turn_2", score)]
    assert run[0].score > run[1].score
    values = ir_measures.calc_aggregate([RR, P @ 1, nDCG @ 2], evidence, run)
    return {str(measure): round(value, 3) for measure, value in sorted(values.items(), key=str)}


for score, gap in ((20.0, 1e-5), (20.0, 1e-7), (0.8, 1e-7), (0.8, 1e-8)):
    print(f"first {score} + {gap:.0e}, second {score}:", measured(score, gap))
assert measured(20.0, 1e-5)["RR"] == 1
assert measured(20.0, 1e-7)["RR"] == 0.5
assert measured(0.8, 1e-7)["RR"] == 1
assert measured(0.8, 1e-8)["RR"] == 0.5
PY
