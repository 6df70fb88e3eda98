"""The explorer: a bench comes in, a map that answers questions goes out, in any Jupyter or marimo.

``map_scene`` lays the turns of a scope out and gives what a question draws on them; ``map_layout``
makes a layout fill its frame; ``map_drawing`` gives the browser what it draws, and draws the same
as a figure; ``notebook_widget`` is the widget, and what comes back from it; ``shared_page`` writes
it as one file to share; ``stored_cluster_names`` keeps names of clusters in the store.
``explorer.js`` and ``explorer.css`` draw, on regl-scatterplot, the engine of jupyter-scatter
(``regl-scatterplot.min.js``: version 1.16.0, MIT, bundled so that no network is needed);
``shared_page.js`` stands for the kernel where there is none.
"""

from __future__ import annotations

from memlab.errors import explain_arguments
from memlab.explorer.map_scene import Scene, answer_payload, build_scene, interpolate_positions
from memlab.explorer.notebook_widget import explore
from memlab.text.text_analyser import snippet

__all__ = ["Scene", "answer_payload", "build_scene", "explore", "interpolate_positions", "snippet"]

explain_arguments(globals())
