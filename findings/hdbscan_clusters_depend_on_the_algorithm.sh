#!/usr/bin/env bash
# hdbscan's clusters depend on the algorithm and on the order of the rows
#
# Versions: hdbscan 0.8.44, scikit-learn 1.9.1
# Date: 2026-11-29
#
# Behaviour: With equal parameters `boruvka_kdtree`, which the default `best` takes here, and
# `prims_kdtree` give other clusters, also with `approx_min_span_tree=False`. Neither is wrong:
# both spanning trees have the same edge lengths. Mutual reachability makes many of these lengths
# equal even where all distances differ, and the clusters depend on which of the equal edges was
# taken first. So Prim's own clusters also change when the rows are shuffled.
# scikit-learn's HDBSCAN, which is Prim's as well, gives Prim's labels exactly once its
# `min_samples` is one more: it counts the point itself. hdbscan does not, though its documentation
# says "This includes the point itself".
#
# Guess: The algorithm changes the speed only, the order of the rows nothing, and one number means
# the same in both libraries.
#
# Why it matters: Topics of a memory change when a library's default or the order of an import
# does, and a comparison of two clusterings reads the difference as an effect of the embedding.
#
# Output seen (adjusted Rand index against Prim's):
#   blobs with noise: 27 clusters by Prim's, 24 by default
#   blobs with noise: edge lengths equal, 480 of 599 distinct
#   blobs with noise: default 0.913, exact tree 0.913, rows shuffled 0.869
#   blobs with noise: scikit-learn 1.0 with min_samples one more, 0.654 with the same
#   unit vectors: 4 clusters by Prim's, 8 by default
#   unit vectors: edge lengths equal, 527 of 599 distinct
#   unit vectors: default 0.675, exact tree 0.675, rows shuffled 0.699
#   unit vectors: scikit-learn 1.0 with min_samples one more, 0.492 with the same
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    hdbscan==0.8.44 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1

"$work/venv/bin/python" - <<'PY'
import warnings

import hdbscan
import numpy as np
import sklearn.cluster
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

warnings.filterwarnings("ignore")
LEAST = 5


def fit(rows, samples, algorithm, **options):
    options |= {"min_cluster_size": LEAST, "min_samples": samples, "algorithm": algorithm}
    return hdbscan.HDBSCAN(gen_min_span_tree=True, core_dist_n_jobs=1, **options).fit(rows)


def edge_lengths(model):
    return np.sort(model.minimum_spanning_tree_.to_numpy()[:, 2])


def scikit_labels(rows, samples):
    model = sklearn.cluster.HDBSCAN(min_cluster_size=LEAST, min_samples=samples, copy=True)
    return model.fit(rows).labels_


def agreement(labels, others):
    return round(float(adjusted_rand_score(labels, others)), 3)


def show(name, rows, samples):
    prims = fit(rows, samples, "prims_kdtree")
    boruvka = fit(rows, samples, "boruvka_kdtree")
    exact = fit(rows, samples, "boruvka_kdtree", approx_min_span_tree=False)
    labels = prims.labels_
    counts = [int(model.labels_.max()) + 1 for model in (prims, boruvka)]
    print(f"{name}: {counts[0]} clusters by Prim's, {counts[1]} by default")
    assert np.array_equal(boruvka.labels_, fit(rows, samples, "best").labels_)

    lengths = edge_lengths(prims)
    distinct = len(np.unique(lengths))
    assert np.allclose(lengths, edge_lengths(boruvka), rtol=1e-12, atol=0)
    assert distinct < len(lengths)
    print(f"{name}: edge lengths equal, {distinct} of {len(lengths)} distinct")

    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = fit(rows[order], samples, "prims_kdtree").labels_
    by_default = agreement(boruvka.labels_, labels)
    by_exact = agreement(exact.labels_, labels)
    by_order = agreement(shuffled, labels[order])
    print(f"{name}: default {by_default}, exact tree {by_exact}, rows shuffled {by_order}")
    assert max(by_default, by_exact, by_order) < 0.99

    one_more = scikit_labels(rows, samples + 1)
    same = agreement(scikit_labels(rows, samples), labels)
    same_labels = agreement(one_more, labels)
    print(f"{name}: scikit-learn {same_labels} with min_samples one more, {same} with the same")
    assert np.array_equal(one_more, labels)
    assert same < 0.99


blobs = make_blobs(400, centers=6, cluster_std=1.0, random_state=0)[0]
noise = np.random.default_rng(0).uniform(-12, 12, (200, 2))
show("blobs with noise", np.vstack([blobs, noise]), 3)
vectors = np.random.default_rng(6).normal(size=(600, 16))
show("unit vectors", vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 5)
PY
