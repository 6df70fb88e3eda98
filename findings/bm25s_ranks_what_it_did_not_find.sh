#!/usr/bin/env bash
# bm25s answers unknown words with the newest documents
#
# Versions: bm25s 0.3.16
# Date: 2026-11-28
#
# Behaviour: `retrieve` always returns k documents. Where nothing matches they have score 0 and
# are the last of the corpus, in descending order here; where all scores are equal the last
# documents come first as well, and beside a real hit the order of the rest is another one. Words
# of one letter are dropped by the tokenizer: a query for R or C matches nothing and gets the same
# last documents.
#
# Guess: Documents with score 0 are left out, or come in the order of the corpus, as in a stable
# sort.
#
# Why it matters: A chat log is indexed in the order of time, so that a lexical search that found
# nothing returns the latest turns. Where evidence tends to be recent, recall rises by turns that
# match no word, and the order of ties is a hidden recency bonus.
#
# Output seen:
#   dentist ([8, 7, 6, 5], [0.0, 0.0, 0.0, 0.0])
#   R ([8, 7, 6, 5], [0.0, 0.0, 0.0, 0.0])
#   words ([8, 7, 6, 5], [0.17, 0.17, 0.17, 0.17])
#   Rome ([0, 8, 7, 5], [0.87, 0.0, 0.0, 0.0])
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    bm25s==0.3.16

"$work/venv/bin/python" - <<'PY'
import bm25s

corpus = ["I moved to Rome", "my code is in R", "we met in May"] + ["same words again"] * 6
retriever = bm25s.BM25()
retriever.index(bm25s.tokenize(corpus, show_progress=False), show_progress=False)


def search(query):
    tokens = bm25s.tokenize([query], show_progress=False)
    found, scores = retriever.retrieve(tokens, k=4, show_progress=False)
    return found[0].tolist(), [round(float(score), 2) for score in scores[0]]


for query in ("dentist", "R", "words", "Rome"):
    print(query, search(query))
assert search("dentist") == ([8, 7, 6, 5], [0, 0, 0, 0])
assert search("R") == search("dentist")
assert search("words")[0] == [8, 7, 6, 5]
assert search("Rome")[0][0] == 0
PY
