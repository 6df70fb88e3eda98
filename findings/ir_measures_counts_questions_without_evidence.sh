#!/usr/bin/env bash
# A question without evidence lowers every mean of ir_measures
#
# Versions: ir_measures 0.4.3, pytrec_eval-terrier 0.5.11
# Date: 2026-11-28
#
# Behaviour: A question for which documents are judged but none is relevant counts as 0 in the
# mean of recall, nDCG and reciprocal rank; one that has no line in the qrels is left out, even if
# it is in the run; and one that the run lacks counts as 0.
#
# Guess: A recall with nothing to recall is undefined: such a question is left out or is 1.
#
# Why it matters: Abstention questions of memory benchmarks have no evidence. Whether a converter
# writes lines of relevance 0 for them, as pools and judges produce, or none moves every number by
# their share, and two papers that use one tool differ.
#
# Output seen:
#   q2 has no line in the qrels:     {'R@5': 1.0, 'RR': 1.0, 'nDCG@5': 1.0}
#   q2 is judged, nothing relevant:  {'R@5': 0.5, 'RR': 0.5, 'nDCG@5': 0.5}
#   q3 is missing from the run:      {'R@5': 0.5, 'RR': 0.5, 'nDCG@5': 0.5}
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    ir_measures==0.4.3 pytrec_eval-terrier==0.5.11

"$work/venv/bin/python" - <<'PY'
import ir_measures
from ir_measures import RR, Qrel, R, ScoredDoc, nDCG

run = [ScoredDoc("q1", "turn_1", 2.0), ScoredDoc("q2", "turn_2", 2.0)]
evidence = [Qrel("q1", "turn_1", 1)]
judged_not_relevant = [*evidence, Qrel("q2", "turn_2", 0)]
not_answered = [*evidence, Qrel("q3", "turn_3", 1)]


def means(qrels):
    values = ir_measures.calc_aggregate([R @ 5, nDCG @ 5, RR], qrels, run)
    return {str(measure): value for measure, value in sorted(values.items(), key=str)}


print("q2 has no line in the qrels:    ", means(evidence))
print("q2 is judged, nothing relevant: ", means(judged_not_relevant))
print("q3 is missing from the run:     ", means(not_answered))
assert set(means(evidence).values()) == {1.0}
assert set(means(judged_not_relevant).values()) == {0.5}
assert set(means(not_answered).values()) == {0.5}
PY
