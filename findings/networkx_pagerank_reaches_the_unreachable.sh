#!/usr/bin/env bash
# NetworkX's personalised PageRank scores nodes that cannot be reached
#
# Versions: networkx 3.6.1, scipy 1.17.1
# Date: 2026-11-28
#
# Behaviour: With the personalisation on one node, nodes of another component keep a small
# positive score (about 1e-6 to 1e-5): the iteration starts from the uniform distribution and
# stops at a tolerance of 1e-6 a node. A smaller tol makes them smaller, never zero. With nstart
# at the same node they are exactly 0.
#
# Guess: A random walk that always returns to its start never gets to another component: score 0,
# and score > 0 means connected.
#
# Why it matters: Graph memories rank facts by a walk from the entities of the question.
# Unconnected facts fill the list behind the connected ones, a test on score > 0 keeps all of
# them, and an answer looks as if the graph supported it.
#
# Output seen:
#   default: {'ann': 0.35, 'rome': 0.46, 'flight': 0.2, 'bob': 2.7e-06, 'tea': 2.7e-06}
#   tol=1e-9: {'ann': 0.35, 'rome': 0.46, 'flight': 0.2, 'bob': 2.9e-09, 'tea': 2.9e-09}
#   nstart: {'ann': 0.35, 'rome': 0.46, 'flight': 0.2, 'bob': 0.0, 'tea': 0.0}
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    networkx==3.6.1 scipy==1.17.1 numpy==2.4.6

"$work/venv/bin/python" - <<'PY'
import networkx

graph = networkx.Graph([("ann", "rome"), ("rome", "flight"), ("bob", "tea")])
start = {"ann": 1}


def scores(**options):
    ranked = networkx.pagerank(graph, personalization=start, **options)
    return {node: float(f"{score:.1e}") for node, score in ranked.items()}


default = scores()
tight = scores(tol=1e-9, max_iter=500)
exact = scores(nstart=start)
print("default:", default)
print("tol=1e-9:", tight)
print("nstart:", exact)
assert not networkx.has_path(graph, "ann", "tea")
assert 0 < tight["tea"] < default["tea"] < 1e-4
assert exact["tea"] == exact["bob"] == 0
PY
