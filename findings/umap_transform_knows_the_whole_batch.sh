#!/usr/bin/env bash
# UMAP moves training points when they are transformed one fewer at a time
#
# Versions: umap-learn 0.5.12
# Date: 2026-11-28
#
# Behaviour: `transform` of exactly the data of the fit returns the fitted layout, because the
# input is recognised as the same. The same rows without the last are laid out anew: they lie off
# their own places by a large share of the spread of the map.
#
# Guess: A training point has its place, whatever else is in the batch.
#
# Why it matters: A map of a memory that is refreshed turn by turn shows old turns at new places,
# and an outlier or a drift in the map may be an effect of the batch. A test that transforms the
# training data shows perfect agreement and says nothing.
#
# Output seen:
#   all 200 rows moved by 0.0 of the spread
#   199 of them moved by more than .1 of the spread: True
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    umap-learn==0.5.12 numpy==2.4.6 scikit-learn==1.9.1 numba==0.68.1

"$work/venv/bin/python" - <<'PY'
import warnings

import numpy as np
import umap

warnings.filterwarnings("ignore")
rows = np.random.default_rng(0).normal(size=(200, 16)).astype("float32")
model = umap.UMAP(random_state=1, n_jobs=1, n_neighbors=10).fit(rows)
layout = model.embedding_
spread = np.linalg.norm(layout - layout.mean(axis=0), axis=1).mean()


def share_of_spread(count):
    moved = np.linalg.norm(model.transform(rows[:count]) - layout[:count], axis=1)
    return float(moved.mean() / spread)


whole = share_of_spread(200)
fewer = share_of_spread(199)
print("all 200 rows moved by", round(whole, 3), "of the spread")
print("199 of them moved by more than .1 of the spread:", fewer > 0.1)
assert whole == 0
assert fewer > 0.1
PY
